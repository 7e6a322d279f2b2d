// MikroORM
//
// packages: nodejs npm
// recipe: entity
import { EntitySchema, MikroORM, Type } from '@mikro-orm/postgresql';

class InstaId extends Type<string, string> {
  getColumnType() { return 'instaid.id'; }
  compareAsType() { return 'string'; }
}
const id = { primary: true, autoincrement: false, defaultRaw: 'insta5.next_id()' } as const;
const Photo = new EntitySchema<any>({ name: 'Photo', tableName: 'photos', properties: {
  id: { ...id, type: 'bigint' },
  caption: { type: 'text', nullable: true },
} });
const Comment = new EntitySchema<any>({ name: 'Comment', tableName: 'comments', properties: {
  id: { ...id, type: InstaId },
  photo: { kind: 'm:1', entity: 'Photo', nullable: true },
  likers: { type: 'string[]', columnType: 'instaid.id[]', nullable: true },
  body: { type: 'text', nullable: true },
} });
const orm = await MikroORM.init({ clientUrl: process.env.DATABASE_URL, schema: 'insta5', entities: [Photo, Comment] });
// end of recipe
import { BIG, EXTREMES, areNewIds, captions, end, same, trial } from '../lib/tap.mjs';

// what a migration would do
const planned = async () => (await orm.schema.getUpdateSchemaSQL({ wrap: false })).split('\n').filter((line) => line && !/"citus|"pg_/.test(line));
const ids = (rows) => rows.map((r) => r.id);

await trial('a migration has nothing to do, but where a foreign key has another type than its key', async () => {
  same((await planned()).filter((line) => !/photo_id/.test(line)), []);
  same(await planned(), []);
}, 'alter column "photo_id" type bigint');

await trial('MikroORM makes the tables, and then has nothing to do', async () => {
  await orm.em.execute('DROP TABLE insta5.photos, insta5.comments');
  await orm.schema.createSchema({ wrap: false });
  same(await planned(), []);
  same(await orm.em.execute(`SELECT attname, format_type(atttypid, -1) AS type, pg_get_expr(adbin, adrelid) AS default
    FROM pg_attribute LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
    WHERE attrelid = 'insta5.comments'::regclass AND attnum > 0 AND attname <> 'body' ORDER BY attnum`),
    [{ attname: 'id', type: 'instaid.id', default: 'insta5.next_id()' },
     { attname: 'photo_id', type: 'bigint', default: null },
     { attname: 'likers', type: 'instaid.id[]', default: null }]);
});

await trial('default and RETURNING', async () => {
  const em = orm.em.fork();
  const photo = em.create('Photo', { caption: 'a' });
  const comment = em.create('Comment', { body: 'a' });
  await em.flush();
  areNewIds([photo.id], 1, 'bigint');
  areNewIds([comment.id], 1);
});

await trial('a bulk insert: IDs in the order of creation', async () => {
  const em = orm.em.fork();
  const all = captions(3000);
  // one INSERT for each 300; each photo has its ID after that
  const photos = all.map((caption) => em.create('Photo', { caption }));
  await em.flush();
  const comments = all.map((body) => em.create('Comment', { body }));
  await em.flush();
  areNewIds(ids(photos), 3000, 'bigint');
  areNewIds(ids(comments), 3000);
  const stored = await orm.em.fork().find('Photo', {}, { orderBy: { id: 1 }, offset: 1 });
  same(stored.map((p: any) => p.caption), all);
});

await trial('insertMany() of plain rows returns the first ID alone', async () => {
  areNewIds(await orm.em.fork().insertMany('Photo', [{ caption: 'a' }, { caption: 'b' }]), 1);
});

await orm.em.execute('TRUNCATE insta5.photos, insta5.comments');
for (const [name, type] of [['Photo', BigInt], ['Comment', String]] as [string, any][])
  await trial(`an ID as a parameter, read, and in an array; prepared: ${name}`, async () => {
    for (const id of EXTREMES) {
      await orm.em.fork().insert(name, { id: type(id) });
      for (const parameter of [id, BigInt(id)]) {
        same(ids([await orm.em.fork().findOne(name, { id: parameter })]), [type(id)]);
        same(ids(await orm.em.fork().find(name, { id: { $in: [parameter, '2'] } })), [type(id)]);
      }
    }
  });

await trial('an array column, a relation between both types, and an update', async () => {
  const em = orm.em.fork();
  const comment = em.create('Comment', { photo: BigInt(BIG), likers: [BIG, '7'] });
  await em.flush();
  comment.body = 'changed';
  await em.flush();
  const found: any = await orm.em.fork().findOne('Comment', comment.id, { populate: ['photo'] as any });
  same([found.body, found.likers, found.photo.id], ['changed', [BIG, '7'], BigInt(BIG)]);
});

await trial('JSON of an entity has the ID as a string', async () => {
  same(JSON.stringify(await orm.em.fork().findOne('Photo', BIG)), `{"id":"${BIG}","caption":null}`);
});

await trial('a transaction that is rolled back', async () => {
  const em = orm.em.fork();
  let lost;
  await em.transactional(async (em) => {
    const photo = em.create('Photo', {});
    await em.flush();
    lost = photo.id;
    throw new Error('rolled back');
  }).catch((error) => same(error.message, 'rolled back'));
  const kept = await orm.em.fork().insert('Photo', {});
  areNewIds([String(lost), String(kept)], 2);
  same(ids(await orm.em.fork().find('Photo', { id: { $in: [lost, kept] } })), [BigInt(kept as any)]);
});

await orm.close();
end();
