// the part of schema.ts that "drizzle-kit push" understands, and the shard
import { pgSchema } from 'drizzle-orm/pg-core';
export { photos } from './schema.ts';
export const insta5 = pgSchema('insta5');
export const sequence = process.env.FORGET ? undefined : insta5.sequence('table_id_seq');
