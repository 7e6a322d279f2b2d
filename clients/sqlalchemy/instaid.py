"""The type instaid.id for SQLAlchemy 1.4 and 2: an int in Python.

Copy this file into your project.  It has the license of instaid.

    id = Column(InstaId, primary_key=True, server_default=text('next_id()'))

A driver that has no type registered for instaid.id gives strings: they become int here.
"""
from sqlalchemy import BigInteger
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import TypeDecorator


class InstaId(TypeDecorator):
    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value, dialect):
        return None if value is None else int(value)

    def process_result_value(self, value, dialect):
        return None if value is None else int(value)


@compiles(InstaId, 'postgresql')
def compile_type(type_, compiler, **options):
    return 'instaid.id'
