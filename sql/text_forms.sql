-- IDs as text: Instagram's shortcodes, and Crockford's base32.

-- IDs that Instagram made, with their shortcodes
SELECT id, instaid.to_shortcode(id) AS shortcode, instaid.from_shortcode(instaid.to_shortcode(id)) = id AS same
FROM (VALUES (908540701891980503), (4001511883701836730)) AS v (id);

-- both ends, and the numbers at which a digit is added
SELECT id, instaid.to_shortcode(id) AS shortcode, instaid.to_base32(id) AS base32
FROM (VALUES (0), (1), (31), (32), (63), (64), (4095), (4096), (1::bigint << 60), ((1::bigint << 60) - 1),
    (9223372036854775806), (9223372036854775807)) AS v (id) ORDER BY id;
-- every digit
SELECT string_agg(instaid.to_shortcode(n), '' ORDER BY n) FROM generate_series(0, 63) AS n;
SELECT string_agg(right(instaid.to_base32(n), 1), '' ORDER BY n) FROM generate_series(0, 31) AS n;

-- each power of two, its neighbours, and a million other IDs are written and read
SELECT count(*), bool_and(instaid.from_shortcode(instaid.to_shortcode(id)) = id) AS shortcode,
    bool_and(instaid.from_base32(instaid.to_base32(id)) = id) AS base32
FROM (SELECT (1::bigint << bit) + n FROM generate_series(0, 62) AS bit, generate_series(-1, 1) AS n
      UNION ALL SELECT n * 9223372036854 FROM generate_series(0, 1000000) AS n) AS v (id) WHERE id >= 0;

-- base32 sorts as the IDs do
SELECT count(*), bool_and(id > before) AS increasing, min(length(base32)), max(length(base32))
FROM (SELECT id, base32, lag(id) OVER (ORDER BY base32 COLLATE "C") AS before
      FROM (SELECT id, instaid.to_base32(id) AS base32
            FROM (SELECT (1::bigint << bit) + n FROM generate_series(2, 62) AS bit, generate_series(-1, 1) AS n
                  UNION ALL SELECT n * 92233720368547 FROM generate_series(1, 100000) AS n) AS v (id)) AS a) AS b
WHERE before IS NOT NULL;

-- from_base32() accepts lower case, hyphens, and I, L and O for digits
SELECT base32, instaid.from_base32(base32) AS id
FROM (VALUES ('3F21SVDW8TPXT'), ('3f21svdw8tpxt'), ('3F21-SVDW-8TPX-T'), ('-3f21SVDW8TPXT--'), ('3F2ISVDW8TPXT'),
    ('3F2lSVDW8TPXT'), ('OOooOOooOOooL'), ('7ZZZZZZZZZZZZ'), ('7zzzzzzzzzzzz')) AS v (base32);

-- a null gives a null
SELECT instaid.to_shortcode(NULL), instaid.from_shortcode(NULL), instaid.to_base32(NULL), instaid.from_base32(NULL);

-- negative IDs have no text form
SELECT try($$SELECT instaid.to_shortcode(-1)$$);
SELECT try($$SELECT instaid.to_base32(-9223372036854775808)$$);

-- texts that are no shortcode
SELECT try(format('SELECT instaid.from_shortcode(%L)', code))
FROM (VALUES ('yby+RoQWzX'), ('ybyPRoQWzX='), (' ybyPRoQWzX'), ('I__________'), ('BAAAAAAAAAAA'),
    ('____________'), ('AB'), ('AA'), ('')) AS v (code);

-- texts that are no base32
SELECT try(format('SELECT instaid.from_base32(%L)', code))
FROM (VALUES ('3F21SVDWUTPXT'), ('3F21SVDWuTPXT'), ('3F21-SVDW 8TPXT'), ('8000000000000'), ('-Z'), ('3F21SVDW8TPXT0'),
    ('3F21SVDW8TPXT-0'), ('3F21SVDW8TPX'), ('DeIOdt4jVu6'), ('---'), ('')) AS v (code);

-- an error shows the beginning of a long text
SELECT try($$SELECT instaid.from_base32(repeat('-', 100000))$$);
SELECT try($$SELECT instaid.from_shortcode(repeat('x', 100000))$$);
