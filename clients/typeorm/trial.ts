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

@Entity({ name: 'albums' })
class Album {
  @PrimaryColumn('bigint', { default: () => 'next_id()' }) id: string;
  @Column('text', { nullable: true }) title: string;
}
// recipe: shards
// the URL of the server itself: pgbouncer takes no options
const open = (shard: string, url: string) => new DataSource({ type: 'postgres', url, schema: shard, entities: [Album],
  extra: { options: `-c search_path=${shard}` } }).initialize();

async function createTenant(shard: string, number: number, url: string) {
  await source.query('SELECT instaid.create_shard($1, $2)', [shard, number]);
  const tenant = await open(shard, url);
  await tenant.synchronize();       // or runMigrations()
  return tenant;
}
// end of recipe
const direct = `postgresql://app:${process.env.PGPASSWORD}@127.0.0.1:${process.env.DIRECT_PORT}/${process.env.PGDATABASE}`;

await trial('two shards: the same tables, with IDs of their own; then synchronize() has nothing to do', async () => {
  for (const [shard, number] of [['insta6', 6], ['insta7', 7]] as [string, number][]) {
    const tenant = await createTenant(shard, number, direct);
    const albums = [await tenant.getRepository(Album).save({ title: 'a' }), ...await tenant.getRepository(Album).save([{ title: 'b' }, { title: 'c' }])];
    same(ids(albums).map((id) => BigInt(id) >> 10n & 8191n), Array(3).fill(BigInt(number)));
    same(await planned(tenant), []);
    await tenant.destroy();
  }
  same(await source.query("SELECT * FROM instaid.audit() WHERE code = 'foreign_default'"), []);
});

await trial('two shards through one connection, also of pgbouncer, a transaction at a time', async () => {
  await withEntities([Album], async (source) => {
    for (const number of [6, 7, 6])
      // recipe: pooled
      await source.transaction(async (manager) => {
        await manager.query("SELECT set_config('search_path', $1, true)", [`insta${number}`]);
        const { id } = await manager.getRepository(Album).save({ title: 'sunsets' });
        // end of recipe
        same(BigInt(id) >> 10n & 8191n, BigInt(number));
      });
  });
});

await trial('a default with a cast: synchronize() repeats it; without the cast it does not', async () => {
  await source.query('CREATE SEQUENCE insta5.likes_id_seq');
  await source.query("CREATE TABLE insta5.likes (id bigint PRIMARY KEY DEFAULT insta5.next_id('insta5.likes_id_seq'))");
  for (const [cast, statements] of [['::regclass', 1], ['', 0]] as [string, number][]) {
    @Entity({ name: 'likes', schema: 'insta5' })
    class Like {
      @PrimaryColumn('bigint', { default: () => `insta5.next_id('insta5.likes_id_seq'${cast})` }) id: string;
    }
    await withEntities([Like], async (source) => {
      for (let i = 0; i < 2; i++) {
        same((await planned(source)).length, statements, (await planned(source)).join());
        await source.synchronize();
      }
    });
  }
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
