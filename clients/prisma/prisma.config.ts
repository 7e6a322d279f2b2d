// The engine in WebAssembly, since the other one would be downloaded
import pg from 'pg';
import { PrismaPg } from '@prisma/adapter-pg';

// The adapter does not read the types "char" and name of the catalog: call them text.
const query = pg.Pool.prototype.query as any;
pg.Pool.prototype.query = async function (...args) {
  const result = await query.apply(this, args);
  for (const field of result.fields) if ([18, 19].includes(field.dataTypeID)) field.dataTypeID = 25;
  return result;
};
// The engine leaves a timer of a minute, for which the program would wait.
const { setTimeout } = globalThis;
globalThis.setTimeout = ((run, ms, ...args) => {
  const timer = setTimeout(run, ms, ...args);
  return ms === 60000 ? timer.unref() : timer;
}) as any;
export default {
  experimental: { adapter: true },
  engine: 'js',
  adapter: async () => new PrismaPg({ connectionString: process.env.DATABASE_URL, allowExitOnIdle: true }),
};
