-- $1: such lines; the tables whose slots are gone
SELECT substr(x, strpos(x, ' ') + 1) FROM unnest($1::text[]) AS x
WHERE split_part(x, ' ', 1) NOT IN (SELECT slot_name FROM pg_replication_slots)
