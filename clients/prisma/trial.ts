// Prisma with its adapter for node-postgres
//
// packages: nodejs npm
import { spawnSync } from 'node:child_process';
import { BIG, EXTREMES, areNewIds, captions, end, pooled, same, trial } from '../lib/tap.mjs';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from './generated/client.ts';

const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: process.env.DATABASE_URL }) });
const ids = (rows) => rows.map((r) => r.id);

await trial('default and RETURNING', async () => {
  areNewIds(ids([await prisma.photo.create({ data: { caption: 'a' } })]), 1, 'bigint');
  areNewIds(ids([await prisma.comment.create({ data: { body: 'a' } })]), 1, 'bigint');
});

await trial('a bulk insert: IDs in the order of the rows', async () => {
  const photos = captions(3000).map((caption) => ({ caption }));
  // photos: [{ caption: 'sunset' }, ...]; the IDs come back in their order
  const rows = await prisma.photo.createManyAndReturn({ data: photos });
  areNewIds(ids(rows), 3000, 'bigint');
  same(rows.map((r) => ({ caption: r.caption })), photos);
  areNewIds(ids(await prisma.comment.createManyAndReturn({ data: [{ body: 'a' }, { body: 'b' }] })), 2, 'bigint');
});

await prisma.$executeRaw`TRUNCATE insta5.photos, insta5.comments`;
for (const [name, model] of [['photos', prisma.photo], ['comments', prisma.comment]] as [string, any][])
  await trial(`an ID as a parameter, read, and in an array; prepared: ${name}`, async () => {
    for (const text of EXTREMES) {
      const id = BigInt(text);
      same(ids([await model.create({ data: { id } })]), [id]);
      same(ids([await model.findUnique({ where: { id } })]), [id]);
      same(ids(await model.findMany({ where: { id: { in: [id, 2n] } } })), [id]);
      same(ids(await model.findMany({ where: { id: { gte: id, lte: id } } })), [id]);
    }
  });

await trial('raw: instaid.id is a string, its array is one string, and an array is a parameter', async () => {
  same(await prisma.$queryRaw`SELECT id, id::bigint AS bigint, ARRAY[id] AS a FROM insta5.comments WHERE id = ${BigInt(BIG)}`,
    [{ id: BIG, bigint: BigInt(BIG), a: `{${BIG}}` }]);
  for (const parameter of [[BigInt(BIG), 2n], [BIG, '2']])
    same(await prisma.$queryRaw`SELECT id::text FROM insta5.comments WHERE id = ANY (${parameter}::instaid.id[])`, [{ id: BIG }]);
  same(await prisma.$queryRaw`INSERT INTO insta5.comments (likers) VALUES (${[BIG, '7']}::instaid.id[]) RETURNING likers::text`,
    [{ likers: `{${BIG},7}` }]);
});

await trial('a relation between both types, update, upsert, aggregate', async () => {
  const photo = await prisma.photo.create({
    data: { caption: 'related', comments: { create: [{ body: '1' }, { body: '2' }] } }, include: { comments: true } });
  areNewIds(ids(photo.comments), 2, 'bigint');
  const found = await prisma.comment.findFirst({ where: { photo: { caption: 'related' }, body: '1' }, include: { photo: true } });
  same(found.photo.id, photo.id);
  const { id } = photo.comments[0];
  same((await prisma.comment.update({ where: { id }, data: { body: 'u' } })).body, 'u');
  same((await prisma.comment.upsert({ where: { id }, create: {}, update: { body: 'v' } })).body, 'v');
  same((await prisma.photo.aggregate({ _max: { id: true } }))._max.id, BigInt(EXTREMES[3]));
});

await trial('JSON of a BigInt', async () => {
  JSON.stringify(await prisma.photo.findFirst());
}, 'Do not know how to serialize a BigInt');

await trial('a transaction that is rolled back', async () => {
  let lost;
  await prisma.$transaction(async (transaction) => {
    ({ id: lost } = await transaction.photo.create({ data: {} }));
    throw new Error('rolled back');
  }).catch((error) => same(error.message, 'rolled back'));
  const { id: kept } = await prisma.photo.create({ data: {} });
  areNewIds([lost, kept], 2, 'bigint');
  same(ids(await prisma.photo.findMany({ where: { id: { in: [lost, kept] } } })), [kept]);
});

const cli = (...args) => {
  const { stdout, stderr } = spawnSync('../node_modules/.bin/prisma', args, { encoding: 'utf8',
    env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true', PRISMA_QUERY_ENGINE_LIBRARY: '/bin/true', CHECKPOINT_DISABLE: '1' } });
  return stdout + stderr;
};
// pgbouncer is not for these
if (!pooled) {
  await trial('db pull knows the default, and does not know instaid.id', async () => {
    const pulled = cli('db', 'pull', '--print').replace(/ +/g, ' ');
    for (const line of ['id BigInt @id @default(dbgenerated("insta5.next_id()"))', 'id Unsupported("id") @id @default(dbgenerated("insta5.next_id()"))'])
      same(pulled.includes(line), true, pulled);
  });
  await trial('db push makes bigint of instaid.id, and then has nothing to do', async () => {
    const types = async () => (await prisma.$queryRaw`SELECT string_agg(attname || ' ' || format_type(atttypid, -1), ', ' ORDER BY attnum) AS types
      FROM pg_attribute WHERE attrelid = 'insta5.comments'::regclass AND attname IN ('id', 'photo_id')`)[0].types;
    same(await types(), 'id instaid.id, photo_id instaid.id');
    const printed = cli('db', 'push', '--skip-generate', '--accept-data-loss');
    same(await types(), 'id bigint, photo_id bigint', printed);
    areNewIds(ids([await prisma.comment.create({ data: {} })]), 1, 'bigint');
    const again = cli('db', 'push', '--skip-generate');
    same(again.includes('already in sync'), true, again);
  });
}

await prisma.$disconnect();
end();
