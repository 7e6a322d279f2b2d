-- It can have what is left of the SQL edition, too.
EXISTS (SELECT FROM pg_language WHERE lanname = 'instaid')
