-- What a session begins with: it acts as the role that has connected, whatever the database's owner has
-- set, names mean the system's only, values look alike on both sides, and no plan is ruled out.
RESET ALL; SET ROLE NONE; SET exit_on_error = off;
SET search_path = pg_catalog, pg_temp; SET client_min_messages = error;
SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('statement_timeout',
    'transaction_timeout', 'idle_session_timeout', 'idle_in_transaction_session_timeout');
SELECT set_config(name, boot_val, false) FROM pg_settings
WHERE starts_with(name, 'enable_') AND context = 'user'; SET jit = off;
SET lock_timeout = '10s'; SET default_transaction_isolation = 'read committed';
SET default_transaction_read_only = off; SET row_security = off; SET synchronous_commit = on;
SET standard_conforming_strings = on; SET quote_all_identifiers = off;
SET plan_cache_mode = force_generic_plan; SET client_encoding = 'UTF8';
SET DateStyle = 'ISO, YMD'; SET IntervalStyle = postgres; SET TimeZone = 'UTC';
SET extra_float_digits = 1; SET bytea_output = hex; SET lc_monetary = 'C'
