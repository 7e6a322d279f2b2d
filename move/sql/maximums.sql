-- The limits of all sequences but those of IDs, which the texts leave out.
-- $1: the shards, $2: the sequences of IDs
SELECT format('sequence %I.%I has MAXVALUE %s', n.nspname, c.relname, q.seqmax) COLLATE "C"
FROM {{tables}} JOIN pg_sequence AS q ON q.seqrelid = c.oid WHERE c.oid <> ALL ($2::oid[]) ORDER BY 1
