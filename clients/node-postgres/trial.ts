// node-postgres with pg-copy-streams and pg-cursor, and an Express application
//
// packages: nodejs npm
import pg from 'pg';
import Cursor from 'pg-cursor';
import { to as copyTo } from 'pg-copy-streams';
import { from as copyFrom } from 'pg-copy-streams';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { text } from 'node:stream/consumers';
import { BIG, EXTREMES, areNewIds, captions, end, pooled, same, trial } from '../lib/tap.mjs';
import { app, pool } from './app.ts';

const client = await pool.connect();
const query = async (...args) => (await client.query(...args)).rows;

await trial('default and RETURNING', async () => {
  for (const table of ['photos (caption)', 'comments (body)'])
    areNewIds((await query(`INSERT INTO insta5.${table} VALUES ($1) RETURNING id`, ['a'])).map((r) => r.id), 1);
});

await trial('a bulk insert: IDs in the order of the rows', async () => {
  const all = captions(3000);
  // recipe: bulk
  // all: the captions; the IDs come back in their order
  const { rows } = await client.query(
    'INSERT INTO insta5.photos (caption) SELECT unnest($1::text[]) RETURNING id, caption', [all]);
  // end of recipe
  areNewIds(rows.map((r) => r.id), 3000);
  same(rows.map((r) => r.caption), all);
});

await trial('COPY, IDs made by the server', async () => {
  const lines = captions(3000).map((c) => `copied ${c}\n`);
  // lines: as COPY wants them, 'caption\n'
  await pipeline(Readable.from(lines), client.query(copyFrom('COPY insta5.photos (caption) FROM STDIN')));
  const rows = await query("SELECT id, caption FROM insta5.photos WHERE caption ~ '^copied' ORDER BY id");
  areNewIds(rows.map((r) => r.id), 3000);
  same(rows.map((r) => `${r.caption}\n`), lines);
});

// the binary form of an ID is that of bigint
const binaryRow = (id) => {
  const row = Buffer.alloc(14);
  row.writeInt16BE(1, 0);
  row.writeInt32BE(8, 2);
  row.writeBigInt64BE(BigInt(id), 6);
  return row;
};
for (const table of ['photos', 'comments'])
  await trial(`COPY with IDs, text and binary: all 64 bits, ${table}`, async () => {
    const inText = EXTREMES.map((id) => `${id}\n`);
    const inBinary = [Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1'), ...EXTREMES.map(binaryRow), Buffer.from([255, 255])];
    for (const [format, data] of [['text', inText], ['binary', inBinary]]) {
      await query('TRUNCATE insta5.photos, insta5.comments');
      await pipeline(Readable.from(data), client.query(copyFrom(`COPY insta5.${table} (id) FROM STDIN (FORMAT ${format})`)));
      same(await query(`SELECT id FROM insta5.${table} ORDER BY id`), EXTREMES.map((id) => ({ id })));
      same(await text(client.query(copyTo(`COPY (SELECT id FROM insta5.${table} ORDER BY id) TO STDOUT`))), inText.join(''));
    }
  });

await query('TRUNCATE insta5.photos, insta5.comments');
for (const table of ['photos', 'comments']) {
  await trial(`an ID as a parameter, read, and in an array: ${table}`, async () => {
    for (const id of EXTREMES) {
      same(await query(`INSERT INTO insta5.${table} (id) VALUES ($1) RETURNING id`, [BigInt(id)]), [{ id }]);
      for (const parameter of [id, BigInt(id)]) {
        same(await query(`SELECT id FROM insta5.${table} WHERE id = $1`, [parameter]), [{ id }]);
        same(await query(`SELECT id FROM insta5.${table} WHERE id = ANY ($1)`, [[parameter]]), [{ id }]);
      }
    }
  });
  await trial(`a number is not the ID that it was: ${table}`, async () => {
    same(await query(`SELECT id FROM insta5.${table} WHERE id = $1`, [Number(BIG)]), []);
  });
}

await trial('an array column takes strings, BigInt and small numbers', async () => {
  same(await query("INSERT INTO insta5.comments (likers) VALUES ($1) RETURNING likers::text", [[BIG, 5n, 1]]), [{ likers: `{${BIG},5,1}` }]);
});

await trial('bigint[] is read as strings, instaid.id[] as one string', async () => {
  same(await query('SELECT ARRAY[id] AS a FROM insta5.photos WHERE id = $1', [BIG]), [{ a: [BIG] }]);
  same(await query('SELECT ARRAY[id] AS a FROM insta5.comments WHERE id = $1', [BIG]), [{ a: `{${BIG}}` }]);
});

await trial('instaid.id registered as BigInt, and its array', async () => {
  // recipe: register
  const { rows: [type] } = await client.query("SELECT 'instaid.id'::regtype::oid AS id, 'instaid.id[]'::regtype::oid AS array");
  const parseArray = pg.types.getTypeParser(1016);      // bigint[]
  pg.types.setTypeParser(type.id, BigInt);
  const toBigInt = (value: any): any => Array.isArray(value) ? value.map(toBigInt) : value && BigInt(value);
  pg.types.setTypeParser(type.array, (text) => toBigInt(parseArray(text)));
  // end of recipe
  same(await query('SELECT id, ARRAY[[id, 7], [NULL, 0]] AS a, ARRAY[id] AS b FROM insta5.comments WHERE id = $1', [BIG]),
    [{ id: BigInt(BIG), a: [[BigInt(BIG), 7n], [null, 0n]], b: [BigInt(BIG)] }]);
  pg.types.setTypeParser(type.id, String);
});

await trial('bigint parsed as a number, a common setting, is rounded; instaid.id is not', async () => {
  pg.types.setTypeParser(20, Number);
  const rows = await query('SELECT id, id::bigint AS bigint FROM insta5.comments WHERE id = $1', [BIG]);
  pg.types.setTypeParser(20, String);
  same(rows, [{ id: BIG, bigint: Number(BIG) }]);
});

// in transaction mode, pgbouncer before 1.21 forgets names
await trial('a prepared statement', async () => {
  for (const table of ['photos', 'comments'])
    for (const id of [...EXTREMES, ...EXTREMES])
      same(await query({ name: pooled ? undefined : table, text: `SELECT id FROM insta5.${table} WHERE id = $1`, values: [id] }), [{ id }]);
});

await trial('a transaction that is rolled back', async () => {
  await query('BEGIN');
  const [{ id: lost }] = await query('INSERT INTO insta5.photos DEFAULT VALUES RETURNING id');
  await query('ROLLBACK');
  const [{ id: kept }] = await query('INSERT INTO insta5.photos DEFAULT VALUES RETURNING id');
  areNewIds([lost, kept], 2);
  same(await query('SELECT id FROM insta5.photos WHERE id = ANY ($1)', [[lost, kept]]), [{ id: kept }]);
});

await trial('a cursor', async () => {
  const cursor = client.query(new Cursor('SELECT id FROM insta5.comments WHERE likers IS NULL ORDER BY id'));
  same(await cursor.read(2), EXTREMES.slice(0, 2).map((id) => ({ id })));
  await cursor.close();
});

await trial('200 inserts at once in a pool', async () => {
  const results = await Promise.all(Array.from({ length: 200 }, () => pool.query('INSERT INTO insta5.photos DEFAULT VALUES RETURNING id')));
  areNewIds(results.map((r) => r.rows[0].id).sort(), 200);
});

await trial('JSON of the server: instaid.id is a string, bigint a number that is rounded', async () => {
  const [{ photo, comment }] = await query(`SELECT to_json(p) AS photo, to_json(c) AS comment
    FROM insta5.photos p, insta5.comments c WHERE p.id = $1 AND c.id = $1`, [BIG]);
  same(photo.id, Number(BIG));
  same(comment.id, BIG);
});

const server = app.listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const url = `http://127.0.0.1:${server.address().port}/photos`;
await trial('Express: IDs keep their digits in a browser and back', async () => {
  const created = JSON.parse(await (await fetch(url, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ caption: 'sent' }) })).text());
  areNewIds([created.id], 1);
  for (const parser of [String, BigInt]) {
    pg.types.setTypeParser(20, parser);
    for (const id of [created.id, ...EXTREMES])
      same(JSON.parse(await (await fetch(`${url}/${id}`)).text()).id, id);
  }
  pg.types.setTypeParser(20, String);
  same((await fetch(`${url}/7`)).status, 404);
});
await trial('Express without the replacer: JSON of a BigInt', async () => {
  JSON.stringify({ id: BigInt(BIG) });
}, 'Do not know how to serialize a BigInt');
server.close();

client.release();
end();
