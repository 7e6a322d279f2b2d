-- How the workers of a subscription write and read values of type money.
SELECT reset_val FROM pg_settings WHERE name = 'lc_monetary'
