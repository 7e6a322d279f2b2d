// Kysely
//
// packages: nodejs npm
import pg from 'pg';
import { Kysely, PostgresDialect, sql, type Generated } from 'kysely';
import { BIG, EXTREMES, areNewIds, captions, end, same, trial } from '../lib/tap.mjs';

// recipe: types
interface Database {
  'insta5.photos': { id: Generated<string>, caption: string | null };
  'insta5.comments': {
    id: Generated<string>, photo_id: string | null, body: string | null,
    likers: string | null,      // an array of instaid.id is read as one string, '{1,2}'
  };
}
// end of recipe
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 4 });
const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });

await trial('default and returning', async () => {
  areNewIds((await db.insertInto('insta5.photos').values({ caption: 'a' }).returning('id').execute()).map((r) => r.id), 1);
  areNewIds((await db.insertInto('insta5.comments').values({ body: 'a' }).returning('id').execute()).map((r) => r.id), 1);
});

await trial('a bulk insert: IDs in the order of the rows', async () => {
  const photos = captions(3000).map((caption) => ({ caption }));
  // photos: [{ caption: 'sunset' }, ...]; the IDs come back in their order
  const rows = await db.insertInto('insta5.photos').values(photos).returning(['id', 'caption']).execute();
  areNewIds(rows.map((r) => r.id), 3000);
  same(rows.map((r) => ({ caption: r.caption })), photos);
});

await sql`TRUNCATE insta5.photos, insta5.comments`.execute(db);
for (const table of ['insta5.photos', 'insta5.comments'] as const)
  await trial(`an ID as a parameter, read, and in an array; prepared: ${table}`, async () => {
    for (const id of EXTREMES) {
      same(await db.insertInto(table).values({ id }).returning('id').execute(), [{ id }]);
      for (const parameter of [id, BigInt(id)] as any[]) {
        same(await db.selectFrom(table).select('id').where('id', '=', parameter).execute(), [{ id }]);
        same(await db.selectFrom(table).select('id').where('id', 'in', [parameter, '2']).execute(), [{ id }]);
        same(await db.selectFrom(table).select('id').where(sql`id = ANY (${[parameter, '2']})`).execute(), [{ id }]);
      }
    }
  });

await trial('an array column', async () => {
  same(await db.insertInto('insta5.comments').values({ likers: [BIG, 5n] as any }).returning('likers').execute(), [{ likers: `{${BIG},5}` }]);
});

await trial('a migration', async () => {
  // recipe: migration
  await db.schema.withSchema('insta5').createTable('albums')
    .addColumn('id', 'bigint', (column) => column.primaryKey().defaultTo(sql`insta5.next_id()`))
    .addColumn('cover', sql`instaid.id`, (column) => column.references('photos.id'))
    .execute();
  // end of recipe
  areNewIds((await sql`INSERT INTO insta5.albums (cover) VALUES (${BIG}) RETURNING id`.execute(db)).rows.map((r) => r.id), 1);
});

await trial('introspection', async () => {
  const tables = await db.introspection.getTables();
  const columns = tables.find((t) => t.schema === 'insta5' && t.name === 'albums').columns;
  same(columns.map((c) => [c.name, c.dataTypeSchema, c.dataType, c.hasDefaultValue, c.isAutoIncrementing]),
    [['id', 'pg_catalog', 'int8', true, false], ['cover', 'instaid', 'id', false, false]]);
});

await trial('a transaction that is rolled back', async () => {
  let lost;
  await db.transaction().execute(async (transaction) => {
    ({ id: lost } = await transaction.insertInto('insta5.photos').values({ caption: 'lost' }).returning('id').executeTakeFirstOrThrow());
    throw new Error('rolled back');
  }).catch((error) => same(error.message, 'rolled back'));
  const { id: kept } = await db.insertInto('insta5.photos').values({ caption: 'kept' }).returning('id').executeTakeFirstOrThrow();
  areNewIds([lost, kept], 2);
  same(await db.selectFrom('insta5.photos').select('id').where('id', 'in', [lost, kept]).execute(), [{ id: kept }]);
});

await db.destroy();
end();
