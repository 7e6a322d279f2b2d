// recipe: schema
import { bigint, customType, pgSchema, text } from 'drizzle-orm/pg-core';
import { sql } from 'drizzle-orm';

// drizzle-kit writes the name of a type between quotes
const instaId = customType<{ data: string }>({ dataType: () => 'instaid"."id', fromDriver: String });
const insta5 = pgSchema('insta5');      // not exported: create_shard() creates the schema
export const photos = insta5.table('photos', {
  id: bigint({ mode: 'bigint' }).primaryKey().default(sql`insta5.next_id()`),
  caption: text(),
});
export const comments = insta5.table('comments', {
  id: instaId().primaryKey().default(sql`insta5.next_id()`),
  photoId: instaId('photo_id').references(() => photos.id),
  likers: instaId().array(),
  body: text(),
});
// end of recipe
