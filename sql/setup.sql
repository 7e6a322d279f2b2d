-- The extension, and a function that other tests use.
CREATE EXTENSION instaid;

-- The SQLSTATE, message, detail and hint of a statement's error, without the time of
-- the clock, and with one name for the superuser who runs the tests.
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
            detail := replace(detail, 'owner is ' || quote_ident(session_user) || '.', 'owner is postgres.');
            IF detail <> '' THEN
                RETURN NEXT 'DETAIL: ' || regexp_replace(detail, 'clock reads [-0-9:.+ ]*\d', 'clock reads ...');
            END IF;
            IF hint <> '' THEN
                RETURN NEXT 'HINT: ' || hint;
            END IF;
        END;
    END LOOP;
END $$;
