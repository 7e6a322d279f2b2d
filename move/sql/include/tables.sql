-- of all kinds
pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = ANY ($1::text[])
