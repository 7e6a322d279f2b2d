/*
 * What a move asks the catalogs.  $1 is the array of its shards' schemas, where a query has
 * parameters.  search_path is pg_catalog.  No query runs a function of another role.
 */
#ifndef MOVE_QUERIES_H
#define MOVE_QUERIES_H

#define OURS "(SELECT oid FROM pg_namespace WHERE nspname = ANY ($1::text[]))"
#define DATABASE "(SELECT oid FROM pg_database WHERE datname = current_database())"

#define WHO \
	"SELECT system_identifier || '/' || " DATABASE " FROM pg_control_system()"

/* $1: the second number of an advisory lock; any role can hold it */
#define LOCK_HOLDER \
	"SELECT format('Session %s of role %I holds its lock.', l.pid, a.usename)" \
	" FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid" \
	" WHERE l.locktype = 'advisory' AND l.granted AND l.database = " DATABASE \
	" AND l.objsubid = 2 AND l.objid::bigint = $1::bigint & 4294967295" \
	" AND l.classid::bigint = hashtext('instaid-move')::bigint & 4294967295"

/* a name, and a name or pattern */
#define FITS(name, pattern) \
	name " = " pattern " OR " pattern " LIKE '%\\%%'" \
	" AND " name " LIKE replace(replace(" pattern ", '\\', '\\\\'), '_', '\\_')"
/* $1: names and patterns, or null for all */
#define MATCHES(name) \
	"EXISTS (SELECT FROM unnest($1::text[]) AS p WHERE " FITS(name, "p") ")"
/* $1: the same; those that no shard fits */
#define UNMATCHED \
	"SELECT array_agg(p)::text FROM unnest($1::text[]) AS p WHERE NOT EXISTS (" \
	" SELECT FROM instaid.shards WHERE " FITS("schema_name::text", "p") ")"
#define SHOWN "SELECT array_to_string($1::text[], ', ')"

/*
 * The marks: comments on publications, JSON.  Everyone who may create publications can write
 * such a comment, so the owner counts.  $2 is the other database.
 */
#define MARKS \
	"SELECT pubname, m->>'from', m->>'to', m->>'state', m->>'lsn', (m->'one_way')::boolean," \
	" (m->'shards')::text, shards::text," \
	" ARRAY(SELECT jsonb_array_elements_text(m->'frozen'))::text," \
	" NOT EXISTS (SELECT FROM unnest(shards) AS s WHERE NOT " MATCHES("s") ")" \
	" AND NOT EXISTS (SELECT FROM unnest($1::text[]) AS q WHERE NOT EXISTS (" \
	"  SELECT FROM unnest(shards) AS s WHERE " FITS("s", "q") ")) AS is_all" \
	" FROM (SELECT p.pubname, CASE WHEN r.rolname = current_user" \
	"        OR r.rolsuper THEN obj_description(p.oid, 'pg_publication')::jsonb END" \
	"       FROM pg_publication AS p JOIN pg_roles AS r ON r.oid = p.pubowner" \
	"       WHERE p.pubname ~ '^instaid_move_[0-9]+$') AS x (pubname, m)" \
	" CROSS JOIN LATERAL (SELECT ARRAY(SELECT jsonb_array_elements_text(m->'shards'))) AS y (shards)" \
	" WHERE m IS NOT NULL AND ($1 IS NULL" \
	"  OR EXISTS (SELECT FROM unnest(shards) AS s WHERE " MATCHES("s") "))" \
	" ORDER BY pubname"

#define SHARDS \
	"SELECT array_agg(schema_name ORDER BY shard_id)::text, min(shard_id)," \
	" COALESCE(array_agg(schema_name ORDER BY shard_id) FILTER (WHERE frozen), '{}')::text" \
	" FROM instaid.shards WHERE " MATCHES("schema_name::text")

/* $2: the frozen ones, $3...: see mark() */
#define MARK \
	"SELECT format('COMMENT ON PUBLICATION %I IS %L', $1::text, jsonb_build_object(" \
	"'shards', $2::text[], 'frozen', $3::text[], 'from', $4::text, 'to', $5::text," \
	"'state', $6::text, 'lsn', pg_current_wal_flush_lsn(), 'one_way', $7::boolean))"

#define SUBSCRIPTION \
	"SELECT oid, subenabled, subslotname FROM pg_subscription" \
	" WHERE subname = $1 AND subdbid = " DATABASE

#define TABLES \
	"FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace" \
	" WHERE n.nspname = ANY ($1::text[]) AND c.relkind = 'r'"

#define PUBLISHED_TABLES \
	"SELECT string_agg(format('ONLY %I.%I', n.nspname, c.relname), ', ') " TABLES

#define IS_PUBLISHED \
	"EXISTS (SELECT FROM pg_publication_rel AS r JOIN pg_publication AS p" \
	" ON p.oid = r.prpubid WHERE r.prrelid = c.oid AND p.pubname = $2)"

#define UNPUBLISHED_TABLES \
	"SELECT format('ALTER PUBLICATION %I ADD TABLE ONLY %I.%I', $2::text, n.nspname, c.relname) " \
	TABLES " AND NOT " IS_PUBLISHED

#define UNPUBLISH \
	"SELECT format('LOCK TABLE ONLY %1$I.%2$I IN SHARE ROW EXCLUSIVE MODE;" \
	" ALTER PUBLICATION %3$I DROP TABLE ONLY %1$I.%2$I', n.nspname, c.relname, $2::text) " \
	TABLES " AND " IS_PUBLISHED

/*
 * The guards: statement triggers, which refuse while a schema with the name of the move, $2, exists.
 * One is missing unless it has its function, its events (62: BEFORE INSERT, DELETE, UPDATE or
 * TRUNCATE, for each statement) and its argument, and is enabled.
 */
#define IS_GUARD \
	"t.tgname = 'instaid_move_guard' AND t.tgfoid = 'instaid._move_guard()'::regprocedure" \
	" AND t.tgargs = convert_to($2::text, 'UTF8') || '\\x00'"
#define MISSING_GUARDS \
	"SELECT CASE WHEN t.oid IS NOT NULL THEN" \
	"  format('DROP TRIGGER instaid_move_guard ON %I.%I; ', n.nspname, c.relname) ELSE '' END" \
	" || format('CREATE TRIGGER instaid_move_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE" \
	" ON %I.%I FOR EACH STATEMENT EXECUTE FUNCTION instaid._move_guard(%L)', n.nspname, c.relname, $2::text)" \
	" FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace" \
	" LEFT JOIN pg_trigger AS t ON t.tgrelid = c.oid AND t.tgname = 'instaid_move_guard'" \
	" WHERE n.nspname = ANY ($1::text[]) AND c.relkind IN ('r', 'p') AND NOT COALESCE(" \
	IS_GUARD " AND t.tgtype = 62 AND t.tgenabled = 'O' AND t.tgqual IS NULL, false)" \
	" ORDER BY c.oid"
#define DROP_GUARDS \
	"SELECT format('DROP TRIGGER instaid_move_guard ON %I.%I', n.nspname, c.relname)" \
	" FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace" \
	" JOIN pg_trigger AS t ON t.tgrelid = c.oid" \
	" WHERE n.nspname = ANY ($1::text[]) AND " IS_GUARD

/* a move, $2, has a publication without the tables of the shards */
#define BEGUN_BY_DUMP \
	"SELECT true " TABLES " AND NOT EXISTS (SELECT FROM pg_publication_tables WHERE pubname = $2) LIMIT 1"
/* shards of a move, $2, that have another name now */
#define RENAMED \
	"SELECT string_agg(DISTINCT n.nspname, ', ') FROM pg_trigger AS t" \
	" JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace" \
	" WHERE n.nspname <> ALL ($1::text[]) AND " IS_GUARD

/*
 * The transactions that may still write rows, or tables, of the shards: since the guard
 * refuses, each later one is refused when it has its lock.  $2: for so many seconds, if this role sees that
 */
#define HOLDERS \
	"SELECT array_agg(DISTINCT l.virtualtransaction)::text," \
	" string_agg(DISTINCT COALESCE(l.pid::text, 'a prepared transaction'), ', ')" \
	" FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid" \
	" WHERE l.granted AND l.database = " DATABASE \
	" AND l.pid IS DISTINCT FROM pg_backend_pid()" \
	" AND a.backend_type IS DISTINCT FROM 'autovacuum worker'" \
	" AND ($2::float8 = 0 OR l.pid IS NULL OR a.xact_start < clock_timestamp() - $2::float8 * interval '1 s')" \
	" AND (l.locktype = 'relation' AND l.mode NOT IN ('AccessShareLock', 'RowShareLock')" \
	"  AND l.relation IN (SELECT oid FROM pg_class WHERE relkind IN ('r', 'p')" \
	"                     AND relnamespace IN " OURS ")" \
	"  OR l.locktype = 'object' AND l.classid = 'pg_namespace'::regclass AND l.objid IN " OURS ")"
#define HOLDERS_LEFT \
	"SELECT count(*) FROM pg_locks WHERE virtualtransaction = ANY ($1::text[])" \
	" AND pid IS DISTINCT FROM pg_backend_pid()"
#define CREATORS \
	"SELECT string_agg(DISTINCT COALESCE(pid::text, 'of a prepared transaction'), ', ') FROM pg_locks" \
	" WHERE granted AND database = " DATABASE \
	" AND pid IS DISTINCT FROM pg_backend_pid() AND locktype = 'object'" \
	" AND classid = 'pg_namespace'::regclass AND objid IN " OURS

/* $2: the shards that were frozen before the move, and stay so.  To thaw one that issues IDs would wait. */
#define FREEZE \
	"SELECT format('SELECT instaid.freeze_shard(%L)', s) FROM unnest($1::text[]) AS s"
#define THAW \
	"SELECT string_agg(format('SELECT instaid.thaw_shard(%L)', s), ';')" \
	" FROM unnest($1::text[]) AS s WHERE s <> ALL ($2::text[]) AND s IN (" \
	"  SELECT schema_name FROM instaid.shards WHERE frozen)"
#define LIVE \
	"SELECT string_agg(schema_name, ', ') FROM instaid.shards" \
	" WHERE schema_name = ANY ($1::text[]) AND NOT frozen"
/* $2: the name of the move */
#define DROP_SCHEMAS \
	"SELECT string_agg(format('DROP SCHEMA %I CASCADE', nspname), ';') FROM pg_namespace" \
	" WHERE nspname = ANY ($1::text[] || $2::text)"
#define EXISTING \
	"SELECT string_agg(nspname, ', ') FROM pg_namespace WHERE nspname = ANY ($1::text[])"

/*
 * A query for the position of each sequence, which needs a session that reads no views; null if there is
 * none.  $2: those of IDs
 */
#define SEQUENCES \
	"SELECT string_agg(format('SELECT %1$L, last_value, is_called, %2$L::boolean, %3$L::boolean FROM %1$s'," \
	"  format('%I.%I', n.nspname, c.relname), c.oid = ANY ($2::oid[])," \
	"  CASE WHEN NOT q.seqcycle THEN q.seqincrement > 0 END), ' UNION ALL ' ORDER BY n.nspname, c.relname)" \
	" FROM pg_sequence AS q JOIN pg_class AS c ON c.oid = q.seqrelid" \
	" JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = ANY ($1::text[])"
/*
 * The commands that carry these positions, %s, to the other side, which can be ahead: by the thaw, or by
 * clients that took values while it was frozen.  A sequence of IDs goes on by itself if it was not used.
 */
#define POSITIONS \
	"SELECT string_agg(CASE WHEN up IS NULL THEN format('SELECT setval(%%L, %%s, %%L)', name, last, called)" \
	" WHEN NOT called THEN format('SELECT setval(%%1$L, %%2$s, false)" \
	" WHERE COALESCE(pg_sequence_last_value(%%1$L) %%3$s %%2$s, true)', name, last," \
	"  CASE WHEN up THEN '<' ELSE '>' END)" \
	" ELSE format('SELECT setval(%%1$L, %%3$s(%%2$s, pg_sequence_last_value(%%1$L)))', name, last," \
	"  CASE WHEN up THEN 'greatest' ELSE 'least' END) END, ';')" \
	" FROM (%s) AS s (name, last, called, is_id, up) WHERE called OR NOT is_id"

#define UNANALYZED \
	"SELECT format('ANALYZE %I.%I', n.nspname, c.relname) " TABLES " AND c.reltuples < 0"

/* What an edition makes of a shard: its functions, the type of their argument, and a lock */
#define MAKERS \
	"(SELECT p.oid FROM pg_proc AS p LEFT JOIN pg_type AS t ON t.oid = p.proargtypes[p.pronargs - 1]" \
	"  WHERE p.pronamespace IN " OURS " AND (p.proname, p.pronargs) IN" \
	"   (('next_id', 0), ('next_id', 1), ('next_ids', 2))" \
	"  AND (p.pronargs = 0 OR t.typname IN ('regclass', 'id_sequence')))"
/* Has this database the extension?  It can have what is left of the SQL edition, too. */
#define IS_EXTENSION "EXISTS (SELECT FROM pg_language WHERE lanname = 'instaid')"

/* What DROP SCHEMA ... CASCADE would drop */
#define INSIDE \
	"WITH RECURSIVE inside AS (SELECT 'pg_namespace'::regclass::oid AS c, oid AS o FROM pg_namespace" \
	"  WHERE oid IN " OURS \
	" UNION SELECT d.classid, d.objid FROM pg_depend AS d JOIN inside AS i" \
	"  ON d.refclassid = i.c AND d.refobjid = i.o AND d.deptype IN ('n', 'a', 'i', 'P', 'S'))"
/*
 * What of that is outside of the schemas, without types, indexes and constraints of such a table; and
 * whether it is a partition or child of one of theirs
 */
#define DEPENDANTS \
	INSIDE ", whose (c, o) AS (SELECT CASE WHEN r.oid IS NULL THEN i.c ELSE 'pg_class'::regclass END," \
	"  COALESCE(r.oid, i.o) FROM inside AS i" \
	"  LEFT JOIN pg_trigger AS t ON i.c = 'pg_trigger'::regclass AND t.oid = i.o" \
	"  LEFT JOIN pg_rewrite AS w ON i.c = 'pg_rewrite'::regclass AND w.oid = i.o" \
	"  LEFT JOIN pg_attrdef AS d ON i.c = 'pg_attrdef'::regclass AND d.oid = i.o" \
	"  LEFT JOIN pg_policy AS p ON i.c = 'pg_policy'::regclass AND p.oid = i.o" \
	"  LEFT JOIN pg_class AS r ON r.oid IN (t.tgrelid, w.ev_class, d.adrelid, p.polrelid)" \
	"  WHERE NOT COALESCE(t.tgisinternal, false) AND i.c NOT IN ('pg_publication_rel'::regclass," \
	"   'pg_publication_namespace'::regclass, 'pg_default_acl'::regclass))" \
	" SELECT DISTINCT pg_describe_object(c, o, 0) COLLATE \"C\", c = 'pg_class'::regclass" \
	"  AND o IN (SELECT inhrelid FROM pg_inherits AS h JOIN pg_class AS p ON p.oid = h.inhparent" \
	"   WHERE p.relnamespace IN " OURS ") FROM whose" \
	"  LEFT JOIN pg_cast AS z ON c = 'pg_cast'::regclass AND z.oid = o" \
	"  LEFT JOIN pg_constraint AS k ON c = 'pg_constraint'::regclass AND k.oid = o" \
	"  LEFT JOIN pg_index AS x ON c = 'pg_class'::regclass AND x.indexrelid = o" \
	"  LEFT JOIN pg_type AS y ON c = 'pg_type'::regclass AND y.oid = o" \
	"  LEFT JOIN pg_type AS e ON e.oid = y.typelem" \
	"  CROSS JOIN LATERAL pg_identify_object(c, o, 0) AS s" \
	"  WHERE COALESCE((SELECT quote_ident(nspname) FROM pg_namespace" \
	"   WHERE oid = CASE WHEN c = 'pg_namespace'::regclass THEN o ELSE k.connamespace END), s.schema, '')" \
	"  <> ALL (SELECT quote_ident(n) FROM unnest($1::text[]) AS n)" \
	"  AND NOT COALESCE((SELECT bool_and(typnamespace IN " OURS ") FROM pg_type" \
	"   WHERE pg_type.oid IN (z.castsource, z.casttarget)), false)" \
	"  AND NOT EXISTS (SELECT FROM pg_depend AS m JOIN pg_extension AS b ON b.oid = m.refobjid" \
	"   WHERE m.classid = c AND m.objid = o AND m.deptype = 'e' AND b.extnamespace IN " OURS ")" \
	"  AND NOT EXISTS (SELECT FROM pg_opfamily AS f WHERE f.opfnamespace IN " OURS " AND f.oid IN (" \
	"   SELECT amprocfamily FROM pg_amproc WHERE c = 'pg_amproc'::regclass AND pg_amproc.oid = o" \
	"   UNION SELECT amopfamily FROM pg_amop WHERE c = 'pg_amop'::regclass AND pg_amop.oid = o))" \
	"  AND COALESCE(s.schema, '') <> 'pg_toast' AND COALESCE(x.indrelid, k.conrelid, nullif(e.typrelid, 0)," \
	"   y.typrelid, 0) NOT IN (SELECT o FROM whose WHERE c = 'pg_class'::regclass) ORDER BY 1"

/* the sequences that issue the IDs of the shards, an array of OIDs: with --dump, they can be gone again */
#define ID_SEQUENCES \
	"SELECT COALESCE(array_agg(q::oid), '{}')::text FROM unnest($1::text[]) AS s" \
	" CROSS JOIN LATERAL instaid._shard_sequences(s) AS q"

/*
 * What the catalogs say of the shards: rows of pg_class and pg_sequence without what a TRUNCATE, a
 * freeze or a guard changes, and of all else who wrote them last.  $2: the sequences of IDs
 */
#define XMIN_OF(catalog) " UNION ALL SELECT tableoid, oid, xmin::text FROM " catalog
#define XMIN_AS(class, oid, catalog) \
	" UNION ALL SELECT '" class "'::regclass, " oid ", xmin::text FROM " catalog
#define FINGERPRINT \
	INSIDE ", x (c, o, v) AS (" \
	"SELECT tableoid, oid, md5((to_jsonb(k) - 'relfilenode' - 'relpages' - 'reltuples'" \
	"  - 'relallvisible' - 'relallfrozen' - 'relfrozenxid' - 'relminmxid' - 'relhasindex'" \
	"  - 'relhastriggers')::text)" \
	"  FROM pg_class AS k WHERE k.oid IN (SELECT o FROM inside WHERE c = 'pg_class'::regclass)" \
	" UNION ALL SELECT 'pg_class'::regclass, seqrelid, (to_jsonb(q)" \
	"   - CASE WHEN seqrelid = ANY ($2::oid[]) THEN 'seqmax' ELSE '' END)::text" \
	"  FROM pg_sequence AS q WHERE seqrelid IN (SELECT o FROM inside WHERE c = 'pg_class'::regclass)" \
	XMIN_OF("pg_trigger WHERE tgname <> 'instaid_move_guard'") \
	XMIN_OF("pg_namespace") XMIN_OF("pg_type") XMIN_OF("pg_proc") XMIN_OF("pg_attrdef") \
	XMIN_OF("pg_constraint") XMIN_OF("pg_rewrite") XMIN_OF("pg_policy") XMIN_OF("pg_operator") \
	XMIN_OF("pg_opclass") XMIN_OF("pg_opfamily") XMIN_OF("pg_cast") XMIN_OF("pg_collation") \
	XMIN_OF("pg_conversion") XMIN_OF("pg_ts_config") XMIN_OF("pg_ts_dict") \
	XMIN_OF("pg_ts_parser") XMIN_OF("pg_ts_template") \
	XMIN_OF("pg_statistic_ext") XMIN_OF("pg_default_acl") \
	XMIN_AS("pg_class", "attrelid", "pg_attribute") XMIN_AS("pg_class", "indexrelid", "pg_index") \
	XMIN_AS("pg_class", "inhrelid", "pg_inherits") \
	XMIN_AS("pg_type", "enumtypid", "pg_enum") XMIN_AS("pg_type", "rngtypid", "pg_range") \
	XMIN_AS("pg_proc", "aggfnoid", "pg_aggregate") XMIN_AS("pg_opfamily", "amopfamily", "pg_amop") \
	XMIN_AS("pg_opfamily", "amprocfamily", "pg_amproc") \
	XMIN_AS("pg_ts_config", "mapcfg", "pg_ts_config_map") \
	" UNION ALL SELECT classoid, objoid, xmin::text FROM pg_description)" \
	" SELECT md5(string_agg(concat_ws(' ', c, o, v), ',' ORDER BY c, o, v COLLATE \"C\")) FROM x" \
	" WHERE (c, o) IN (SELECT c, o FROM inside) AND c <> 'pg_publication_rel'::regclass"

/* the limits of all other sequences, which the texts leave out.  $2: those of IDs */
#define MAXIMUMS \
	"SELECT format('sequence %I.%I has MAXVALUE %s', n.nspname, c.relname, q.seqmax) COLLATE \"C\"" \
	" FROM pg_sequence AS q JOIN pg_class AS c ON c.oid = q.seqrelid" \
	" JOIN pg_namespace AS n ON n.oid = c.relnamespace" \
	" WHERE n.nspname = ANY ($1::text[]) AND c.oid <> ALL ($2::oid[]) ORDER BY 1"

/* What COPY copies */
#define DUMPED_TABLES \
	"SELECT concat_ws(' ', format('%I.%I', n.nspname, c.relname), '(' ||" \
	"  (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute" \
	"   WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') || ')') " \
	TABLES " ORDER BY 1"

/*
 * The rows of a table by buckets of their keys, and one by one: see verify().  The bytes of a text depend
 * on the encoding.  $2: whether both sides have one
 */
#define COMPARED_TABLES \
	"SELECT format('%I.%I', n.nspname, c.relname)," \
	" format(CASE WHEN $2::boolean THEN 'SELECT textin(record_out(ROW(%s))) AS k," \
	" hashtextextended(textin(record_out(ROW(%s))), 0) AS h FROM ONLY %I.%I AS t'" \
	" ELSE 'SELECT encode(convert_to(textin(record_out(ROW(%s))), ''UTF8''), ''escape'') AS k," \
	" hashtextextended(encode(convert_to(textin(record_out(ROW(%s))), ''UTF8''), ''hex''), 0) AS h" \
	" FROM ONLY %I.%I AS t' END," \
	"  COALESCE((SELECT string_agg(format('t.%I', a.attname), ', ' ORDER BY a.attname COLLATE \"C\")" \
	"   FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)" \
	"   WHERE i.indrelid = c.oid AND CASE c.relreplident WHEN 'i' THEN i.indisreplident" \
	"    WHEN 'd' THEN i.indisprimary END), columns), columns, n.nspname, c.relname)" \
	" FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace" \
	" CROSS JOIN LATERAL (SELECT string_agg(format('t.%I', a.attname), ', '" \
	"  ORDER BY a.attname COLLATE \"C\") FROM pg_attribute AS a" \
	"  WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS x (columns)" \
	" WHERE n.nspname = ANY ($1::text[]) AND c.relkind = 'r' AND columns IS NOT NULL ORDER BY 1"
#define BUCKETS \
	"SELECT line, n FROM (SELECT format('%%s %%s %%s', hashtext(k) & 1023, count(*), sum(h)), count(*)" \
	" FROM (%s) AS t GROUP BY hashtext(k) & 1023) AS s (line, n) ORDER BY line COLLATE \"C\""
#define ROWS \
	"SELECT line FROM (SELECT format('row %%s, hash %%s', k, h) FROM (%s) AS t" \
	" WHERE hashtext(k) & 1023 = ANY ($1::integer[])) AS s (line) ORDER BY line COLLATE \"C\""

/*
 * What the updates and deletes of tables would fail with if they were published, also of tables that come
 * later: see below
 */
#define CHECK_IDENTITY \
	"SELECT format('!table %s has no replica identity: its UPDATE and DELETE would fail;" \
	" give it a primary key%s, or ALTER TABLE %1$s REPLICA IDENTITY FULL', c.oid::regclass," \
	"  CASE WHEN EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary" \
	"   AND NOT indimmediate) THEN ' that is not deferrable' END)" \
	"  FROM pg_class AS c WHERE c.relnamespace IN " OURS " AND c.relkind = 'r'" \
	"  AND (c.relreplident = 'n' OR c.relreplident = 'd' AND NOT EXISTS (" \
	"   SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary AND indimmediate)" \
	"   OR c.relreplident = 'i' AND NOT EXISTS (" \
	"   SELECT FROM pg_index WHERE indrelid = c.oid AND indisreplident))" \
	" UNION ALL SELECT format('!table %s has REPLICA IDENTITY FULL, and the type of its column %I has no" \
	" equality: its UPDATE and DELETE could not be applied; give it a primary key', c.oid::regclass, a.attname)" \
	"  FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0" \
	"  AND NOT a.attisdropped JOIN pg_type AS t ON t.oid = a.atttypid" \
	"  WHERE c.relnamespace IN " OURS " AND c.relkind = 'r' AND c.relreplident = 'f'" \
	"  AND t.typtype = 'b' AND t.typelem = 0 AND NOT EXISTS (SELECT FROM pg_opclass AS k" \
	"   JOIN pg_am AS m ON m.oid = k.opcmethod AND m.amname IN ('btree', 'hash') AND k.opcdefault" \
	"   WHERE k.opcintype = t.oid OR EXISTS (SELECT FROM pg_cast WHERE castsource = t.oid" \
	"    AND casttarget = k.opcintype AND castmethod = 'b' AND castcontext = 'i'))" \
	" UNION ALL SELECT format('!column %I of %s is generated, and part of its replica identity, which is not" \
	" replicated: ALTER TABLE %2$s REPLICA IDENTITY USING INDEX another one, or FULL', a.attname, c.oid::regclass)" \
	"  FROM pg_class AS c JOIN pg_index AS i ON i.indrelid = c.oid" \
	"  AND CASE c.relreplident WHEN 'i' THEN i.indisreplident WHEN 'd' THEN i.indisprimary END" \
	"  JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) AND a.attgenerated <> ''" \
	"  WHERE c.relnamespace IN " OURS " AND c.relkind = 'r'"

/* What would stop a move: "!" and a fault, or "-" and a remark; here by replication.  $2: its tables */
#define CHECK_PUBLISHER \
	"SELECT CASE WHEN current_setting('wal_level') <> 'logical' THEN '!wal_level of the source is '" \
	"  || current_setting('wal_level') || ': set it to logical, and restart' END" \
	" UNION ALL SELECT '!the source has ' || free || ' free replication slots, and a move needs '" \
	"  || 2 + least(4, $2::integer) || ': raise max_replication_slots (' || m || '), and restart'" \
	"  FROM (SELECT current_setting('max_replication_slots')::integer - count(*)," \
	"        current_setting('max_replication_slots') FROM pg_replication_slots) AS x (free, m)" \
	"  WHERE free < 2 + least(4, $2::integer)" \
	" UNION ALL SELECT '!the source has ' || free || ' free WAL senders, and a move needs '" \
	"  || 1 + least(4, $2::integer) || ': raise max_wal_senders (' || m || '), and restart'" \
	"  FROM (SELECT current_setting('max_wal_senders')::integer - count(*)," \
	"        current_setting('max_wal_senders') FROM pg_stat_replication) AS x (free, m)" \
	"  WHERE free < 1 + least(4, $2::integer)" \
	" UNION ALL SELECT '!' || current_user || ' is not a superuser of the source, and may not replicate:" \
	" ALTER ROLE ... REPLICATION, or move with --dump' FROM pg_roles" \
	"  WHERE rolname = current_user AND NOT rolsuper AND NOT rolreplication" \
	" UNION ALL SELECT format('!table %s is unlogged, and is not replicated: ALTER TABLE %1$s SET LOGGED'," \
	"  oid::regclass) FROM pg_class WHERE relnamespace IN " OURS " AND relkind = 'r'" \
	"  AND relpersistence = 'u'" \
	" UNION ALL SELECT format('!trigger %I of %s is ENABLE %s, and would fire for each row that is" \
	" copied: ALTER TABLE %2$s ENABLE TRIGGER %1$I', t.tgname, t.tgrelid::regclass," \
	"  CASE t.tgenabled WHEN 'A' THEN 'ALWAYS' ELSE 'REPLICA' END) FROM pg_trigger AS t" \
	"  JOIN pg_class AS c ON c.oid = t.tgrelid WHERE c.relnamespace IN " OURS \
	"  AND t.tgenabled IN ('A', 'R') AND NOT t.tgisinternal" \
	" UNION ALL SELECT format('-materialized view %s arrives without rows: REFRESH it on the target'," \
	"  oid::regclass) FROM pg_class WHERE relnamespace IN " OURS " AND relkind = 'm'" \
	" UNION ALL SELECT format('-max_slot_wal_keep_size is %s: a copy that takes longer is lost, and" \
	" begins again', current_setting('max_slot_wal_keep_size'))" \
	"  WHERE current_setting('max_slot_wal_keep_size') <> '-1'"

/* What ends the sessions of the other server that copy from here, by a setting of this role or database */
#define CHECK_TIMEOUT \
	"SELECT format('!%s is %s, which would end the copy of a large table: ALTER DATABASE or ALTER ROLE" \
	" ... SET %1$s = 0, or put options=''-c %1$s=0'' into --%3$s', name, reset_val, $1::text)" \
	" FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout') AND reset_val <> '0'" \
	" AND strpos($2::text, name) = 0"

#define CHECK_SOURCE \
	"SELECT '!' || current_user || ' is not a superuser of the source, and has not the rights of the" \
	" owner of schema ' || (SELECT min(nspname) FROM pg_namespace" \
	"   WHERE oid IN " OURS " AND NOT pg_has_role(nspowner, 'USAGE')) || ': GRANT that role'" \
	"  FROM pg_roles WHERE rolname = current_user AND NOT rolsuper AND EXISTS (SELECT FROM pg_namespace" \
	"   WHERE oid IN " OURS " AND NOT pg_has_role(nspowner, 'USAGE'))" \
	" UNION ALL SELECT '!' || current_user || ' may not create publications on the source: GRANT CREATE ON" \
	" DATABASE' WHERE NOT has_database_privilege(current_database(), 'CREATE')" \
	" UNION ALL SELECT format('!schema %I belongs to %s, and in the SQL edition nobody else can freeze" \
	" this shard: connect as %2$s to the source', s.schema_name, c.relowner::regrole)" \
	"  FROM instaid.shards AS s JOIN pg_class AS c ON c.oid = s.sequence" \
	"  WHERE s.schema_name = ANY ($1::text[])" \
	"  AND c.relowner <> (SELECT oid FROM pg_roles WHERE rolname = current_user)" \
	"  AND NOT " IS_EXTENSION \
	" UNION ALL SELECT '!a prepared transaction, ' || quote_literal(gid) || ', is open since ' || prepared" \
	"  || ': the slot would wait for it; COMMIT PREPARED or ROLLBACK PREPARED' FROM pg_prepared_xacts" \
	" UNION ALL SELECT format('!%s and its child %s are not both in the moved schemas: detach one, or" \
	" move it', i.inhparent::regclass, i.inhrelid::regclass) FROM pg_inherits AS i" \
	"  JOIN pg_class AS c ON c.oid = i.inhrelid JOIN pg_class AS p ON p.oid = i.inhparent" \
	"  WHERE c.relkind IN ('r', 'p', 'f')" \
	"  AND (c.relnamespace IN " OURS ") <> (p.relnamespace IN " OURS ")" \
	" UNION ALL SELECT format('!foreign key %I of %s refers to %s, and crosses the schemas: ALTER TABLE" \
	" %2$s DROP CONSTRAINT %1$I', k.conname, k.conrelid::regclass, k.confrelid::regclass)" \
	"  FROM pg_constraint AS k JOIN pg_class AS t ON t.oid = k.conrelid" \
	"  JOIN pg_class AS r ON r.oid = k.confrelid WHERE k.contype = 'f' AND k.conparentid = 0" \
	"  AND (t.relnamespace IN " OURS ") <> (r.relnamespace IN " OURS ")" \
	" UNION ALL SELECT format('!subscription %I writes to %s of the source: it would not follow the" \
	" shard', s.subname, r.srrelid::regclass) FROM pg_subscription_rel AS r" \
	"  JOIN pg_subscription AS s ON s.oid = r.srsubid JOIN pg_class AS c ON c.oid = r.srrelid" \
	"  WHERE c.relnamespace IN " OURS \
	" UNION ALL SELECT format('!extension %s is in schema %I: ALTER EXTENSION %1$s SET SCHEMA public'," \
	"  quote_ident(e.extname), n.nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace" \
	"  WHERE n.oid IN " OURS \
	" UNION ALL SELECT format('!the lock table has no room for the %s relations of the shards: raise" \
	" max_locks_per_transaction, and restart, or move fewer shards at once', n)" \
	"  FROM (SELECT count(*) FROM pg_class WHERE relnamespace IN " OURS ") AS x (n)" \
	"  WHERE n > current_setting('max_locks_per_transaction')::integer" \
	"   * current_setting('max_connections')::integer / 2" \
	" UNION ALL SELECT format('-publication %I also publishes %s, and will not follow the shard'," \
	"  p.pubname, r.prrelid::regclass) FROM pg_publication_rel AS r" \
	"  JOIN pg_publication AS p ON p.oid = r.prpubid JOIN pg_class AS c ON c.oid = r.prrelid" \
	"  WHERE c.relnamespace IN " OURS " AND p.pubname !~ '^instaid_move_[0-9]+$'" \
	" UNION ALL SELECT format('-column %s of %s may name large objects, which do not move', a.attname," \
	"  c.oid::regclass) FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid" \
	"  JOIN pg_type AS t ON t.oid = a.atttypid WHERE c.relnamespace IN " OURS " AND c.relkind = 'r'" \
	"  AND a.attnum > 0 AND (t.oid = 'oid'::regtype OR t.typbasetype = 'oid'::regtype)" \
	"  AND EXISTS (SELECT FROM pg_largeobject_metadata)"

/* Sequences that columns take values of, but that do not move, and the last value */
#define OUTER_SEQUENCES \
	"SELECT DISTINCT format('%I.%I', n.nspname, s.relname)," \
	"  COALESCE(pg_sequence_last_value(s.oid), q.seqstart) FROM pg_attrdef AS d" \
	"  JOIN pg_class AS c ON c.oid = d.adrelid JOIN pg_depend AS e ON e.classid = 'pg_attrdef'::regclass" \
	"  AND e.objid = d.oid AND e.refclassid = 'pg_class'::regclass" \
	"  JOIN pg_class AS s ON s.oid = e.refobjid AND s.relkind = 'S'" \
	"  JOIN pg_namespace AS n ON n.oid = s.relnamespace JOIN pg_sequence AS q ON q.seqrelid = s.oid" \
	"  WHERE c.relnamespace IN " OURS " AND s.relnamespace NOT IN " OURS " ORDER BY 1"
/* $1: such a sequence, $2: its value; is there one that stands beyond? */
#define IS_BEYOND \
	"SELECT true FROM pg_sequence AS q WHERE q.seqrelid = to_regclass($1) AND CASE WHEN q.seqincrement > 0" \
	"  THEN COALESCE(pg_sequence_last_value(q.seqrelid), q.seqstart) > $2::bigint" \
	"  ELSE COALESCE(pg_sequence_last_value(q.seqrelid), q.seqstart) < $2::bigint END"

/* Whose definitions these are: superusers that initdb made own without a word */
#define DEFINERS \
	INSIDE " SELECT array_agg(DISTINCT r.rolname)::text FROM inside AS i" \
	"  JOIN pg_shdepend AS d ON d.classid = i.c AND d.objid = i.o AND d.dbid = " DATABASE \
	"  AND d.refclassid = 'pg_authid'::regclass AND d.deptype = 'o' JOIN pg_roles AS r ON r.oid = d.refobjid"
/* $1: these, $2: those that are trusted */
#define UNTRUSTED \
	"SELECT x FROM unnest($1::text[]) AS x WHERE x <> current_user AND x <> ALL (COALESCE($2::text[], '{}'))" \
	" AND NOT EXISTS (SELECT FROM pg_roles WHERE rolname = x AND rolsuper)"
/* what shards can use, by names that are the same on both sides */
#define OBJECTS \
	"(SELECT CASE WHEN c = 'pg_class'::regclass THEN 'relation' ELSE type END || ' ' || identity, c, o FROM (" \
	"  SELECT tableoid, oid FROM pg_type UNION ALL SELECT tableoid, oid FROM pg_proc UNION ALL" \
	"  SELECT tableoid, oid FROM pg_operator UNION ALL SELECT tableoid, oid FROM pg_opclass UNION ALL" \
	"  SELECT tableoid, oid FROM pg_opfamily UNION ALL SELECT tableoid, oid FROM pg_collation UNION ALL" \
	"  SELECT tableoid, oid FROM pg_ts_config UNION ALL SELECT tableoid, oid FROM pg_ts_dict UNION ALL" \
	"  SELECT tableoid, oid FROM pg_ts_parser UNION ALL SELECT tableoid, oid FROM pg_ts_template UNION ALL" \
	"  SELECT tableoid, oid FROM pg_language WHERE lanname <> 'instaid' UNION ALL" \
	"  SELECT tableoid, oid FROM pg_am UNION ALL SELECT tableoid, oid FROM pg_foreign_server UNION ALL" \
	"  SELECT tableoid, oid FROM pg_class UNION ALL SELECT tableoid, oid FROM pg_tablespace UNION ALL" \
	"  SELECT 'pg_authid'::regclass, oid FROM pg_roles) AS x (c, o)" \
	" CROSS JOIN LATERAL pg_identify_object(c, o, 0))"
/* a foreign key or a child that crosses the schemas is told by CHECK_SOURCE */
#define OBJECTS_USED \
	INSIDE " SELECT DISTINCT name COLLATE \"C\" FROM " OBJECTS " AS u (name, c, o) WHERE (c, o) IN (" \
	" SELECT d.refclassid, d.refobjid FROM pg_depend AS d JOIN inside AS i" \
	"  ON d.classid = i.c AND d.objid = i.o WHERE d.refclassid <> 'pg_class'::regclass" \
	"  OR d.classid NOT IN ('pg_class'::regclass, 'pg_constraint'::regclass)" \
	"  GROUP BY i.c, i.o, d.refclassid, d.refobjid HAVING bool_and(d.deptype = 'n')" \
	" UNION SELECT d.refclassid, d.refobjid FROM pg_shdepend AS d JOIN inside AS i" \
	"  ON d.classid = i.c AND d.objid = i.o WHERE d.dbid = " DATABASE \
	" UNION SELECT 'pg_authid'::regclass, oid FROM pg_roles WHERE rolname = current_user)" \
	" AND (c, o) NOT IN (SELECT c, o FROM inside) ORDER BY 1"
/* $1: such names */
#define OBJECTS_MISSING \
	"SELECT unnest($1::text[]) EXCEPT SELECT name FROM " OBJECTS " AS u (name, c, o) ORDER BY 1"
#define CHECK_SUBSCRIBER \
	"SELECT '!' || current_user || ' is not a superuser of the target, which PostgreSQL 15 needs for a" \
	" subscription: ' || CASE WHEN " IS_EXTENSION " THEN 'use a superuser' ELSE 'make this role one, since only" \
	" the owner moves a shard in the SQL edition' END || ', or move with --dump'" \
	"  FROM pg_roles WHERE rolname = current_user AND NOT rolsuper" \
	"  AND current_setting('server_version_num')::integer < 160000" \
	" UNION ALL SELECT '!' || current_user || ' may not create subscriptions on the target: GRANT" \
	" pg_create_subscription TO it, and CREATE on the database' FROM pg_roles" \
	"  WHERE rolname = current_user AND NOT rolsuper" \
	"  AND current_setting('server_version_num')::integer >= 160000" \
	"  AND NOT (SELECT pg_has_role(r.oid, 'USAGE') FROM pg_roles AS r" \
	"           WHERE r.rolname = 'pg_create_subscription')" \
	" UNION ALL SELECT '!the target has ' || free || ' free logical replication workers, and a move" \
	" needs 2: raise max_logical_replication_workers (' || m || '), and restart'" \
	"  FROM (SELECT current_setting('max_logical_replication_workers')::integer - count(pid)," \
	"        current_setting('max_logical_replication_workers') FROM pg_stat_subscription)" \
	"   AS x (free, m) WHERE free < 2" \
	" UNION ALL SELECT '!max_worker_processes of the target is ' || m || ', of which ' || free || ' are free, and a" \
	" move needs 2: raise it, and restart'" \
	"  FROM (SELECT current_setting('max_worker_processes')::integer - count(*)," \
	"        current_setting('max_worker_processes') FROM pg_stat_activity WHERE backend_type LIKE '%worker%'" \
	"        AND backend_type NOT LIKE 'autovacuum%' OR backend_type LIKE 'logical replication%launcher')" \
	"   AS x (free, m) WHERE free < 2" \
	" UNION ALL SELECT '!max_sync_workers_per_subscription of the target is 0: raise it'" \
	"  WHERE current_setting('max_sync_workers_per_subscription') = '0'" \
	" UNION ALL SELECT '!max_replication_slots of the target is ' || current_setting('max_replication_slots')" \
	"  || ', and its subscriptions need one each, and one for each table that is copied: raise it, and" \
	" restart' FROM (SELECT count(*) FROM pg_replication_origin) AS x (n)" \
	"  WHERE current_setting('max_replication_slots')::integer - n < 2" \
	" UNION ALL SELECT '-wal_retrieve_retry_interval of the target is '" \
	"  || current_setting('wal_retrieve_retry_interval') || ': each move waits for that long; 100ms" \
	" needs a reload only' WHERE (SELECT setting::integer FROM pg_settings" \
	"  WHERE name = 'wal_retrieve_retry_interval') > 500" \
	"  AND current_setting('server_version_num')::integer < 160000"
#define CHECK_TARGET \
	"SELECT format('!schema %I exists on the target: drop or rename it there', nspname)" \
	"  FROM pg_namespace WHERE nspname = ANY ($1::text[])" \
	" UNION ALL SELECT format('!shard ID %s is schema %I on the target: only one of them can have it'," \
	"  shard_id, schema_name) FROM instaid.shards WHERE shard_id = ANY ($2::integer[])" \
	"  AND schema_name <> ALL ($1::text[])" \
	" UNION ALL SELECT '!' || current_user || ' may not create schemas on the target: GRANT CREATE ON" \
	" DATABASE' WHERE NOT has_database_privilege(current_database(), 'CREATE')"

#define OWNERS \
	"SELECT array_agg(DISTINCT pg_get_userbyid(proowner))::text FROM pg_proc WHERE oid IN " MAKERS
/* $1: these, for the target */
#define CHECK_OWNERS \
	"SELECT format('!the shards belong to %I, and in the SQL edition nobody else can make them: connect" \
	" as %1$I to the target', o) FROM unnest($1::text[]) AS o" \
	"  WHERE o <> current_user AND NOT " IS_EXTENSION

/* the way back */
#define CHECK_BACK_TARGET \
	"SELECT '!wal_level of the target is ' || current_setting('wal_level') || ': set it to logical, and" \
	" restart, or move with --one-way' WHERE current_setting('wal_level') <> 'logical'" \
	" UNION ALL SELECT '!the target has no free replication slot for the way back: raise" \
	" max_replication_slots, and restart, or move with --one-way' FROM pg_replication_slots" \
	"  HAVING count(*) >= current_setting('max_replication_slots')::integer"

/* pg_tle makes an extension of the SQL edition, which has no language */
#define EDITION \
	"SELECT COALESCE((SELECT 'the extension ' || extversion FROM pg_extension WHERE extname = 'instaid'" \
	"  AND " IS_EXTENSION ")," \
	" (SELECT 'the SQL edition ' || substring(obj_description(oid, 'pg_namespace'), '([0-9.]+), SQL')" \
	"  FROM pg_namespace WHERE nspname = 'instaid_sql'), 'no instaid')"
/* a publication with the name of a move, whose owner MARKS does not believe */
#define HAS_PUBLICATION \
	"SELECT true FROM pg_publication AS p JOIN pg_roles AS r ON r.oid = p.pubowner" \
	" WHERE p.pubname = $1 AND r.rolname <> current_user AND NOT r.rolsuper"
/* what makes the guards of a move refuse; $1: its name */
#define REFUSES "SELECT true WHERE to_regnamespace($1) IS NOT NULL"
#define EDITION_OWNER \
	"SELECT r.rolname FROM pg_namespace AS n JOIN pg_roles AS r ON r.oid = n.nspowner" \
	" WHERE n.nspname = 'instaid' AND NOT r.rolsuper AND r.rolname <> current_user"
#define ENCODING \
	"SELECT concat_ws(', ', pg_encoding_to_char(encoding), datcollate, datctype)" \
	" FROM pg_database WHERE datname = current_database()"

/* How a copy goes.  PostgreSQL 19 has another name for the errors of copies of tables. */
#define PROGRESS \
	"SELECT count(*) FILTER (WHERE r.srsubstate = 'r'), count(*)," \
	" pg_size_pretty(COALESCE(sum(pg_relation_size(r.srrelid)), 0))," \
	" (SELECT sum(x.value::bigint) FROM pg_stat_subscription_stats AS s, jsonb_each_text(to_jsonb(s)) AS x" \
	"  WHERE s.subid = $1::oid AND x.key IN ('apply_error_count', 'sync_error_count'," \
	"   'sync_table_error_count'))" \
	" FROM pg_subscription_rel AS r WHERE r.srsubid = $1::oid"
/*
 * The last error of a subscription, $1, of the name $2, in the last MB of the server's log, if it is a text there.  The
 * context of an apply worker's error has the subscription's OID.  That of a copy comes after the start of its worker.
 */
#define WORKER_MESSAGE \
	"WITH lines (line, n) AS (SELECT x.* FROM (SELECT pg_current_logfile('stderr')) AS f (name)" \
	"  CROSS JOIN LATERAL (SELECT pg_read_file(name, greatest(0, (pg_stat_file(name)).size - 1000000)," \
	"   1000000) WHERE name IS NOT NULL OFFSET 0) AS t (log)" \
	"  CROSS JOIN LATERAL regexp_split_to_table(log, '\\n') WITH ORDINALITY AS x)" \
	" SELECT substring(line, 'ERROR: +(.*)') FROM lines WHERE n = greatest(" \
	"  (SELECT max(n) FROM lines WHERE line LIKE '%ERROR: %' AND n < (" \
	"   SELECT max(n) FROM lines WHERE line LIKE format('%%CONTEXT: %%\"pg_%s\"%%', $1::oid)))," \
	"  (SELECT min(n) FROM lines WHERE line LIKE '%ERROR: %' AND n > (SELECT max(n) FROM lines" \
	"   WHERE line LIKE format('%%logical replication table synchronization worker for subscription \"%s\"%%'," \
	"    $2::text))))"
/* $2: the system identifier of the target; a line for each table whose copy is finished */
#define COPIED_TABLES \
	"SELECT array_agg(format('%s %I.%I', format('pg_%s_sync_%s_%s', r.srsubid, r.srrelid, $2::text)," \
	" n.nspname, c.relname))::text FROM pg_subscription_rel AS r JOIN pg_class AS c ON c.oid = r.srrelid" \
	" JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE r.srsubid = $1::oid AND r.srsubstate = 'f'"
/* $1: these lines */
#define LOST_COPIES \
	"SELECT substr(x, strpos(x, ' ') + 1) FROM unnest($1::text[]) AS x" \
	" WHERE split_part(x, ' ', 1) NOT IN (SELECT slot_name FROM pg_replication_slots)"
/* $1: a table; what would run at a DELETE although session_replication_role is replica */
#define CODE_OF_TABLE \
	"SELECT 'It has a trigger or a rule on the target that is ENABLE ALWAYS or REPLICA.'" \
	" FROM pg_class AS c WHERE c.oid = to_regclass($1) AND (c.relkind <> 'r'" \
	"  OR EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND tgenabled IN ('A', 'R'))" \
	"  OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class = c.oid AND ev_enabled IN ('A', 'R')))"
#define SLOT \
	"SELECT active, wal_status, COALESCE(pg_current_wal_insert_lsn() - confirmed_flush_lsn, 0)," \
	" pg_size_pretty(pg_current_wal_lsn() - restart_lsn), pg_current_wal_lsn() - restart_lsn" \
	" FROM pg_replication_slots WHERE slot_name = $1 AND database = current_database()"

#endif
