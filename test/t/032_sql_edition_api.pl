# The SQL edition (sql-edition/) beside the extension: the same functions
# return the same and refuse the same, and docs/sql-edition.md lists all that differ.  Rights
# and default privileges of several roles.  pg_regress has one database.
#
# FULL=1 adds all 8,192 shards

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Docs;
use SqlEdition;

my $node = Clients::server('main', 'autovacuum = off', q{timezone = 'America/New_York'},
	q{intervalstyle = 'postgres'}, 'max_connections = 120', 'max_prepared_transactions = 5');
$node->safe_psql('postgres', 'CREATE ROLE dba LOGIN; CREATE ROLE app LOGIN');
$node->safe_psql('postgres', 'CREATE DATABASE c');
$node->safe_psql('c', 'CREATE EXTENSION instaid_adopt CASCADE');
SqlEdition::install($node, 's');

for my $database ('c', 's')
{
	$node->safe_psql($database, q{
		-- what a command returns, or its error
		CREATE FUNCTION try(command text) RETURNS text LANGUAGE plpgsql AS $$
		DECLARE
			result text; message text; detail text; hint text;
		BEGIN
			EXECUTE command INTO result;
			RETURN COALESCE(result, 'null');
		EXCEPTION WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
				hint = PG_EXCEPTION_HINT;
			RETURN concat_ws(' | ', SQLSTATE, message, detail, hint);
		END
		$$;
		-- the same in both databases
		CREATE TABLE v AS
		SELECT n, random_id, random_id & 9223372036854775807 AS id,
			(random_id >> 7 & 8191)::integer AS shard_id,
			timestamptz '2011-08-24 21:07:01.721+00'
				+ ((random_id & 2199023255551) * 1000 + n % 1000) * interval '1 us' AS created_at,
			timestamptz '2000-01-01 00:00+00'
				+ (random_id % 100000000000) * interval '1 ms' AS epoch
		FROM generate_series(1, 100000) AS n, LATERAL (SELECT ('x' || left(md5('instaid' || n),
			16))::bit(64)::bigint) AS r (random_id);
	});
}

# The result of a query in each database
sub in_both { return map { $node->safe_psql($_, $_[0]) } 'c', 's' }

# Each function on 100,000 random values
for my $expression (
	'instaid.extract_timestamp(random_id)', 'instaid.extract_timestamp(random_id, epoch)',
		'instaid.extract_shard_id(random_id)',
	'instaid.decode(random_id)',
		'instaid.decode(random_id, epoch)',
	'instaid.make_id(created_at, shard_id, random_id)',
		'instaid.make_id(epoch + n * interval \'1001 us\', shard_id, n, epoch)',
	'instaid.min_id(created_at)', 'instaid.max_id(created_at)', 'instaid.min_id(created_at, epoch)',
		'instaid.max_id(created_at, epoch)',
	'instaid._min_id_from(created_at)', 'instaid._max_id_before(created_at)',
		'instaid._min_id_from(created_at, epoch)',
	'instaid._max_id_before(created_at, epoch)',
		'instaid.created_between(id, created_at - interval \'1 year\', created_at'
	  . ' + interval \'9 years\')',
	'instaid.to_shortcode(id)', 'instaid.to_shortcode(id >> n % 63)',
		'instaid.from_shortcode(instaid.to_shortcode(id))')
{
	my ($c, $s) = in_both("SELECT md5(string_agg(($expression)::text, ' ' ORDER BY n)) FROM v");
	is($s, $c, "$expression on 100,000 random values");
}

# All boundaries, and all errors with their messages
my @times  = map { "'$_'" } ('-infinity', 'infinity', '2011-08-24 21:07:01.721+00',
	'2011-08-24 21:07:01.720999+00', '2011-08-24 21:07:01.721001+00',
	'2046-06-27 17:00:49.496+00', '2046-06-27 17:00:49.496999+00', '2046-06-27 17:00:49.497+00',
		'2081-05-01 12:54:37.272999+00',
	'2081-05-01 12:54:37.273+00', '4714-11-24 00:00:00+00 BC', '294276-12-31 23:59:59.999999+00',
		'1970-01-01+00', '2026-11-22 12:00:00.0005+00');
my @epochs = ('', map { ", '$_'" } '2026-01-01+00', '-infinity', 'infinity',
	'4714-11-24 00:00:00+00 BC', '294207-04-27 00:00+00', '294207-04-28 00:00+00',
	'2026-01-01 00:00:00.0001+00', '1969-12-31 23:59:59.9999+00',
		'294276-12-31 23:59:59.999999+00');
my @ids = (0, 1, -1, 1023, 1024, 8388607, 8388608, '9223372036854775807', '(-9223372036854775808)',
	'4035190437244310529');
my @texts = map { "'$_'" } ('', 'A', 'AA', 'B', 'H__________', 'I__________', 'HAAAAAAAAAAAA', 'A1',
	'DeIOdt4jVu6', 'DeIOdt4jVu6=', 'De IO', "D\xc3\xa9", "\xc3\xa9",
	'-', '_', '---', 'x' x 70, 'A' x 70, '-' x 70, "0\xc3\xa9" . '0' x 80,
		'=' . '0' x 62 . "\xc3\xa9");
my @commands = (
	(map { my $f = $_; map { my $t = $_; map { "instaid.$f($t$_)" } @epochs } @times } 'min_id',
		'max_id', '_min_id_from', '_max_id_before'),
	(map { my $t = $_; map { "instaid.make_id($t, 5, 1025$_)" } @epochs } @times),
	(map { "instaid.make_id('2026-01-01', $_, -1)" } -1, 0, 8191, 8192, 2147483647, '(-2147483648)',
		'NULL'),
	"instaid.make_id('infinity', 9000, 1, '-infinity')", "instaid.make_id('infinity', 9000, 1)",
		"instaid.make_id('2026-01-01', 5, (-9223372036854775808))",
	(map { my $f = $_; map { my $i = $_; map { "instaid.$f($i$_)" } @epochs } @ids } 'decode',
		'extract_timestamp'),
	(map { my $f = $_; map { "instaid.$f($_)" } @ids, 'NULL' } 'extract_shard_id',
		'to_shortcode'),
	(map { "instaid.from_shortcode($_)" } @texts, 'NULL'),
	(map { my $t = $_;
		map { "instaid.created_between($_, $t, '2046-06-27 17:00:49.497+00')" } @ids } @times),
	'instaid.default_epoch()',
	# creating and moving
	q{instaid.create_shard(NULL, 5)}, q{instaid.create_shard('', 5)},
		q{instaid.create_shard(repeat('x', 64), 5)}, q{instaid.create_shard('pg_x', 5)},
	q{instaid.create_shard('instaid', 5)}, q{instaid.create_shard('information_schema', 5)},
		q{instaid.create_shard('x', -1)},
	q{instaid.create_shard('x', 8192)}, q{instaid.create_shard('x', 7, 'infinity')},
		q{instaid.create_shard('x', 7, '1990-01-01+00')},
	q{instaid.create_shard('x', 7, '2020-01-01 00:00:00.0001+00')},
		q{instaid.create_shard('x', 7, sequence_name => '')},
	q{instaid.create_shard('taken', 7)}, q{instaid.create_shard('x', 6)},
		q{instaid.create_shard('taken2', 7)}, q{instaid.create_shard('has_function', 7)},
	q{instaid.freeze_shard('nothing')}, q{instaid.thaw_shard('nothing')},
		q{instaid.freeze_shard(repeat('x', 64))}, q{instaid.freeze_shard(NULL)},
	q{instaid.advance_past('taken.table_id_seq', -1, instaid.default_epoch())},
		q{instaid.advance_past('taken.table_id_seq', 5, 'infinity')},
	q{instaid_adopt.adopt_shard('nothing', 7)}, q{instaid_adopt.adopt_shard(NULL, 7)},
		q{instaid_adopt.adopt_shard('taken2', 9000)},
		q{instaid_adopt.adopt_shard('has_function', 7)},
	q{instaid_adopt.adopt_shard('has_function')}, q{instaid_adopt.adopt_shard('copy', 8)},
		q{instaid_adopt.adopt_shard('copy', 6, renumber => true)},
		q{instaid_adopt.adopt_shard('taken')},
		q{instaid_adopt.adopt_shard('copy', renumber => NULL)},
		q{instaid_adopt.adopt_shard('copy')},
		q{(SELECT shard_id, epoch FROM instaid.shards AS s WHERE schema_name = 'copy')::text},
	(map { "instaid.renumber_shard($_)" } q{'taken', 7}, q{'taken', 8192}, q{'taken', NULL},
		q{'nothing', 8}, q{'taken', 6}),
	(map { (q{instaid.freeze_shard('taken')}, "instaid.renumber_shard('taken', $_)",
		q{(SELECT (shard_id, frozen)::text FROM instaid.shards WHERE schema_name = 'taken')},
		q{instaid.thaw_shard('taken')}, q{instaid.extract_shard_id(taken.next_id())},
		q{instaid.extract_shard_id(taken.next_ids(1))}) } 8, 9, 8191, 0, 6),
	q{instaid_adopt.adopt_column('taken.t', 'nothing')},
		q{instaid_adopt.adopt_column('taken.t', 'words', true)},
		q{instaid_adopt.adopt_column('public.t', 'id', true)},
	q{instaid_adopt.adopt_column('taken.t', NULL)},
	q{instaid_adopt.adopt_column('taken.t', 'id', true)},
		q{instaid_adopt.adopt_column('taken.t', 'n', true)},
	# partitions
	(map { "instaid.create_partitions($_)" } q{NULL, '2026-01-01', '2026-02-01', '1 day'},
		q{'public.t', '2026-01-01', '2026-02-01', '1 day'},
		q{'taken.p', '2026-01-01+00', '2026-01-01+00', '1 day'},
			q{'taken.p', '2026-01-01+00', '2026-02-01+00', '0'},
			q{'taken.p', '2026-01-01+00', '2126-02-01+00', '1 day'},
		q{'taken.p', '2026-01-01+00', '2030-01-01+00', '1 day'},
			q{'taken.p', '2026-01-01+00', '2026-02-01+00', '1 month'},
			q{'taken.p', '2026-01-15+00', '2026-02-01+00', '1 day'}));
for my $database ('c', 's')
{
	$node->safe_psql($database, q{
		SET client_min_messages = error;
		SELECT instaid.create_shard('taken', 6);
		CREATE SCHEMA taken2;
			CREATE FUNCTION taken2.next_ids(count integer) RETURNS integer LANGUAGE sql RETURN 1;
		CREATE SCHEMA copy; CREATE SEQUENCE copy.table_id_seq;
			CREATE FUNCTION copy.next_id() RETURNS bigint LANGUAGE sql AS $$
			SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1387263000000 << 23)
				+ (7 << 10) + nextval('copy.table_id_seq') % 1024 $$;
		CREATE SCHEMA has_function;
			CREATE FUNCTION has_function.next_id() RETURNS integer LANGUAGE sql RETURN 1;
		CREATE TABLE t (id serial PRIMARY KEY);
		CREATE TABLE taken.t (id serial PRIMARY KEY, n integer, words text);
		CREATE TABLE taken.p (id bigint PRIMARY KEY) PARTITION BY RANGE (id);});
}
# each a transaction: in the SQL edition, one can renumber a shard only once
my ($c, $s) = in_both('SET client_min_messages = error;' . join '', map {
	"SELECT regexp_replace(c || '  =>  ' || try(c), '[\\n]', ' ', 'g')
	FROM (VALUES ('SELECT " . s/'/''/gr . "')) AS u (c);\n" } @commands);
# the clock, and a type that one edition has
s/The clock reads [^;|]*//g, s/ or instaid\.id// for $c, $s;
my @c = split /\n/, $c;
my @s = split /\n/, $s;
is(scalar(@s), scalar(@commands), scalar(@commands) . ' commands at the boundaries');
my @other = grep { $s[$_] ne $c[$_] } 0 .. $#commands;
is(join("\n", map { "C:   $c[$_]\nSQL: $s[$_]" } @other), '',
	'... return, or refuse, the same in both editions');

# The same names, arguments, results and properties, apart from what the page says
my ($in_c, $in_sql) = map { { map { split /=/, $_, 2 } split /\n/, $_ } } in_both(q{
	SELECT format('%s(%s)=%s', p.proname, pg_get_function_arguments(p.oid),
		concat_ws(' ', pg_get_function_result(p.oid), p.provolatile, p.proisstrict, p.proparallel,
			p.proretset))
	FROM pg_proc AS p WHERE p.pronamespace = 'instaid'::regnamespace AND p.proname !~ '^_'
	UNION ALL
	SELECT format('%s.%s=%s', c.relname, a.attname, format_type(a.atttypid, NULL))
	FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
	WHERE c.relnamespace = 'instaid'::regnamespace AND c.relkind = 'v' AND c.relname !~ '^_'});
my %differ;
for my $name (keys %{ { %$in_c, %$in_sql } })
{
	$differ{ $name =~ s/[(.].*//r }++ if ($in_c->{$name} // '') ne ($in_sql->{$name} // '');
}
my $page = slurp_file('docs/sql-edition.md');
my ($section) = $page =~ /^## What differs\n(.*?)^## /ms or die 'the page has no section';
my %told = map { $_ => 1 } map { /`(\w+)\(/g, /view `(\w+)`/g,
	/type `(\w+)`/g } grep { /^\|/ } split /\n/, $section;
is(join(' ', grep { !$told{$_} } sort keys %differ), '',
	'docs/sql-edition.md names all functions and views that differ');

# common/ calls what each edition defines for itself, and common/README.md says how.
my @in_both = map { { map { split /=/, $_, 2 } split /\n/, $_ } } in_both(q{
	SELECT p.proname || '=' || format('%s(%s) %s', p.proname,
		string_agg(a.arg, ', ' ORDER BY a.n) FILTER (WHERE a.is_in), COALESCE(
			CASE WHEN p.proretset THEN 'SETOF ' ELSE '' END
			|| string_agg(a.arg, ', ' ORDER BY a.n) FILTER (WHERE NOT a.is_in),
			pg_get_function_result(p.oid)))
	FROM pg_proc AS p LEFT JOIN LATERAL (
		SELECT u.n, COALESCE(u.mode, 'i') = 'i', u.name || ' ' || format_type(u.type, NULL)
		FROM unnest(p.proargnames, COALESCE(p.proallargtypes, p.proargtypes::oid[]), p.proargmodes)
			WITH ORDINALITY AS u (name, type, mode, n)) AS a (n, is_in, arg) ON true
	WHERE p.pronamespace = 'instaid'::regnamespace AND p.proname ~ '^_' GROUP BY p.oid
	UNION ALL
	SELECT c.relname || '=' || format('%s %s', c.relname, string_agg(
		a.attname || ' ' || format_type(a.atttypid, NULL), ', ' ORDER BY a.attnum))
	FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
	WHERE c.relnamespace = 'instaid'::regnamespace AND c.relname ~ '^_' GROUP BY c.oid});
s/timestamp with time zone/timestamptz/g for values %{ $in_both[0] }, values %{ $in_both[1] };
($in_c, $in_sql) = @in_both;
my @names = grep { exists $in_sql->{$_} } sort keys %$in_c;
is(join("\n", map { $in_sql->{$_} } @names), join("\n", map { $in_c->{$_} } @names),
	'private functions and views of one name have one shape in both editions');
my $common = join '', map { slurp_file($_) } glob 'common/*.sql';
my %made = map { $_ => 1 } $common =~ /^CREATE OR REPLACE \w+ instaid\.(_\w+)/mg;
my %shown = map { /(\w+)/ => $_ } map { "$_->[0] $_->[1]" =~ tr/`//dr }
  map { [ (split / \| /)[ 0, 1 ] ] } slurp_file('common/README.md') =~ /^\| (`_.*)/mg;
is(join("\n", map { $shown{$_} } sort keys %shown),
	join("\n", map { $in_c->{$_} } grep { !$made{$_} } @names), '... which common/README.md shows');
is(join(' ', grep { !$made{$_} && !$shown{$_} } $common =~ s/^ *--.*//mgr =~ /\binstaid\.(_\w+)/g),
	'', '... and common/ calls no other');

# docs/reference.md lists the findings of audit() by code, with their severities and editions.
my %findings;
for my $edition ('extension', 'SQL')
{
	my $source = slurp_file('common/findings.sql') . ($edition eq 'SQL'
		? slurp_file('sql-edition/audit.sql')
		: slurp_file('extension/audit.sql')
		  . slurp_file('src/declaration.c') =~ s/code = "(\w+)"/'$1', 'error'/gr);
	while ($source =~ /'(\w+)', (?:CASE [^,]* THEN )?'(error|warning)'(?: ELSE '(\w+)')?/g)
	{
		$findings{$1}{edition}{$edition} = 1;
		$findings{$1}{severity}{$_} = 1 for grep { defined } $2, $3;
	}
}
my @listed = grep { /^\| `\w+` \|.*\| (both|extension|SQL) \|$/ } split /\n/,
  slurp_file('docs/reference.md');
s/^\| `(\w+)` \| ([a-z, ]+) \|.*\| (\w+) \|$/$1: $2, $3/ for @listed;
my @made;
for my $code (sort keys %findings)
{
	my @editions = keys %{ $findings{$code}{edition} };
	my @severities = reverse sort keys %{ $findings{$code}{severity} };
	push @made, "$code: " . join ', ', @severities, @editions > 1 ? 'both' : @editions;
}
is(join("\n", sort @listed), join("\n", @made), 'docs/reference.md lists the codes of audit()');

# What is not there, and what says so, and what to do instead
is($node->safe_psql('s', q{
	SELECT t.command FROM (VALUES
		('42883', $$instaid.next_id('insta5.table_id_seq', 5)$$), ('42883', 'instaid.next_id()'),
		('42883', 'instaid.next_ids(10)'),
		('0A000', $$instaid.settled_id('insta5')$$)) AS t (sqlstate, command)
		CROSS JOIN LATERAL try('SELECT ' || t.command) AS e (error)
	WHERE e.error !~ CASE t.sqlstate WHEN '0A000'
		THEN '^0A000 [|] the SQL edition .* needs the extension .* [|] .' ELSE '^42883 ' END}),
	'', 'what needs C is missing, or fails with 0A000 and a hint');

# Many shards at once; with FULL=1 all that there can be
my $last = $ENV{FULL} ? 8191 : 799;
is($node->safe_psql('postgres', 'CREATE DATABASE many; GRANT CREATE ON DATABASE many TO dba')
	. $node->safe_psql('many', SqlEdition::changed(), extra_params => [ '-U', 'dba' ])
	. $node->safe_psql('many', qq{
	SET client_min_messages = error;
	CALL instaid.create_shards('m%%%s "x"', 0, 600);
	CALL instaid.create_shards('m%%%s "x"', 0, $last);
	SELECT count(*), min(shard_id), max(shard_id), max(schema_name COLLATE "C") FROM instaid.shards;
	SELECT count(*) FROM instaid.audit();
	SELECT instaid.extract_shard_id("m%$last ""x""".next_id())}, extra_params => [ '-U', 'dba' ]),
	$last + 1 . "|0|$last|m%99" . ($ENV{FULL} ? 9 : "") . " \"x\"\n0\n$last", 'many shards');

# A repeated call checks the epoch for the shards that it creates.
my $ending = q{'end%%s', 6000, %s, date_trunc('day', now()) - interval '12600 days'};
for my $last (6000, 6001)
{
	$node->psql('s', 'CALL instaid.create_shards(' . sprintf($ending, $last) . ')',
		stderr => \my $warnings);
	like($warnings, qr/WARNING:  shard $last ends in less than five years/,
		"shards up to $last are created with a warning");
}
$node->safe_psql('s', 'DROP SCHEMA end6000, end6001 CASCADE');

# What monitoring systems read
for my $database ('c', 's')
{
	$node->safe_psql($database, q{
		SET client_min_messages = error;
		SELECT instaid.create_shard('ending', 82, date_trunc('day', now()) - interval '12600 days');
		SELECT instaid.create_shard('frozen', 83); SELECT instaid.freeze_shard('frozen');
		SELECT instaid.advance_past('taken.table_id_seq', instaid.min_id(now() + '3 h'),
			instaid.default_epoch())});
}
is(join(' ', in_both(q{
	SELECT concat_ws(',', frozen_shards, unreadable, drift_seconds BETWEEN 10000 AND 10800,
		drift_shard, drift_seconds > drift_limit_seconds, last_id_seconds,
		expiry_seconds BETWEEN 0 AND 86400 * 200)
	FROM instaid.metrics WHERE owner = current_user})), join(' ', ('1,0,t,taken,t,0,t') x 2),
	'instaid.metrics shows the same in both editions');
is(join(' ', in_both(q{
	SELECT instaid.freeze_shard('taken');
	SELECT drift_shard IS NULL, frozen_shards FROM instaid.metrics WHERE owner = current_user;
	SELECT instaid.thaw_shard('taken')})) =~ s/\n//gr, 't|2 t|2',
	'... without the drift of frozen shards');
is(join(' ', in_both(q{
	SET client_min_messages = error;
	SELECT instaid.create_shard('own', 95) \g /dev/null
	DO $$ BEGIN
		IF to_regnamespace('instaid_sql') IS NULL THEN CREATE SEQUENCE own.likes_id_seq;
		ELSE PERFORM instaid.add_sequence('own', 'likes_id_seq'); END IF; END $$;
	CREATE TABLE own.likes (id bigint DEFAULT own.next_id('own.likes_id_seq'::regclass));
	SELECT instaid.advance_past('own.likes_id_seq', instaid.min_id(now() + '1 day'),
		instaid.default_epoch()) \g /dev/null
	SELECT own.next_id() \g /dev/null
	SELECT drift BETWEEN '23 h' AND '25 h', sequence, drift_sequence,
		last_issued_at < now() + '1 min' FROM instaid.shards WHERE schema_name = 'own';
	SELECT drift_shard, drift_seconds BETWEEN 80000 AND 86500, unreadable FROM instaid.metrics
	WHERE owner = current_user;
	SELECT instaid.freeze_shard('own') \g /dev/null
	SELECT drift_shard FROM instaid.metrics WHERE owner = current_user; DROP SCHEMA own CASCADE})),
	join(' ', ("t|own.table_id_seq|own.likes_id_seq|t\nown|t|0\ntaken") x 2),
	'... and with that of a sequence of a table');
# A shard of another role that is further ahead hides only others of that role.  A declaration with
# a sequence that its owner may not use counts for nothing.
is(join(' ', in_both(q{
	SET client_min_messages = error;
	CREATE SCHEMA far AUTHORIZATION app; CREATE SCHEMA lent AUTHORIZATION app;
	GRANT USAGE ON SCHEMA taken TO app;
	SET ROLE app;
	SELECT instaid.create_shard('far', 90) \g /dev/null
	SELECT instaid.advance_past('far.table_id_seq', instaid.min_id(now() + '1 day'),
		instaid.default_epoch()) \g /dev/null
	SET check_function_bodies = off;
	SELECT CASE WHEN to_regnamespace('instaid_sql') IS NULL
		THEN $$CREATE FUNCTION lent.next_ids(count integer, sequence regclass
			DEFAULT 'taken.table_id_seq') RETURNS SETOF bigint LANGUAGE instaid STRICT
			AS 'shard 91, epoch 631152000001'$$
		ELSE $$SELECT instaid_sql._declare('lent', 91, 631152000001, 'taken.table_id_seq')$$
		END \gexec
	RESET ROLE;
	SELECT count(*) FROM instaid.shards WHERE schema_name = 'lent';
	SELECT concat_ws(',', owner = 'app', shards, drift_shard, drift_seconds > 80000, expiry_shard)
	FROM instaid.metrics ORDER BY owner = 'app', drift_shard;
	DROP SCHEMA far, lent CASCADE; REVOKE USAGE ON SCHEMA taken FROM app})) =~ s/\s+/ /gr,
	'1 f,4,taken,f,ending t,1,far,t,far '
	  . '1 f,4,taken,f,ending f,1,f,insta5 t,1,far,t,far',
	'... and a row of its own, in both editions');
is(SqlEdition::as_app($node, 's', q{
	SELECT concat_ws(',', shards = unreadable, frozen_shards,
		drift_seconds, last_id_seconds)
	FROM instaid.metrics ORDER BY owner = 'dba'}), 't,1 t,0',
	'... and to other roles what the catalogs show');
# It would miss what is newer than the snapshot.
for my $call ("freeze_shard('frozen')", "thaw_shard('frozen')", "create_shard('x', 7)",
	"add_sequence('frozen', 'x')", "drop_sequence('frozen', 'x')")
{
	like(($node->psql($_, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT instaid.$call"))[2],
		qr/ERROR:  \w+\(\) must run in a READ COMMITTED transaction/,
		"$call in REPEATABLE READ is refused, in $_")
	  for $call =~ /^(freeze|thaw)/ ? 'c' : (), 's';
}
$node->safe_psql($_, q{DROP SCHEMA ending, frozen CASCADE})
  for 'c', 's';

# Partitions
my $partitions_end = q{
	SET client_min_messages = error;
	SELECT instaid.create_shard('parted', 84);
	CREATE TABLE parted.t (id bigint PRIMARY KEY DEFAULT parted.next_id()) PARTITION BY RANGE (id);
	CREATE VIEW parted.found AS SELECT string_agg(concat_ws(',', code, severity, object), ' ')
		FROM instaid.audit() WHERE object ~ '^parted';
	TABLE parted.found;
	SELECT count(*) FROM instaid.create_partitions('parted.t', now() - '1 day'::interval,
		now() + '1 hour'::interval, '25 hours');
	TABLE parted.found;
	SELECT instaid.freeze_shard('parted');
	TABLE parted.found;
	SELECT instaid.thaw_shard('parted');
	SELECT count(*) FROM instaid.create_partitions('parted.t', now() + '1 hour'::interval,
		now() + '50 hours'::interval, '49 hours');
	TABLE parted.found;
	DROP TABLE parted.t;
	CREATE TABLE parted.t (id bigint PRIMARY KEY DEFAULT parted.next_id()) PARTITION BY RANGE (id);
	CREATE TABLE parted.rest PARTITION OF parted.t DEFAULT;
	TABLE parted.found;
	SELECT count(*) FROM instaid.create_partitions('parted.t', now() - '2 days'::interval,
		now() - '1 day'::interval, '1 day');
	TABLE parted.found;
	DROP TABLE parted.t;
	CREATE DOMAIN parted.key AS bigint;
	CREATE TABLE parted.t (id parted.key PRIMARY KEY DEFAULT parted.next_id())
		PARTITION BY RANGE (id);
	TABLE parted.found;
	CREATE TABLE parted.t_all PARTITION OF parted.t FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
	TABLE parted.found};
my $found = join("\n", 'no_partition,error,parted.t.id', 1,
	'last_partition,warning,parted.t.id', '', '', '', 1, '',
	'default_partition,warning,parted.t.id', 1, 'default_partition,warning,parted.t.id',
	'no_partition,error,parted.t.id', '');
is_deeply([ map { s/\A\n//r } in_both($partitions_end) ], [ ($found) x 2 ],
	'audit() finds the end of partitions in both editions');
$node->safe_psql($_, 'SET client_min_messages = error; DROP SCHEMA parted CASCADE') for 'c', 's';

# A function that is called when its schema is adopted does not end the call.
my $raising = join '', map {
	my ($schema, $shard_id, $statement) = @$_;
	qq{CREATE SCHEMA $schema; CREATE SEQUENCE $schema.table_id_seq;
		CREATE FUNCTION $schema.next_id() RETURNS bigint LANGUAGE plpgsql AS \$\$
		BEGIN
			$statement;
			RETURN ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721
				<< 23) | ($shard_id << 10) | nextval('$schema.table_id_seq') % 1024;
		END \$\$;}
} [ 'raising1', 91, 'ASSERT false' ], [ 'raising2', 92, 'RAISE query_canceled' ],
	[ 'raising3', 93, 'NULL' ], [ 'sleeping', 94, 'PERFORM pg_sleep(60)' ];
for my $database ('c', 's')
{
	$node->safe_psql($database, $raising);
	like(($node->psql($database, q{CALL instaid_adopt.adopt_shards('raising%')}))[2],
		qr/schema raising3 is shard 93,.*WARNING:  2 of 3 schemas could not be adopted/s,
		"adopt_shards() goes on after what a function raises, in $database");
	like(($node->psql($database, q{SET statement_timeout = '1 s';
		CALL instaid_adopt.adopt_shards('sleeping')}))[2], qr/ERROR:  canceling statement/,
		'... but ends when it is cancelled');
	$node->safe_psql($database, q{DROP SCHEMA raising1, raising2, raising3, sleeping CASCADE});
}

# adopt_column() drops views, rules and triggers of columns that it widens, and creates them again:
# of pg_dump's statements, only types, the default, the serial's sequence, and the right to take
# IDs differ, for a role that may insert.
$node->safe_psql('postgres', q{CREATE ROLE reader; CREATE ROLE "Other Reader"; CREATE ROLE late;
	GRANT CREATE ON DATABASE c TO dba});
my %right = (c => 'USAGE ON SEQUENCE w.table_id_seq',
	s => 'EXECUTE ON FUNCTION w.next_id(sequence w.id_sequence)');
my %printed;
for my $database ('c', 's')
{
	my @as_dba = (extra_params => [ '-U', 'dba' ]);
	$node->safe_psql($database, q{
		SET client_min_messages = error;
		SELECT instaid.create_shard('w', 95);
		CREATE TABLE w.users (id serial PRIMARY KEY, name text, boss integer REFERENCES w.users);
		CREATE TABLE w.posts (id bigserial PRIMARY KEY, user_id integer REFERENCES w.users,
			cat float8);
		CREATE TABLE w.parts (user_id integer REFERENCES w.users, n integer)
			PARTITION BY RANGE (n);
		CREATE TABLE w.parts1 PARTITION OF w.parts FOR VALUES FROM (0) TO (10);
		CREATE TABLE w.log (what text, n bigint);
		INSERT INTO w.users (name, boss) VALUES ('ann', NULL), ('bob', 1);
		INSERT INTO w.posts (user_id) VALUES (1), (1), (2);
		CREATE FUNCTION w.touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
		-- rights of new views, not of those that are created again
		ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO late;
		CREATE VIEW w.plain AS SELECT id, name AS "Na me", boss FROM w.users;
		GRANT SELECT ON w.plain TO reader WITH GRANT OPTION;
		GRANT SELECT ("Na me"), UPDATE ("Na me") ON w.plain TO "Other Reader";
		GRANT INSERT, UPDATE ON w.plain TO PUBLIC;
		REVOKE SELECT ON w.plain FROM late;
		REVOKE DELETE ON w.plain FROM dba;
		COMMENT ON VIEW w.plain IS 'it''s a \view';
		COMMENT ON COLUMN w.plain."Na me" IS 'of the user';
		CREATE VIEW w.barrier WITH (security_barrier, check_option = local, security_invoker) AS
			SELECT id, name FROM w.users WHERE name LIKE 'a\%';
		-- views of views; the first names a column that was renamed
		CREATE VIEW w.a AS SELECT p.user_id, x.boss, 0.1::float8 + p.cat AS f,
			interval '-1 day 2 h' AS i FROM w.posts AS p JOIN w.plain AS x ON x.id = p.user_id;
		ALTER VIEW w.plain RENAME boss TO "Chief";
		CREATE VIEW w.z AS SELECT count(*) AS n, max(user_id) AS m, (SELECT a FROM w.a LIMIT 1)
			FROM w.a;
		CREATE RECURSIVE VIEW w.chain (id, depth) AS
			SELECT id, 0 FROM w.users WHERE boss IS NULL
			UNION ALL SELECT u.id, c.depth + 1 FROM chain c JOIN w.users u ON u.boss = c.id;
		CREATE MATERIALIZED VIEW w.counted WITH (fillfactor = 70, autovacuum_enabled = false) AS
			SELECT u.id, lower(u.name) AS name, count(p.*) AS posts
			FROM w.users AS u LEFT JOIN w.posts AS p ON p.user_id = u.id GROUP BY u.id;
		CREATE UNIQUE INDEX counted_id ON w.counted (id);
		CREATE INDEX ON w.counted (upper(name) text_pattern_ops) WITH (fillfactor = 60)
			WHERE posts > 0;
		COMMENT ON INDEX w.counted_id IS 'one a user';
		COMMENT ON MATERIALIZED VIEW w.counted IS 'counts';
		CREATE MATERIALIZED VIEW w.empty AS SELECT id FROM w.plain WITH NO DATA;
		CREATE VIEW w.over AS SELECT m.*, e.id AS other FROM w.counted AS m, w.empty AS e;
		CREATE RULE ins AS ON INSERT TO w.plain DO INSTEAD
			(INSERT INTO w.users (name) VALUES (new."Na me"); NOTIFY "in; serted");
		COMMENT ON RULE ins ON w.plain IS 'inserts';
		CREATE RULE of_posts AS ON DELETE TO w.posts WHERE old.user_id < 3 DO INSTEAD NOTHING;
		CREATE RULE of_log AS ON UPDATE TO w.log DO ALSO
			INSERT INTO w.log SELECT 'x', n FROM w.z;
		CREATE TRIGGER "in stead" INSTEAD OF UPDATE ON w.a
			FOR EACH ROW EXECUTE FUNCTION w.touch();
		CREATE TRIGGER upd BEFORE UPDATE OF cat, user_id ON w.posts FOR EACH ROW
			WHEN (old.user_id IS DISTINCT FROM new.user_id) EXECUTE FUNCTION w.touch('a ''\b');
		COMMENT ON TRIGGER upd ON w.posts IS 'on posts';
		CREATE CONSTRAINT TRIGGER late AFTER UPDATE OF id ON w.users DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION w.touch();
		CREATE TRIGGER part BEFORE UPDATE OF user_id ON w.parts
			FOR EACH ROW EXECUTE FUNCTION w.touch();}, @as_dba);
	my @dumps;
	for my $dry_run ('true', 'false')
	{
		push @dumps, dumped($database);
		# settings of the session change nothing; PostgreSQL 19 has only one for strings
		my $strings = $node->pg_version->major < 19 ? 'off' : 'on';
		my ($ret, $stdout, $stderr) = $node->psql($database, qq{
			SET extra_float_digits = -10; SET intervalstyle = 'sql_standard';
			SET standard_conforming_strings = $strings; SET quote_all_identifiers = on;
			SET client_min_messages = error;
			SELECT * FROM instaid_adopt.adopt_column('w.users', 'id', $dry_run)},
			@as_dba);
		is($stderr, '', "adopt_column() of a column with views, in $database, dry_run $dry_run");
		push @{ $printed{$database} }, $stdout;
	}
	is($printed{$database}[1], $printed{$database}[0], '... shows what it does');
	like($printed{$database}[0], qr/\nGRANT \Q$right{$database}\E TO PUBLIC\z/,
		'... and lets those take IDs who may insert');
	is($dumps[1], $dumps[0], '... and a dry run does nothing');
	my $after = dumped($database);
	isnt($after, $dumps[0], '... else, the dump differs');
	for ($after, $dumps[0])
	{
		s/\b(?:big|small)?int(?:eger)?\b/int/g;
		s/ DEFAULT w\.next_id\(\)//;
	}
	$after =~ s/^GRANT \Q$right{$database}\E TO PUBLIC;\n//m;
	is($after, $dumps[0], '... by the types only');
	is($node->safe_psql($database, q{
		INSERT INTO w.users (name, boss) SELECT 'new', max(id) FROM w.users;
		INSERT INTO w.posts (user_id) SELECT max(id) FROM w.users;
		SELECT (SELECT count(*) FROM w.counted), (SELECT count(*) FROM w.plain),
			(SELECT instaid.extract_shard_id(m) FROM w.z)}, @as_dba), '2|3|95',
		'... and the views have the rows');
	$node->safe_psql($database, q{SET client_min_messages = error; DROP SCHEMA w CASCADE;
		ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM late}, @as_dba);
}
# Who takes IDs needs another right in each edition.
is($printed{s}[0] =~ s/\Q$right{s}/$right{c}/r, $printed{c}[0],
	'both editions drop and create the same views');

# The statements of pg_dump for the schema w, without a serial's and those of the shard
sub dumped
{
	my ($database) = @_;
	my ($dump, $stderr);
	IPC::Run::run([ 'pg_dump', '-s', '-n', 'w', '-d', $node->connstr($database) ],
		'>', \$dump, '2>', \$stderr) or die $stderr;
	$dump =~ s/^(?:--.*|\\(?:un)?restrict .*|SET .*|)\n//mg;
	return join ";\n", grep { !/users_id_seq|FUNCTION w\.next|id_sequence/ } split /;\n/, $dump;
}

# audit() finds rights with which another role could do harm, and no others.  Its cures work.
my $rights_found = q{
	SET client_min_messages = error;
	SELECT object FROM instaid.audit() WHERE code ~ '_right$';
	GRANT USAGE ON SEQUENCE taken.table_id_seq TO dba;
	GRANT ALL ON SEQUENCE taken.table_id_seq TO "B ""o""";
	GRANT ALL ON SCHEMA instaid TO app WITH GRANT OPTION;
	SET ROLE app; GRANT CREATE ON SCHEMA instaid TO PUBLIC; RESET ROLE;
	SELECT code, object, cure FROM instaid.audit() WHERE code ~ '_right$';
	SELECT cure FROM instaid.audit() WHERE code ~ '_right$' \gexec
	SELECT object FROM instaid.audit() WHERE code ~ '_right$';
	REVOKE ALL ON SCHEMA instaid FROM app;
	REVOKE ALL ON SEQUENCE taken.table_id_seq FROM dba, "B ""o""";
};
$node->safe_psql('postgres', 'CREATE ROLE "B ""o"""');
$found = join "\n",
	'schema_right|instaid|REVOKE CREATE ON SCHEMA instaid FROM PUBLIC, app CASCADE;',
	q{sequence_right|taken.table_id_seq|REVOKE UPDATE ON SEQUENCE taken.table_id_seq}
	  . q{ FROM "B ""o""" CASCADE;};
is_deeply([ in_both($rights_found) ], [ ($found) x 2 ],
	'audit() finds rights of other roles in both editions');

# An object of another role breaks no function for all: bounds at the ends of bigint.
my $at_the_ends = q{
	SET client_min_messages = error;
	CREATE SCHEMA ends AUTHORIZATION app; SET ROLE app;
	SELECT instaid.create_shard('ends', 78) \g /dev/null
	CREATE TABLE ends.t (id bigint PRIMARY KEY DEFAULT ends.next_id()) PARTITION BY RANGE (id);
	CREATE TABLE ends.all PARTITION OF ends.t
		FOR VALUES FROM (-9223372036854775808) TO (9223372036854775807);
	CREATE TABLE ends.u (LIKE ends.t INCLUDING ALL) PARTITION BY RANGE (id);
	CREATE TABLE ends.none PARTITION OF ends.u
		FOR VALUES FROM (MINVALUE) TO (-9223372036854775808);
	RESET ROLE;
	SELECT code, object FROM instaid.audit() WHERE object ~ '^ends\.';
	SELECT count(p) > 1 FROM instaid.dump_positions() AS p;
	SELECT count(m), count(s) > 0 FROM instaid.metrics AS m, instaid.shards AS s \g /dev/null
	DROP SCHEMA ends CASCADE};
is_deeply([ in_both($at_the_ends) ],
	[ ("no_partition|ends.u.id\nlast_partition|ends.t.id\nt") x 2 ],
	'audit() and dump_positions() read what is at the ends of bigint in both editions');

# Each part is described, and belongs to the role that installed it.
is($node->safe_psql('s', q{
	SELECT oid::regprocedure FROM pg_proc WHERE pronamespace IN ('instaid'::regnamespace,
		'instaid_sql'::regnamespace, 'instaid_adopt'::regnamespace)
		AND (proname !~ '^_' AND obj_description(oid, 'pg_proc') IS NULL
			OR proowner <> 'dba'::regrole)}), '',
			'each public function has a description');
is($node->safe_psql('s', q{
	SELECT oid::regprocedure FROM pg_proc WHERE pronamespace IN ('instaid'::regnamespace,
		'instaid_sql'::regnamespace, 'instaid_adopt'::regnamespace)
		AND prosqlbody IS NULL AND COALESCE(array_to_string(proconfig, ' '), '') !~ 'search_path'
		AND regexp_replace(prosrc, $$'[^']*'$$, '', 'g') ~
			'[^.(]\m(nextval|setval|floor|format|clock_timestamp|pg_[a-z_]+)\('
	ORDER BY 1}), '', 'a function without SET qualifies its names');
# Linters, such as Supabase's, list each function without SET search_path.
my %without_search_path = (
	'its expression takes the place of a call for each row' => 'instaid.created_between
		instaid.decode instaid.default_epoch instaid.extract_shard_id
		instaid.extract_timestamp instaid.max_id instaid.min_id instaid.to_shortcode
		instaid._end_of_ids instaid._max_id_before instaid._min_id_from',
	'it is a constant' => 'instaid._max_shard_id instaid_sql._end_of_epochs
		instaid_sql._last_ms instaid_sql._low_bits instaid_sql._max_ms instaid_sql._max_sequence
		instaid_sql._max_shard_id instaid_sql._ms_shift instaid_sql._sequence_bits
		instaid_sql._shard_id_mask instaid_sql._sign_and_shard_id_mask',
	'an INSERT, or a query for each row, calls it' => 'insta5.next_id instaid_sql._open
		instaid_sql._utc_epoch',
	'PostgreSQL makes it part of the query' => 'instaid._descendants instaid._find_shard
		instaid._shard_sequences',
	'it commits' => 'instaid_adopt.adopt_shards instaid.create_shards',
	'a trigger calls it for each statement' => 'instaid._move_guard');
is($node->safe_psql('s', q{
	SELECT DISTINCT p.pronamespace::regnamespace || '.' || p.proname FROM pg_proc AS p
	WHERE p.pronamespace::regnamespace::text ~ '^(insta5|instaid|instaid_sql|instaid_adopt)$'
		AND COALESCE(array_to_string(p.proconfig, ' '), '') !~ '\msearch_path='
	ORDER BY 1}), join("\n", sort map { split } values %without_search_path),
	'functions without SET search_path have a reason');
is($node->safe_psql('s', q{
	SELECT oid::regprocedure FROM pg_proc WHERE pronamespace IN ('instaid'::regnamespace,
		'instaid_sql'::regnamespace) AND proname !~ '^_lock'
		AND prosrc ~ 'instaid_sql[.]_lock|id_sequence_lock IN SHARE'
		AND ('client_min_messages=error' = ANY (proconfig)) IS NOT TRUE}), '',
	'nobody who has the lock waits for a client that does not read its messages');

# What app can do: use IDs, and nothing else
sub as_app { return SqlEdition::as_app($node, 's', @_) }
$node->safe_psql('s', q{
	CREATE SCHEMA evil AUTHORIZATION app; GRANT CREATE, TEMPORARY ON DATABASE s TO app;
	CREATE ROLE stranger LOGIN; GRANT USAGE ON SCHEMA insta5 TO stranger;
	CREATE SEQUENCE public.other; SELECT setval('public.other', 5200);
	ALTER SEQUENCE public.other OWNER TO dba});
is(as_app('SELECT insta5.next_id() > 0; SELECT count(*) FROM insta5.next_ids(10);'
	  . ' INSERT INTO insta5.photos (n) VALUES (1) RETURNING id > 0'), 't 10 t', 'app takes IDs');
is(as_app(q{
	SELECT nextval('insta5.table_id_seq'); SELECT setval('insta5.table_id_seq', 5000);
		SELECT last_value FROM insta5.table_id_seq;
	ALTER SEQUENCE insta5.table_id_seq CACHE 5; SELECT * FROM insta5.id_sequence_lock;
	BEGIN; LOCK TABLE insta5.id_sequence_lock IN ACCESS SHARE MODE; ROLLBACK;
	SELECT instaid_sql._open('insta5.table_id_seq', 5120, instaid_sql._options(5, 1314220021721));
	SELECT instaid_sql._take('insta5.table_id_seq', 5120);
	SELECT instaid_sql._next_ids('insta5.table_id_seq', instaid_sql._options(5, 1314220021721), 5);
	SELECT instaid.advance_past('insta5.table_id_seq', 5, instaid.default_epoch());
	SELECT instaid.freeze_shard('insta5'); SELECT instaid.thaw_shard('insta5');
		SELECT instaid.add_sequence('insta5', 'x');
	ALTER DOMAIN insta5.id_sequence DROP CONSTRAINT is_a_sequence_of_this_shard;
	CREATE TABLE evil.t (s insta5.id_sequence)}),
	join(' ', ('42501') x 15), '... and has no right on the sequence or its lock');
is(as_app(q{
	SELECT insta5.next_id('public.other'); SELECT insta5.next_id('pg_class');
	SELECT insta5.next_ids(5, 'public.other'); SELECT insta5.next_id(NULL) IS NULL}),
	't 23514 23514 23514', '... nor counts other sequences of the owner up');
is(as_app('SET client_min_messages = error; SELECT count(*) > 0 FROM instaid.shards;'
	  . ' SELECT count(*) >= 0 FROM instaid.audit()'),
	't t', '... and sees what is wrong in schemas that it may not use');
is($node->safe_psql('s', 'SELECT last_value FROM public.other'), 5200, '... which have not moved');
is(as_app(q{
	CREATE FUNCTION evil.bad(bigint,
		bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'as %', current_user;
		END $$;
	CREATE FUNCTION evil.bad(bigint,
		integer) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'as %', current_user;
		END $$;
	CREATE FUNCTION evil.worse(bigint,
		bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'as %', current_user;
		END $$;
	CREATE FUNCTION evil.nextval(regclass) RETURNS bigint LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'as %', current_user; END $$;
	CREATE FUNCTION evil.floor(float8) RETURNS float8 LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'as %', current_user; END $$;
	CREATE OPERATOR evil.+ (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = evil.bad);
	CREATE OPERATOR evil.+ (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.bad);
	CREATE OPERATOR evil.- (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.bad);
	CREATE OPERATOR evil.& (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.bad);
	CREATE OPERATOR evil.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.worse);
	CREATE OPERATOR evil.< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.worse);
	CREATE TEMPORARY TABLE table_id_seq (a integer);
		CREATE TEMPORARY VIEW id_sequence_lock AS SELECT 1;
	SET search_path = evil, pg_temp, pg_catalog, insta5;
	SELECT insta5.next_id() OPERATOR(pg_catalog.>) 0; SELECT pg_sleep(0.003) \g /dev/null
	SELECT insta5.next_id() OPERATOR(pg_catalog.>) 0;
	SELECT pg_catalog.count(*) FROM insta5.next_ids(20);
		SELECT pg_catalog.count(*) FROM insta5.next_ids(2000);
	SELECT instaid.extract_shard_id(insta5.next_id()), instaid.max_id('infinity'),
		instaid.to_shortcode(1)}),
	't t 20 2000 5|9223372036854775807|B',
		'... nor plants an operator, a function or a temporary view');
my $stranger = $node->psql('s', "\\set VERBOSITY sqlstate\nSELECT insta5.next_id()",
	extra_params => [ '-U', 'stranger' ], on_error_stop => 0, stderr => \my $refused);
like($refused, qr/42501/, 'a role without EXECUTE takes no ID');

# Settings of the database change nothing.  PostgreSQL 19 refuses the first one.
$node->safe_psql('postgres', 'CREATE DATABASE x; GRANT CREATE ON DATABASE x TO dba');
$node->psql('postgres', "ALTER DATABASE x SET $_") for 'standard_conforming_strings = off',
	'quote_all_identifiers = on', q{plpgsql.extra_errors = 'all'}, q{search_path = 'nothing'},
	q{datestyle = 'German'}, 'extra_float_digits = -15', q{bytea_output = 'escape'},
	q{plpgsql.variable_conflict = 'use_column'}, q{default_transaction_isolation = serializable};
$node->safe_psql('x', SqlEdition::changed(), extra_params => [ '-U', 'dba' ]);
is($node->safe_psql('x', q{
	BEGIN ISOLATION LEVEL READ COMMITTED;
	SELECT instaid.create_shard('Q%s "x"', 5, sequence_name => 'it''s "%I"');
	SELECT instaid.add_sequence('Q%s "x"', 'two');
	COMMIT;
	SELECT count(*) FROM "Q%s ""x""".next_ids(2000);
	SELECT pg_sleep(2);
	SELECT instaid.extract_shard_id("Q%s ""x""".next_id());
	SELECT instaid.from_shortcode(instaid.to_shortcode(4035995625349715258));
	SELECT count(*) FROM instaid.audit();
	BEGIN ISOLATION LEVEL READ COMMITTED;
	SELECT instaid.freeze_shard('Q%s "x"'); SELECT instaid.thaw_shard('Q%s "x"');
	COMMIT;
	SELECT schema_name, frozen FROM instaid.shards}, extra_params => [ '-U', 'dba' ]) =~ s/\n+/ /gr,
	' "Q%s ""x"""."two" 2000 5 4035995625349715258 0 Q%s "x"|f',
	'settings of the database change nothing');

# Transactions
$node->safe_psql('s', 'CREATE ROLE tx SUPERUSER LOGIN');
sub outcome { my ($sql) = @_; my ($out, $err); $node->psql('s', "\\set VERBOSITY sqlstate\n$sql",
	stdout => \$out, stderr => \$err, on_error_stop => 0, on_error_die => 0); return join ' ',
	grep { /\S/ } split /\s+/, $out . ' ' . $err =~ s/psql:\S+ ERROR: +//gr }
is(outcome('BEGIN READ ONLY; SELECT insta5.next_id(); ROLLBACK'), '25006',
	'refused in a read-only transaction');
is(outcome(q{
	BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT insta5.next_id() < insta5.next_id();
		SELECT pg_sleep(0.003) \g /dev/null
	SELECT insta5.next_id() AS a \gset
	SAVEPOINT x; SELECT insta5.next_id() AS b \gset
	ROLLBACK TO x; SELECT insta5.next_id() AS c \gset
	RELEASE x; SELECT insta5.next_id() AS d \gset
	SELECT :a < :b AND :b < :c AND :c < :d;
	DISCARD PLANS; SELECT insta5.next_id() > :d; PREPARE TRANSACTION 'p';
		SELECT insta5.next_id() > :d; COMMIT PREPARED 'p'}),
	't t t t', 'isolation levels, savepoints, prepared transactions');
is(outcome(q{
	SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
	SET max_parallel_workers_per_gather = 2;
	SELECT count(DISTINCT insta5.next_id()) = count(*) FROM v}), 't', 'no parallel plan');

# A transaction that uses two sequences of a shard, and freeze_shard(), which locks them in another
# order: who waits last fails, and nothing is lost.
$node->safe_psql('s', q{SELECT instaid.create_shard('dead', 85);
	SELECT instaid.add_sequence('dead', 'likes'); CREATE TABLE dead.t (n integer, id bigint)});
for my $loser ('the transaction', 'the call')
{
	my @steps = (q{BEGIN; INSERT INTO dead.t SELECT 1, dead.next_id('dead.likes'::regclass)},
		'INSERT INTO dead.t SELECT 2, dead.next_id()');
	my @owner = ('BEGIN; ALTER SEQUENCE dead.table_id_seq CACHE 1',
		q{SELECT instaid.freeze_shard('dead')});
	my $last = Clients::session($node, 's');
	my $first = $node->background_psql('s', on_error_stop => 0);
	my @first = $loser eq 'the call' ? @steps : $owner[1];
	my @last = $loser eq 'the call' ? @owner : @steps;
	$last->(q{SET deadlock_timeout = '10ms'});
	$first->query_safe(q{SET deadlock_timeout = '100s'});
	$first->query_safe(shift @first) if @first > 1;
	$last->(shift @last);
	$first->query_until(qr/asked/, "\\echo asked\n$first[0];\n");
	$node->poll_query_until('s', 'SELECT count(*) = 1 FROM pg_locks WHERE NOT granted')
	  or die 'nobody waits';
	like($last->($last[0]), qr/ERROR:  deadlock detected/, "a deadlock, which $loser finds");
	$last->('ROLLBACK');
	$first->query_safe('COMMIT') if $loser eq 'the call';
	$first->quit;
	is($node->safe_psql('s', q{
		SELECT frozen FROM instaid.shards WHERE schema_name = 'dead';
		SELECT instaid.freeze_shard('dead'); SELECT instaid.thaw_shard('dead');
		INSERT INTO dead.t SELECT 1, dead.next_id('dead.likes'::regclass);
		INSERT INTO dead.t SELECT 2, dead.next_id();
		SELECT count(*), count(DISTINCT (n, id)), bool_and(instaid.extract_shard_id(id) = 85)
		FROM dead.t; TRUNCATE dead.t}) =~ s/\n+/ /gr,
		$loser eq 'the call' ? 'f 4|4|t' : 't 2|2|t', '... and loses nothing');
}
$node->safe_psql('s', 'DROP SCHEMA dead CASCADE');

# What one role does to a sequence stops no view or function for others.
$node->safe_psql('s', q{SELECT instaid.create_shard('gone', 84)});
my ($reader, $other) = map { Clients::session($node, 's') } 1, 2;
$reader->('SET client_min_messages = error; BEGIN ISOLATION LEVEL REPEATABLE READ');
my $read = q{SELECT count(s.last_id) FROM instaid.shards AS s, instaid.metrics,
	(SELECT count(*) FROM instaid.audit()) AS a};
$reader->($read);
$other->(q{SET client_min_messages = error; DROP SCHEMA gone CASCADE});
like($reader->($read), qr/^\d+$/, 'a shard that the snapshot shows is dropped');
is($reader->('SELECT sum(unreadable) FROM instaid.metrics'), '1',
	'... and instaid.metrics counts it');
$reader->("ROLLBACK; SET statement_timeout = '60s'");
$other->('BEGIN; ALTER SEQUENCE insta5.table_id_seq RENAME TO other');
is($reader->(q{SELECT last_id FROM instaid.shards WHERE schema_name = 'insta5'}), '',
	'a sequence that is being renamed shows no last_id, and nobody waits');
$other->('ROLLBACK');
is($node->safe_psql('s', q{SET client_min_messages = error; SET ROLE app;
	CREATE SEQUENCE evil.s MINVALUE 9000000000000000000 MAXVALUE 9223372036846396415;
	CREATE FUNCTION evil.next_ids(count integer, q regclass DEFAULT 'evil.s') RETURNS bigint
		LANGUAGE sql RETURN 1;
	CREATE TEMP SEQUENCE s MINVALUE 1314220021721 MAXVALUE 9223372036846396415;
	CREATE FUNCTION pg_temp.next_ids(count integer, q regclass DEFAULT 'pg_temp.s') RETURNS bigint
		LANGUAGE sql RETURN 1;
	SELECT count(*) FROM instaid.shards WHERE schema_name ~ '^(evil|pg_)';
	SELECT count(*) FROM instaid.audit() WHERE object ~ 'evil.s|pg_temp'}), "0\n0",
	'a sequence whose MINVALUE is no time is no shard, nor is one of a temporary schema');

# Another role's functions that look like a shard's declare no shard: the text, the domain and
# next_id() must be of one owner.
is(outcome(q{
	SELECT count(*) FROM instaid.shards \gset
	SELECT max(drift_seconds) AS drift FROM instaid.metrics \gset
	SET client_min_messages = error; CREATE SCHEMA fake AUTHORIZATION app; SET ROLE app;
	CREATE SEQUENCE fake.fake MINVALUE 1314220021721 MAXVALUE 9223372036846467071;
	SELECT setval('fake.fake', 9223372036846467071) \g /dev/null
	GRANT SELECT ON fake.fake TO PUBLIC;
	CREATE FUNCTION fake.next_ids(integer, regclass DEFAULT 'fake.fake') RETURNS bigint
		LANGUAGE sql AS 'SELECT 1 -- instaid_sql._next_ids(';
	CREATE DOMAIN fake.id_sequence AS regclass;
	CREATE FUNCTION fake.next_id(fake.id_sequence) RETURNS bigint SECURITY DEFINER
		LANGUAGE sql AS 'SELECT 1';
	CREATE FUNCTION fake.next_ids(integer, fake.id_sequence DEFAULT 'fake.fake'::regclass)
		RETURNS bigint SECURITY DEFINER LANGUAGE sql AS 'SELECT 1 -- instaid_sql._next_ids(';
	RESET ROLE;
	SELECT count(*) - :count FROM instaid.shards;
	SELECT max(drift_seconds) < :drift + 60 FROM instaid.metrics;
	SELECT instaid.create_shard('insta77', 77);
	SELECT instaid.extract_shard_id(insta77.next_id()); DROP SCHEMA insta77 CASCADE;
	DROP SCHEMA fake CASCADE}),
	'0 t 77', 'functions that look like those of a shard take no shard ID, and move no metric');

# ... nor does a text without end: nothing but its beginning is parsed.
is(outcome(q{
	SELECT count(*) FROM instaid.shards \gset
	SET statement_timeout = '60s'; SET client_min_messages = error;
	CREATE SCHEMA fake AUTHORIZATION app; SET ROLE app;
	SET check_function_bodies = off; CREATE SEQUENCE fake.fake;
	CREATE DOMAIN fake.id_sequence AS regclass;
	CREATE FUNCTION fake.next_id(fake.id_sequence) RETURNS bigint SECURITY DEFINER
		LANGUAGE sql AS 'SELECT 1';
	SELECT format('CREATE OR REPLACE FUNCTION fake.next_ids(integer,
		fake.id_sequence DEFAULT ''fake.fake''::regclass) RETURNS SETOF bigint SECURITY DEFINER
		LANGUAGE plpgsql AS %L; SELECT count(*) - %s FROM instaid.shards', text, :count)
	FROM (SELECT prosrc FROM pg_proc WHERE proname = 'next_ids'
			AND pronamespace = 'insta5'::regnamespace) AS p (source),
		LATERAL (VALUES (E'\nBEGIN\n    RETURN QUERY SELECT instaid_sql._next_ids('
			|| repeat('(123456789012,123456789013,9223372036846577580,', 20000) || E'x;\nEND '),
		(p.source || repeat(' ', 900000)),
		(replace(p.source, '1314220021721', repeat('1', 900000)))) AS t (text) \gexec
	RESET ROLE; DROP SCHEMA fake CASCADE}),
	'0 0 0', 'a text of 900,000 bytes declares no shard, and does not keep its readers');

# Any role can hold the advisory locks of all shard IDs, as it can fill the table of locks.  It
# does not make create_shard() wait, and the error names its session.
my $holder = Clients::session($node, 's');
my $pid = $holder->('SELECT pg_backend_pid()');
$holder->(q{SET ROLE app; SELECT count(pg_advisory_lock(hashtext('instaid shard ID'), n))
	FROM generate_series(0, 99) AS n});
like(($node->psql('s', q{SELECT instaid.create_shard('locked', 99)}))[2],
	qr/is creating a shard with ID 99\nDETAIL:  Session $pid of role .* has the advisory lock/,
	'create_shard() names a session that holds its lock');
$holder->('SELECT pg_advisory_unlock_all()');

# The lock does not depend on the name of a sequence, and follows the schema's.
is(outcome(q{
	SET client_min_messages = error;
	SELECT instaid.create_shard('Re"named', 85, sequence_name => repeat('s', 63)) \g /dev/null
	SELECT instaid.add_sequence('Re"named', 'a"_lock') \g /dev/null
	ALTER SEQUENCE "Re""named"."a""_lock" RENAME TO of_table;
	ALTER SCHEMA "Re""named" RENAME TO "Renamed";
	SELECT pg_sleep(0.005) \g /dev/null
	SELECT count(*) FROM "Renamed".next_ids(2000, '"Renamed".of_table');
	ALTER SEQUENCE "Renamed".of_table RENAME TO other;
	SELECT pg_sleep(0.005) \g /dev/null
	SELECT "Renamed".next_id('"Renamed".other') > 0; SELECT "Renamed".next_id() > 0;
	SELECT count(*) FROM instaid.audit() WHERE object ~ 'Renamed';
	DROP VIEW "Renamed".id_sequence_lock;
	SELECT cure FROM instaid.audit() WHERE code = 'no_lock' \gexec
	SELECT "Renamed".next_id() > 0; DROP SCHEMA "Renamed" CASCADE
	}), '2000 t t 0 t', 'a sequence and a schema are renamed');

# The sequence is in another schema, with the lock or with one of its own, or it belongs to another
# role.  A superuser runs the cure.
my $moves = 'ALTER SEQUENCE away.table_id_seq SET SCHEMA apart;';
for my $harm ("$moves ALTER VIEW away.id_sequence_lock SET SCHEMA apart",
	"$moves CREATE VIEW apart.id_sequence_lock AS SELECT 1 AS lock",
	'RESET ROLE; ALTER SEQUENCE away.table_id_seq OWNER TO CURRENT_USER')
{
	is(outcome(qq{
		SET ROLE dba; SELECT instaid.create_shard('away', 1089) \\g /dev/null
		CREATE SCHEMA apart; $harm}), '', $harm);
	my $cure = $node->safe_psql('s', q{
		SELECT cure FROM instaid.audit()
		WHERE code = 'foreign_sequence' AND object = 'away'});
	$node->safe_psql('s', $cure);
	is(outcome(q{
		SET ROLE dba; SET client_min_messages = error;
		SELECT pg_sleep(0.005) \g /dev/null
		SELECT away.next_id() > 0; SELECT count(*) FROM instaid.audit() WHERE object ~ '^away';
		DROP SCHEMA away, apart CASCADE}), 't 0', "... which is mended: $cure");
}

# Sequences are dropped and changed by hand.
is(outcome(q{
	SET client_min_messages = error; SELECT instaid.create_shard('seqs', 88) \g /dev/null
	SELECT instaid.add_sequence('seqs', n) FROM unnest('{a, b, c}'::text[]) AS n \g /dev/null
	CREATE TABLE seqs.t (id bigint DEFAULT seqs.next_id('seqs.a'));
	SELECT instaid.drop_sequence('seqs', 'a'); SELECT instaid.drop_sequence('seqs', 'table_id_seq');
	SELECT instaid.drop_sequence('seqs', 'nothing'); SELECT instaid.drop_sequence('seqs', 'b');
	SELECT instaid._shard_sequences('seqs') AS s ORDER BY s;
	SELECT seqs.next_id('seqs.a') > 0;
	DROP SEQUENCE seqs.c CASCADE; SELECT instaid.freeze_shard('seqs');
	SELECT frozen FROM instaid.shards WHERE schema_name = 'seqs';
	SELECT cure FROM instaid.audit() WHERE code = 'open_type' \gexec
	SELECT instaid._shard_sequences('seqs') AS s ORDER BY s; SELECT instaid.freeze_shard('seqs');
	SELECT instaid.add_sequence('seqs', 'd'); SELECT seqs.next_id('seqs.d');
	SELECT seqs.next_id('seqs.a'); SELECT seqs.next_id(); SELECT instaid.thaw_shard('seqs');
	SELECT seqs.next_id('seqs.d') > 0; SELECT count(*) FROM instaid.audit() WHERE object ~ '^seqs';
	DROP SCHEMA seqs CASCADE}),
	'seqs.table_id_seq seqs.a seqs.c t t seqs.table_id_seq seqs.a seqs.d t 1'
	  . ' 2BP01 42704 42704 55000 55000 55000',
	'drop_sequence(), freeze_shard() after DROP ... CASCADE, and add_sequence() while frozen');
for my $by_hand ('NO MAXVALUE', 'MAXVALUE 9000000000000000000', 'NO MINVALUE')
{
	is(outcome(qq{
		SET client_min_messages = error; SELECT instaid.create_shard('hand', 87);
		ALTER SEQUENCE hand.table_id_seq $by_hand;
		SELECT shard_id, frozen FROM instaid.shards WHERE schema_name = 'hand';
		SELECT hand.next_id();
		SELECT cure FROM instaid.audit() WHERE code = 'cannot_serve' \\gexec
		SELECT instaid.extract_shard_id(hand.next_id()); DROP SCHEMA hand CASCADE}),
		'87|f 87 55000', "a shard keeps its number after $by_hand, and audit() has the cure");
}
is(outcome(q{
	SET client_min_messages = error; SELECT instaid.create_shard('again', 90);
	SELECT max(i) AS last FROM again.next_ids(1000000) AS i \gset
	ALTER SEQUENCE again.table_id_seq RESTART;
	SELECT instaid.freeze_shard('again'), instaid.thaw_shard('again') \g /dev/null
	SELECT again.next_id() > :last; DROP SCHEMA again CASCADE}),
	't', 'RESTART, freeze_shard() and thaw_shard() repeat no ID');
is(outcome(q{
	SET client_min_messages = error;
	SELECT instaid.create_shard('lost' || n, 100 + n) FROM generate_series(1, 5) AS n \g /dev/null
	ALTER FUNCTION lost1.next_ids OWNER TO app; ALTER DOMAIN lost2.id_sequence OWNER TO app;
	DROP FUNCTION lost3.next_ids; ALTER FUNCTION lost4.next_ids SECURITY INVOKER;
	ALTER FUNCTION lost5.next_ids RENAME TO ids;
	SELECT object FROM instaid.audit() WHERE code = 'lost_shard' ORDER BY 1;
	DROP SCHEMA lost1, lost2, lost3, lost4, lost5 CASCADE}),
	'lost1 lost2 lost3 lost4 lost5', 'audit() finds shards that instaid.shards does not list');
# A migration creates the published function beside next_id() of a shard.
is(outcome(q{
	SET client_min_messages = error;
	SELECT instaid.create_shard('beside', 101) \g /dev/null
	CREATE FUNCTION beside.next_id() RETURNS bigint LANGUAGE sql AS $$
		SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << 23
			| 101 << 10 | nextval('beside.table_id_seq') % 1024 $$;
	SELECT cure FROM instaid.audit() WHERE code = 'copy' \gexec
	SELECT count(*) FROM instaid.audit() WHERE object ~ '^beside';
	SELECT beside.next_id() > 0; DROP SCHEMA beside CASCADE}),
	'0 t', "... and the copy beside a shard's next_id(), whose cure drops it");
is(outcome(q{
	SET client_min_messages = error;
	SELECT instaid.create_shard('lost', 100) \g /dev/null
	CREATE TABLE lost.t (id bigint PRIMARY KEY DEFAULT lost.next_id());
	INSERT INTO lost.t SELECT FROM generate_series(1, 20); ANALYZE lost.t;
	DROP SEQUENCE lost.table_id_seq CASCADE;
	SELECT substring(cure, 'adopt_column.*;') FROM instaid.audit() WHERE code = 'lost_default';
	SELECT code, object, substring(cure, '^[^;]*;') AS cure FROM instaid.audit()
	WHERE code = 'lost_shard' \gset
	SELECT :'code', :'object'; :cure
	SELECT instaid.create_shard('lost', instaid.extract_shard_id(max(id))) FROM lost.t \g /dev/null
	SELECT instaid_adopt.adopt_column('lost.t', 'id') \g /dev/null
	SELECT count(*) FROM instaid.audit() WHERE object ~ '^lost';
	INSERT INTO lost.t DEFAULT VALUES; SELECT count(*) FROM lost.t; DROP SCHEMA lost CASCADE}),
	"adopt_column('lost.t', 'id'); lost_shard|lost 0 21",
	'... and one of which DROP SEQUENCE has left the type');
is(outcome(q{
	SET client_min_messages = error; SET check_function_bodies = off; SET statement_timeout = '20s';
	CREATE SCHEMA slow;
	SELECT format('CREATE FUNCTION slow.f%s() RETURNS bigint LANGUAGE sql AS %L', n,
		repeat('/*a', 33000) || E'--\n') FROM generate_series(1, 40) AS n \gexec
	SELECT count(*) FROM instaid.audit() WHERE object ~ '^slow'; DROP SCHEMA slow CASCADE}),
	0, 'audit() reads texts with comments that never end');

# What makes copies is none, and what asks its sequence by EXECUTE is one.
is(outcome(q{
	SET client_min_messages = warning; SET check_function_bodies = off; CREATE SCHEMA makers;
	CREATE PROCEDURE makers.tenant(name text) LANGUAGE plpgsql AS $p$ BEGIN
		EXECUTE format($f$ CREATE FUNCTION %I.next_id() RETURNS bigint LANGUAGE sql AS
			$b$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint << 23
				| nextval('%1$I.s') %% 1024 $b$ $f$, name); END $p$;
	CREATE FUNCTION makers.copy() RETURNS bigint LANGUAGE plpgsql AS $p$ DECLARE n bigint; BEGIN
		RAISE DEBUG 'CREATE FUNCTION, %%';
		EXECUTE format('SELECT nextval(%L) %% 1024', 'makers.s') INTO n;
		RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint << 23 | n; END $p$;
	SELECT code, object FROM instaid.audit() WHERE object ~ '^makers';
	DROP SCHEMA makers CASCADE}), 'copy|makers.copy()', 'a function that makes copies is none');

# A copy of another name, with another sequence
is(outcome(q{
	SET client_min_messages = error;
	CREATE SCHEMA named; CREATE SEQUENCE named.global_id_seq; CREATE SEQUENCE named.id;
	CREATE FUNCTION named.id_generator(OUT result bigint) LANGUAGE sql AS $$
		SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << 23)
			+ (86 << 10) + nextval('named.global_id_seq') % 1024 $$;
	CREATE TABLE named.t (id bigint PRIMARY KEY DEFAULT named.id_generator());
	SELECT code FROM instaid.audit() WHERE object = 'named.id_generator()';
	CALL instaid_adopt.adopt_shards('named');
	SELECT sequence FROM instaid.shards WHERE schema_name = 'named';
	INSERT INTO named.t SELECT result FROM named.id_generator();
	INSERT INTO named.t DEFAULT VALUES;
	SELECT instaid.extract_shard_id(id) FROM named.t; DROP SCHEMA named CASCADE}),
	'copy named.global_id_seq 86 86',
	'adopt_shards() adopts a copy of another name');

# advance_past() refuses what it cannot do.
is(outcome(q{
	SELECT instaid.advance_past('insta5.table_id_seq', 0, now() + '1 day');
	SELECT instaid.advance_past('insta5.table_id_seq', 4611686018427387904, '2226-01-01+00');
	SELECT instaid.advance_past('insta5.table_id_seq', 9223372036854775807, '2026-01-01+00');
	SELECT instaid.extract_timestamp(insta5.next_id()) < now() + interval '3 h'}),
	't 22023 22023 2200H', 'advance_past() refuses an epoch in the future, and an ID past the end');

# An owner who is no superuser dumps and restores, whole and one schema.
my $dump = $node->backup_dir . '.sql';
my $before = $node->safe_psql('s', 'SELECT insta5.next_id()');
$node->safe_psql('postgres', "CREATE DATABASE whole OWNER dba; CREATE DATABASE part OWNER dba");
$node->safe_psql('s',
	'DROP TABLE v, t; DROP FUNCTION try; DROP SEQUENCE other;'
	  . ' DROP SCHEMA taken, taken2, copy, has_function, evil CASCADE');
$node->command_ok([ 'pg_dump', '-f', "$dump.whole", '-U', 'dba', $node->connstr('s') ],
	'a dump by the owner');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-U', 'dba', '-f', "$dump.whole",
	$node->connstr('whole') ], '... is restored by the owner');
is($node->safe_psql('whole', "SELECT insta5.next_id() > $before, count(*) FROM insta5.photos"),
	't|1', '... and goes on above');
is($node->safe_psql('whole',
	'SELECT a.code FROM instaid.audit() AS a WHERE severity = \'error\''), '',
	'... without a finding');
$node->safe_psql('postgres', 'CREATE DATABASE trap; GRANT CREATE ON DATABASE trap TO app');
$node->safe_psql('trap', q{
	CREATE SCHEMA instaid; GRANT USAGE ON SCHEMA instaid TO dba;
	CREATE FUNCTION instaid.restore_position(text, bigint, timestamptz DEFAULT NULL,
		text DEFAULT NULL, boolean DEFAULT false) RETURNS void LANGUAGE plpgsql
		AS $$ BEGIN RAISE WARNING 'planted'; END $$}, extra_params => [ '-U', 'app' ]);
my $positions = $node->safe_psql('s', 'SELECT instaid.dump_positions()',
	extra_params => [ '-U', 'dba' ]);
my %said = map { $_ => ($node->psql($_, $positions, extra_params => [ '-U', 'dba' ]))[2] } 'trap',
	'whole';
like($said{trap}, qr/\A[^\n]*schema "instaid" is missing, or belongs to another role[^\n]*\z/,
	'dump_positions() runs no function that another role has planted for the owner');
is($said{whole}, '', '... and those of its edition');
$node->command_ok([ 'pg_dump', '-n', 'insta5', '-f', "$dump.part", '-U', 'dba',
	$node->connstr('s') ], 'a dump of one shard');
$node->safe_psql('part', SqlEdition::changed(), extra_params => [ '-U', 'dba' ]);
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-U', 'dba', '-f', "$dump.part",
	$node->connstr('part') ], '... is restored beside the functions');
is($node->safe_psql('part',
	"SELECT insta5.next_id() > $before, shard_id, frozen FROM instaid.shards"), 't|5|f',
	'... and goes on above');

# Default privileges, which some clouds set for whole databases, change no right on what this
# edition makes, whether they grant rights, or take away those that PUBLIC has by itself.
# The schema of a shard is its owner's.
my $rights = q{
	SELECT i.type, i.identity,
		CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END, x.privilege_type,
		x.is_grantable
	FROM (SELECT tableoid AS class, oid, 'n' AS kind, nspowner AS owner, nspacl AS acl,
			oid AS schema
		  FROM pg_namespace WHERE nspname ~ '^instaid'
		  UNION ALL SELECT tableoid, oid, CASE relkind WHEN 'S' THEN 's' ELSE 'r' END,
			relowner, relacl, relnamespace FROM pg_class WHERE relkind IN ('S', 'v')
		  UNION ALL SELECT tableoid, oid, 'f', proowner, proacl, pronamespace FROM pg_proc
		  UNION ALL SELECT tableoid, oid, 'T', typowner, typacl, typnamespace FROM pg_type
			WHERE typtype IN ('c', 'd')) AS o
		JOIN pg_namespace AS n ON n.oid = o.schema AND n.nspname ~ '^(insta|many)'
		CROSS JOIN LATERAL pg_identify_object(o.class, o.oid, 0) AS i
		CROSS JOIN LATERAL aclexplode(coalesce(o.acl, acldefault(o.kind::"char", o.owner))) AS x
	ORDER BY 1, 2, 3, 4, 5};
my @kinds = qw(TABLES SEQUENCES FUNCTIONS TYPES);
my %defaults = (
	fresh => sub { '' },
	hostile => sub { my ($kind, $schema) = @_;
		join '', map { "ALTER DEFAULT PRIVILEGES $schema GRANT ALL ON $kind TO $_;" }
			'bo WITH GRANT OPTION', 'app', 'PUBLIC' },
	taken => sub { my ($kind, $schema) = @_;
		"ALTER DEFAULT PRIVILEGES $schema REVOKE ALL ON $kind FROM PUBLIC;" });
my %seen;
$node->safe_psql('postgres', 'CREATE ROLE bo LOGIN');
for my $database ('fresh', 'hostile', 'taken')
{
	my $defaults = $defaults{$database};
	my @as_dba = (extra_params => [ '-U', 'dba' ]);
	$node->safe_psql('postgres',
		"CREATE DATABASE $database; GRANT CREATE ON DATABASE $database TO dba");
	$node->safe_psql($database, 'CREATE SCHEMA insta5;'
		. join('', map { $defaults->($_, '') } @kinds, 'SCHEMAS')
		. join('', map { $defaults->($_, 'IN SCHEMA insta5') } @kinds), @as_dba);
	$node->safe_psql($database, SqlEdition::changed(), extra_params => [ '-U', 'dba' ]);
	$node->safe_psql($database, q{
		SET client_min_messages = error;
		SELECT instaid.create_shard('insta5', 5);
		SELECT instaid.add_sequence('insta5', 'likes_id_seq');
		CALL instaid.create_shards('many%s', 10, 11); SELECT instaid.create_shard('insta12', 12);
		CREATE TABLE insta5.photos (id bigint DEFAULT insta5.next_id());
		GRANT USAGE ON SCHEMA insta5 TO app; GRANT INSERT ON insta5.photos TO app}, @as_dba);
	$seen{$database} = $node->safe_psql($database, $rights);
}
like($seen{fresh}, qr/^function\|insta5.next_id\(.*\ntype\|.*\nview\|instaid.shards\|PUBLIC/ms,
	'rights are compared');
is($seen{$_}, $seen{fresh}, "... and default privileges change none: $_") for 'hostile', 'taken';
is(SqlEdition::as_app($node, 'hostile', q{
	CREATE FUNCTION instaid_sql._open(regclass, bigint, text) RETURNS bigint LANGUAGE sql
		AS 'SELECT 1::bigint';
	CREATE FUNCTION instaid.f() RETURNS void LANGUAGE sql AS '';
	CREATE FUNCTION many10.next_id(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
	CREATE FUNCTION insta12.next_id(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
	SELECT insta5.next_id();
	SELECT count(*) FROM insta5.next_ids(10);
	SELECT many10.next_id();
	SELECT setval('insta5.table_id_seq', 5);
	BEGIN; LOCK TABLE insta5.id_sequence_lock IN SHARE UPDATE EXCLUSIVE MODE; ROLLBACK}),
	join(' ', ('42501') x 9), 'default privileges give no right');

# What changes one shard reads one shard: the rows of catalogs that it reads, and how often it
# reads all shards, do not depend on how many there are.
SqlEdition::install($node, 'far');
my @as_dba = (extra_params => [ '-U', 'dba' ]);
my @far = map { "CALL instaid.create_shards('s%s', $_)" } '10, 29', '30, 329';
my @one = (q{freeze_shard('insta5')}, q{thaw_shard('insta5')}, q{add_sequence('insta5', 'x')},
	q{drop_sequence('insta5', 'x')});
my @rows;
for my $more (@far)
{
	$node->safe_psql('far', $more, @as_dba);
	# of tables and of indexes
	my $count = q{SELECT sum(pg_stat_get_xact_tuples_returned(r)) AS before
		FROM unnest('{pg_class, pg_constraint, pg_depend, pg_proc, pg_sequence, pg_type}'
				::regclass[]) AS c,
			LATERAL (SELECT c UNION SELECT indexrelid FROM pg_index WHERE indrelid = c) AS u (r)};
	# the first round fills the session's caches
	my $round = join '', map { "$count \\gset\nSELECT instaid.$_ \\g /dev/null\n"
		. $count =~ s/AS before/- :before/r . ";\n" } @one;
	my @counts = split /\n/, $node->safe_psql('far', "BEGIN; $round $round", @as_dba);
	push @rows, [ @counts[ 4 .. 7 ] ];
}
cmp_ok($rows[1][$_], '<', $rows[0][$_] + 100,
	"$one[$_] reads $rows[0][$_] rows among 21 shards, $rows[1][$_] among 321") for 0 .. $#one;
is($node->safe_psql('far', q{
	SET track_functions = 'all'; SET client_min_messages = error;
	CREATE SCHEMA copy; CREATE SEQUENCE copy.table_id_seq; ALTER SCHEMA copy OWNER TO dba;
	ALTER SEQUENCE copy.table_id_seq OWNER TO dba; SET ROLE dba;
	CREATE FUNCTION copy.next_id() RETURNS bigint LANGUAGE sql AS $$
		SELECT (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
			| (700 << 10) | nextval('copy.table_id_seq') % 1024 $$;
	CREATE FUNCTION pg_temp.lists() RETURNS bigint LANGUAGE sql RETURN COALESCE(
		pg_stat_get_xact_function_calls('instaid._list_shards()'::regprocedure), 0);
	BEGIN;
	SELECT instaid.freeze_shard('insta5'), instaid.thaw_shard('insta5'),
		instaid.add_sequence('insta5', 'y') \g /dev/null
	SELECT pg_temp.lists(); SELECT instaid.create_shard('another', 701) \g /dev/null
	SELECT pg_temp.lists(); SELECT instaid_adopt.adopt_shard('copy') \g /dev/null
	SELECT pg_temp.lists() <= 3}), "0\n1\nt", 'create_shard() reads all shards once');

$node->stop;
done_testing();
