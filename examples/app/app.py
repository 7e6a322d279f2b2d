"""A small application: users and their notes, one shard for each tenant, one database.  It
has the license of instaid.

The connection that each function takes may come from a pool, also of pgbouncer: a
transaction chooses its shard.  No statement names a shard.
"""
import contextlib
import json
import pathlib

MIGRATIONS = pathlib.Path(__file__).parent / 'migrations'


@contextlib.contextmanager
def in_shard(connection, shard):
    """A transaction in the shard, which the block gets as a cursor.

    Only that of a tenant: an ID of a request can name any schema, even one of another role.
    """
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT set_config('search_path', %s, true) FROM public.tenants"
                       " WHERE pg_catalog.concat('tenant', shard_id) = %s", [shard, shard])
        if cursor.rowcount == 0:
            raise LookupError(f'no tenant has the shard {shard}')
        yield cursor


# Tenants

def create_directory(connection):
    """The table of tenants.  It gives no number again, unless the database returns to an older
    state: then RESTART shard_id above all numbers that were given, before the next tenant."""
    with connection, connection.cursor() as cursor:
        cursor.execute('CREATE TABLE IF NOT EXISTS public.tenants (name text PRIMARY KEY, shard_id integer NOT NULL UNIQUE'
                       ' GENERATED ALWAYS AS IDENTITY (MINVALUE 100 MAXVALUE 8191))')


def create_tenant(connection, name):
    """Make a shard for a new tenant, with all tables.  Returns its schema."""
    with connection, connection.cursor() as cursor:
        cursor.execute('INSERT INTO public.tenants (name) VALUES (%s) RETURNING shard_id', [name])
        shard_id, = cursor.fetchone()
        shard = f'tenant{shard_id}'
        cursor.execute('SELECT instaid.create_shard(%s, %s)', [shard, shard_id])
    migrate(connection, shard)
    return shard


def shard_of(id):
    """The schema that contains the row: its number is in the ID.

    An ID of a request can name any tenant: check that of the session.
    """
    return f'tenant{id >> 10 & 8191}'


# Migrations: files N_NAME.up.sql and N_NAME.down.sql

def migrate(connection, shard, target=None):
    """Bring the shard's tables up or down to a version, by default the newest."""
    ups = sorted(MIGRATIONS.glob('*.up.sql'), key=number_of)
    target = len(ups) if target is None else target
    with in_shard(connection, shard) as cursor:
        cursor.execute('CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)')
        cursor.execute('LOCK TABLE schema_version')
        cursor.execute('SELECT version FROM schema_version')
        version = (cursor.fetchone() or [0])[0]
        steps = ups[version:target] or [down_of(up) for up in reversed(ups[target:version])]
        for step in steps:
            cursor.execute(step.read_text())
        cursor.execute('TRUNCATE schema_version')
        cursor.execute('INSERT INTO schema_version VALUES (%s)', [target])


def number_of(file):
    return int(file.name.split('_')[0])


def down_of(up):
    return up.with_name(up.name.replace('.up.', '.down.'))


# Rows

def add_user(connection, shard, name):
    with in_shard(connection, shard) as cursor:
        cursor.execute('INSERT INTO users (name) VALUES (%s) RETURNING id', [name])
        return cursor.fetchone()[0]


def add_notes(connection, user_id, bodies):
    """Notes in the shard of their user, and a message for each.  Returns their IDs in order."""
    with in_shard(connection, shard_of(user_id)) as cursor:
        cursor.execute('INSERT INTO notes (user_id, body) SELECT %s, unnest(%s) RETURNING id', [user_id, bodies])
        ids = [id for id, in cursor]
        cursor.execute("INSERT INTO outbox (payload) SELECT jsonb_build_object('note', id::text)"
                       ' FROM unnest(%s) AS id', [ids])
        return ids


def page_of_notes(connection, user_id, before=None, limit=20):
    """The newest notes as JSON, with what to pass for the next page."""
    with in_shard(connection, shard_of(user_id)) as cursor:
        cursor.execute('SELECT id, body FROM notes WHERE user_id = %s AND id < %s ORDER BY id DESC LIMIT %s',
                       [user_id, before if before is not None else 2**63 - 1, limit])
        # strings: JavaScript rounds a number above 2^53
        notes = [{'id': str(id), 'body': body} for id, body in cursor]
    return json.dumps({'notes': notes, 'next': notes[-1]['id'] if len(notes) == limit else None})


def read_outbox(connection, shard, limit=100):
    """The next messages, none left out: only up to the ID that settled_id() returns."""
    with in_shard(connection, shard) as cursor:
        cursor.execute('SELECT last_id FROM outbox_position FOR UPDATE')
        last, = cursor.fetchone()
        cursor.execute('SELECT instaid.settled_id(%s)', [shard])
        settled, = cursor.fetchone()
        cursor.execute('SELECT id, payload FROM outbox WHERE id > %s AND id <= %s ORDER BY id LIMIT %s', [last, settled, limit])
        rows = cursor.fetchall()
        if rows:
            cursor.execute('UPDATE outbox_position SET last_id = %s', [rows[-1][0]])
        return [payload for _, payload in rows]
