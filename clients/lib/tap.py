"""TAP for trials in Python"""
import atexit
import os
import sys
import traceback

BIG = 4001511883701836730       # a double makes it 4001511883701836800
EXTREMES = [BIG, 2**63 - 1, -2**63, 1]
POOLED = os.environ['VIA'] == 'pgbouncer'
done = failed = 0


def trial(name, refused=None):
    """Run the function that follows as a test.  It fails if it raises an exception.

    refused is a part of the error of what is known not to work.  The test then fails if the
    error differs, or if there is none."""
    def run(function):
        global done, failed
        done += 1
        try:
            function()
            good = refused is None
            problem = 'known not to work, and it works'
        except Exception as error:
            good = refused is not None and refused in str(error)
            problem = traceback.format_exc()
        label = name if refused is None else f'known: {name}: {refused}'
        print(f"{'ok' if good else 'not ok'} {done} - {label}", flush=True)
        if not good:
            failed += 1
            print(''.join(f'# {line}\n' for line in problem.splitlines()), end='', flush=True)
        return function
    return run


def same(got, expected):
    """Raise an exception if the two differ, in value or in type."""
    assert got == expected and repr(got) == repr(expected), f'{got!r} is not {expected!r}'


def are_new_ids(ids, count):
    """Raise an exception unless these are so many IDs of shard 5, in order."""
    assert len(ids) == count and ids == sorted(set(ids)), ids[:5]
    assert all(type(id) is int and id > 2**60 and id >> 10 & 8191 == 5 for id in ids), ids[:5]


@atexit.register
def plan():
    sys.stdout.flush()
    print(f'1..{done}', flush=True)
    if failed:
        os._exit(1)
