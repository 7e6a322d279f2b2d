-- Undo hide.sql.
SELECT set_config(name, reset_val, false) FROM pg_settings
WHERE name IN ('log_statement', 'log_min_error_statement', 'log_min_duration_statement',
    'log_min_duration_sample', 'log_transaction_sample_rate', 'track_activities',
    'pg_stat_statements.track', 'pg_stat_statements.track_utility',
    'auto_explain.log_min_duration', 'pgaudit.log', 'pg_stat_monitor.pgsm_track_utility',
    'pg_tracing.track_utility') AND setting IS DISTINCT FROM reset_val
