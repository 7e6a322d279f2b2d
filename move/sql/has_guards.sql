-- Would the guards of a move refuse writes here?  $1: the shards, $2: the name of the move
SELECT true FROM {{tables}} JOIN pg_trigger AS t ON t.tgrelid = c.oid WHERE {{is_guard}} LIMIT 1
