// recipe: tables
import { bigint, pgSchema, text } from 'drizzle-orm/pg-core';
import { sql } from 'drizzle-orm';

export function makeTables(shard: string) {
  const schema = pgSchema(shard);
  const id = () => bigint({ mode: 'bigint' }).primaryKey().default(sql.raw(`${shard}.next_id()`));
  const albums = schema.table('albums', { id: id(), title: text() });
  const tracks = schema.table('tracks', { id: id(), albumId: bigint('album_id', { mode: 'bigint' }).references(() => albums.id) });
  return { albums, tracks };
}
export const { albums, tracks } = makeTables('insta5');
// end of recipe

// recipe: tenant
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { migrate } from 'drizzle-orm/node-postgres/migrator';

export async function createTenant(db, shard: string, number: number, folder: string) {
  await db.execute(sql`SELECT instaid.create_shard(${shard}, ${number}::integer)`);
  await migrateShard(db, shard, folder);
}

export async function migrateShard(db, shard: string, folder: string) {
  const copy = `${folder}-${shard}`;
  cpSync(folder, copy, { recursive: true });
  for (const file of readdirSync(copy).filter((name) => name.endsWith('.sql')))
    writeFileSync(`${copy}/${file}`, readFileSync(`${copy}/${file}`, 'utf8').replace(/\binsta5\b/g, shard));
  await migrate(db, { migrationsFolder: copy, migrationsSchema: shard });
  rmSync(copy, { recursive: true });
}
// end of recipe
