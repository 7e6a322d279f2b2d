// Knex
//
// packages: nodejs npm
import knexFactory from 'knex';
import { BIG, EXTREMES, areNewIds, captions, end, same, trial } from '../lib/tap.mjs';


const knex = knexFactory({ client: 'pg', connection: process.env.DATABASE_URL });

await trial('default and returning', async () => {
  areNewIds((await knex('insta5.photos').insert({ caption: 'a' }).returning('id')).map((r) => r.id), 1);
  areNewIds((await knex('insta5.comments').insert({ body: 'a' }, ['id'])).map((r) => r.id), 1);
});

await trial('a bulk insert: IDs in the order of the rows', async () => {
  const photos = captions(3000).map((caption) => ({ caption }));
  // photos: [{ caption: 'sunset' }, ...]; the IDs come back in their order
  const rows = await knex('insta5.photos').insert(photos, ['id', 'caption']);
  areNewIds(rows.map((r) => r.id), 3000);
  same(rows.map((r) => ({ caption: r.caption })), photos);
});

await trial('batchInsert', async () => {
  const rows = await knex.batchInsert('insta5.photos', captions(3000).map((caption) => ({ caption })), 500).returning(['id', 'caption']);
  areNewIds(rows.map((r) => r.id), 3000);
  same(rows.map((r) => r.caption), captions(3000));
});

await knex.raw('TRUNCATE insta5.photos, insta5.comments');
for (const table of ['insta5.photos', 'insta5.comments'])
  await trial(`an ID as a parameter, read, and in an array; prepared: ${table}`, async () => {
    same(await knex(table).insert(EXTREMES.map((id) => ({ id })), ['id']), EXTREMES.map((id) => ({ id })));
    for (const id of EXTREMES)
      for (const parameter of [id, BigInt(id)]) {
        same(await knex(table).select('id').where('id', parameter), [{ id }]);
        same(await knex(table).select('id').whereIn('id', [parameter, '2']), [{ id }]);
        same(await knex(table).select('id').whereRaw('id = ANY (?)', [[parameter, '2']]), [{ id }]);
      }
    same(await knex(table).select('id').where('id', Number(BIG)), []);
  });

await trial('an array column', async () => {
  same(await knex('insta5.comments').insert({ likers: [BIG, 5n, '7'] }, ['likers']), [{ likers: `{${BIG},5,7}` }]);
});

await trial('a migration, and what it made', async () => {
  // recipe: migration
  await knex.schema.withSchema('insta5').createTable('albums', (table) => {
    table.bigInteger('id').primary().defaultTo(knex.raw('insta5.next_id()'));
    table.specificType('cover', 'instaid.id').references('id').inTable('insta5.photos');
    table.text('title');
  });
  // end of recipe
  areNewIds((await knex('insta5.albums').insert([{ title: 'a' }, { title: 'b', cover: BIG }], ['id'])).map((r) => r.id), 2);
  const { id, cover } = await knex('albums').withSchema('insta5').columnInfo();
  same([id.type, id.defaultValue, id.nullable, cover.type], ['bigint', 'insta5.next_id()', false, 'USER-DEFINED']);
});

await trial('bigIncrements() has a sequence of its own, until the column is adopted', async () => {
  await knex.schema.withSchema('insta5').createTable('tags', (table) => {
    table.bigIncrements('id');
    table.text('name');
  });
  same(await knex('insta5.tags').insert({ name: 'a' }, ['id']), [{ id: '1' }]);
  await knex.raw("SELECT instaid_adopt.adopt_column('insta5.tags', 'id')");
  areNewIds((await knex('insta5.tags').insert({ name: 'b' }, ['id'])).map((r) => r.id), 1);
});

await trial('a transaction that is rolled back', async () => {
  let lost;
  await knex.transaction(async (transaction) => {
    [{ id: lost }] = await transaction('insta5.photos').insert({ caption: 'lost' }, ['id']);
    throw new Error('rolled back');
  }).catch((error) => same(error.message, 'rolled back'));
  const [{ id: kept }] = await knex('insta5.photos').insert({ caption: 'kept' }, ['id']);
  areNewIds([lost, kept], 2);
  same(await knex('insta5.photos').select('id').whereIn('id', [lost, kept]), [{ id: kept }]);
});

await knex.destroy();
end();
