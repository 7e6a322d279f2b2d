// Sequelize
//
// packages: nodejs npm
import { Op, QueryTypes } from 'sequelize';
import { DataTypes, Sequelize } from 'sequelize';
import { BIG, EXTREMES, areNewIds, captions, end, same, trial } from '../lib/tap.mjs';

const options = { logging: false };
// recipe: model
const sequelize = new Sequelize(process.env.DATABASE_URL, options);
const id = { type: DataTypes.BIGINT, primaryKey: true, defaultValue: sequelize.literal('insta5.next_id()') };
const Photo = sequelize.define('photo', { id, caption: DataTypes.TEXT }, { schema: 'insta5', timestamps: false });
const Comment = sequelize.define('comment', {
  id: { ...id, type: 'instaid.id' },
  photo_id: 'instaid.id',
  likers: 'instaid.id[]',
  body: DataTypes.TEXT,
}, { schema: 'insta5', timestamps: false });
Comment.belongsTo(Photo, { foreignKey: 'photo_id' });
// end of recipe

const ids = (rows) => rows.map((r) => r.id);

await trial('default and RETURNING', async () => {
  for (const Model of [Photo, Comment])
    areNewIds(ids([await Model.create({})]), 1);
});

await trial('a bulk insert: IDs in the order of the rows', async () => {
  const photos = captions(3000).map((caption) => ({ caption }));
  // photos: [{ caption: 'sunset' }, ...]; the IDs come back in their order
  const rows: any[] = await Photo.bulkCreate(photos);
  areNewIds(ids(rows), 3000);
  same((await Photo.findAll({ order: ['id'], offset: 1 })).map((p: any) => p.caption), captions(3000));
  areNewIds(ids(await Comment.bulkCreate([{ body: 'a' }, { body: 'b' }])), 2);
});

await sequelize.query('TRUNCATE insta5.photos, insta5.comments');
for (const Model of [Photo, Comment])
  await trial(`an ID as a parameter, read, and in an array; prepared: ${Model.name}`, async () => {
    same(ids(await Model.bulkCreate(EXTREMES.map((id) => ({ id })))), EXTREMES);
    for (const id of EXTREMES)
      for (const parameter of [id, BigInt(id)]) {
        same(ids([await Model.findByPk(parameter as any)]), [id]);
        same(ids(await Model.findAll({ where: { id: { [Op.in]: [parameter, '2'] } } })), [id]);
        same(await sequelize.query(`SELECT id FROM insta5.${Model.tableName} WHERE id = $1 AND id = ANY ($2)`,
          { bind: [parameter, [parameter, '2']], type: QueryTypes.SELECT }), [{ id }]);
      }
  });

await trial('an array column, and a relation between both types', async () => {
  const comment: any = await Comment.create({ photo_id: BIG, likers: `{${BIG},7}` });
  const found: any = await Comment.findByPk(comment.id, { include: Photo });
  same([found.likers, found.photo.id], [`{${BIG},7}`, BIG]);
});

const key = { type: DataTypes.BIGINT, primaryKey: true };
const onPhotos = { schema: 'insta5', tableName: 'photos', timestamps: false };
await trial('a model without defaultValue sends NULL', async () => {
  const Bare = sequelize.define('bare', { id: key }, onPhotos);
  await Bare.create({});
}, 'violates not-null constraint');

await trial('autoIncrement: true uses the default of an existing table', async () => {
  const Auto = sequelize.define('auto', { id: { ...key, autoIncrement: true } }, onPhotos);
  areNewIds(ids([await Auto.create({})]), 1);
  areNewIds(ids(await Auto.bulkCreate([{}, {}])), 2);
});

await trial('autoIncrement: true makes a bigserial in sync()', async () => {
  const Tag = sequelize.define('tag', { id: { ...key, autoIncrement: true } }, { schema: 'insta5', timestamps: false });
  await Tag.sync();
  same(ids([await Tag.create({})]), ['1']);
});

await trial('sync() makes the tables, and sync({ alter: true }) leaves types and defaults', async () => {
  await sequelize.query('DROP TABLE insta5.photos, insta5.comments');
  const columns = async () => (await sequelize.query(`SELECT attname, format_type(atttypid, -1), attnotnull, pg_get_expr(adbin, adrelid)
    FROM pg_attribute LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
    WHERE attrelid IN ('insta5.photos'::regclass, 'insta5.comments'::regclass) AND attnum > 0 ORDER BY attrelid::regclass::text, attnum`,
    { type: QueryTypes.SELECT }));
  await Photo.sync();
  await Comment.sync();
  const made = await columns();
  same(made.filter((c: any) => c.attname === 'id').map((c: any) => [c.format_type, c.pg_get_expr]),
    [['instaid.id', 'insta5.next_id()'], ['bigint', 'insta5.next_id()']]);
  await Photo.sync({ alter: true });
  await Comment.sync({ alter: true });
  same(await columns(), made);
  areNewIds(ids(await Comment.bulkCreate([{}, {}])), 2);
});

await trial('describeTable()', async () => {
  const { id, likers }: any = await sequelize.getQueryInterface().describeTable({ tableName: 'comments', schema: 'insta5' });
  same([id.type, id.defaultValue, likers.type], ['USER-DEFINED', 'insta5.next_id()', 'ARRAY']);
});

await trial('a transaction that is rolled back', async () => {
  let lost;
  await sequelize.transaction(async (transaction) => {
    lost = ((await Photo.create({}, { transaction })) as any).id;
    throw new Error('rolled back');
  }).catch((error) => same(error.message, 'rolled back'));
  const kept = ((await Photo.create({})) as any).id;
  areNewIds([lost, kept], 2);
  same(ids(await Photo.findAll({ where: { id: [lost, kept] } })), [kept]);
});

await sequelize.close();
end();
