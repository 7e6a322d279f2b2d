-- The arithmetic that Instagram published, in PL/pgSQL: nextval first, the clock
-- afterwards.  The assignments are faster than the SELECT ... INTO that was published.
--
-- The psql variables "schema" and "shard_id" say which schema is created, and
-- which shard ID its next_id() puts into IDs.  "also" may hold a statement that
-- next_id() executes at its end.

\if :{?also}
\else
    \set also ''
\endif

CREATE SCHEMA :"schema";
CREATE SEQUENCE :"schema".table_id_seq;
SELECT format($format$
CREATE FUNCTION %1$I.next_id(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    seq_id bigint;
    now_ms bigint;
BEGIN
    seq_id := nextval('%1$I.table_id_seq') %% 1024;
    now_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
    result := ((now_ms - 1314220021721) << 23) | (%2$s << 10) | seq_id;
    %3$s
END
$$
$format$, :'schema', :shard_id, :'also') \gexec
