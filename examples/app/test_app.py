"""python3 -m unittest test_app: the tests of the application.

They need an empty database with the extension, where libpq finds it (PGHOST, PGDATABASE).
"""
import json
import threading
import unittest

import psycopg2

import app


class TestApp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.connection = psycopg2.connect('')
        app.create_directory(cls.connection)
        cls.acme = app.create_tenant(cls.connection, 'acme')
        cls.bolt = app.create_tenant(cls.connection, 'bolt')

    @classmethod
    def tearDownClass(cls):
        cls.connection.close()

    def value(self, query, *parameters):
        with self.connection, self.connection.cursor() as cursor:
            cursor.execute(query, parameters)
            return cursor.fetchone()[0]

    def test_each_tenant_has_a_shard_with_ids_of_its_own(self):
        for shard in self.acme, self.bolt:
            user = app.add_user(self.connection, shard, 'ann')
            for id in [user, *app.add_notes(self.connection, user, ['a', 'b'])]:
                self.assertEqual(app.shard_of(id), shard)
        self.assertEqual(self.value("SELECT count(*) FROM instaid.audit() WHERE code = 'foreign_default'"), 0)

    def test_a_forgotten_shard_is_an_error(self):
        with self.assertRaises(psycopg2.errors.UndefinedTable):
            self.value("INSERT INTO users (name) VALUES ('nobody') RETURNING id")

    def test_an_id_of_no_tenant_is_an_error(self):
        with self.assertRaises(LookupError):
            app.page_of_notes(self.connection, 5000 << 10)

    def test_pages_of_json_have_each_note_once(self):
        user = app.add_user(self.connection, self.acme, 'bob')
        ids = app.add_notes(self.connection, user, [f'note {n}' for n in range(45)])
        read, before = [], None
        while True:
            page = json.loads(app.page_of_notes(self.connection, user, before))
            read += [note['id'] for note in page['notes']]
            if page['next'] is None:
                break
            before = int(page['next'])
        self.assertEqual(read, [str(id) for id in reversed(ids)])

    def test_the_outbox_misses_no_late_commit(self):
        shard = app.create_tenant(self.connection, 'late')
        user = app.add_user(self.connection, shard, 'eve')
        slow, reader = psycopg2.connect(''), psycopg2.connect('')
        with slow.cursor() as cursor:
            cursor.execute(f"INSERT INTO {shard}.outbox (payload) VALUES ('\"slow\"')")
        note, = app.add_notes(self.connection, user, ['fast'])
        read = []
        thread = threading.Thread(target=lambda: read.extend(app.read_outbox(reader, shard)))
        thread.start()
        waits = 'SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pid = %s)'
        while thread.is_alive() and not self.value(waits, reader.get_backend_pid()):
            pass
        slow.commit()
        thread.join()
        self.assertEqual(read, ['slow', {'note': str(note)}])
        self.assertEqual(app.read_outbox(reader, shard), [])
        slow.close()
        reader.close()

    def test_migrations_go_up_and_down(self):
        shard = app.create_tenant(self.connection, 'moody')
        app.add_user(self.connection, shard, 'kim')
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = %s AND tablename <> 'schema_version'"
        for target, count in (1, 3), (2, 4), (0, 0), (2, 4):
            app.migrate(self.connection, shard, target)
            self.assertEqual(self.value(tables, shard), count)
        self.assertEqual(app.shard_of(app.add_user(self.connection, shard, 'kim')), shard)


if __name__ == '__main__':
    unittest.main()
