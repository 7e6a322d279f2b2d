# reads IDs and shortcodes as the trial sends them
import sys

# recipe: decoder
from datetime import datetime, timedelta, timezone
from functools import reduce

EPOCH = datetime(2011, 8, 24, 21, 7, 1, 721000, timezone.utc)
DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

def decode(id):
    return EPOCH + timedelta(milliseconds=id >> 23), id >> 10 & 8191, id & 1023

def min_id(time):
    return (time - EPOCH) // timedelta(milliseconds=1) << 23

def to_shortcode(id):
    return (to_shortcode(id >> 6) if id > 63 else '') + DIGITS[id & 63]

def from_shortcode(text):
    id = reduce(lambda id, digit: id << 6 | DIGITS.find(digit), text[:12], 0)
    if to_shortcode(id) != text or id >> 63:
        raise ValueError(f'"{text}" is not a shortcode')
    return id
# end of recipe

UNIX = datetime(1970, 1, 1, tzinfo=timezone.utc)
for line in sys.stdin:
    line = line.rstrip('\n')
    try:
        id = int(line) if line.isdecimal() else from_shortcode(line)
        time, shard, sequence = decode(id)
        print(id, (time - UNIX) // timedelta(milliseconds=1), shard, sequence, min_id(time), to_shortcode(id))
    except ValueError:
        print('refused')
