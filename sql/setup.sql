-- The extension, and a function that other tests use.
CREATE EXTENSION instaid;

\getenv top PG_ABS_SRCDIR
\set try :top '/test/lib/try.sql'
\i :try
