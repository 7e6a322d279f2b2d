-- No log, no statistics and no list of sessions shows the next command, as far as this role may.
SELECT set_config(s.name, x.value, false) FROM pg_roles AS r, (VALUES ('log_statement', 'none'),
    ('log_min_error_statement', 'panic'), ('log_min_duration_statement', '-1'),
    ('log_min_duration_sample', '-1'), ('log_transaction_sample_rate', '0'),
    ('track_activities', 'off'), ('pg_stat_statements.track', 'none'),
    ('pg_stat_statements.track_utility', 'off'), ('auto_explain.log_min_duration', '-1'),
    ('pgaudit.log', 'none'), ('pg_stat_monitor.pgsm_track_utility', '0'),
    ('pg_tracing.track_utility', 'off'))
    AS x (name, value)
    JOIN pg_settings AS s ON s.name = x.name AND s.context IN ('user', 'superuser')
WHERE r.rolname = current_user AND r.rolsuper
