-- Whose each object is, which pg_shdepend does not tell of roles that initdb made; what belongs to
-- pg_database_owner, such as schema public, is the database's owner's
(SELECT c, o, CASE owner WHEN 'pg_database_owner'::regrole
    THEN (SELECT datdba FROM pg_database WHERE datname = current_database()) ELSE owner END
 FROM (SELECT tableoid, oid, nspowner FROM pg_namespace
 UNION ALL SELECT tableoid, oid, relowner FROM pg_class
 UNION ALL SELECT tableoid, oid, proowner FROM pg_proc
 UNION ALL SELECT tableoid, oid, typowner FROM pg_type
 UNION ALL SELECT tableoid, oid, oprowner FROM pg_operator
 UNION ALL SELECT tableoid, oid, opcowner FROM pg_opclass
 UNION ALL SELECT tableoid, oid, opfowner FROM pg_opfamily
 UNION ALL SELECT tableoid, oid, collowner FROM pg_collation
 UNION ALL SELECT tableoid, oid, conowner FROM pg_conversion
 UNION ALL SELECT tableoid, oid, stxowner FROM pg_statistic_ext
 UNION ALL SELECT tableoid, oid, cfgowner FROM pg_ts_config
 UNION ALL SELECT tableoid, oid, dictowner FROM pg_ts_dict
 UNION ALL SELECT tableoid, oid, lanowner FROM pg_language
 UNION ALL SELECT tableoid, oid, fdwowner FROM pg_foreign_data_wrapper
 UNION ALL SELECT tableoid, oid, srvowner FROM pg_foreign_server
 UNION ALL SELECT tableoid, oid, evtowner FROM pg_event_trigger
 UNION ALL SELECT tableoid, oid, extowner FROM pg_extension
 UNION ALL SELECT tableoid, oid, spcowner FROM pg_tablespace) AS x (c, o, owner))
