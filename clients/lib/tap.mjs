// TAP for trials in JavaScript and TypeScript
import { deepStrictEqual } from 'node:assert';
import { inspect } from 'node:util';

export const BIG = '4001511883701836730';   // as a number it is 4001511883701836800
export const EXTREMES = ['-9223372036854775808', '1', BIG, '9223372036854775807'];
export const pooled = process.env.VIA === 'pgbouncer';
export const same = deepStrictEqual;
let done = 0, failed = 0;

/**
 * Run the function as a test, which fails if the function throws.  refused is a part of the
 * error of what is known not to work: then the test fails if the error differs, or if there
 * is none.
 */
export async function trial(name, run, refused) {
  let problem = refused && 'known not to work, and it works';
  try {
    await run();
  } catch (error) {
    problem = inspect(error);
    if (refused && problem.includes(refused)) problem = undefined;
  }
  done++;
  console.log(`${problem ? 'not ok' : 'ok'} ${done} - ${refused ? `known: ${name}: ${refused}` : name}`);
  if (problem) {
    failed++;
    console.log(problem.replace(/^/gm, '# '));
  }
}

/** Throw unless these are so many IDs of shard 5, of this type of JavaScript, in order. */
export function areNewIds(ids, count, type = 'string') {
  same(ids.length, count);
  ids.forEach((id, i) => {
    same(typeof id, type);
    same((BigInt(id) >> 10n) & 8191n, 5n);
    same(i === 0 || BigInt(ids[i - 1]) < BigInt(id), true, `${ids[i - 1]} ${id}`);
  });
}

/** captions(3): bulk 1, bulk 2, bulk 3 */
export const captions = (count) => Array.from({ length: count }, (_, i) => `bulk ${i + 1}`);

/** Print the plan and end the program. */
export function end() {
  console.log(`1..${done}`);
  process.exit(failed ? 1 : 0);
}
