-- IDs as text: Instagram's shortcodes.

-- IDs that Instagram made, with their shortcodes
SELECT id, instaid.to_shortcode(id) AS shortcode, instaid.from_shortcode(instaid.to_shortcode(id)) = id AS same
FROM (VALUES (908540701891980503), (4001511883701836730)) AS v (id);

-- both ends, and the numbers at which a digit is added
SELECT id, instaid.to_shortcode(id) AS shortcode
FROM (VALUES (0), (1), (31), (32), (63), (64), (4095), (4096), (1::bigint << 60), ((1::bigint << 60) - 1),
    (9223372036854775806), (9223372036854775807)) AS v (id) ORDER BY id;
-- every digit
SELECT string_agg(instaid.to_shortcode(n), '' ORDER BY n) FROM generate_series(0, 63) AS n;

-- each power of two, its neighbours, and a million other IDs are written and read
SELECT count(*), bool_and(instaid.from_shortcode(instaid.to_shortcode(id)) = id) AS same
FROM (SELECT (1::bigint << bit) + n FROM generate_series(0, 62) AS bit, generate_series(-1, 1) AS n
      UNION ALL SELECT n * 9223372036854 FROM generate_series(0, 1000000) AS n) AS v (id) WHERE id >= 0;

-- a null gives a null
SELECT instaid.to_shortcode(NULL), instaid.from_shortcode(NULL);

-- negative IDs have no text form
SELECT try($$SELECT instaid.to_shortcode(-1)$$,
    $$SELECT instaid.to_shortcode(-9223372036854775808)$$);

-- texts that are no shortcode
SELECT try(format('SELECT instaid.from_shortcode(%L)', code))
FROM (VALUES ('yby+RoQWzX'), ('ybyPRoQWzX='), (' ybyPRoQWzX'), ('I__________'), ('BAAAAAAAAAAA'),
    ('____________'), ('AB'), ('AA'), ('')) AS v (code);

-- an error shows the beginning of a long text
SELECT try($$SELECT instaid.from_shortcode(repeat('x', 100000))$$);
