-- IDs as text, and the type that is text in JSON, as a specification.
BEGIN;
SELECT plan(31);

-- the functions, and what they promise the planner
SELECT function_returns('instaid', 'to_shortcode', ARRAY['bigint'], 'text');
SELECT function_returns('instaid', 'from_shortcode', ARRAY['text'], 'bigint');
SELECT volatility_is('instaid', f, 'immutable', f || ' is immutable')
FROM unnest(ARRAY['to_shortcode', 'from_shortcode']) AS f;
SELECT is_strict('instaid', f, f || ' is strict')
FROM unnest(ARRAY['to_shortcode', 'from_shortcode']) AS f;

-- shortcodes of Instagram
SELECT is(instaid.to_shortcode(908540701891980503), 'ybyPRoQWzX', 'a photo of 2015');
SELECT is(instaid.to_shortcode(4001511883701836730), 'DeIOdt4jVu6', 'a photo of 2026');
SELECT is(instaid.from_shortcode('ybyPRoQWzX'), 908540701891980503, 'and back');
SELECT is(instaid.from_shortcode('DeIOdt4jVu6'), 4001511883701836730, 'and back');

-- an independent model of the shortcode: base64 of the ID's nine bytes, whose first digit is a zero
SELECT is((SELECT count(*) FROM (
        SELECT 0::bigint UNION ALL SELECT (1::bigint << bit) - 1 FROM generate_series(1, 62) AS bit UNION ALL
        SELECT 9223372036854775807 UNION ALL SELECT n * 92233720368547 + n FROM generate_series(0, 99999) AS n) AS i (id),
        LATERAL (SELECT regexp_replace(translate(encode('\x00'::bytea || int8send(id), 'base64'), '+/', '-_'), '^A+(?=.)', '') AS code) AS c
    WHERE instaid.to_shortcode(id) <> code OR instaid.from_shortcode(code) <> id),
    0::bigint, '100,000 shortcodes over the whole range agree with encode()');

-- the ends
SELECT is(instaid.to_shortcode(0), 'A', 'zero has one digit');
SELECT is(instaid.to_shortcode(9223372036854775807), 'H__________', 'the last shortcode');

-- texts that are no ID: SQLSTATE, the character, and its position
SELECT throws_ok(format('SELECT instaid.from_shortcode(%L)', input), '22P02', message, message)
FROM (VALUES ('ab/', 'invalid character "/" at position 3 of shortcode "ab/"'),
    ('naïve', 'invalid character "ï" at position 3 of shortcode "naïve"'),
    ('😀', 'invalid character "😀" at position 1 of shortcode "😀"'),
    ('ab €', 'invalid character " " at position 3 of shortcode "ab €"'),
    ('IAAAAAAAAAA', 'digit "A" at position 11 of shortcode "IAAAAAAAAAA" makes the ID too large'),
    ('AAB', 'leading zero "A" at position 1 of shortcode "AAB"'),
    ('', 'shortcode is empty')) AS v (input, message);
SELECT throws_ok('SELECT instaid.to_shortcode(-1)', '22003', 'ID -1 has no text form', 'a negative ID has no shortcode');

-- the type, which only the extension has: bigint's storage, bigint's bits, a string in JSON
SELECT here('type instaid.id') = 'yes' AS has_type \gset
\if :has_type
SELECT has_type('instaid', 'id', 'the type instaid.id');
SELECT is(t, b, 'it is stored like bigint')
FROM (SELECT (typlen, typbyval, typalign, typstorage)::text FROM pg_type WHERE oid = 'instaid.id'::regtype) AS x (t),
    (SELECT (typlen, typbyval, typalign, typstorage)::text FROM pg_type WHERE oid = 'bigint'::regtype) AS y (b);
SELECT is((SELECT castmethod FROM pg_cast WHERE castsource = 'instaid.id'::regtype AND casttarget = 'bigint'::regtype), 'b', 'it is binary-coercible to bigint');
SELECT is((SELECT concat(castmethod, castcontext) FROM pg_cast WHERE castsource = 'bigint'::regtype AND casttarget = 'instaid.id'::regtype), 'ba', 'it is binary-coercible to bigint, and from bigint, by assignment only');
CREATE TABLE photos (id instaid.id PRIMARY KEY, old_id bigint);
CREATE INDEX photos_hash ON photos USING hash (id);
SELECT is(string_agg(concat_ws(' ', m.amname, c.opcintype::regtype, f.opfname), ', ' ORDER BY m.oid), 'btree bigint integer_ops, hash bigint integer_ops',
    'its operator classes are bigint''s, in one family with int8')
FROM pg_index AS i JOIN pg_opclass AS c ON c.oid = i.indclass[0] JOIN pg_opfamily AS f ON f.oid = c.opcfamily JOIN pg_am AS m ON m.oid = c.opcmethod
WHERE indrelid = 'photos'::regclass;
INSERT INTO photos VALUES (4001511883701836730, 4001511883701836730);
SELECT is(to_json(id)::text, '"4001511883701836730"', 'to_json') FROM photos;
SELECT is(to_jsonb(id)::text, '"4001511883701836730"', 'to_jsonb') FROM photos;
SELECT is(row_to_json(p)::text, '{"id":"4001511883701836730","old_id":4001511883701836730}', 'row_to_json, beside a bigint') FROM photos AS p;
SELECT is(json_agg(id)::text, '["4001511883701836730"]', 'json_agg') FROM photos;
SELECT is(id::text || ' ' || old_id, '4001511883701836730 4001511883701836730', 'its text is the text of bigint') FROM photos;
\else
SELECT skip(reason, 10) FROM differences WHERE what = 'type instaid.id';
\endif

SELECT * FROM finish();
ROLLBACK;
