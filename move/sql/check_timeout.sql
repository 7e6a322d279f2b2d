-- What ends the sessions of the other server that copy from here, by a setting of this role or
-- database.  $1: the option with the connection, $2: the settings in it, $3: the name of this side
SELECT 'error' AS severity, 'timeout' AS code, format('the %s''s %s is %s, which would end the copy'
    ' of a large table', $3::text, name, reset_val) AS object,
    format('ALTER DATABASE or ALTER ROLE ... SET %1$s = 0, or put options=''-c %1$s=0'' into --%2$s',
        name, $1::text) AS cure
FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout') AND reset_val <> '0'
    AND name <> ALL ($2::text[])
