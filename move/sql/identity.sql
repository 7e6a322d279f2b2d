-- Which database this is.
SELECT system_identifier || '/' || {{database}} AS id FROM pg_control_system()
