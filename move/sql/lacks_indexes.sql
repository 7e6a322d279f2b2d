-- Is a target still without indexes, which are made after the copy?  $1: the name of the move
SELECT 1 WHERE obj_description(to_regnamespace($1), 'pg_namespace') IS NOT NULL
