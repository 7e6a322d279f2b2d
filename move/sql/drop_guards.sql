-- $1: the shards, $2: the name of the move
SELECT format('DROP TRIGGER instaid_move_guard ON %I.%I', n.nspname, c.relname)
FROM {{tables}} JOIN pg_trigger AS t ON t.tgrelid = c.oid WHERE {{is_guard}}
