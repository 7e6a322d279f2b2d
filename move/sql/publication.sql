-- The command that creates a publication: FOR TABLE ONLY does not break what is created meanwhile.
-- $1: the shards, $2: its name, $3: without tables
SELECT format('CREATE PUBLICATION %I', $2::text) || CASE WHEN NOT $3::boolean THEN COALESCE((
    SELECT ' FOR TABLE ' || string_agg(format('ONLY %I.%I', n.nspname, c.relname), ', ')
    FROM {{tables}} WHERE c.relkind = 'r'), '') ELSE '' END
