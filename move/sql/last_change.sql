-- A message that a copy confirms at once; its commit also flushes all earlier ones.
SELECT pg_logical_emit_message(true, 'instaid', '')
FROM set_config('synchronous_commit', 'on', false)
