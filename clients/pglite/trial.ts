// PGlite, which is PostgreSQL in the process of the application, with the SQL edition
//
// packages: nodejs npm
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { PGlite } from '@electric-sql/pglite';
import { EXTREMES, areNewIds, captions, end, same, trial } from '../lib/tap.mjs';

execFileSync('sh', ['../../sql-edition/dist.sh', `${process.cwd()}/dist/sql-edition`]);
const text = readFileSync('dist/sql-edition/instaid-1.0.sql', 'utf8');
const { db } = await import('./database.ts');
const query = async (sql, parameters = []) => (await db.query(sql, parameters)).rows as any[];
const insert = 'INSERT INTO insta5.photos DEFAULT VALUES RETURNING id';

await trial('the installation leaves the search path, and no end of the transaction', async () => {
  const other = await PGlite.create();
  const path = await other.query('SHOW search_path');
  await other.transaction(async (tx) => {
    await tx.exec('CREATE TABLE before (id integer)');
    await tx.exec(text);
    same(await tx.query('SHOW search_path'), path);
    await tx.rollback();
  });
  same((await other.query("SELECT 1 FROM pg_class WHERE relname = 'before' UNION SELECT 2 FROM pg_namespace WHERE nspname ~ '^instaid'")).rows, []);
  await other.exec(text);
  same(await other.query('SHOW search_path'), path);
  await other.close();
});

await trial('default and RETURNING', async () => {
  areNewIds((await query('INSERT INTO insta5.photos (caption) VALUES ($1) RETURNING id', ['a'])).map((r) => r.id), 1);
});

await trial('a bulk insert: IDs in the order of the rows, and unique', async () => {
  const all = captions(3000);
  const rows = await query('INSERT INTO insta5.photos (caption) SELECT unnest($1::text[]) RETURNING id, caption', [all]);
  areNewIds(rows.map((r) => r.id), 3000);
  same(rows.map((r) => r.caption), all);
  const later = [];
  for (let i = 0; i < 300; i++) later.push(...await query(insert));
  areNewIds([rows.at(-1), ...later].map((r) => r.id), 301);
});

await trial('all 64 bits: a parameter, read, and in an array', async () => {
  await db.transaction(async (tx) => {
    for (const id of EXTREMES)
      same((await tx.query('INSERT INTO insta5.photos (id) VALUES ($1) RETURNING id, ARRAY[id] AS a', [id])).rows, [{ id, a: [id] }]);
    await tx.rollback();
  });
});

await trial('decode() and created_between()', async () => {
  const [{ id }] = await query(insert);
  const [row] = await query(`SELECT d.*, instaid.created_between($1, now() - interval '1 min', now() + interval '1 min') AS is_new
    FROM instaid.decode($1) AS d`, [id]);
  same([row.shard_id, row.sequence, row.is_new], [5, Number(BigInt(id) & 1023n), true]);
  same(Math.abs(row.created_at - Date.now()) < 60000, true);
});

await trial('a transaction that is rolled back: its ID does not come again', async () => {
  let lost;
  await db.transaction(async (tx) => {
    lost = (await tx.query(insert)).rows[0];
    await tx.rollback();
  });
  const [kept] = await query(insert);
  areNewIds([lost.id, kept.id], 2);
  same(await query('SELECT id FROM insta5.photos WHERE id = ANY ($1)', [[lost.id, kept.id]]), [kept]);
});

await trial('a frozen shard issues no ID', async () => {
  await query("SELECT instaid.freeze_shard('insta5')");
  await query(insert);
}, 'shard insta5 is frozen');
await trial('a shard that is thawed issues IDs', async () => {
  await query("SELECT instaid.thaw_shard('insta5')");
  areNewIds((await query(insert)).map((r) => r.id), 1);
});

await trial('a role of the application without EXECUTE', async () => {
  await db.exec('CREATE ROLE app; GRANT USAGE ON SCHEMA insta5 TO app; GRANT INSERT, SELECT ON insta5.photos TO app; SET ROLE app');
  try {
    await db.query(insert);
  } finally {
    await db.exec('RESET ROLE');
  }
}, 'permission denied for function next_id');
await trial('a role of the application needs EXECUTE only', async () => {
  await db.exec('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA insta5 TO app; SET ROLE app');
  areNewIds((await query(insert)).map((r) => r.id), 1);
  await db.exec('RESET ROLE');
});

await trial('partitions, many shards, and nothing that audit() finds', async () => {
  await db.exec('CREATE TABLE insta5.likes (id bigint PRIMARY KEY DEFAULT insta5.next_id()) PARTITION BY RANGE (id)');
  same((await query("SELECT instaid.create_partitions('insta5.likes', now(), now() + interval '3 days', '1 day')")).length, 3);
  await query("CALL instaid.create_shards('insta%s', 100, 199)");
  same(await query('SELECT count(*) FROM instaid.shards'), [{ count: '101' }]);
  same(await query('SELECT * FROM instaid.audit()'), []);
});
await trial('CALL beside another statement', async () => {
  await db.exec("SELECT 1; CALL instaid.create_shards('insta%s', 100, 1999)");
}, 'invalid transaction termination');
await trial('settled_id()', async () => {
  await query("SELECT instaid.settled_id('insta5')");
}, 'the SQL edition of instaid cannot do this');

await trial('the same text again, over shards in use', async () => {
  await db.exec(text);
  areNewIds((await query(insert)).map((r) => r.id), 1);
});

// without the parser
const copy = await PGlite.create({ loadDataDir: await db.dumpDataDir('none') });
await trial('a copy of the data directory goes on above; without the parser, an ID is a BigInt', async () => {
  const [{ last }] = await query('SELECT max(id) AS last FROM insta5.photos');
  const ids = (await copy.query(insert)).rows.map((r) => r.id);
  areNewIds([BigInt(last), ...ids], 2, 'bigint');
  same((await copy.query('SELECT 7::bigint AS n')).rows, [{ n: 7 }]);
});
await trial('JSON.stringify() refuses a BigInt', async () => {
  JSON.stringify((await copy.query(insert)).rows);
}, 'Do not know how to serialize a BigInt');
await copy.close();

const now = Date.now;
await trial('fake timers: a clock that is set back and forth', async () => {
  const ids = [];
  for (const date of ['2000-01-01', '2026-01-01', '2011-01-01', '2030-01-01', '1996-01-01', '2029-01-01']) {
    Date.now = () => +new Date(date);
    for (let i = 0; i < 3; i++) ids.push(...await query(insert));
  }
  areNewIds(ids.map((r) => r.id), 18);
});
await trial('fake timers at 1970', async () => {
  Date.now = () => 0;
  areNewIds([(await query(insert))[0].id], 1);
});
await trial('fake timers at 1970: a new shard', async () => {
  await query("SELECT instaid.create_shard('insta6', 6)");
}, 'epoch 2011-08-24 21:07:01.721+00 is in the future');
Date.now = now;

await db.close();
end();
