"""Fields for Django 3.2 and later whose values a shard of instaid makes.

Copy this file into your project.  It has the license of instaid.  The search_path chooses
the shard when a table is created.

    id = BigIdField(primary_key=True)               a bigint
    id = InstaIdField(primary_key=True)             an instaid.id, a string in JSON
    default_auto_field = 'instaid.BigIdField'       in the AppConfig, for each of its models

With the file in the folder shop, 'shop.instaid.BigIdField'.
"""
from django.db.backends.signals import connection_created
from django.db.models import BigAutoField


class BigIdField(BigAutoField):
    column_type = 'bigint'

    def db_type(self, connection):
        return self.column_type

    def rel_db_type(self, connection):
        return self.column_type

    def db_type_suffix(self, connection):
        return 'DEFAULT next_id()'


class InstaIdField(BigIdField):
    column_type = 'instaid.id'


def register(connection, **kwargs):
    """Let the driver, psycopg2 or psycopg 3, give an int for instaid.id."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regtype('instaid.id')::oid, to_regtype('instaid.id[]')::oid")
        oid, array_oid = cursor.fetchone()
    if oid is None:
        return
    driver = connection.connection
    if connection.Database.__name__ == 'psycopg2':
        from psycopg2 import extensions
        instaid = extensions.new_type((oid,), 'instaid.id', extensions.LONGINTEGER)
        extensions.register_type(instaid, driver)
        extensions.register_type(extensions.new_array_type((array_oid,), 'instaid.id[]', instaid), driver)
    else:
        from psycopg.types import TypeInfo
        from psycopg.types.numeric import Int8BinaryLoader, IntLoader
        TypeInfo('instaid.id', oid, array_oid).register(driver)
        driver.adapters.register_loader(oid, IntLoader)
        driver.adapters.register_loader(oid, Int8BinaryLoader)


connection_created.connect(register)
