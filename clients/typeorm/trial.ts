// TypeORM
//
// packages: nodejs npm
import 'reflect-metadata';
import { In, PrimaryGeneratedColumn } from 'typeorm';
import { Column, DataSource, Entity, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { BIG, EXTREMES, areNewIds, captions, end, same, trial } from '../lib/tap.mjs';

// recipe: entity
const instaId = 'instaid.id' as any;

@Entity({ name: 'photos', schema: 'insta5' })
class Photo {
  @PrimaryColumn('bigint', { default: () => 'insta5.next_id()' }) id: string;
  @Column('text', { nullable: true }) caption: string;
}
@Entity({ name: 'comments', schema: 'insta5' })
class Comment {
  @PrimaryColumn(instaId, { default: () => 'insta5.next_id()' }) id: string;
  @Column(instaId, { nullable: true }) photo_id: string;
  @ManyToOne(() => Photo) @JoinColumn({ name: 'photo_id', foreignKeyConstraintName: 'comments_photo_id_fkey' }) photo: Photo;
  // read as one string, '{1,2}', unless a parser is registered as for node-postgres
  @Column(instaId, { array: true, nullable: true }) likers: string[] | string;
  @Column('text', { nullable: true }) body: string;
}
const source = new DataSource({ type: 'postgres', url: process.env.DATABASE_URL, entities: [Photo, Comment] });
source.driver.supportedDataTypes.push(instaId);     // without this line, TypeORM refuses the type
await source.initialize();
// end of recipe

const photos = source.getRepository(Photo);
const comments = source.getRepository(Comment);
const ids = (rows) => rows.map((r) => r.id);
// the statements that synchronize() would run
const planned = async (source) => (await source.driver.createSchemaBuilder().log()).upQueries.map((q) => q.query);
const withEntities = async (entities, run, setUp = (source) => {}) => {
  const source = new DataSource({ type: 'postgres', url: process.env.DATABASE_URL, entities });
  setUp(source);
  try {
    return await run(await source.initialize());
  } finally {
    if (source.isInitialized) await source.destroy();
  }
};

await trial('synchronize() has nothing to do, but where a foreign key has another type than its key', async () => {
  same((await planned(source)).filter((q) => !/photo_id/.test(q)), []);
  same(await planned(source), []);
}, 'ADD "photo_id" bigint');

await trial('synchronize() makes the tables, and then has nothing to do', async () => {
  await source.query('DROP TABLE insta5.photos, insta5.comments');
  await source.synchronize();
  same(await planned(source), []);
  same(await source.query(`SELECT attname, format_type(atttypid, -1) AS type, pg_get_expr(adbin, adrelid) AS default
    FROM pg_attribute LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
    WHERE attrelid = 'insta5.comments'::regclass AND attnum > 0 AND attname <> 'body' ORDER BY attnum`),
    [{ attname: 'id', type: 'instaid.id', default: 'insta5.next_id()' },
     { attname: 'photo_id', type: 'bigint', default: null },
     { attname: 'likers', type: 'instaid.id[]', default: null }]);
});

await trial('default and RETURNING', async () => {
  areNewIds(ids([await photos.save({ caption: 'a' })]), 1);
  areNewIds(ids([await comments.save({ body: 'a' })]), 1);
});

await trial('a bulk insert: IDs in the order of the rows', async () => {
  const rows = captions(3000).map((caption) => ({ caption }));
  // rows: [{ caption: 'sunset' }, ...]; the IDs come back in their order, and are put into rows
  const { identifiers } = await photos.insert(rows);
  areNewIds(ids(identifiers), 3000);
  same(ids(rows), ids(identifiers));
  same((await photos.find({ order: { id: 'ASC' }, skip: 1 })).map((p) => p.caption), captions(3000));
  areNewIds(ids((await comments.insert([{ body: 'a' }, { body: 'b' }])).identifiers), 2);
});

await trial('save() of many: IDs in the order of the rows', async () => {
  const rows = await photos.save(captions(500).map((caption) => ({ caption: `saved ${caption}` })), { chunk: 100 });
  areNewIds(ids(rows), 500);
  same((await photos.findOneBy({ id: rows[7].id })).caption, 'saved bulk 8');
});

await source.query('TRUNCATE insta5.photos, insta5.comments');
for (const repository of [photos, comments])
  await trial(`an ID as a parameter, read, and in an array; prepared: ${repository.metadata.tableName}`, async () => {
    await repository.insert(EXTREMES.map((id) => ({ id })));
    for (const id of EXTREMES)
      for (const parameter of [id, BigInt(id)] as any[]) {
        same(ids(await repository.findBy({ id: parameter })), [id]);
        same(ids(await repository.findBy({ id: In([parameter, '2']) })), [id]);
        same(ids(await repository.createQueryBuilder('r').where('r.id = ANY (:ids)', { ids: [parameter, '2'] }).getMany()), [id]);
      }
  });

await trial('an array column, and a relation between both types', async () => {
  const { id } = await comments.save({ photo_id: BIG, likers: [BIG, '7'] });
  const [comment] = await comments.find({ where: { id }, relations: { photo: true } });
  same([comment.photo.id, comment.likers], [BIG, `{${BIG},7}`]);
});

await trial('the type without supportedDataTypes.push()', async () => {
  await withEntities([Photo, Comment], () => {});
}, 'Data type "instaid.id" in "Comment.id" is not supported by "postgres"');

await trial('an entity that says bigint reads instaid.id; synchronize() would drop the column', async () => {
  @Entity({ name: 'comments', schema: 'insta5' })
  class Plain {
    @PrimaryColumn('bigint', { default: () => 'insta5.next_id()' }) id: string;
  }
  await withEntities([Plain], async (source) => {
    same(ids(await source.getRepository(Plain).findBy({ id: In([BIG]) })), [BIG]);
    same((await planned(source)).includes('ALTER TABLE "insta5"."comments" DROP COLUMN "id"'), true);
  });
});

await trial('@PrimaryGeneratedColumn: synchronize() would replace the default by a sequence of its own', async () => {
  @Entity({ name: 'photos', schema: 'insta5' })
  class Generated {
    @PrimaryGeneratedColumn({ type: 'bigint' }) id: string;
    @Column('text', { nullable: true }) caption: string;
  }
  await withEntities([Generated], async (source) => {
    areNewIds(ids([await source.getRepository(Generated).save({ caption: 'a' })]), 1);
    same((await planned(source)).filter((q) => /SET DEFAULT/.test(q)), [
      `ALTER TABLE "insta5"."photos" ALTER COLUMN "id" SET DEFAULT nextval('"insta5"."photos_id_seq"')`,
    ]);
  });
});

await trial('a transaction that is rolled back', async () => {
  let lost;
  await source.transaction(async (manager) => {
    lost = (await manager.save(Photo, { caption: 'lost' })).id;
    throw new Error('rolled back');
  }).catch((error) => same(error.message, 'rolled back'));
  const kept = (await photos.save({ caption: 'kept' })).id;
  areNewIds([lost, kept], 2);
  same(ids(await photos.findBy({ id: In([lost, kept]) })), [kept]);
});

await source.destroy();
end();
