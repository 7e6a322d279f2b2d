# What the check of instaid-move finds, by its codes: a table of what provokes each of them, and
# nothing else.  A code that nothing provokes is a failure.
# not in: assert
# takes 60 s

use strict;
use warnings;

use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Move;
use SqlEdition;

my @settings = ('max_replication_slots = 20', 'max_prepared_transactions = 5',
	'wal_retrieve_retry_interval = 50ms', 'fsync = off');
my ($old, $new) = map { Clients::server($_, { allows_streaming => 'logical',
		auth_extra => [ '--create-role', 'own' ] }, @settings) } 'a', 'b';
$_->safe_psql('postgres', 'CREATE ROLE own LOGIN; CREATE ROLE other; CREATE ROLE dba')
  for $old, $new;
$new->safe_psql('postgres', 'ALTER ROLE dba SUPERUSER');

# A shard on the first server, in the template of the databases of each trial
my %script = (extension => 'CREATE EXTENSION instaid', edition => SqlEdition::changed());
for my $name ('extension', 'edition')
{
	$_->safe_psql('postgres', "CREATE DATABASE $name"), $_->safe_psql($name, $script{$name})
	  for $old, $new;
	$old->safe_psql($name, q{SELECT instaid.create_shard('insta5', 5);
		CREATE TABLE insta5.t (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer)});
}

# What the check finds, as "severity code", but for disks; @objects are its objects and cures
my ($rc, %seen, @objects);
sub found
{
	my ($from, $to, @args) = @_;
	($rc, my $out) = Move::run('--from', $from, '--to', $to, '--check-only', '--json', @args,
		'insta5');
	my @found = @{ decode_json($out) };
	ok(!(grep { !length $_->{object} } @found),
		"each finding has an object: @{[ map { $_->{code} } @found ]}");
	Move::meets(map { "  next: $_->{cure}" } @found);
	$seen{ $_->{code} } = 1 for @found;
	@found = grep { $_->{code} ne 'disk' } @found;
	@objects = map { "$_->{object}: $_->{cure}" =~ s/public\.//gr } @found;
	return join ', ', sort map { "$_->{severity} $_->{code}" } @found;
}

# One by one: what is found, parts of what it names, SQL for the source and for the target, and what
# else is asked or undone
my $n = 0;
sub trial
{
	my ($expected, $names, $of_old, $of_new, %at) = @_;
	my $db = 'trial' . ++$n;
	$_->safe_psql('postgres', "CREATE DATABASE $db TEMPLATE " . ($at{template} // 'extension'))
	  for $old, $new;
	$old->safe_psql($db, $of_old =~ s/\bDB\b/$db/gr) if $of_old;
	$new->safe_psql($db, $of_new =~ s/\bDB\b/$db/gr) if $of_new;
	my @before = map { $_->safe_psql($db, $Move::left) } $old, $new;
	my $what = $expected || 'nothing';
	my $user = $at{user} ? " user=$at{user}" : '';
	is(found($old->connstr($db) . $user, $new->connstr($db) . $user,
			map { s/\bDB\b/$db/r } @{ $at{args} // [] }),
		$expected, "the check of $db finds: $what");
	is($rc, $expected =~ /error/ ? 5 : 0, "the check of $db has the exit status of: $what");
	for my $name (ref $names ? @$names : grep { $_ } $names)
	{
		ok((grep { /$name/ } @objects), "the check of $db names $name")
		  or diag(join "\n", @objects);
	}
	is(join(' ', map { $_->safe_psql($db, $Move::left) } $old, $new), "@before",
		"the check of $db changes nothing: $what");
	$old->safe_psql($db, $at{undo}) if $at{undo};
	$new->safe_psql($db, $at{undo_new}) if $at{undo_new};
	$_->safe_psql('postgres', "DROP DATABASE $db WITH (FORCE)") for $old, $new;
	return;
}
trial('', '', q{CREATE TYPE insta5.rng AS RANGE (subtype = numeric);
	CREATE TABLE insta5.r (id bigint PRIMARY KEY, r insta5.rng);
	CREATE OPERATOR CLASS insta5.c FOR TYPE integer USING btree
		AS OPERATOR 1 <, FUNCTION 1 btint4cmp});

# tables
trial('error replica-identity, error replica-identity', [ 'insta5\.nokey', 'insta5\.late' ],
	q{CREATE TABLE insta5.nokey (n integer);
	CREATE TABLE insta5.late (n integer PRIMARY KEY DEFERRABLE)});
trial('remark replica-identity', 'insta5\.nokey', 'CREATE TABLE insta5.nokey (n integer)', '',
	args => ['--full-identity']);
trial('error no-equality', 'table insta5\.j .* column j', q{
	CREATE TABLE insta5.j (a integer, j json);
	ALTER TABLE insta5.j REPLICA IDENTITY FULL;});
trial('error generated-key', 'column d of insta5\.g', q{CREATE TABLE insta5.g (n integer,
	d integer GENERATED ALWAYS AS (n) STORED PRIMARY KEY)});
trial('error unlogged', 'insta5\.u', 'CREATE UNLOGGED TABLE insta5.u (n integer PRIMARY KEY)');
trial('error trigger-fires', 'trigger always of insta5\.t', q{
	CREATE FUNCTION insta5.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
	CREATE TRIGGER always AFTER INSERT ON insta5.t FOR EACH ROW EXECUTE FUNCTION insta5.f();
	ALTER TABLE insta5.t ENABLE ALWAYS TRIGGER always});
trial('remark materialized-view', 'insta5\.mv', 'CREATE MATERIALIZED VIEW insta5.mv AS SELECT 1');
trial('remark published, remark published, remark published', [
		'publication mine also publishes insta5\.t,',
		'publication (every|inside) .* 2 tables of it,' ],
	q{CREATE TABLE insta5.u (n integer PRIMARY KEY); CREATE PUBLICATION mine FOR TABLE insta5.t;
	CREATE PUBLICATION every FOR ALL TABLES;
	CREATE PUBLICATION inside FOR TABLES IN SCHEMA insta5});
trial('remark large-objects', 'column o of insta5\.l', q{SELECT lo_create(0);
	CREATE TABLE insta5.l (o oid PRIMARY KEY)});

# what crosses the schema
trial('error child-crosses, error child-crosses',
	[ 'p and its child insta5\.p1', 'insta5\.q and its child q1' ],
	q{SET search_path = pg_catalog;
	CREATE TABLE public.p (n integer PRIMARY KEY) PARTITION BY LIST (n);
	CREATE TABLE insta5.p1 PARTITION OF public.p DEFAULT;
	CREATE TABLE insta5.q (n integer PRIMARY KEY) PARTITION BY LIST (n);
	CREATE TABLE public.q1 PARTITION OF insta5.q DEFAULT});
trial('error key-crosses', 'crosses of insta5\.t refers to c,', q{
	CREATE TABLE public.c (n integer PRIMARY KEY);
	ALTER TABLE insta5.t ADD CONSTRAINT crosses FOREIGN KEY (n) REFERENCES public.c NOT VALID});
trial('error dependant, error dependant, error dependant',
	[ 'view v of', 'table r of', 'table r1 of' ], q{CREATE VIEW public.v AS SELECT id FROM insta5.t;
	CREATE TABLE public.r (n insta5.t, k integer) PARTITION BY HASH (k);
	CREATE TABLE public.r1 PARTITION OF public.r FOR VALUES WITH (MODULUS 1, REMAINDER 0)});
trial('error object-missing', 'collation c, function one\(\), operator class bytes USING hash,'
	  . ' operator ===\(pg_catalog.text,pg_catalog.text\), role only_here, server only_there,'
	  . ' text search configuration plain, type mood', q{
	CREATE FOREIGN DATA WRAPPER w; CREATE SERVER only_there FOREIGN DATA WRAPPER w;
	CREATE FOREIGN TABLE insta5.far (n integer) SERVER only_there;
	CREATE TYPE public.mood AS ENUM ('good'); CREATE TABLE insta5.m (id mood PRIMARY KEY);
	CREATE ROLE only_here; GRANT SELECT ON insta5.t TO only_here;
	CREATE OPERATOR CLASS public.bytes FOR TYPE text USING hash
		AS OPERATOR 1 =, FUNCTION 1 hashtext(text);
	CREATE TEXT SEARCH CONFIGURATION public.plain (COPY = simple);
	CREATE COLLATION public.c (LOCALE = 'C');
	CREATE OPERATOR public.=== (FUNCTION = texteq, LEFTARG = text, RIGHTARG = text);
	CREATE FUNCTION public.one() RETURNS integer RETURN 1;
	CREATE FUNCTION insta5.one() RETURNS integer RETURN public.one();
	CREATE TABLE insta5.words (word text COLLATE public.c PRIMARY KEY
		CHECK (word OPERATOR(public.===) 'x'));
	CREATE INDEX ON insta5.words USING hash (word public.bytes);
	CREATE INDEX ON insta5.words USING gin (to_tsvector('public.plain', word))}, '',
	undo => 'DROP OWNED BY only_here; DROP ROLE only_here');
# types of that name that would read the same texts otherwise: in columns, arrays and other types
{
	my $uses = q{CREATE TABLE insta5.u (id integer PRIMARY KEY, m mood[], p pair, l short, r span,
		n nested, w whole)};
	my @types = map { "CREATE TYPE public.mood AS ENUM ($_->[0]);
		CREATE TYPE public.pair AS ($_->[1] integer); CREATE DOMAIN public.short AS $_->[2];
		CREATE TYPE public.span AS RANGE (subtype = $_->[3]);
		CREATE DOMAIN public.inner_part AS $_->[4]; CREATE TYPE public.nested AS (i inner_part);
		CREATE TABLE public.whole ($_->[5]);" }
	  [ q{'good', 'bad'}, 'a integer, b', 'varchar(3)', 'integer', 'integer', 'a text, b text' ],
	  [ q{'bad', 'good'}, 'b integer, a', 'varchar(2)', 'bigint', 'integer NOT NULL',
		'b text, a text' ];
	trial(join(', ', ('error type-differs') x 6), [
			q{type mood is ENUM \('good', 'bad'\) on the source, and ENUM \('bad', 'good'\) on},
			'type pair is \(a integer, b integer\) .* \(b integer, a integer\) on the target',
			'short is character varying\(3\) .* character varying\(2\)', 'type span is RANGE',
			'inner_part is integer .* integer NOT NULL on the target', 'type whole is \(a text' ],
		"$types[0] $uses", $types[1]);
	trial('', '', "$types[0] $uses", $types[0]);
	my ($in, $restored) = (q{VALUE IN ('a', 'b')},
		q{(VALUE)::text = ANY (ARRAY[('a'::varchar)::text, ('b'::varchar)::text])});
	my @domains = map { "CREATE DOMAIN public.ab AS varchar(9) CHECK ($_)" } $in, $restored, 'true';
	$uses = 'CREATE TABLE insta5.u (id public.ab PRIMARY KEY)';
	trial('', '', "$domains[0]; $uses", $domains[1]);
	trial('error type-differs', 'ab is .*CHECK .* CHECK \(true\)', "$domains[0]; $uses",
		$domains[2]);
	# another version of an extension can have another definition
	my @members = map { "CREATE EXTENSION citext; CREATE TYPE public.e AS ENUM ($_);
		ALTER EXTENSION citext ADD TYPE public.e;" } q{'a', 'b'}, q{'b'};
	trial('', '', "$members[0] CREATE TABLE insta5.u (id e PRIMARY KEY)", $members[1]);
}
trial('error cast', 'cast from insta5\.ta to insta5\.tb does not move', q{
	CREATE TYPE insta5.ta AS (a integer); CREATE TYPE insta5.tb AS (b integer);
	CREATE FUNCTION insta5.f(insta5.ta) RETURNS insta5.tb LANGUAGE sql AS 'SELECT ROW(1)';
	CREATE CAST (insta5.ta AS insta5.tb) WITH FUNCTION insta5.f(insta5.ta)});
trial('error object-missing', 'instaid of the target lacks .* function instaid\.mine\(\)', q{
	CREATE FUNCTION instaid.mine() RETURNS bigint RETURN 1;
	CREATE TABLE insta5.m (id bigint PRIMARY KEY DEFAULT instaid.mine())});
trial('error sequence-outside', 'sequence s, .* stands at 1', q{CREATE SEQUENCE public.s;
	CREATE TABLE insta5.g (id bigint PRIMARY KEY DEFAULT nextval('public.s'));
	INSERT INTO insta5.g VALUES (DEFAULT)}, 'CREATE SEQUENCE public.s');
trial('remark sequence-outside', 'sequence s, .* stands at 1', q{CREATE SEQUENCE public.s;
	CREATE TABLE insta5.g (id bigint PRIMARY KEY DEFAULT nextval('public.s'));
	INSERT INTO insta5.g VALUES (DEFAULT)}, q{CREATE SEQUENCE public.s;
	SELECT setval('public.s', 1000)});
trial('error extension-inside', 'extension citext is in schema insta5',
	'CREATE EXTENSION citext SCHEMA insta5');

# what is there already
trial('error prepared-transaction', 'pending', q{CREATE TABLE public.c ();
	BEGIN; DROP TABLE public.c; PREPARE TRANSACTION 'pending'}, '',
	undo => "ROLLBACK PREPARED 'pending'");
{
	my @behind = ('', q{BEGIN; CREATE TABLE public.c (); PREPARE TRANSACTION 'behind'},
		undo_new => "ROLLBACK PREPARED 'behind'");
	trial('error prepared-transaction', q{of the target, 'behind' in database trial}, @behind);
	trial('', '', @behind, args => ['--one-way']);
}
trial('error schema-exists', 'schema insta5 exists on the target', '', 'CREATE SCHEMA insta5');
trial('error shard-id', 'shard ID 5 is schema taken', '',
	q{SELECT instaid.create_shard('taken', 5)});
trial('error publication-exists', 'instaid_move_5 exists on the target', '', q{
	GRANT CREATE ON DATABASE DB TO other; SET ROLE other; CREATE PUBLICATION instaid_move_5});
trial('error move-schema-exists', 'schema instaid_move_5 exists on the source',
	'CREATE SCHEMA instaid_move_5', '');
trial('error old-copy', 'source has the old copy of a move', q{CREATE SCHEMA instaid_move_5;
	CREATE TRIGGER instaid_move_guard BEFORE UPDATE ON insta5.t FOR EACH STATEMENT
		EXECUTE FUNCTION instaid._move_guard('instaid_move_5')}, '');
{
	$new->safe_psql('postgres', 'CREATE DATABASE feed');
	$new->safe_psql('feed', q{CREATE SCHEMA insta5; CREATE TABLE insta5.t (id bigint PRIMARY KEY,
		n integer); CREATE PUBLICATION feed FOR TABLE insta5.t});
	my $feed = $new->connstr('feed') =~ s/'/''/gr;
	trial('error subscribed', 'subscription feed writes to insta5\.t',
		"CREATE SUBSCRIPTION feed CONNECTION '$feed' PUBLICATION feed", '',
		undo => 'DROP SUBSCRIPTION feed');
}

# roles
my $right = $new->pg_version < 16 ? 'own is not a superuser of the target' : 'own may not create';
trial('error create-right, error create-right, error may-not-replicate, error may-not-subscribe,'
	  . ' error owner-right, error unreachable, error unreachable',
	[ 'own is not a superuser of the source, and may not', $right,
		'own is not a superuser .* schema insta5' ], '', '', user => 'own');
is(join(', ', grep { /(superuser|denied).*give --/ } @objects), '',
	'to a role without rights no option is told that would not help');
trial('error create-right, error create-right, error freeze-right, error make-right,'
	  . ' error may-not-replicate, error may-not-subscribe, error owner-right, error unreachable,'
	  . ' error unreachable', $right, '', '', user => 'own', template => 'edition');
trial('error trust', 'definitions of own, .* with the rights of \w+ on the target', q{
	GRANT CREATE ON SCHEMA insta5 TO own; SET ROLE own;
	CREATE FUNCTION insta5.f() RETURNS integer LANGUAGE sql AS 'SELECT 1'}, '',
	args => ['--one-way']);
trial('', '', q{GRANT CREATE ON SCHEMA insta5 TO own; SET ROLE own;
	CREATE FUNCTION insta5.f() RETURNS integer LANGUAGE sql AS 'SELECT 1'}, '',
	args => [ '--trust', 'own' ]);
trial('error trust', 'definitions of dba, .* with the rights of \w+ on the target', q{
	GRANT CREATE ON SCHEMA insta5 TO dba; SET ROLE dba;
	CREATE FUNCTION insta5.f() RETURNS integer LANGUAGE sql AS 'SELECT 1'}, '',
	args => ['--one-way']);
{
	my $norm = q{CREATE FUNCTION public.norm(text) RETURNS text IMMUTABLE LANGUAGE sql
		AS 'SELECT lower($1)'; CREATE TYPE public.pair AS (a integer, b integer);};
	my @trial = ("$norm ALTER TABLE insta5.t ADD p pair CHECK (public.norm('x') = 'x')",
		"$norm ALTER FUNCTION public.norm(text) OWNER TO other; ALTER TYPE pair OWNER TO other");
	trial('error trust, error trust',
		[ 'use function norm\(pg_catalog.text\) of the target, which belongs to other',
			'use type pair of the target.*--trust other' ], @trial, args => ['--one-way']);
	trial('', '', @trial, args => [ '--trust', 'other' ]);
}
# of predefined roles; one stands for the owner of the database
for my $args ( ['--one-way'], ['--dump'])
{
	trial('error trust, error trust' . ("@$args" eq '--dump' ? ', remark dump' : ''),
		[ 'definitions of other, .* on the target', 'definitions of pg_monitor,' ],
		q{CREATE FUNCTION insta5.f() RETURNS integer LANGUAGE sql AS 'SELECT 1';
		ALTER FUNCTION insta5.f() OWNER TO pg_database_owner;
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO other', current_database()); END $$;
		CREATE COLLATION insta5.c FROM "C"; ALTER COLLATION insta5.c OWNER TO pg_monitor}, '',
		args => $args);
}
{
	my $ok = q{CREATE FUNCTION public.ok(anyelement) RETURNS boolean LANGUAGE sql AS 'SELECT true';
		CREATE OPERATOR public.=== (FUNCTION = int4eq, LEFTARG = integer, RIGHTARG = integer);};
	my $used = "$ok ALTER TABLE insta5.t ADD CHECK (public.ok(n) AND n OPERATOR(public.===) 1)";
	my @args = (args => ['--one-way']);
	trial('error trust', 'function ok\(.*anyelement\) of the target, .* to pg_monitor: .*--trust',
		$used, "$ok ALTER FUNCTION public.ok(anyelement) OWNER TO pg_monitor", @args);
	# what would be called in the place of what the shard uses
	trial('error trust, error trust, error trust', [ 'could use function ok\(integer\) of',
			'could use operator ===\(integer,bigint\) of', 'could use type ok of' ],
		$used, "$ok GRANT CREATE ON SCHEMA public TO other; SET ROLE other;
		CREATE FUNCTION public.ok(integer) RETURNS boolean LANGUAGE sql AS 'SELECT true';
		CREATE OPERATOR public.=== (FUNCTION = int48eq, LEFTARG = integer, RIGHTARG = bigint);
		CREATE DOMAIN public.ok AS integer; CREATE FUNCTION public.okay() RETURNS integer RETURN 1",
		@args);
	my $odd = q{CREATE SCHEMA "a(b)"; CREATE FUNCTION "a(b)"."g""("(anyelement) RETURNS boolean
		LANGUAGE sql AS 'SELECT true';};
	trial('error trust', 'could use function "a\(b\)"\."g""\("\(integer\) of .* --trust other',
		qq{$odd ALTER TABLE insta5.t ADD CHECK ("a(b)"."g""("(n))}, qq{$odd
		GRANT CREATE ON SCHEMA "a(b)" TO other; SET ROLE other;
		CREATE FUNCTION "a(b)".h() RETURNS integer RETURN 1;
		CREATE FUNCTION "a(b)"."g""("(integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'},
		@args);
}
# the workers of subscriptions get what the database sets, too
trial('error setting, error setting, error setting', [
		'database of the source sets role=\w+ for each',
		'database of the target sets role=\w+ for each',
		'database of the target sets exit_on_error=1 for each .*: ALTER DATABASE .* RESET exit' ],
	map { $_ . q{DO $$ BEGIN
	EXECUTE format('ALTER DATABASE DB SET role = %I', session_user); END $$} }
	'ALTER DATABASE DB SET exit_on_error = 0;', 'ALTER DATABASE DB SET exit_on_error = 1;');
trial('error setting, error setting', [ 'array_nulls of the source is off',
		'array_nulls of the target is off' ],
	map { 'ALTER DATABASE DB SET array_nulls = off' } 1 .. 2);
trial('error setting', 'column m of insta5.t is of type money, .* and POSIX on the target',
	'ALTER TABLE insta5.t ADD m money', q{ALTER DATABASE DB SET lc_monetary = 'POSIX'});
trial('error row-security', 'row security of insta5.t hides rows from own',
	'ALTER ROLE own REPLICATION; ALTER TABLE insta5.t ENABLE ROW LEVEL SECURITY', '',
	args => [ '--source-for-target', $old->connstr('DB') . ' user=own' ],
	undo => 'ALTER ROLE own NOREPLICATION');
# what a user may paste into a shell
trial('error trust', q{definitions of x;'y, .*: connect as x;'y to it, .*--trust 'x;'\\\\''y'},
	q{CREATE ROLE "x;'y"; GRANT CREATE ON SCHEMA insta5 TO "x;'y"; SET ROLE "x;'y";
	CREATE FUNCTION insta5.f() RETURNS integer LANGUAGE sql AS 'SELECT 1'},
	q{CREATE ROLE "x;'y"}, args => ['--one-way']);
is($old->safe_psql('extension', q{SELECT fkcols[1] FROM pg_get_catalog_foreign_keys()
	WHERE pktable = 'pg_authid'::regclass AND fkcols[1] ~ 'owner$' ORDER BY 1}) =~ s/\n/ /gr,
	join(' ', sort 'lomowner', 'pubowner', 'subowner',
		slurp_file('move/sql/include/owned.sql') =~ /(\w+owner) FROM/g),
	'the owners in each catalog are read that has one, but for what is in no schema');
# which grant rights on what this role creates, and run nothing
{
	my $default = 'ALTER DEFAULT PRIVILEGES FOR ROLE other IN SCHEMA insta5
		GRANT SELECT ON TABLES TO PUBLIC;';
	trial('', '', $default);
	trial('error default-privileges, remark dump', 'other has default privileges in schema insta5',
		"$default GRANT CREATE ON DATABASE DB TO own; ALTER SCHEMA insta5 OWNER TO own;
		ALTER TABLE insta5.t OWNER TO own; ALTER SEQUENCE insta5.table_id_seq OWNER TO own",
		'GRANT CREATE ON DATABASE DB TO own', user => 'own', args => ['--dump']);
}
trial('error freeze-right, error make-right, error trust', 'belongs to own', q{
	DROP SCHEMA insta5 CASCADE; GRANT CREATE ON DATABASE DB TO own; SET ROLE own;
	SELECT instaid.create_shard('insta5', 5)}, '',
	template => 'edition', args => ['--one-way']);

trial('error timeout', q{the source's statement_timeout is 400},
	q{ALTER DATABASE DB SET statement_timeout = '400ms'});

# what a database sets for each session rules out no plan
{
	$old->safe_psql('postgres', join ';', 'CREATE DATABASE planner',
		map { "ALTER DATABASE planner SET $_" } 'enable_seqscan = off', 'enable_indexscan = off',
		'enable_hashagg = off', 'enable_partitionwise_join = on', 'jit = on', 'jit_above_cost = 0');
	is($old->safe_psql('planner', slurp_file('move/sql/session.sql') . q{;
		SELECT 'others: ' || count(*) FROM pg_settings
		WHERE name ~ '^enable_' AND setting <> boot_val OR name = 'jit' AND setting = 'on'})
		  =~ s/.*\n//sr, 'others: 0', 'no planner setting of the database is one of a session');
}

#### The two sides ####

my ($source, $target) = map { $_->connstr('extension') } $old, $new;
is(found($source, $new->connstr('edition')), 'error edition', 'the check finds two editions');
$old->safe_psql('postgres',
	q{CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0});
$old->safe_psql('latin', "$script{extension}; SELECT instaid.create_shard('insta5', 5)");
is(found($old->connstr('latin'), $target), 'remark encoding', 'the check finds two encodings');
like($objects[0], qr/LATIN1.*UTF8/, 'the check names two encodings');
is(found($source, $target, '--source-for-target', 'host=no.example'), 'error unreachable',
	'the check finds a server that the other one does not reach');
is(found($source, $target, '--dump'), 'remark dump', 'the check tells what --dump means');
SKIP:
{
	$seen{version} = 1;
	skip 'there is no older PostgreSQL', 1 if !$ENV{INSTAID_OLD};
	my $older = Clients::server('older', { install_path => $ENV{INSTAID_OLD} },
		'wal_level = logical', 'wal_retrieve_retry_interval = 50ms');
	local $ENV{PATH} = "$ENV{PATH}:$ENV{INSTAID_OLD}/bin";
	like(found($source, $older->connstr('postgres')), qr/\berror version\b/,
		'the check finds an older target');
}

#### What other roles have made ####

{
	$new->safe_psql('postgres', 'CREATE DATABASE planted; GRANT CREATE ON DATABASE planted TO own');
	$new->safe_psql('planted', q{SET ROLE own; CREATE SCHEMA instaid; CREATE SCHEMA instaid_sql;
		COMMENT ON SCHEMA instaid_sql IS 'x: instaid 1.0, SQL edition';
		GRANT USAGE ON SCHEMA instaid TO PUBLIC; CREATE SEQUENCE instaid.ran;
		CREATE VIEW instaid.shards AS SELECT nextval('instaid.ran')::text::name AS schema_name,
			9 AS shard_id, false AS frozen, 0 AS sequence});
	my @run = ('--from', $source, '--to', $new->connstr('planted'), 'insta5', '--check-only');
	my $ran = 'SELECT is_called FROM instaid.ran';
	for my $command ('--check-only', '--status')
	{
		($rc, my $out, my $err) = Move::run(@run[ 0 .. 4 ], $command);
		is($rc, 5, "$command: a schema instaid of another role is refused");
		like($err, qr/schema instaid of the target belongs to own$/m,
			"$command names who owns the schema instaid");
	}
	is($new->safe_psql('planted', $ran), 'f', 'nothing in a schema instaid of another role is run');
	is((Move::run(@run[ 0 .. 4 ], '--status', '--trust', 'own'))[0], 0,
		'a schema instaid of a role that is trusted is used');

	$new->safe_psql('postgres', 'CREATE DATABASE his; GRANT CREATE ON DATABASE his TO own');
	$new->safe_psql('his', 'SET ROLE own; CREATE EXTENSION instaid');
	@run = ('--from', $source, '--to', $new->connstr('his'), 'insta5', '--check-only', '--one-way');
	($rc, undef, my $err) = Move::run(@run);
	is($rc, 5, 'an extension that another role can drop is refused');
	like($err, qr/extension instaid of the target belongs to own$/m,
		'the role is told that can drop the extension, and make a schema of its own');
	is((Move::run(@run, '--trust', 'own'))[0], 0,
		'an extension of a role that is trusted is used');

	$old->safe_psql('postgres', 'CREATE DATABASE forged TEMPLATE extension');
	$old->safe_psql('forged', qq{CREATE TABLE insta5."x\n  ! forged" (n integer)});
	($rc, my $out) = Move::run('--from', $old->connstr('forged'), '--to', $target, 'insta5',
		'--check-only');
	unlike($out, qr/^  ! forged/m, 'a name with a line break forges no line');
	like($out, qr/^  ! table insta5\."x\\x0a  ! forged" has no replica identity/m,
		'a line break in a name is written as \x0a');
	$old->safe_psql('forged', qq{CREATE TABLE insta5."\e\x7f\xc2\x9b" (n integer)});
	($rc, $out) = Move::run('--from', $old->connstr('forged'), '--to', $target, 'insta5',
		'--check-only', '--json');
	like($out, qr/insta5\.\\"\\u001b\\u007f\\u009b\\" has no replica identity/,
		'JSON has control characters escaped');
}

#### Servers without room ####

$old->safe_psql('extension',
	join ';', map { "CREATE TABLE insta5.t$_ (id integer PRIMARY KEY)" } 1 .. 60);
my @none = map { "$_ = 0\n" } 'max_worker_processes', 'max_logical_replication_workers',
  'max_wal_senders', 'max_replication_slots', 'max_sync_workers_per_subscription',
  $old->pg_version < 18 ? () : 'max_active_replication_origins';
for my $node ($old, $new)
{
	$node->append_conf('postgresql.conf', join '', @none, 'max_locks_per_transaction = 10
max_connections = 10
wal_level = replica
max_slot_wal_keep_size = 1GB
wal_retrieve_retry_interval = 5s
');
	$node->restart;
}
my @lacks =
  ('origins', 'senders', 'slots', 'unreachable', 'wal-level', 'worker-processes', 'workers');
# from 16 on, this interval is one for each subscription
my $remarks = join ', ', map { "remark $_" } $old->pg_version < 16 ? 'slow-start' : (), 'wal-limit';
is(found($source, $target),
	join(', ', (sort map { "error $_" } 'lock-table', 'sync-workers', (@lacks) x 2), $remarks),
	'the check finds what both sides lack');
is(found($source, $target, '--one-way'),
	join(', ', (sort map { "error $_" } 'lock-table', 'sync-workers', @lacks), $remarks),
	'the check finds what both sides lack without a way back');

# All codes of the program
my %codes = map { $_ => 1 } slurp_file('move/check.c') =~ /finding\(m, [^,]+, "([a-z-]+)"/g,
  map { slurp_file($_) =~ /(?:'error'|'remark'|END)(?: AS severity)?,\s+'([a-z-]+)'/g }
  glob('move/sql/check_*.sql');
delete $codes{'slow-start'} if $old->pg_version >= 16;
is(join(' ', sort keys %seen), join(' ', sort keys %codes), 'each code of the check is provoked');

done_testing();
