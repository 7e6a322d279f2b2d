// postgres.js
//
// packages: nodejs npm
import { text } from 'node:stream/consumers';
import postgres from 'postgres';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { BIG, EXTREMES, areNewIds, captions, end, pooled, same, trial } from '../lib/tap.mjs';

const options = { max: 4, prepare: !pooled };
// behind pgbouncer before 1.21, in transaction mode, the options must have prepare: false
const sql = postgres(process.env.DATABASE_URL, options);

await trial('default and RETURNING', async () => {
  areNewIds((await sql`INSERT INTO insta5.photos ${sql({ caption: 'a' })} RETURNING id`).map((r) => r.id), 1);
  areNewIds((await sql`INSERT INTO insta5.comments ${sql({ body: 'a' })} RETURNING id`).map((r) => r.id), 1);
});

await trial('a bulk insert: IDs in the order of the rows', async () => {
  const photos = captions(3000).map((caption) => ({ caption }));
  // recipe: bulk
  // photos: [{ caption: 'sunset' }, ...]; the IDs come back in their order
  const rows = await sql`INSERT INTO insta5.photos ${sql(photos)} RETURNING id, caption`;
  // end of recipe
  areNewIds(rows.map((r) => r.id), 3000);
  same(rows.map((r) => ({ caption: r.caption })), photos);
});

await trial('COPY, IDs made by the server', async () => {
  const lines = captions(3000).map((c) => `copied ${c}\n`);
  // lines: as COPY wants them, 'caption\n'
  await pipeline(Readable.from(lines), await sql`COPY insta5.photos (caption) FROM STDIN`.writable());
  const rows = await sql`SELECT id, caption FROM insta5.photos WHERE caption ~ '^copied' ORDER BY id`;
  areNewIds(rows.map((r) => r.id), 3000);
  same(rows.map((r) => `${r.caption}\n`), lines);
});

await sql`TRUNCATE insta5.photos, insta5.comments`;
for (const table of ['photos', 'comments'].map((name) => sql(`insta5.${name}`))) {
  const name = table.value;
  await trial(`COPY with IDs: all 64 bits, ${name}`, async () => {
    const lines = EXTREMES.map((id) => `${id}\n`);
    await pipeline(Readable.from(lines), await sql`COPY ${table} (id) FROM STDIN`.writable());
    same(await text(await sql`COPY (SELECT id FROM ${table} ORDER BY id) TO STDOUT`.readable()), lines.join(''));
    await sql`DELETE FROM ${table}`;
  });
  await trial(`an ID as a parameter, read, and in an array: ${name}`, async () => {
    for (const id of EXTREMES) {
      same([...await sql`INSERT INTO ${table} ${sql({ id: BigInt(id) })} RETURNING id`], [{ id }]);
      for (const parameter of [id, BigInt(id)])
        same([...await sql`SELECT id FROM ${table} WHERE id = ${parameter}`], [{ id }]);
      same([...await sql`SELECT id FROM ${table} WHERE id = ANY (${[id]})`], [{ id }]);
      same([...await sql`SELECT id FROM ${table} WHERE id IN ${sql([id, '2'])}`], [{ id }]);
    }
  });
  await trial(`a number is not the ID that it was: ${name}`, async () => {
    same([...await sql`SELECT id FROM ${table} WHERE id = ${Number(BIG)}`], []);
  });
  await trial(`a prepared statement: ${name}`, async () => {
    for (const id of [...EXTREMES, ...EXTREMES])
      same([...await sql`SELECT id FROM ${table} WHERE id = ${id}`], [{ id }]);
  });
}

await trial('an array column takes strings', async () => {
  same([...await sql`INSERT INTO insta5.comments (likers) VALUES (${[BIG, '5']}) RETURNING likers::text`], [{ likers: `{${BIG},5}` }]);
});
await trial('an array of BigInt, bigint', async () => {
  same([...await sql`SELECT id FROM insta5.photos WHERE id = ANY (${[BigInt(BIG)]})`], [{ id: BIG }]);
}, 'requires array on right side');
await trial('an array of BigInt, instaid.id', async () => {
  same([...await sql`SELECT id FROM insta5.comments WHERE id = ANY (${[BigInt(BIG)]})`], [{ id: BIG }]);
}, 'requires array on right side');
await trial('arrays read', async () => {
  same([...await sql`SELECT ARRAY[id] AS a FROM insta5.photos WHERE id = ${BIG}`], [{ a: [BIG] }]);
  same([...await sql`SELECT ARRAY[id] AS a FROM insta5.comments WHERE id = ${BIG}`], [{ a: [BIG] }]);
});

await trial('instaid.id registered as BigInt', async () => {
  // recipe: register
  const [type] = await sql`SELECT 'instaid.id'::regtype::oid AS id`;
  const withBigInt = postgres(process.env.DATABASE_URL, { ...options,
    types: { bigint: postgres.BigInt, instaid: { to: type.id, from: [type.id], serialize: String, parse: BigInt } },
  });
  // end of recipe
  const id = BigInt(BIG);
  same([...await withBigInt`SELECT id, ARRAY[id, 7] AS a FROM insta5.comments WHERE id = ${id}`], [{ id, a: [id, 7n] }]);
  same([...await withBigInt`SELECT id FROM insta5.photos WHERE id = ${id}`], [{ id }]);
  await withBigInt.end();
});

await trial('a transaction that is rolled back', async () => {
  let lost;
  await sql.begin(async (sql) => {
    [{ id: lost }] = await sql`INSERT INTO insta5.photos DEFAULT VALUES RETURNING id`;
    throw 'rolled back';
  }).catch((error) => same(error, 'rolled back'));
  const [{ id: kept }] = await sql`INSERT INTO insta5.photos DEFAULT VALUES RETURNING id`;
  areNewIds([lost, kept], 2);
  same([...await sql`SELECT id FROM insta5.photos WHERE id IN ${sql([lost, kept])}`], [{ id: kept }]);
});

await trial('a cursor', async () => {
  for await (const rows of sql`SELECT id FROM insta5.comments WHERE likers IS NULL ORDER BY id`.cursor(2)) {
    same([...rows], EXTREMES.slice(0, 2).map((id) => ({ id })));
    break;
  }
});

await trial('200 inserts at once in a pool', async () => {
  const results = await Promise.all(Array.from({ length: 200 }, () => sql`INSERT INTO insta5.photos DEFAULT VALUES RETURNING id`));
  areNewIds(results.map(([r]) => r.id).sort(), 200);
});

await sql.end();
end();
