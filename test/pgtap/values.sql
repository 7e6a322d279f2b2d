-- Both editions return the same for random values and at the boundaries, and refuse the same with
-- the same texts: a hash of all that a function returns, as the extension had it when a model in
-- decimals and sql/ agreed with it.  If one fails, sql/fields, ranges or text_forms shows where.
BEGIN;
SET LOCAL timezone = 'America/New_York';
SELECT plan(29);

CREATE TEMP TABLE v AS
SELECT n, random_id, random_id & 9223372036854775807 AS id,
    (random_id >> 7 & 8191)::integer AS shard_id,
    timestamptz '2011-08-24 21:07:01.721+00'
        + ((random_id & 2199023255551) * 1000 + n % 1000) * interval '1 us' AS created_at,
    timestamptz '2000-01-01 00:00+00' + (random_id % 100000000000) * interval '1 ms' AS epoch
FROM generate_series(1, 20000) AS n,
    LATERAL (SELECT ('x' || left(md5('instaid' || n), 16))::bit(64)::bigint) AS r (random_id);
CREATE FUNCTION pg_temp.hash(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hash text;
BEGIN
    EXECUTE format('SELECT md5(string_agg(%s', query) INTO hash;
    RETURN hash;
END $$;

SELECT is(pg_temp.hash(format('(instaid.%s)::text, '' '' ORDER BY n)) FROM v', call)), hash, 'instaid.' || call || ' on 20,000 random values')
FROM (VALUES
    ('extract_timestamp(random_id)', '3e2c634749cc3a021a02ac91662c864d'),
    ('extract_timestamp(random_id, epoch)', '5909ec8b39e61eb9ce4e16e9906b694f'),
    ('extract_shard_id(random_id)', 'a280c212ab94b72103570c34085c6fd3'),
    ('decode(random_id)', 'c14131ea344dd29b2e60cb416c415b61'),
    ('decode(random_id, epoch)', '95669d9c730b1205ba23c3c6325b5749'),
    ('make_id(created_at, shard_id, random_id)', '99fb0fa99316e687f1affb35cd9d4313'),
    ('make_id(epoch + n * interval ''1001 us'', shard_id, n, epoch)', '900e5e974c14d6e0024d9282f294517f'),
    ('min_id(created_at)', '9c49285da6af5b157c6f061fbfb19e55'),
    ('max_id(created_at)', '8a9293a1bbdfc22562d60fc94ab7c1b9'),
    ('min_id(created_at, epoch)', 'aa60b6eff7b6341d9f065da659fbef1b'),
    ('max_id(created_at, epoch)', '6c4fb9be498fdc5f77133220e6f36a35'),
    ('_min_id_from(created_at)', 'b337778b3b93a35625da3662260f4306'),
    ('_max_id_before(created_at)', '7551dede438d1d6524542e6dc1bc8120'),
    ('_min_id_from(created_at, epoch)', '6900dc305e2bee140834266c1c8b318a'),
    ('_max_id_before(created_at, epoch)', '24bc9737c7a8c44ece46a244db8da8c7'),
    ('created_between(id, created_at - ''1 year''::interval, created_at + ''9 years''::interval)', '10236c010328e451f40c4cbffada7292'),
    ('to_shortcode(id)', '2b978d8b5035e82e2ff15e3f451abc31'),
    ('to_shortcode(id >> n % 63)', '3aefd8ee15d0e753c581f61bd6cd36b9'),
    ('from_shortcode(instaid.to_shortcode(id))', '90e8b231daee31c70cb0e7e69c15df19')) AS c (call, hash);

-- at all boundaries, with the texts of errors
CREATE TEMP TABLE times AS SELECT quote_literal(t) AS t FROM unnest(ARRAY['-infinity', 'infinity',
    '2011-08-24 21:07:01.721+00', '2011-08-24 21:07:01.720999+00', '2011-08-24 21:07:01.721001+00',
    '2046-06-27 17:00:49.496+00', '2046-06-27 17:00:49.496999+00', '2046-06-27 17:00:49.497+00',
    '2081-05-01 12:54:37.272999+00', '2081-05-01 12:54:37.273+00', '4714-11-24 00:00:00+00 BC',
    '294276-12-31 23:59:59.999999+00', '1970-01-01+00', '2026-11-22 12:00:00.0005+00']) AS t;
CREATE TEMP TABLE epochs AS SELECT coalesce(', ' || quote_literal(e), '') AS e FROM unnest(ARRAY[NULL, '2026-01-01+00',
    '-infinity', 'infinity', '4714-11-24 00:00:00+00 BC', '294207-04-27 00:00+00', '294207-04-28 00:00+00',
    '2026-01-01 00:00:00.0001+00', '1969-12-31 23:59:59.9999+00', '294276-12-31 23:59:59.999999+00']) AS e;
CREATE TEMP TABLE ids AS SELECT i FROM unnest(ARRAY['0', '1', '(-1)', '1023', '1024', '8388607', '8388608', '9223372036854775807',
    '(-9223372036854775808)', '4035190437244310529', 'NULL']) AS i;
CREATE TEMP TABLE texts AS SELECT coalesce(quote_literal(t), 'NULL') AS t FROM unnest(ARRAY['', 'A', 'AA', 'B', 'H__________', 'I__________',
    'HAAAAAAAAAAAA', 'A1', 'DeIOdt4jVu6', 'DeIOdt4jVu6=', 'De IO', 'Dé', 'é', '-', '_', '---', repeat('x', 70),
    repeat('A', 70), repeat('-', 70), '0é' || repeat('0', 80), '=' || repeat('0', 62) || 'é', NULL]) AS t;
SELECT is(pg_temp.hash(format('try(c), E''\n'' ORDER BY c COLLATE "C")) FROM (SELECT ''SELECT instaid.'' || %s) AS u (c)', calls)), hash,
    replace(calls, '''', '"') || ', at the boundaries')
FROM (VALUES
    ($$format('min_id(%s%s)', t, e) FROM times, epochs$$, 'd1594cbad9751d66f80f61ac85e86935'),
    ($$format('max_id(%s%s)', t, e) FROM times, epochs$$, '3a05a88935977530302601e087b9753d'),
    ($$format('_min_id_from(%s%s)', t, e) FROM times, epochs$$, 'f8c13d167abaef7d164e02daf4bc2963'),
    ($$format('_max_id_before(%s%s)', t, e) FROM times, epochs$$, 'e7ea8f93fc6ed4e5b7443fbc142e0b7a'),
    ($$format('make_id(%s, 5, 1025%s)', t, e) FROM times, epochs$$, '9bf9e9141d02c73095066f272a0cdc71'),
    ($$format('decode(%s%s)', i, e) FROM ids, epochs$$, '50abce85d389894fc1879aa2cda2420a'),
    ($$format('extract_timestamp(%s%s)', i, e) FROM ids, epochs$$, '13980bef85b101d9d6279a184094aea4'),
    ($$format('%s(%s)', f, i) FROM ids, unnest('{extract_shard_id, to_shortcode}'::text[]) AS f$$, '47e8e448f51527e10fb3e1c6674bf584'),
    ($$format('created_between(%s, %s, ''2046-06-27 17:00:49.497+00'')', i, t) FROM ids, times$$, 'd5c8c426100edcacc61393f274943894'),
    ($$format('from_shortcode(%s)', t) FROM texts$$, 'e2edd9df6fc0acdb6d0354f48788c4e8')) AS c (calls, hash);

SELECT * FROM finish();
ROLLBACK;
