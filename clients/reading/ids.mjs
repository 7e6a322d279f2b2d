// reads IDs and shortcodes as the trial sends them
import { createInterface } from 'node:readline'

// recipe: decoder
const EPOCH = 1314220021721n
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

// an ID is a BigInt: BigInt('4001511883701836730')
const decode = id => [new Date(Number((id >> 23n) + EPOCH)), Number(id >> 10n & 8191n), Number(id & 1023n)]
const minId = time => BigInt(time.getTime()) - EPOCH << 23n
const toShortcode = id => (id > 63n ? toShortcode(id >> 6n) : '') + DIGITS[id & 63n]
function fromShortcode(text) {
  const id = [...text.slice(0, 12)].reduce((id, digit) => id << 6n | BigInt(DIGITS.indexOf(digit)), 0n)
  if (toShortcode(id) !== text || id >> 63n) throw new RangeError(`"${text}" is not a shortcode`)
  return id
}
// end of recipe

for await (const line of createInterface({ input: process.stdin })) {
  try {
    const id = /^\d+$/.test(line) ? BigInt(line) : fromShortcode(line)
    const [time, shard, sequence] = decode(id)
    console.log(`${id} ${time.getTime()} ${shard} ${sequence} ${minId(time)} ${toShortcode(id)}`)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    console.log('refused')
  }
}
