-- What each file of test/pgtap/ uses, in the database of either edition: which test/pgtap.sh runs.

-- What a query returns, or a command's error: SQLSTATE, message, detail and hint, without the
-- time of the clock
CREATE FUNCTION try(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text; message text; detail text; hint text;
BEGIN
    IF command ~ '^(SELECT|WITH)' THEN
        EXECUTE command INTO result;
        RETURN coalesce(result, 'null');
    END IF;
    EXECUTE command;
    RETURN 'done';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
        hint = PG_EXCEPTION_HINT;
    RETURN regexp_replace(concat_ws(E'\n| ', SQLSTATE || ' ' || message, nullif(detail, ''),
        nullif(hint, '')), 'clock reads [-0-9:.+ ]*\d', 'clock reads ...');
END $$;

-- The same as another role.  pgTAP itself works only for the role that called plan().
CREATE FUNCTION try_as(role name, command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    PERFORM set_config('role', role, true);
    result := public.try(command);
    PERFORM set_config('role', 'none', true);
    RETURN result;
END $$;
