// Drizzle with drizzle-kit, over node-postgres and postgres.js
//
// packages: nodejs npm
import pg from 'pg';
import postgres from 'postgres';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { drizzle } from 'drizzle-orm/node-postgres';
import { drizzle as drizzleOverPostgresJs } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import { asc, eq, inArray, sql } from 'drizzle-orm';
import { BIG, EXTREMES, areNewIds, captions, end, pooled, same, trial } from '../lib/tap.mjs';
import { comments, photos } from './schema.ts';
import { createTenant, makeTables, migrateShard } from './shards.ts';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 4 });
const ids = (rows) => rows.map((r) => r.id);

const kit = (args, env = {}) => {
  const { stdout, stderr } = spawnSync('../node_modules/.bin/drizzle-kit', args, { env: { ...process.env, ...env }, encoding: 'utf8' });
  return stdout + stderr;
};
// the statements that push would run; it asks first, and nobody answers
const planned = (env) => {
  const printed = kit(['push', '--strict', '--verbose'], env);
  return printed.match(/No changes detected|^(ALTER|CREATE|DROP) .*/gm)?.join('\n') ?? printed;
};

await trial('push has nothing to do, if schema and sequence are exported', async () => {
  same(planned({ SCHEMA: 'push', TABLES: 'photos' }), 'No changes detected');
});
await trial('push drops a sequence that is not exported', async () => {
  same(planned({ SCHEMA: 'push', TABLES: 'photos', FORGET: '1' }), 'DROP SEQUENCE "insta5"."table_id_seq";');
});
await trial('push does not know a column of instaid.id', async () => {
  same(planned({ SCHEMA: 'schema' }), 'No changes detected');
}, 'SET DATA TYPE');

await trial('pull writes numbers, and does not know instaid.id', async () => {
  const printed = kit(['pull']);
  const schema = readFileSync(`out/${process.env.VIA}/schema.ts`, 'utf8');
  rmSync('out', { recursive: true });
  for (const part of ['bigint({ mode: "number" }).default(sql`insta5.next_id()`)', 'id: unknown("id")'])
    same(schema.includes(part), true, printed + schema);
});

await trial('generate and migrate: the tables, and no difference after that', async () => {
  await pool.query('DROP TABLE insta5.photos, insta5.comments');
  kit(['generate']);
  const again = kit(['generate']);
  same(again.includes('No schema changes'), true, again);
  await migrate(drizzle(pool), { migrationsFolder: `out/${process.env.VIA}` });
  rmSync('out', { recursive: true });
  const { rows } = await pool.query(`SELECT attname, format_type(atttypid, -1) AS type, pg_get_expr(adbin, adrelid) AS default
    FROM pg_attribute LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
    WHERE attrelid = 'insta5.comments'::regclass AND attnum > 0 AND attname <> 'body' ORDER BY attnum`);
  same(rows, [{ attname: 'id', type: 'instaid.id', default: 'insta5.next_id()' },
    { attname: 'photo_id', type: 'instaid.id', default: null },
    { attname: 'likers', type: 'instaid.id[]', default: null }]);
});

const client = postgres(process.env.DATABASE_URL, { max: 4, prepare: !pooled });
for (const [driver, db] of [['node-postgres', drizzle(pool)], ['postgres.js', drizzleOverPostgresJs(client)]] as [string, any][]) {
  await db.execute(sql`TRUNCATE insta5.photos, insta5.comments`);

  await trial(`${driver}: default and RETURNING`, async () => {
    areNewIds(ids(await db.insert(photos).values({ caption: 'a' }).returning()), 1, 'bigint');
    areNewIds(ids(await db.insert(comments).values({ body: 'a' }).returning()), 1);
  });

  await trial(`${driver}: a bulk insert: IDs in the order of the rows`, async () => {
    const all = captions(3000).map((caption) => ({ caption }));
    // all: [{ caption: 'sunset' }, ...]; the IDs come back in their order
    const rows = await db.insert(photos).values(all).returning();
    areNewIds(ids(rows), 3000, 'bigint');
    same(rows.map((r) => ({ caption: r.caption })), all);
    areNewIds(ids(await db.insert(comments).values([{ body: 'a' }, { body: 'b' }]).returning()), 2);
  });

  await db.execute(sql`TRUNCATE insta5.photos, insta5.comments`);
  for (const [name, table, type] of [['photos', photos, BigInt], ['comments', comments, String]] as [string, any, any][])
    await trial(`${driver}: an ID as a parameter, read, and in an array: ${name}`, async () => {
      same(ids(await db.insert(table).values(EXTREMES.map((id) => ({ id: type(id) }))).returning()), EXTREMES.map(type));
      same(ids(await db.select().from(table).orderBy(asc(table.id))), EXTREMES.map(type));
      const prepared = db.select().from(table).where(eq(table.id, sql.placeholder('id'))).prepare(pooled ? undefined : `${name}_by_id`);
      for (const id of EXTREMES) {
        same(ids(await db.select().from(table).where(eq(table.id, type(id)))), [type(id)]);
        same(ids(await db.select().from(table).where(inArray(table.id, [type(id), type('2')]))), [type(id)]);
        same(ids(await prepared.execute({ id: type(id) })), [type(id)]);
      }
    });

  await trial(`${driver}: an array column, and a join of both types`, async () => {
    const [comment] = await db.insert(comments).values({ photoId: BIG, likers: [BIG, '7'] }).returning();
    same(comment.likers, [BIG, '7']);
    const rows = await db.select().from(comments).innerJoin(photos, eq(comments.photoId, photos.id));
    same(ids(rows.map((r) => r.photos)), [BigInt(BIG)]);
  });

  await trial(`${driver}: a transaction that is rolled back`, async () => {
    let lost;
    await db.transaction(async (transaction) => {
      [{ id: lost }] = await transaction.insert(photos).values({ caption: 'lost' }).returning();
      throw new Error('rolled back');
    }).catch((error) => same(error.message, 'rolled back'));
    const [{ id: kept }] = await db.insert(photos).values({ caption: 'kept' }).returning();
    areNewIds([lost, kept], 2, 'bigint');
    same(ids(await db.select().from(photos).where(inArray(photos.id, [lost, kept]))), [kept]);
  });
}

// whether each of these shards has the tables, with IDs of its own
const haveTables = async (numbers: number[]) => {
  const db = drizzle(pool);
  for (const number of numbers) {
    const { albums, tracks } = makeTables(`insta${number}`);
    const made = ids(await db.insert(albums).values([{ title: 'a' }, { title: 'b' }]).returning());
    made.push(...ids(await db.insert(tracks).values({ albumId: made[0] }).returning()));
    same(made.map((id) => id >> 10n & 8191n), Array(3).fill(BigInt(number)));
    same(ids(await db.select().from(albums)), made.slice(0, 2));
    const { rows } = await pool.query(`SELECT (SELECT count(*) FROM instaid.audit() WHERE code = 'foreign_default') AS findings,
      (SELECT string_agg(confrelid::regclass::text, ' ') FROM pg_constraint WHERE conrelid = $1::regclass AND contype = 'f') AS key`,
      [`insta${number}.tracks`]);
    same(rows, [{ findings: '0', key: `insta${number}.albums` }]);
  }
};
const folder = `out/${process.env.VIA}`;

await trial('several shards: createTenant() makes each, also the first', async () => {
  const db = drizzle(pool);
  await pool.query('DROP SCHEMA insta5, drizzle CASCADE');
  kit(['generate'], { SCHEMA: 'shards' });
  for (const number of [5, 6])
    await createTenant(db, `insta${number}`, number, folder);
  await migrateShard(db, 'insta6', folder);     // nothing is new
  rmSync('out', { recursive: true });
  await haveTables([5, 6]);
});

await trial('a project of one shard, whose migrations make it, gets a second', async () => {
  const db = drizzle(pool);
  await pool.query('DROP SCHEMA insta5, insta6 CASCADE');
  kit(['generate', '--custom', '--name', 'shards']);
  const file = `${folder}/${readdirSync(folder).find((name) => name.endsWith('_shards.sql'))}`;
  writeFileSync(file, "SELECT instaid.create_shard('insta5', 5);");
  kit(['generate'], { SCHEMA: 'shards' });
  await migrate(db, { migrationsFolder: folder });
  writeFileSync(file, '-- createTenant() makes the shard\n');
  await pool.query('ALTER TABLE drizzle.__drizzle_migrations SET SCHEMA insta5');
  await migrateShard(db, 'insta5', folder);     // nothing is new
  await createTenant(db, 'insta6', 6, folder);
  rmSync('out', { recursive: true });
  await haveTables([5, 6]);
});

await trial('JSON.stringify() refuses a BigInt', async () => {
  JSON.stringify(await drizzle(pool).insert(makeTables('insta5').albums).values({ title: 'a' }).returning());
}, 'serialize a BigInt');

end();
