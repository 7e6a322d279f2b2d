-- Let pg_dump see what this transaction sees.
SELECT pg_export_snapshot()
