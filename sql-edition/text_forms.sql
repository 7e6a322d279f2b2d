/* sql-edition/text_forms.sql */

-- IDs as text.

\ir begin.sql
CALL instaid._begin_file('text_forms.sql');

---- Text forms ----

--                 digits                           bits  length  0         2^63 - 1
--  shortcode      A-Z a-z 0-9 - _                  6     1..11   A         H__________
--  base32         0-9 A-Z without I, L, O and U    5     13      000...0   7ZZZZZZZZZZZZ

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

CREATE OR REPLACE FUNCTION instaid.to_base32(id bigint) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    result text := '';
BEGIN
    IF id < 0 THEN
        RETURN instaid_sql._refuse_negative(id);
    END IF;
    FOR i IN 1 .. 13 LOOP
        result := substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (id & 31)::integer + 1, 1) || result;
        id := id >> 5;
    END LOOP;
    RETURN result;
END $$;
COMMENT ON FUNCTION instaid.to_base32(bigint) IS
'an ID as 13 of Crockford''s base32 digits, which sort as the IDs do (COLLATE "C"); error if '
'it is negative';

-- The number that digits of an alphabet stand for.
CREATE OR REPLACE FUNCTION instaid_sql._from_digits(digits text, alphabet text, bits integer)
    RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    id bigint := 0;
BEGIN
    FOR i IN 1 .. length(digits) LOOP
        id := id << bits | strpos(alphabet, substr(digits, i, 1)) - 1;
    END LOOP;
    RETURN id;
END $$;

-- Say why a text is no shortcode, or no base32.
-- The first fault from the left counts.
CREATE OR REPLACE FUNCTION instaid_sql._refuse_digits(input text, form text, digits text,
                                           alphabet text,
                                           bits integer, most integer, last text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- one zero, or up to 63 bits without leading zeros
    shortcode CONSTANT text := '^(A|[B-Za-z0-9_-][A-Za-z0-9_-]{0,9}|[B-H][A-Za-z0-9_-]{10})$';
    is_shortcode CONSTANT boolean := form = 'shortcode';
    explanation CONSTANT text := CASE WHEN is_shortcode
        THEN 'A shortcode has 1 to 11 of the digits A-Z, a-z, 0-9, - and _.'
        ELSE 'Base32 has 13 of the digits 0-9 and A-Z without U. Hyphens are ignored.' END;
    id bigint := 0;
    count integer := 0;
    position integer := 0;
    digit integer;
    character text;
    fault text;
    -- the first 64 bytes, in whole characters
    shown text := left(input, 64);
BEGIN
    WHILE octet_length(shown) > 64 LOOP
        shown := left(shown, -1);
    END LOOP;
    -- the length comes first: a shortcode, which is shorter, has no wrong digit
    IF octet_length(replace(input, '-', '')) < most AND NOT is_shortcode OR input = '' THEN
        RAISE invalid_text_representation USING
            MESSAGE = format(CASE WHEN input = '' THEN '%s is empty'
                                  ELSE '%s "%s" has %s of %s digits' END,
                             form, shown, length(replace(input, '-', '')), most),
            DETAIL = explanation,
            HINT = CASE WHEN input ~ shortcode
                        THEN 'It can be a shortcode, which from_shortcode() reads.' ELSE '' END;
    END IF;
    WHILE fault IS NULL LOOP
        position := position + 1;
        character := substr(input, position, 1);
        CONTINUE WHEN character = '-' AND NOT is_shortcode;
        digit := strpos(alphabet, substr(digits, position, 1)) - 1;
        fault := CASE
            WHEN digit < 0 THEN 'invalid character "%1$s" at position %2$s of %3$s "%4$s"'
            WHEN is_shortcode AND digit = 0 AND position = 1 AND input <> character
            THEN 'leading zero "%1$s" at position %2$s of %3$s "%4$s"'
            WHEN CASE WHEN is_shortcode THEN id > 9223372036854775807 >> bits
                      ELSE count = 0 AND digit > 7 END
            THEN 'digit "%1$s" at position %2$s of %3$s "%4$s" makes the ID too large'
            WHEN count = most
            THEN 'digit "%1$s" at position %2$s of %3$s "%4$s" is one too many' END;
        id := id << bits | digit;
        count := count + 1;
    END LOOP;
    IF fault LIKE 'leading %' THEN
        RAISE invalid_text_representation USING
            MESSAGE = format(fault, character, position, form, shown),
            DETAIL = format('The %s of an ID has no leading zeros.', form),
            HINT = format('Remove the leading "%s".', character);
    END IF;
    RAISE invalid_text_representation USING
        MESSAGE = format(fault, character, position, form, shown),
        DETAIL = CASE WHEN fault LIKE '%too large'
                      THEN format('The largest ID is 9223372036854775807, written "%s".', last)
                      ELSE explanation END;
END $$;

CREATE OR REPLACE FUNCTION instaid.from_shortcode(shortcode text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    alphabet CONSTANT text := 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
BEGIN
    -- one zero, or up to 63 bits without leading zeros
    IF shortcode ~ '^(A|[B-Za-z0-9_-][A-Za-z0-9_-]{0,9}|[B-H][A-Za-z0-9_-]{10})$' THEN
        RETURN instaid_sql._from_digits(shortcode, alphabet, 6);
    END IF;
    RETURN instaid_sql._refuse_digits(shortcode, 'shortcode', shortcode, alphabet, 6, 11,
                                      'H__________');
END $$;
COMMENT ON FUNCTION instaid.from_shortcode(text) IS
'the ID of a shortcode; error for text that to_shortcode() does not return';

CREATE OR REPLACE FUNCTION instaid.from_base32(base32 text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    alphabet CONSTANT text := '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
    digits CONSTANT text := translate(base32, 'abcdefghijklmnopqrstuvwxyzILO',
                                      'ABCDEFGH1JK1MN0PQRSTUVWXYZ110');
    plain CONSTANT text := replace(digits, '-', '');
BEGIN
    IF plain ~ '^[0-7][0-9A-HJKMNP-TV-Z]{12}$' THEN
        RETURN instaid_sql._from_digits(plain, alphabet, 5);
    END IF;
    RETURN instaid_sql._refuse_digits(base32, 'base32', digits, alphabet, 5, 13, '7ZZZZZZZZZZZZ');
END $$;
COMMENT ON FUNCTION instaid.from_base32(text) IS
'the ID of 13 base32 digits; case and hyphens are ignored, I and L are read as 1, O as 0; '
'error for other text';

CALL instaid._set_rights();
COMMIT;
