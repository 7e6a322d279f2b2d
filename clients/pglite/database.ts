// The database of an application's tests
// recipe: install
import { readFile } from 'node:fs/promises';
import { PGlite, types } from '@electric-sql/pglite';

// as strings: JSON.stringify() refuses a BigInt
export const db = await PGlite.create({ parsers: { [types.INT8]: String } });
await db.transaction(async (tx) => {
  await tx.exec(await readFile('dist/sql-edition/instaid-1.0.sql', 'utf8'));
  await tx.exec(`
    SELECT instaid.create_shard('insta5', 5);
    CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), caption text)`);
});
// end of recipe
