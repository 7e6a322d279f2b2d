-- Which server this is: a standby has another start.
SELECT concat_ws(' ', pg_postmaster_start_time(), pg_is_in_recovery())
