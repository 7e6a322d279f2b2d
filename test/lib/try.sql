\set ECHO none
-- try(): the SQLSTATE, message, detail and hint of each statement's error, without the time of the
-- clock, and with one name for the superuser who runs the tests.  Files of pg_regress include it.
CREATE FUNCTION try(VARIADIC statements text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE statement text; detail text; hint text;
BEGIN
    FOREACH statement IN ARRAY statements LOOP
        BEGIN
            EXECUTE statement;
            RETURN NEXT 'no error';
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
            RETURN NEXT SQLSTATE || ': ' || SQLERRM;
            detail := replace(detail, quote_ident(session_user), 'postgres');
            hint := replace(hint, quote_ident(session_user), 'postgres');
            IF detail <> '' THEN
                RETURN NEXT 'DETAIL: '
                    || regexp_replace(detail, 'clock reads [-0-9:.+ ]*\d', 'clock reads ...');
            END IF;
            IF hint <> '' THEN
                RETURN NEXT 'HINT: ' || hint;
            END IF;
        END;
    END LOOP;
END $$;
\set ECHO all
