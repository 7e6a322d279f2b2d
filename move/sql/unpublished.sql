-- Commands that publish the tables that came later, and their names.  $1: the shards, $2: the publication
SELECT format('ALTER PUBLICATION %I ADD TABLE ONLY %I.%I', $2::text, n.nspname, c.relname) AS command,
    format('%I.%I', n.nspname, c.relname) AS name
FROM {{tables}} WHERE c.relkind = 'r' AND NOT {{is_published}}
