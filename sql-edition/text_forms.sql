/* sql-edition/text_forms.sql */

-- IDs as text.

\ir begin.sql
CALL instaid._begin_file('text_forms.sql');

---- Text forms ----

--  digits             bits  length  0   2^63 - 1
--  A-Z a-z 0-9 - _    6     1..11   A   H__________

-- Refuse an ID that has no text form.
CREATE OR REPLACE FUNCTION instaid_sql._refuse_negative(id bigint) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE numeric_value_out_of_range USING
        MESSAGE = format('ID %s has no text form', id),
        DETAIL = 'Only IDs from 0 to 9223372036854775807 have one.';
END $$;

-- Twelve digits of base64 are 9 bytes.  The first digit is 0.
CREATE OR REPLACE FUNCTION instaid.to_shortcode(id bigint) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN id < 0 THEN instaid_sql._refuse_negative(id) WHEN id = 0 THEN 'A'
                ELSE ltrim(translate(encode(decode('00', 'hex') || int8send(id), 'base64'),
                                     '+/', '-_'), 'A') END;
COMMENT ON FUNCTION instaid.to_shortcode(bigint) IS
'an ID as Instagram writes it in addresses: 1 to 11 base64url digits, the most significant '
'first, without padding; error if it is negative';

-- The first fault from the left counts.
CREATE OR REPLACE FUNCTION instaid.from_shortcode(shortcode text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    alphabet CONSTANT text := 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    explanation CONSTANT text := 'A shortcode has 1 to 11 of the digits A-Z, a-z, 0-9, - and _.';
    id bigint := 0;
    digit integer;
    character text;
    fault text;
    -- the first 64 bytes, in whole characters
    shown text := left(shortcode, 64);
BEGIN
    IF shortcode = '' THEN
        RAISE invalid_text_representation USING
            MESSAGE = 'shortcode is empty',
            DETAIL = explanation;
    END IF;
    FOR position IN 1 .. length(shortcode) LOOP
        character := substr(shortcode, position, 1);
        digit := strpos(alphabet, character) - 1;
        fault := CASE
            WHEN digit < 0 THEN 'invalid character "%s" at position %s of shortcode "%s"'
            WHEN digit = 0 AND position = 1 AND shortcode <> character
            THEN 'leading zero "%s" at position %s of shortcode "%s"'
            WHEN id > 9223372036854775807 >> 6
            THEN 'digit "%s" at position %s of shortcode "%s" makes the ID too large' END;
        IF fault IS NOT NULL THEN
            WHILE octet_length(shown) > 64 LOOP
                shown := left(shown, -1);
            END LOOP;
            RAISE invalid_text_representation USING
                MESSAGE = format(fault, character, position, shown),
                DETAIL = CASE
                    WHEN digit < 0 THEN explanation
                    WHEN digit = 0 AND position = 1
                    THEN 'The shortcode of an ID has no leading zeros.'
                    ELSE 'The largest ID is 9223372036854775807, written "H__________".' END,
                HINT = CASE WHEN digit = 0 AND position = 1
                            THEN format('Remove the leading "%s".', character) ELSE '' END;
        END IF;
        id := id << 6 | digit;
    END LOOP;
    RETURN id;
END $$;
COMMENT ON FUNCTION instaid.from_shortcode(text) IS
'the ID of a shortcode; error for text that to_shortcode() does not return';

CALL instaid._set_rights();
COMMIT;
