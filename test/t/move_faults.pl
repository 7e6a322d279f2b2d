# What trials of instaid-move have found, each with its test: move_program.pl has the moves
# themselves, and what ends them.
#
# packages: postgresql-@PG@-pgaudit?
# not in: assert
# takes 250 s

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

use Clients;
use Docs;
use Move;

chomp(my $libraries = `$ENV{PG_CONFIG} --pkglibdir`);
my $has_pgaudit = -e "$libraries/pgaudit.so";
note 'pgaudit is not installed for this PostgreSQL' if !$has_pgaudit;
my @settings = ('wal_retrieve_retry_interval = 50ms', 'max_replication_slots = 20',
	'max_wal_senders = 20', 'fsync = off', 'max_prepared_transactions = 5',
	'logging_collector = on', 'log_statement = ddl', 'compute_query_id = on',
	"shared_preload_libraries = 'pg_stat_statements" . ($has_pgaudit ? ", pgaudit'" : "'"));
my ($old, $new) = map { Clients::server($_, { allows_streaming => 'logical',
		auth_extra => [ '--create-role', 'own' ] }, @settings) } 'a', 'b';
$_->safe_psql('postgres', 'CREATE ROLE app; CREATE ROLE own LOGIN REPLICATION') for $old, $new;

my ($db, $from, $to) = ('postgres', $old, $new);
my ($rc, $out, $err);

sub im
{
	my (@args) = @_;
	my @at = ref $args[0] ? shift @args : ();
	($rc, $out, $err) = Move::run(@at, '--from', $from->connstr($db), '--to', $to->connstr($db),
		@args);
	return $rc;
}
# Run it with --from and --to exchanged.
sub exchanged
{
	($from, $to) = ($to, $from);
	im(@_);
	($from, $to) = ($to, $from);
	return $rc;
}
sub old { return $old->safe_psql($db, $_[0]) }
sub new { return $new->safe_psql($db, $_[0]) }
sub error_of { my ($node, $sql) = @_; return ($node->psql($db, $sql))[2] }
sub left { return join ' ', grep { $_ } map { $_->safe_psql($db, $Move::left) } $old, $new }
sub places { return Move::places($db, $old, $new) }
# A database of this name on both servers, with a shard on the first
sub fresh
{
	my ($name, $sql) = @_;
	($db, $from, $to) = ($name, $old, $new);
	$_->safe_psql('postgres', "CREATE DATABASE $db"),
	  $_->safe_psql($db, 'CREATE EXTENSION instaid') for $old, $new;
	old(q{SELECT instaid.create_shard('insta5', 5);
		CREATE TABLE insta5.t (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
		INSERT INTO insta5.t (n) SELECT generate_series(1, 100);} . ($sql // ''));
	return;
}

#### SQL ####

# Each query by itself
{
	my @failed;
	my $sql = slurp_file('move/sql.c');
	while ($sql =~ /const Query sql_(\w+) = \{"\w+",\n\t"((?:[^"\\]|\\.|"\n\t")*)",\n(\d+), /g)
	{
		my ($name, $text, $parameters) = ($1, $2, $3);
		next if $name =~ /^(session|reader)$/;		# several commands
		$text =~ s/"\n\t"//g;
		$text =~ s/\\n/\n/g;
		$text =~ s/\\(.)/$1/g;
		my $values = join ', ', ('NULL') x $parameters;
		my $error = error_of($old, "SET search_path = pg_catalog;
			SET plan_cache_mode = force_generic_plan; PREPARE q AS $text;
			EXPLAIN EXECUTE q" . ($values && " ($values)"));
		push @failed, "$name: $error" if $error;
	}
	is("@failed", '', 'each query can be prepared and explained');
}

#### Fingerprints ####

# What changes the fingerprint of the catalogs, by which a change is seen while writes are refused.
# A REINDEX CONCURRENTLY, a CLUSTER and a column elsewhere are false alarms, which cost a comparison
# of the definitions.
fresh('catalogs', q{CREATE DOMAIN insta5.d AS integer; CREATE SEQUENCE insta5.s;
	ALTER TABLE insta5.t ADD x text;
	CREATE TABLE insta5.i (id integer GENERATED ALWAYS AS IDENTITY);
	CREATE TABLE insta5.c (); CREATE VIEW insta5.v AS SELECT n FROM insta5.t;
	CREATE AGGREGATE insta5.ag(integer) (SFUNC = int4pl, STYPE = integer, INITCOND = '1');
	CREATE FUNCTION insta5.f(a integer DEFAULT 1) RETURNS integer LANGUAGE sql AS 'SELECT 1';
	CREATE TYPE insta5.e AS ENUM ('a'); CREATE STATISTICS insta5.st ON id, n FROM insta5.t;
	CREATE TRIGGER tr BEFORE UPDATE ON insta5.t FOR EACH ROW
		EXECUTE FUNCTION suppress_redundant_updates_trigger();
	CREATE SCHEMA els; CREATE TABLE els.o (i integer PRIMARY KEY, j integer);});
{
	my ($fingerprint) = slurp_file('move/sql.c') =~
	  /const Query sql_fingerprint = \{"\w+",\n\t"((?:[^"\\]|\\.|"\n\t")*)",/;
	$fingerprint =~ s/"\n\t"//g;
	$fingerprint =~ s/\\n/\n/g;
	$fingerprint =~ s/\\(.)/$1/g;
	my $sequences = old(q{SELECT array_agg(q::oid) FROM instaid._shard_sequences('insta5') AS q});
	my ($query, $last, @wrong);
	# as after each comparison of the definitions
	my $remember = sub {
		$query = old("SET search_path = pg_catalog; PREPARE f (text[], oid[]) AS $fingerprint;
			EXECUTE f('{insta5}', '$sequences')");
		$last = old("SET search_path = pg_catalog; $query");
	};
	$remember->();
	for my $command (split /\n\t(?=same|changed)/, q{
	same: analyze insta5.t
	same: vacuum freeze insta5.t
	same: vacuum freeze pg_catalog.pg_class, pg_catalog.pg_proc, pg_catalog.pg_attribute,
		pg_catalog.pg_type, pg_catalog.pg_trigger, pg_catalog.pg_constraint
	same: vacuum full pg_catalog.pg_proc
	same: vacuum full pg_catalog.pg_class
	same: vacuum full pg_catalog.pg_attribute
	same: vacuum (full, freeze) pg_catalog.pg_constraint
	same: reindex table pg_catalog.pg_class
	same: truncate insta5.t
	same: insert into insta5.t(n) select generate_series(1,10)
	same: vacuum full insta5.t
	same: select nextval('insta5.s')
	same: select setval('insta5.s', 100, false)
	same: select instaid.freeze_shard('insta5')
	same: select instaid.thaw_shard('insta5')
	same: create index concurrently oi on els.o(j)
	same: reindex index concurrently els.oi
	same: create table els.o2(i int references els.o)
	same: create view els.v2 as select * from els.o
	same: create table els.o3(i int)
	same: create temp table tt(i int)
	same: alter table els.o add k int
	same: create publication pp for table insta5.t
	same: drop publication pp
	same: alter sequence insta5.s restart with 5
	changed: create index concurrently ti on insta5.t(n)
	same: reindex index insta5.ti
	changed: reindex index concurrently insta5.ti
	changed: cluster insta5.t using t_pkey
	changed: alter domain insta5.d set default 3
	changed: alter sequence insta5.s maxvalue 1000000
	changed: alter sequence insta5.s cache 7
	changed: alter table insta5.i alter id set maxvalue 100000
	changed: create or replace aggregate insta5.ag(int) (sfunc=int4pl, stype=int, initcond='5')
	changed: alter table insta5.t replica identity full
	changed: alter table insta5.t alter x set storage external
	changed: alter table insta5.t alter x set statistics 77
	changed: alter function insta5.f strict
	changed: create or replace function insta5.f(a int default 2) returns int language sql as
		'select 1'
	changed: create operator insta5.|++| (leftarg=int, rightarg=int, function=int4pl)
	changed: create collation insta5.co (locale='C')
	changed: create text search dictionary insta5.di (template=simple)
	changed: alter statistics insta5.st set statistics 5
	changed: comment on type insta5.e is 'x'
	changed: comment on type insta5.e is 'y'
	changed: comment on type insta5.e is null
	changed: grant usage on type insta5.e to own
	changed: alter default privileges in schema insta5 grant select on tables to own
	changed: alter type insta5.e add value 'b'
	changed: alter table insta5.t disable trigger all
	changed: alter table insta5.t enable row level security
	changed: create policy po on insta5.t using (true)
	changed: create rule ru as on insert to insta5.v do instead nothing
	changed: grant select on insta5.t to own
	changed: grant select (n) on insta5.t to own
	changed: alter table insta5.t add check (n > -5)
	changed: alter table insta5.t alter n set default 3
	changed: alter table insta5.t rename n to n2
	changed: alter table insta5.t set (fillfactor=80)
	changed: create schema els2; alter table insta5.c set schema els2
	changed: alter view insta5.v rename to v3
	changed: create table insta5.new(i int)
	changed: alter schema insta5 owner to own
	changed: create table els.o4(i bigint default insta5.next_id())
	})
	{
		my ($expected, $sql) = $command =~ /^(same|changed): (.*)/s or next;
		my $error = error_of($old, "SET client_min_messages = error;\n$sql");
		my $is = old("SET search_path = pg_catalog; $query") eq $last ? 'same' : 'changed';
		push @wrong, "$sql: $error" if $error || $is ne $expected;
		$remember->() if $is eq 'changed';
	}
	is(join("\n", @wrong), '', 'what changes a definition changes the fingerprint, nothing else');
}

#### Guards ####

fresh('guards', q{CREATE SCHEMA instaid_move_5; CREATE TABLE insta5.u (n integer PRIMARY KEY);
	CREATE FUNCTION insta5.instaid_move_guard() RETURNS trigger LANGUAGE plpgsql
	AS 'BEGIN RETURN NEW; END';
	CREATE TRIGGER instaid_move_guard BEFORE INSERT ON insta5.u FOR EACH ROW
	EXECUTE FUNCTION insta5.instaid_move_guard()});
is(im('insta5'), 5, 'a schema that has the name of the move stops it');
like($out, qr/^  ! schema instaid_move_5 exists on the source, .*: drop it$/m,
	'a schema with the name of the move is told');
old('DROP SCHEMA instaid_move_5');
is(im('--prepare', 'insta5'), 0, 'a shard with a trigger and a function of the name of the guards');
old('ALTER TABLE insta5.t DISABLE TRIGGER ALL');
is(im('--switch'), 0, '--switch enables a guard that was disabled since');
like(error_of($old, "INSERT INTO insta5.$_ VALUES (1)"), qr/shard insta5 is frozen/,
	"the source refuses writes to $_, whose guard did not fire before") for 't', 'u';
is(new('INSERT INTO insta5.u VALUES (1); SELECT count(*) FROM insta5.u'), 1,
	'the target takes writes to tables that had guards');
{
	my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
	$old->command_ok([ 'pg_dump', '-n', 'insta5', '-f', $dump, $old->connstr($db) ],
		'dump of a shard that was moved');
	$old->safe_psql('postgres', 'CREATE DATABASE restored');
	$old->safe_psql('restored', 'CREATE EXTENSION instaid');
	$old->command_ok([ 'psql', '-Xq1', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d',
		$old->connstr('restored') ], 'a dump of a shard that was moved is restored elsewhere');
	is($old->safe_psql('restored', q{SELECT instaid.thaw_shard('insta5');
		INSERT INTO insta5.t (n) VALUES (1); SELECT count(*) FROM insta5.t}) =~ s/^\n//r, 101,
		'a dump of a shard that was moved takes writes once it is thawed');
}
is(im('--finish'), 0, '--finish of a shard with names of the guards');
is(new("SELECT tgfoid::regproc FROM pg_trigger WHERE tgname = 'instaid_move_guard'"), '',
	'--finish drops the guards');
is(new("SELECT to_regprocedure('insta5.instaid_move_guard()')"), 'insta5.instaid_move_guard()',
	'--finish keeps a function of the name of the guards');

# a transaction whose snapshot is older than the stop
fresh('snapshot');
{
	my $session = Clients::session($old, $db);
	$session->('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	is(im('insta5'), 0, 'a move beside a REPEATABLE READ transaction');
	like($session->('UPDATE insta5.t SET n = 0'), qr/shard insta5 is frozen/,
		'an older snapshot does not pass the guard');
}
is(im('--finish'), 0, '--finish beside a REPEATABLE READ transaction');
is(left(), '', '--finish beside a REPEATABLE READ transaction leaves nothing');

# What still has to be done when writes are refused: a transaction that has passed the guard ends,
# and the target applies the last change
fresh('late');
{
	my $update = 'psql -XAtqd "' . $old->connstr($db) . '" -c "BEGIN;'
	  . ' UPDATE insta5.t SET n = -1 WHERE n = 1; SELECT pg_sleep(0.8); COMMIT" >/dev/null 2>&1 &';
	is(im({ at => 'way back', do => "$update sleep 0.2" }, 'insta5'), 0,
		'a move beside a transaction that has passed the guard');
	is(new('SELECT count(*) FROM insta5.t WHERE n = -1'), 1,
		'what that transaction wrote has moved');
	my $worker = '$(psql -XAtqd "' . $old->connstr($db)
	  . '" -c "SELECT pid FROM pg_stat_subscription WHERE relid IS NULL AND pid IS NOT NULL")';
	is(im({ at => 'stopping', do => "p=$worker; kill -STOP \$p;
		(sleep 0.7; kill -CONT \$p) >/dev/null 2>&1 &" }, '--reverse'), 0,
		'--reverse while the other server does not apply for a while');
	cmp_ok(($out =~ /, (\d+) to apply,/)[0] // 0, '>', 300, 'the switch waited until it did');
}
is(im('--cancel'), 0, '--cancel after late writes');

#### Definitions ####

# What was changed on the source after --prepare, and the lines that show it
fresh('definitions', q{CREATE DOMAIN insta5.d AS integer; CREATE SEQUENCE insta5.s;
	CREATE TABLE insta5.k (id bigint PRIMARY KEY, t text, i integer GENERATED ALWAYS AS IDENTITY);
	CREATE FUNCTION insta5.sf(integer, integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
	CREATE FUNCTION insta5.f(a integer DEFAULT 1) RETURNS integer LANGUAGE sql AS 'SELECT a';
	CREATE AGGREGATE insta5.ag(integer) (SFUNC = insta5.sf, STYPE = integer, INITCOND = '1');
	CREATE TEXT SEARCH DICTIONARY insta5.dict (TEMPLATE = simple, accept = true);
	CREATE TYPE insta5.ty AS (a integer); CREATE STATISTICS insta5.st ON id, t FROM insta5.k;
	CREATE TABLE insta5.quiet (note text DEFAULT 'a  b(c)', PRIMARY KEY (note));
	CREATE SEQUENCE insta5.m;});
my @changes = (
	[ 'ALTER DOMAIN insta5.d SET DEFAULT 5', 'domain insta5.d' ],
	[ 'ALTER SEQUENCE insta5.s START 7 CACHE 3', 'sequence insta5.s' ],
	[ 'ALTER SEQUENCE insta5.m MAXVALUE 99', 'sequence insta5.m has MAXVALUE 99' ],
	[ q{CREATE OR REPLACE AGGREGATE insta5.ag(integer) (SFUNC = insta5.sf, STYPE = integer,
		INITCOND = '2')}, 'aggregate insta5.ag' ],
	[ q{CREATE OR REPLACE FUNCTION insta5.f(a integer DEFAULT 2) RETURNS integer LANGUAGE sql
		AS 'SELECT a'}, 'function insta5.f' ],
	[ 'ALTER FUNCTION insta5.sf STRICT', 'function insta5.sf' ],
	[ 'ALTER TABLE insta5.k ALTER t SET STORAGE EXTERNAL, ALTER t SET STATISTICS 7',
		'table insta5.k' ],
	[ 'ALTER TABLE insta5.k CLUSTER ON k_pkey', 'constraint insta5.k k_pkey' ],
	[ 'CREATE OPERATOR insta5.=== (FUNCTION = int4eq, LEFTARG = integer, RIGHTARG = integer)',
		'operator insta5.===' ],
	[ q{CREATE COLLATION insta5.co (LOCALE = 'C')}, 'collation insta5.co' ],
	[ 'ALTER TEXT SEARCH DICTIONARY insta5.dict (accept = false)',
		'text search dictionary insta5.dict' ],
	[ 'ALTER STATISTICS insta5.st SET STATISTICS 9', 'statistics insta5.st' ],
	[ q{COMMENT ON TYPE insta5.ty IS 'x'}, 'comment insta5.TYPE ty' ],
	[ 'GRANT USAGE ON TYPE insta5.d TO app', 'acl insta5.TYPE d' ],
	[ 'ALTER DEFAULT PRIVILEGES IN SCHEMA insta5 GRANT SELECT ON TABLES TO app',
		'default acl insta5.' ],
	[ q{ALTER TABLE insta5.quiet ALTER note SET DEFAULT 'a b(c)'}, 'table insta5.quiet' ]);
is(im('--prepare', 'insta5'), 0, '--prepare, before definitions are changed');
old(join ';', map { $_->[0] } grep { $_->[0] !~ /MAXVALUE/ } @changes);
is(im('--switch'), 6, 'definitions that were changed since stop --switch');
like($out, qr/^  (?:differs|only on the source): \Q$_->[1]\E/m, "changed since: $_->[0]")
  for grep { $_->[0] !~ /MAXVALUE/ } @changes;
like($out, qr/^  differs: domain insta5\.d of .*\n    source: .* DEFAULT 5;\n    target: CREATE /m,
	'the lines that differ are shown');
is(places(), 'insta5 insta5 frozen', 'the source still serves when definitions differ');
new(join ';', map { $_->[0] } grep { $_->[0] !~ /MAXVALUE/ } @changes);
old($changes[2][0]);
is(im('--switch'), 6, 'a MAXVALUE that was changed since stops --switch');
like($out, qr/^  only on the source: sequence insta5\.m has MAXVALUE 99$/m,
	'a MAXVALUE that was changed since is told');
new($changes[2][0]);
is(im({ at => 'stopping', do => 'psql -qd "' . $old->connstr($db)
		. '" -c "ALTER DOMAIN insta5.d SET DEFAULT 6"' }, '--switch'), 6,
	'a definition that is changed while writes are refused stops --switch');
like($out, qr/taken back: the definitions have changed\n(?:.*\n)*  differs: domain insta5\.d/,
	'a change while writes are refused is seen then, and compared afterwards');
new('ALTER DOMAIN insta5.d SET DEFAULT 6');
is(im('--switch'), 0, '--switch succeeds with the same changes on both sides');
unlike($out, qr/taken back/, '--switch with the same changes on both sides succeeds at once');
is(im('--finish'), 0, '--finish after changes of definitions');

# A trigger that fires for what is applied, which both sides have got since
fresh('fires', q{CREATE FUNCTION insta5.f() RETURNS trigger LANGUAGE plpgsql
	AS 'BEGIN RETURN NEW; END'});
is(im('--prepare', 'insta5'), 0, '--prepare, before a trigger comes that fires always');
$_->safe_psql($db, 'CREATE TRIGGER fires AFTER INSERT ON insta5.t FOR EACH ROW
	EXECUTE FUNCTION insta5.f(); ALTER TABLE insta5.t ENABLE ALWAYS TRIGGER fires') for $old, $new;
is(im('--switch'), 5, 'a trigger that fires always, and came on both sides, stops --switch');
like($out, qr/^  ! trigger fires of insta5\.t is ENABLE ALWAYS, .* ENABLE TRIGGER fires$/m,
	'a trigger that came later is told');
is(places(), 'insta5 insta5 frozen', 'the source serves with a trigger that fires always');
$_->safe_psql($db, 'ALTER TABLE insta5.t ENABLE TRIGGER fires') for $old, $new;
is(im('--switch'), 0, '--switch when the trigger fires no more for what is applied');
is(im('--finish'), 0, '--finish with a trigger that came later');

# Databases that set how strings are written: a dump is parsed before the first of its commands runs
fresh('strings', q{; ALTER TABLE insta5.t ADD path text DEFAULT E'a\\\\b';
	COMMENT ON TABLE insta5.t IS E'it''s c:\\\\d\\\\'});
# 19 has them no more
$_->safe_psql('postgres', 'ALTER DATABASE strings SET standard_conforming_strings = off')
  for $old->pg_version->major < 19 ? ($old, $new) : ();
is(im('insta5'), 0, 'a move between databases whose strings have escapes');
is($err, '', 'a move between databases whose strings have escapes warns of none');
is(new(q{INSERT INTO insta5.t (n) VALUES (-1);
	SELECT path, obj_description('insta5.t'::regclass) FROM insta5.t WHERE n = -1}),
	q{a\b|it's c:\d\\}, 'a default and a comment with backslashes have moved');
is(im('--finish'), 0, '--finish between databases whose strings have escapes');

#### Sequences ####

fresh('sequences', q{CREATE TABLE insta5.o (id serial PRIMARY KEY, n integer);
	INSERT INTO insta5.o SELECT g, g FROM generate_series(1, 1000) AS g;
	SELECT setval('insta5.o_id_seq', 1001, false);
	CREATE SEQUENCE insta5.restarted; SELECT nextval('insta5.restarted');
	ALTER SEQUENCE insta5.restarted RESTART WITH 5000;
	CREATE SEQUENCE insta5.cycles CYCLE MAXVALUE 9; SELECT setval('insta5.cycles', 3);
	CREATE SEQUENCE insta5.down INCREMENT -1; SELECT setval('insta5.down', -5);
	CREATE SEQUENCE insta5.unused;});
my $positions = q{SELECT concat_ws(' ', (SELECT concat(last_value, is_called) FROM insta5.o_id_seq),
	(SELECT concat(last_value, is_called) FROM insta5.restarted),
	(SELECT concat(last_value, is_called) FROM insta5.cycles),
	(SELECT concat(last_value, is_called) FROM insta5.down),
	(SELECT concat(last_value, is_called) FROM insta5.unused))};
is(im('insta5'), 0, 'sequences that were set but not used since');
is(new($positions), '1001f 5000f 3t -5t 1f', 'the target has the position of each sequence');
is(new('INSERT INTO insta5.o (n) VALUES (1) RETURNING id'), 1001,
	'the target goes on at the position of the sequence');
is(old("SELECT nextval('insta5.o_id_seq')"), 1001, 'a value that a client took from the source');
new(q{SELECT setval('insta5.restarted', 7000, false), nextval('insta5.down')});
is(im('--verify'), 0, '--verify finds no sequence of the target behind');
is(im('--reverse'), 0, '--reverse with sequences that were set');
is(old($positions), '1001t 7000f 3t -6t 1f', 'the source has the positions of the target');
old(q{SELECT setval('insta5.o_id_seq', 900)});
($from, $to) = ($new, $old);
is(im('--verify'), 6, '--verify finds a sequence that was set back');
like($out, qr/^sequence insta5\.o_id_seq stands at 1001 on the source, and at 900 on the target$/m,
	'--verify tells which sequence stands behind');
is(im('--finish'), 0, '--finish though a sequence was set back');

fresh('outside', q{CREATE SEQUENCE public.gseq; CREATE TABLE insta5.g (
	id bigint PRIMARY KEY DEFAULT nextval('public.gseq')); INSERT INTO insta5.g VALUES (DEFAULT)});
new('CREATE SEQUENCE public.gseq');
is(im('insta5'), 5, 'a column with a sequence of another schema stops a move');
like($out, qr/^  ! columns take values of sequence public\.gseq, .* stands at 1: .*well beyond$/m,
	'a sequence of another schema is named, with its position');
new(q{SELECT setval('public.gseq', 1000)});
is(im('--check-only', 'insta5'), 0, 'a sequence of another schema may stand beyond on the target');
like($out, qr/^  - columns take values of sequence public\.gseq, .* is beyond$/m,
	'a sequence of another schema that stands beyond is named, too');

#### The copy ####

# An apply that fails does not stop writes
fresh('fails', q{CREATE TABLE insta5.w (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
	INSERT INTO insta5.w (n) VALUES (1)});
is(im('--prepare', 'insta5'), 0, '--prepare, before a change that cannot be applied');
new(q{SET session_replication_role = replica; INSERT INTO insta5.w VALUES (7, 7)});
old('INSERT INTO insta5.w VALUES (7, 8)');
{
	my $writer = IPC::Run::start([ 'psql', '-XAtq', '-d', $old->connstr($db) ],
		'<', \(join '', map { "INSERT INTO insta5.t (n) VALUES ($_);\nSELECT pg_sleep(0.02);\n" }
			  1 .. 150),
		'>', \my $written, '2>', \my $refused);
	is(im('--switch', '--max-wait', 4), 8, 'a change that cannot be applied stops --switch');
	$writer->finish;
	is($refused, '', 'a change that cannot be applied stops no writes');
	unlike($out, qr/attempt/, '--switch makes no attempt while changes cannot be applied');
	like($err, $old->pg_version < 18 ? qr/duplicate key value violates unique constraint "w_pkey"/
		: qr/conflict detected on relation "insta5\.w": conflict=insert_exists/,
		'the message of the apply worker is shown');
}
is(im('--status'), 0, '--status while a change cannot be applied');
like($out, qr/the target's log says: (?:duplicate key value|conflict detected)/i,
	'--status shows the message of the apply worker');
new(q{SET session_replication_role = replica; DELETE FROM insta5.w WHERE id = 7});
is(im(), 0, 'a move goes on when changes can be applied again');
new('ALTER TABLE insta5.t ADD x integer; INSERT INTO insta5.t (n, x) VALUES (1, 2)');
$old->poll_query_until($db, 'SELECT apply_error_count > 0 FROM pg_stat_subscription_stats') or die;
is(im('--status'), 0, '--status while the way back fails');
like($out, qr/next:    let the way back apply the changes, which fails, or --finish$/m,
	'--status tells that the way back fails');
is(im('--reverse'), 6, '--reverse is refused while the way back fails');
old('ALTER TABLE insta5.t ADD x integer');
is(im('--reverse'), 0, '--reverse succeeds with the same change on the source');
is(exchanged('--finish'), 0, '--finish after a way back that failed for a while');

# A prepared transaction of any database, for which a slot waits
fresh('pending');
{
	my $psql = 'psql -qX -d "' . $new->connstr('postgres') . '" -c';
	is(im({ at => 'following', do => "$psql \"BEGIN\" -c \"CREATE TABLE pending ()\"
		-c \"PREPARE TRANSACTION 'pending'\"; (sleep 2; $psql \"ROLLBACK PREPARED 'pending'\")
		>/dev/null 2>&1 &" =~ s/\s+/ /gr }, 'insta5'), 0, 'a slot beside a prepared transaction');
}
like($out, qr/slot waits for .* of the target: prepared transaction 'pending' of database post/,
	'the prepared transaction is told for which the slot waits');
is(im('--finish'), 0, '--finish after a prepared transaction');

# The indexes of a large table, which has few rows to a page
fresh('indexes', q{CREATE TABLE insta5.big (id bigint PRIMARY KEY, n integer, t text)
		WITH (fillfactor = 10);
	INSERT INTO insta5.big SELECT g, g, repeat('x', 500) FROM generate_series(1, 13000) AS g;
	CREATE INDEX a ON insta5.big (n DESC) WITH (fillfactor = 70) WHERE n > 5;
	CREATE INDEX "B ""c""" ON insta5.big USING hash ((n % 10));
	CREATE INDEX clusters ON insta5.big (n); ALTER TABLE insta5.big CLUSTER ON clusters;
	CREATE INDEX has_comment ON insta5.big (n); COMMENT ON INDEX insta5.has_comment IS 'x';
	CREATE INDEX has_target ON insta5.big ((n + 1));
	ALTER INDEX insta5.has_target ALTER 1 SET STATISTICS 10;
	CREATE UNIQUE INDEX is_unique ON insta5.big (n); CREATE INDEX of_small ON insta5.t (n);});
my $indexes = q{SELECT string_agg(relname, ' ' ORDER BY relname COLLATE "C") FROM pg_class
	WHERE relkind = 'i' AND relnamespace = 'insta5'::regnamespace};
is(im({ at => 'enabled' }, '--prepare', 'insta5'), -1, 'killed before the copy of a large table');
is(new($indexes), 'big_pkey clusters has_comment has_target is_unique of_small t_pkey',
	'a large table is copied without the indexes that one command makes again');
is(im({ at => 'index' }, '--prepare'), -1, 'killed when the first index of a large table is made');
is(im('--status'), 0, '--status while indexes are made');
like($out, qr/^insta5: being copied$/m,
	'--status tells that a table without its indexes is being copied');
my $f = q{CREATE FUNCTION public.f(x anyelement) RETURNS text IMMUTABLE LANGUAGE sql
	AS 'SELECT x::text'};
$_->safe_psql($db, $f) for $old, $new;
old('CREATE INDEX since ON insta5.big (public.f(t)); INSERT INTO insta5.big VALUES (0, 0)');
# what another role makes while an index is made would be called by the next one
new('GRANT CREATE ON SCHEMA public TO own');
is(im({ at => 'index', do => 'psql -qd "' . $new->connstr($db) . '" -c "SET ROLE own" -c "'
		. $f =~ s/anyelement/text/r . '"' }, '--prepare'), 5,
	'another role makes a function while an index is made');
like($out, qr/making index insta5\."B ""c"""\n/, 'the first index was made before the question');
like($out, qr/could use function (?:public\.)?f\(.*text\) of the target, .*own: .*--trust own$/m,
	'the role is named whose function the next index would call');
new('DROP FUNCTION public.f(text)');
is(im('--prepare'), 0, 'the same command makes the other indexes');
like($out, qr/making index insta5\.since\n/, 'an index that came since is made, too');
unlike($out, qr/making index insta5\.a\n/, 'no index is made twice');
is(new($indexes), old($indexes), 'the target has all indexes of a large table');
is(new(q{SELECT count(DISTINCT tablename) FROM pg_stats WHERE schemaname = 'insta5'
	AND attname IN ('n', 'expr')}), 4,
	'the target has statistics of a large table, also of expressions');
is(im('--switch'), 0, '--switch of a large table');
like($out, qr/verified: 2 tables, 13101 rows/, '--switch of a large table compares all rows');
is(im('--finish'), 0, '--finish of a large table');
is(left(), '', '--finish of a large table leaves nothing');

# A table without a key
fresh('keyless', 'CREATE TABLE insta5.n (n integer); CREATE TABLE insta5.o (n integer);
	ALTER TABLE insta5.o REPLICA IDENTITY NOTHING; INSERT INTO insta5.n VALUES (1), (1);
	CREATE TABLE insta5.f (n integer); ALTER TABLE insta5.f REPLICA IDENTITY FULL');
is(im('insta5'), 5, 'tables without a key stop a move');
like($out, qr/^  ! table insta5\.$_ has no replica identity, .*, or --full-identity$/m,
	"--full-identity is told for table $_") for 'n', 'o';
my $identities = q{SELECT string_agg(relreplident::text, '' ORDER BY relname) FROM pg_class
	WHERE relnamespace = 'insta5'::regnamespace AND relkind = 'r'};
is(im('--full-identity', '--prepare', 'insta5'), 0,
	'--prepare of tables without a key, with --full-identity');
is(old($identities), 'fffd', 'tables without a key have REPLICA IDENTITY FULL during a move');
is(im('--cancel'), 0, '--cancel of a move with --full-identity');
is(old($identities), 'fdnd', '--cancel gives each table the replica identity that it had');
is(im('--full-identity', 'insta5'), 0, 'a move with --full-identity');
new('DELETE FROM insta5.n WHERE ctid = (SELECT min(ctid) FROM insta5.n);
	UPDATE insta5.n SET n = 2');
is(im('--reverse'), 0, '--reverse of a move with --full-identity');
is(old('TABLE insta5.n'), 2, '--reverse brings what was written to a table without a key');
is(exchanged('--finish'), 0, '--finish after --reverse of a move with --full-identity');
is(old($identities), 'fdnd',
	'--finish after --reverse gives each table the replica identity that it had');

# Tables that came later
fresh('later');
is(im('--prepare', 'insta5'), 0, '--prepare, before tables are added');
$_->safe_psql($db, 'CREATE TABLE insta5.nokey (n integer)') for $old, $new;
is(im(), 5, 'a table without a key that came since stops a move');
like($out, qr/^  ! table insta5\.nokey has no replica identity/m, 'a later table is checked, too');
is(error_of($old, 'INSERT INTO insta5.nokey VALUES (1); UPDATE insta5.nokey SET n = 2'), '',
	'a later table without a key is not published');
$_->safe_psql($db, 'ALTER TABLE insta5.nokey ADD PRIMARY KEY (n)') for $old, $new;
is(im(), 0, 'a move goes on when a later table has a key');
is(im('--finish'), 0, '--finish with a table that came later');

# A table that is dropped and made again: its first rows must not stay, and its new ones be copied
fresh('remade', 'CREATE TABLE insta5.u (id bigint PRIMARY KEY REFERENCES insta5.t);
	INSERT INTO insta5.u SELECT id FROM insta5.t');
is(im('--prepare', 'insta5'), 0, '--prepare, before a table is made again');
old('BEGIN; DROP TABLE insta5.u; CREATE TABLE insta5.u (id bigint PRIMARY KEY REFERENCES insta5.t);
	INSERT INTO insta5.u SELECT id FROM insta5.t LIMIT 3; COMMIT');
is(im(), 0, 'a move goes on when a table was made again');
like($out, qr/copying insta5\.u again/, 'a table that was made again: the program tells it');
like($out, qr/verified: 2 tables, 103 rows/, 'a table that was made again has its new rows');
is(im('--finish'), 0, '--finish with a table that was made again');

# The same, if the first one was empty, there and back
fresh('empty', 'CREATE TABLE insta5.e (id integer PRIMARY KEY)');
my $remade = 'BEGIN; DROP TABLE insta5.e; CREATE TABLE insta5.e (id integer PRIMARY KEY);
	INSERT INTO insta5.e VALUES (1), (2); COMMIT';
is(im('--prepare', 'insta5'), 0, '--prepare, before an empty table is made again');
old($remade);
is(im('--no-verify'), 0, 'a move goes on when an empty table was made again');
is(new('SELECT count(*) FROM insta5.e'), 2, 'an empty table that was made again has its rows');
new('DELETE FROM insta5.e');
$old->poll_query_until($db, 'SELECT NOT EXISTS (SELECT FROM insta5.e)') or die;
new($remade);
is(im('--reverse', '--no-verify'), 0, '--reverse when an empty table was made again');
is(old('SELECT count(*) FROM insta5.e'), 2,
	'--reverse brings the rows of a table that was made again');
is(exchanged('--finish'), 0, '--finish with an empty table that was made again');

# A partition in another schema that came later
fresh('strays', 'CREATE SCHEMA other;
	CREATE TABLE insta5.p (id bigint, k integer, PRIMARY KEY (id, k)) PARTITION BY LIST (k);
	CREATE TABLE insta5.p1 PARTITION OF insta5.p FOR VALUES IN (1)');
is(im('--prepare', 'insta5'), 0, '--prepare, before a partition comes in another schema');
old('CREATE TABLE other.p2 PARTITION OF insta5.p FOR VALUES IN (2);
	INSERT INTO insta5.p VALUES (1, 2)');
is(im('--switch'), 5, 'a later partition in another schema stops --switch');
like($out, qr/^  ! insta5\.p and its child other\.p2 are not both in the moved schemas: detach/m,
	'a later partition in another schema is told');
is(places(), 'insta5 insta5 frozen', 'the source serves with a partition in another schema');
old('ALTER TABLE other.p2 SET SCHEMA insta5');
new('CREATE TABLE insta5.p2 PARTITION OF insta5.p FOR VALUES IN (2)');
is(im('--switch'), 0, '--switch when the partition is in the shard');
is(new('TABLE insta5.p'), '1|2', 'the row of the later partition is on the target');
is(im('--finish'), 0, '--finish with a later partition');

# What the owner freezes or thaws during the move stays so
fresh('freezes');
old(q{SELECT instaid.freeze_shard('insta5')});
is(im('--prepare', 'insta5'), 0, '--prepare of a frozen shard');
old(q{SELECT instaid.thaw_shard('insta5')});
is(im('--switch', '--on-switch', 'false'), 9, 'the router fails, after the shard was thawed');
is(places(), 'insta5 insta5 frozen', 'a shard that was thawed since is not frozen again');
is(im('--switch'), 0, '--switch of a shard that was thawed since');
is(places(), 'insta5 frozen insta5', 'the target serves a shard that was thawed since');
is(im('--reverse'), 0, '--reverse of a shard that was thawed since');
old(q{SELECT instaid.freeze_shard('insta5')});
($from, $to) = ($new, $old);
is(im('--reverse'), 0, 'a shard that was frozen since is moved there again');
($from, $to) = ($old, $new);
is(places(), 'insta5 frozen insta5 frozen', 'a shard that was frozen since stays so');
is(im('--finish'), 0, '--finish of a frozen shard');
for my $does ('freeze', 'thaw')
{
	my $name = "a shard that its owner ${does}s when there is a way back";
	fresh("${does}s_late", $does eq 'thaw' ? q{SELECT instaid.freeze_shard('insta5')} : ());
	my $call = "SELECT instaid.${does}_shard('insta5')";
	my $do = 'if [ $MOVE_STEP = stopped ]; then kill -9 $PPID; else psql -qd "'
	  . $old->connstr($db) . "\" -c \"$call\"; fi";
	is(im({ at => "way back|stopped", do => $do }, 'insta5'), -1,
		"killed while writes are refused of $name");
	is(im('--cancel'), 0, "--cancel for $name");
	is(places() . left(), $does eq 'thaw' ? 'insta5 -' : 'insta5 frozen -', "$name stays so");
}

# The owner thaws the copy, whose guards refuse writes
fresh('thawed');
is(im({ at => 'stopped' }, 'insta5'), -1,
	'killed while writes are refused, before the copy is thawed');
new(q{SELECT instaid.thaw_shard('insta5')});
is(im('--status'), 0, '--status of a copy that was thawed');
like($out, qr/^  serves:  none$/m, 'a copy that was thawed serves nobody');
is(im({ at => 'thawed' }, '--cancel'), -1, '--cancel is killed between its two commands');
is(im('--status'), 0, '--status after --cancel was killed');
like($out, qr/: stopping: /, 'the source still counts as stopping');
is(im('--cancel'), 5, '--cancel again, while the copy is not frozen');
is(error_of($old, 'INSERT INTO insta5.t DEFAULT VALUES'), '',
	'the source serves beside a copy that was thawed');
new(q{SELECT instaid.freeze_shard('insta5')});
is(im('--cancel'), 0, '--cancel when the copy is frozen again');
is(places() . left(), 'insta5 -', 'the source serves after --cancel that was killed');

# A shard of that name which another role makes on the target meanwhile
fresh('impostor');
$new->safe_psql('postgres', 'CREATE ROLE mallory');
new('GRANT CREATE ON DATABASE impostor TO mallory');
is(im({ at => 'copied' }, 'insta5', '--dump'), -1, 'killed while writes are refused, by --dump');
new(q{SET ROLE mallory; SELECT instaid.create_shard('insta5', 5)});
is(im('--cancel'), 5, '--cancel beside a shard of another role');
like($err, qr/why:  The target has insta5 of mallory, not frozen\./,
	'the role is named whose shard is in the way');
is(im('--status'), 0, '--status beside a shard of another role');
like($out, qr/^  target:  has insta5 of mallory, not frozen$/m,
	'--status names the role whose shard is in the way');
new('DROP SCHEMA insta5 CASCADE');
is(im('--cancel'), 0, '--cancel when the shard of another role is gone');
is(places() . left(), 'insta5 -', 'the source serves when the shard of another role is gone');

# A shard of two that is gone
fresh('two', q{; SELECT instaid.create_shard('insta6', 6)});
is(im('--prepare', 'insta%'), 0, '--prepare of two shards');
old('ALTER SCHEMA insta6 RENAME TO kept6');
is(im('--switch'), 5, '--switch when one of two shards was renamed');
like($err, qr/the source has no schema insta6\n/, 'the shard that was renamed is named');
unlike($out, qr/taken back/, 'writes are not refused for a shard that was renamed');
old('ALTER SCHEMA kept6 RENAME TO insta6');
is(im('--cancel'), 0, '--cancel of two shards');

#### Locks of others, while the source is to serve again ####

# Any role can hold one on a schema, and on a sequence, to the end of its transaction.
fresh('locks');
old('CREATE ROLE alice LOGIN');
my $oid = old(q{SELECT 'insta5.table_id_seq'::regclass::oid});
my $on_schema = q{SELECT pg_get_object_address('schema', '{instaid_move_5}', '{}')};
for my $holds ($on_schema,
	"DO \$\$ BEGIN PERFORM nextval($oid); EXCEPTION WHEN OTHERS THEN END \$\$")
{
	my $alice = PostgreSQL::Test::Utils::tempdir . '/alice';
	append_to_file("$alice.sql", "BEGIN; $holds; \\echo held\nSELECT pg_sleep(100)");
	my $do = "psql -XAtq -U alice -d \"" . $old->connstr($db) . "\" -f $alice.sql >$alice 2>&1 &"
	  . " while ! grep -q held $alice; do sleep 0.1; done; false";
	is(im('insta5', '--on-switch', "[ \$INSTAID_MOVE = back ] || { $do; }", '--max-stop', 30), 9,
		"the router fails, and another role holds a lock: $holds");
	is(places(), 'insta5 insta5 frozen',
		"the source serves, though another role held a lock: $holds");
	like($out, qr/ended session \d+ of role alice, for whom the source could not serve again/,
		"the role is named whose session was ended: $holds");
}
# one that the program cannot end, it waits for
{
	my $psql = 'psql -Xqd "' . $old->connstr($db) . '"';
	my $do = "$psql -c \"BEGIN; $on_schema; PREPARE TRANSACTION 'p'\"";
	$do .= "; (sleep 10; $psql -c \"ROLLBACK PREPARED 'p'\") >/dev/null 2>&1 & false";
	is(im('insta5', '--on-switch', "[ \$INSTAID_MOVE = back ] || { $do; }", '--max-stop', 30), 9,
		'the router fails, and a prepared transaction holds a lock');
	is(places(), 'insta5 insta5 frozen',
		'the source serves when the prepared transaction has ended');
	like($out, qr/waiting for a prepared transaction before the source can serve again/,
		'the program tells that it waits for a prepared transaction');
}
is(im('--cancel'), 0, '--cancel after locks of others');
# one that waits before the program, as a superuser's ALTER does, is innocent
{
	my $alice = PostgreSQL::Test::Utils::tempdir . '/before';
	is(im({ at => 'stopped' }, 'insta5'), -1, 'killed while writes are refused, beside a queue');
	append_to_file("$alice.sql", "BEGIN; DO \$\$ BEGIN PERFORM nextval($oid);
		EXCEPTION WHEN OTHERS THEN END \$\$; \\echo held\nSELECT pg_sleep(100)");
	my $psql = 'psql -XAtq -d "' . $old->connstr($db) . '"';
	system("$psql -U alice -f $alice.sql >$alice 2>&1 &");
	sleep 0.1 until -e $alice && slurp_file($alice) =~ /held/;
	system("$psql -c 'ALTER SEQUENCE insta5.table_id_seq CACHE 1' >$alice.waits 2>&1 &");
	$old->poll_query_until($db, q{SELECT EXISTS (SELECT FROM pg_stat_activity
		WHERE query ~ '^ALTER SEQUENCE' AND wait_event_type = 'Lock')}) or die;
	is(im('--cancel'), 0, '--cancel behind a superuser who waits for another role');
	like($out, qr/ended session \d+ of role alice,/, 'who holds the lock is ended');
	is(() = $out =~ /ended session/g, 1, 'who only waits for the lock is not ended');
	is(places() . left(), 'insta5 -', 'the source serves after a queue');
}
# one that waits is in the way if it waits for who is not: the program waits for no reader
{
	is(im({ at => 'stopped' }, 'insta5'), -1,
		'killed while writes are refused, before an ALTER waits');
	my $psql = 'psql -XAtq -d "' . $old->connstr($db) . '"';
	my @sessions = (IPC::Run::start([ 'sh', '-c', "$psql -c 'BEGIN;
			SELECT last_value FROM insta5.table_id_seq; SELECT pg_sleep(100)'" ],
		'>', '/dev/null', '2>', '/dev/null'));
	$old->poll_query_until($db, q{SELECT EXISTS (SELECT FROM pg_stat_activity
		WHERE wait_event = 'PgSleep')}) or die;
	push @sessions, IPC::Run::start([ 'sh', '-c',
			"$psql -c 'ALTER SEQUENCE insta5.table_id_seq OWNER TO alice'" ],
		'>', '/dev/null', '2>', '/dev/null');
	$old->poll_query_until($db, q{SELECT EXISTS (SELECT FROM pg_stat_activity
		WHERE query ~ '^ALTER SEQUENCE' AND wait_event_type = 'Lock')}) or die;
	is(im('--cancel'), 0, '--cancel behind an ALTER that waits for a reader');
	is(() = $out =~ /ended session/g, 1, 'the session that waits is ended, and not the reader');
	old(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'});
	$_->finish for @sessions;
	is(places() . left(), 'insta5 -', 'the source serves after an ALTER that waited');
}
# Two shards, and another role that waits for the one while it has the other.  Its sequence is
# locked by each nextval() to the end of its transaction.
{
	old(q{SELECT instaid.create_shard('insta6', 6)});
	my $second = old(q{SELECT 'insta6.table_id_seq'::regclass::oid});
	is(im({ at => 'stopped' }, 'insta%'), -1, 'killed while writes of two shards are refused');
	my $try = sub { "BEGIN PERFORM nextval($_[0]); EXCEPTION WHEN OTHERS THEN END; " };
	my $stop = PostgreSQL::Test::Utils::tempdir . '/stop';
	my $crosses =
	  'DO $$ BEGIN ' . $try->($second) . 'PERFORM pg_sleep(0.05); ' . $try->($oid) . 'END $$';
	my @alices = map {
		IPC::Run::start([ 'sh', '-c',
				'while ! [ -e "$0" ]; do psql -XAtq -U alice -d "$1" -c "$2"; done',
				$stop, $old->connstr($db), $crosses ],
			'>', '/dev/null', '2>', '/dev/null')
	} 1 .. 4;
	is(im('--cancel'), 0, '--cancel of two shards, while another role locks both in turn');
	append_to_file($stop, '');
	$_->finish for @alices;
	is(places() . left(), 'insta5,insta6 -',
		'the source serves two shards that were locked in turn');
}

#### Rows ####

# no temporary files
fresh('temporary', q{CREATE TABLE insta5.big (id bigint PRIMARY KEY, t text);
	INSERT INTO insta5.big SELECT g, repeat('x', 300) FROM generate_series(1, 40000) AS g;
	ANALYZE insta5.big});
is(im('insta5'), 0, 'a move of a table that is larger than work_mem');
my $files = q{SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()};
is(old($files) . ' ' . new($files), '0 0', 'rows are compared without temporary files');
is(im('--finish'), 0, '--finish of a table that is larger than work_mem');

# another encoding
for ([ $old, 'LATIN1' ], [ $new, 'UTF8' ])
{
	my ($node, $encoding) = @$_;
	$node->safe_psql('postgres',
		"CREATE DATABASE encoded ENCODING '$encoding' LOCALE 'C' TEMPLATE template0");
	$node->safe_psql('encoded', 'CREATE EXTENSION instaid');
}
$db = 'encoded';
old(q{SET client_encoding = 'UTF8'; SELECT instaid.create_shard('insta5', 5);
	CREATE TABLE insta5.t (k text PRIMARY KEY, v text); INSERT INTO insta5.t VALUES ('é', 'ü');
	CREATE TABLE insta5."café" ("naïve" text DEFAULT 'é' PRIMARY KEY);
	INSERT INTO insta5."café" VALUES (DEFAULT); COMMENT ON TABLE insta5."café" IS 'für alle'});
is(im('insta5'), 0, 'a move to an encoding that writes é otherwise');
like($out, qr/verified: 2 tables, 2 rows/, 'rows are the same in two encodings');
old(q{SET session_replication_role = replica; UPDATE insta5.t SET v = 'u'});
is(im('--verify'), 6, 'a row that differs between two encodings is found');
is(im('--finish'), 6, '--finish compares the rows, too');
like($out . $err, qr/^table insta5\.t differs\n(.*\n)*.*rows differ, and nothing was dropped$/m,
	'--finish says that rows differ, and that it drops nothing');
is(places(), 'insta5 frozen insta5', '--finish drops nothing if rows differ');
($from, $to) = ($new, $old);
is(im({ at => 'stopped' }, '--no-verify'), -1, 'the way back is killed while writes are refused');
is(im('--status'), 0, '--status of a way back that was killed');
like($out, qr/^  next:    at once, run the command again or --switch, or --cancel$/m,
	'--status tells to go on at once while writes are refused');
for my $again ('', ' again')
{
	is(im('--cancel'), 0, "--cancel$again of a way back that was killed");
	like($out, qr/: the source serves it, and the way back is kept$/m,
		"--cancel$again of a way back that was killed tells that the way back is kept");
	is(places(), 'insta5 frozen insta5',
		"--cancel$again of a way back that was killed: the same side serves");
}
($from, $to) = ($old, $new);
is(im('--finish', '--no-verify'), 0, '--finish --no-verify drops rows that differ');
for my $case ([ $new, $old ], [ $old, $new, '--dump' ], [ $new, $old, '--dump' ])
{
	($from, $to, my @args) = @$case;
	my $what = "from @{[ $from->name ]} to another encoding @args";
	is(im('insta5', @args), 0, $what);
	is($to->safe_psql($db, q{SET client_encoding = 'UTF8'; INSERT INTO insta5."café" DEFAULT VALUES
			ON CONFLICT DO NOTHING;
		SELECT k, v, "naïve", obj_description('insta5."café"'::regclass)
		FROM insta5.t, insta5."café"}), 'é|ü|é|für alle', "definitions and rows: $what");
	is(im('--finish'), 0, "--finish: $what");
}
($from, $to) = ($new, $old);
old(q{SET client_encoding = 'UTF8'; DROP SCHEMA insta5 CASCADE});
new(q{SET client_encoding = 'UTF8'; SELECT instaid.create_shard('insta5', 5);
	CREATE TABLE insta5.t (k text PRIMARY KEY DEFAULT '€')});
for my $args ([], ['--dump'])
{
	is(im('insta5', @$args), 6, "a definition with a letter that the target lacks @$args");
	like($err, qr/has no equivalent in encoding "LATIN1"/, "the letter is told @$args");
	is(im('--cancel'), 0, "--cancel after a letter that the target lacks @$args");
}
# without an encoding, bytes count
$new->safe_psql('postgres',
	q{CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0});
$old->safe_psql('postgres', 'CREATE DATABASE ascii');
$db = 'ascii';
$_->safe_psql($db, 'CREATE EXTENSION instaid') for $old, $new;
new(q{SELECT instaid.create_shard('insta5', 5);
	CREATE TABLE insta5."café" (k text PRIMARY KEY DEFAULT 'é')});
is(im('insta5'), 0, 'a move from SQL_ASCII with what is UTF-8');
is(im('--reverse'), 0, '--reverse to SQL_ASCII');
is(exchanged('--finish'), 0, '--finish with SQL_ASCII');
new(q{ALTER TABLE insta5."café" ALTER k SET DEFAULT E'\xe9'});
is(im('insta5'), 1, 'from SQL_ASCII with what is not UTF-8');
like($err, qr/invalid byte sequence for encoding "UTF8": 0xe9/, 'what is not UTF-8 is told');
is(im('--cancel'), 0, '--cancel with what is not UTF-8');

#### What terminals obey ####

# ESC, CR, DEL and U+009B in what others named
my $controls = "x\e[2K\r\x7f\xc2\x9b2J";
my $shown = quotemeta 'x\x1b[2K\x0d\x7f\x9b2J';
# from 18 on, the message about a unique index does not name it
fresh('controls', qq{CREATE TABLE insta5.u (n integer, id integer PRIMARY KEY,
	CONSTRAINT "u $controls" EXCLUDE USING btree (n WITH =))});
sub is_plain
{
	my ($pattern, $what) = @_;
	my $said = $out . $err;
	like($said, $pattern, "control characters are escaped: $what");
	unlike($said, qr/[^\n\t -~\x80-\xff]|\xc2[\x80-\x9f]/, "a terminal obeys nothing of: $what");
	return;
}
is(im('--prepare', 'insta5'), 0, '--prepare, before definitions with control characters');
old(qq{CREATE TABLE insta5."$controls" (n integer PRIMARY KEY, "$controls" integer);
	CREATE FUNCTION insta5.f() RETURNS integer LANGUAGE sql AS '
	SELECT 1 /* $controls */'});
is(im('--switch'), 6, 'definitions with control characters that only one side has');
is_plain(qr/^  only on the source: table insta5\.x\\x1b.* of .*\n(.*\n)*?.*"$shown" integer/m,
	'definitions of one side');
is_plain(qr/^    \tSELECT 1 \/\* $shown \*\//m, 'the body of a function, which keeps its tabs');
old(qq{DROP TABLE insta5."$controls"; DROP FUNCTION insta5.f});
new(q{SET session_replication_role = replica; INSERT INTO insta5.u VALUES (1, 1)});
old('INSERT INTO insta5.u VALUES (1, 2)');
$new->poll_query_until($db, 'SELECT max(apply_error_count) > 1 FROM pg_stat_subscription_stats
	WHERE subname = $$instaid_move_5$$');
is(im('--status'), 0, '--status with a target that cannot apply');
is_plain(qr/^            The target's log says: .*"u $shown"$/m,
	'the log of a server, in --status');
is(im('--cancel'), 0, '--cancel with a target that cannot apply');
new(qq{SELECT instaid.create_shard('$controls', 7)});
is(im($controls), 5, 'a shard with control characters that the source has not');
is_plain(qr/^  why:  The target has $shown\.$/m, 'a cause');
old(qq{CREATE TABLE insta5."$controls" (n integer PRIMARY KEY);
	CREATE FUNCTION hold() RETURNS void LANGUAGE plpgsql AS '
	BEGIN LOCK TABLE insta5."$controls"; PERFORM pg_sleep(100); END'});
my $psql = 'psql -XAtqd "' . $old->connstr($db) . '" -c';
my $held = "SELECT 'held' FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted";
is(im({ at => 'slot', do => "$psql 'SELECT hold()' >/dev/null 2>&1 &"
		. " until $psql \"$held\" | grep -q held; do sleep 0.1; done" }, 'insta5', '--max-wait', 1),
	1, 'pg_dump cannot lock a table');
old(q{SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE query = 'SELECT hold()'});
is_plain(qr/^pg_dump: .*$shown/m, 'the messages of pg_dump');
is(im('--cancel'), 0, '--cancel after pg_dump failed');

#### The check: move_check.pl has what it finds ####

fresh('checked', q{CREATE TYPE insta5.rng AS RANGE (subtype = numeric);
	CREATE TABLE insta5.r (id bigint PRIMARY KEY, r insta5.rng);
	CREATE OPERATOR CLASS insta5.c FOR TYPE integer USING btree
		AS OPERATOR 1 <, FUNCTION 1 btint4cmp;
	ALTER DATABASE checked SET statement_timeout = '400ms'});
is(im('insta5', '--source-for-target', $old->connstr($db) . " options='-c statement_timeout=0'"), 0,
	'a copy without the timeout, and with a range type and an operator class');
is(im('--finish'), 0, '--finish of a copy without the timeout');

#### Memory ####

fresh('memory');
is(im('--prepare', 'insta5'), 0, '--prepare, before somebody creates for long');
{
	my $session = Clients::session($old, $db);
	$session->('BEGIN; CREATE TABLE insta5.late ()');
	my $program = IPC::Run::start([ 'instaid-move', '--from', $old->connstr($db), '--to',
			$new->connstr($db), '--switch', '--max-wait', 30 ], '<', \undef, '>', \$out, '2>&1');
	my $pid = $program->{KIDS}[0]{PID};
	my $used = sub { return slurp_file("/proc/$pid/status") =~ /^VmRSS:\s+(\d+)/m ? $1 : 0 };
	$program->pump until $out =~ /creates something/ || !$program->pumpable;
	sleep(1);
	my $before = $used->();
	sleep(7);
	cmp_ok($used->() - $before, '<', 300,
		"a program that waits takes no more memory than $before kB");
	kill 'TERM', $pid;
	$program->finish;
	$session->('ROLLBACK');
	like($out, qr/session \d+ creates something in the schema/, 'it waits for who creates');
}
is(im('--cancel'), 0, '--cancel after the creation');

#### Passwords ####

fresh('secret', 'CREATE EXTENSION pg_stat_statements');
new('CREATE EXTENSION pg_stat_statements');
$_->safe_psql($db, q{ALTER DATABASE secret SET log_statement = 'all'}
	  . ($has_pgaudit ? q{; ALTER DATABASE secret SET pgaudit.log = 'all'} : '')) for $old, $new;
my @secret = ('--source-for-target', $old->connstr($db) . ' password=SECRET',
	'--target-for-source', $new->connstr($db) . ' password=SECRET');
is(im({ at => 'subscribed' }, 'insta5', @secret), -1, 'a move with passwords is killed');
is(im(@secret), 0, 'a move with passwords');
is($_->safe_psql($db, q{SELECT count(*) FROM pg_stat_statements WHERE query ~ ('SECRE' || 'T')}), 0,
	'pg_stat_statements shows no password of ' . $_->name) for $old, $new;
unlike(slurp_file($_->data_dir . '/' . $_->safe_psql($db, 'SELECT pg_current_logfile()')),
	qr/SECRET/, 'the log of ' . $_->name . ' shows no password') for $old, $new;
is(im('--finish'), 0, '--finish of a move with passwords');

#### The router ####

fresh('router');
is(im('--prepare', 'insta5'), 0, '--prepare, before the router hangs');
for my $stop (0.02, 1)
{
	my $began = time;
	is(im('--switch', '--max-stop', $stop, '--max-wait', 0, '--no-verify', '--on-switch',
		'[ $INSTAID_MOVE = back ] || { sleep 100 & wait; }'), $stop < 1 ? $rc : 9,
		"a router that hangs, --max-stop $stop");
	cmp_ok(time - $began, '<', 60, 'a router that hangs is ended with what it has started');
}
is(im('--cancel'), 0, '--cancel after the router hung');

#### Trust ####

fresh('trust', q{GRANT CREATE ON SCHEMA insta5 TO own; SET ROLE own;
	CREATE FUNCTION insta5.ev(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'});
is(im('insta5'), 5, 'definitions of a role that is not trusted stop a move');
like($out, qr/^  ! the shards have definitions of own, .* connect as own to it, .*: --trust own$/m,
	'the role that is not trusted is named, and what to do');
is(left(), '', 'nothing is changed for a role that is not trusted');
is(im('insta5', '--trust', 'own'), 0, 'a move with --trust');
is(im('--finish'), 0, '--finish of a move with --trust');
# what came after the check
sub psql_as_own
{
	my ($sql, @nodes) = @_;
	return join ';', map { qq{psql -qX -d "@{[ $_->connstr($db) ]}" -c "SET ROLE own; $sql"} }
	  @nodes;
}
my $evil = q{CREATE FUNCTION insta5.ev(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'};
for my $case ([ 'guards' ], [ 'guards', '--dump' ], [ 'rehearsed', '--dump' ])
{
	my ($at, @args) = @$case;
	my $what = "definitions of another role that came after: $at @args";
	fresh("since_$at@args" =~ s/-+//r, 'GRANT USAGE, CREATE ON SCHEMA insta5 TO own');
	is(im({ at => $at, do => psql_as_own($evil, $old) }, 'insta5', @args), 5, $what);
	like($out, qr/^  ! the shards have definitions of own, .*: --trust own$/m, "named: $what");
	is(places(), 'insta5 -', "nothing is restored: $what");
	is(im('--cancel'), 0, "--cancel: $what");
	is(left(), '', "nothing is left: $what");
	is(im('insta5', @args, '--trust', 'own'), 0, "--trust: $what");
	is(im('--finish'), 0, "--finish: $what");
}
fresh('table_since', 'GRANT USAGE, CREATE ON SCHEMA insta5 TO own');
is(im('--prepare', 'insta5'), 0, '--prepare, before another role creates a table');
new('GRANT USAGE, CREATE ON SCHEMA insta5 TO own');
$_->safe_psql($db, 'SET ROLE own; CREATE TABLE insta5.mine (n integer PRIMARY KEY)')
  for $old, $new;
is(im('--switch'), 5, 'a table of another role that came later');
like($out, qr/^  ! the shards have definitions of own, .*: --trust own$/m,
	'the owner of a table that came later is named');
is(new('SELECT count(*) FROM pg_subscription_rel'), 1,
	'a table of another role that came later is not subscribed');
$_->safe_psql($db, 'DROP TABLE insta5.mine') for $old, $new;
is(im('--switch'), 0, 'a move goes on when the table of another role is gone');
is(im('--finish'), 0, '--finish without the table of another role');

# The database's owner can set a role for all sessions.  What runs then can SET ROLE NONE.
fresh('role_set', q{; GRANT CREATE ON SCHEMA insta5 TO own; SET ROLE own;
	CREATE FUNCTION insta5.f(integer) RETURNS boolean IMMUTABLE LANGUAGE sql RETURN true});
$_->safe_psql('postgres', 'ALTER DATABASE role_set OWNER TO own;
	ALTER DATABASE role_set SET role = own') for $old, $new;
is(im('insta5', '--dump'), 5, 'a role that the database has set is not trusted');
like($out, qr/^  ! the shards have definitions of own, .*: connect as own .*--trust own$/m,
	'the role is named that the database has set');

# nor does it choose which rows are copied, or end a session at its first error
fresh('role_copies', q{; ALTER TABLE insta5.t ENABLE ROW LEVEL SECURITY;
	CREATE POLICY p ON insta5.t USING (n < 10);
	GRANT USAGE ON SCHEMA insta5 TO own; GRANT SELECT ON insta5.t TO own});
$old->safe_psql('postgres', 'ALTER DATABASE role_copies OWNER TO own;
	ALTER DATABASE role_copies SET role = own; ALTER DATABASE role_copies SET exit_on_error = on');
is(im('insta5', '--one-way', '--no-verify'), 0, 'a move from a database that sets a role');
is(new('SELECT count(*) FROM insta5.t'), 100, 'all rows are copied, whatever the role sees');
is(im('--finish'), 0, '--finish of a move from a database that sets a role');

#### What --finish may drop ####

# only a copy whose rows are known to be on the other side, however often it is asked
my $past = 'SET session_replication_role = replica; ';
for my $args (['--one-way'], [])
{
	my $name = "rows differ, @{[ @$args ? 'one way' : 'both ways' ]}: ";
	fresh('differ' . @$args);
	is(im('--prepare', 'insta5', @$args), 0, $name . '--prepare');
	new("$past DELETE FROM insta5.t WHERE n <= 5");
	is(im('--verify'), 6, $name . '--verify');
	is(im(@$args), 6, $name . 'the switch tells');
	like($err, @$args ? qr/next: Repair the side that lacks rows, .* with --no-verify\.$/m :
		qr/next: Repair the side that lacks rows, .* --reverse lets/,
		$name . 'the switch tells what to do');
	is(im(@$args, '--no-verify'), 0, $name . '--no-verify') if @$args;
	is(im(@$args), 6, $name . 'the same command again tells');
	is(im('--finish'), 6, $name . '--finish is refused');
	like($err, qr/rows differ, and nothing was dropped/, $name . '--finish says so');
	like(im('--status') . $out, qr/next:    run the command again, which compares/,
		$name . '--status does not call it compared');
	is(places(), 'insta5 frozen insta5', $name . 'nothing was dropped');
	if (@$args)
	{
		# into the target, as one repairs it
		my @rows = split /\n/, old('SELECT id, n FROM insta5.t WHERE n <= 5');
		new(join ';', map { 'INSERT INTO insta5.t VALUES (' . tr/|/,/r . ')' } @rows);
	}
	else
	{
		# a row that the source has stops the way back
		new('INSERT INTO insta5.t SELECT ' . old('SELECT max(id) FROM insta5.t WHERE n <= 5')
			  . ', 77');
		is(im('--finish', '--max-wait', 1), 8, $name . '--finish of a way back that fails');
		like($err, qr/the way back does not follow, and nothing was dropped/,
			$name . '--finish of a way back that fails says so');
	}
	is(im('--finish', @$args ? () : '--no-verify'), 0, $name . '--finish when it is repaired');
	is(left(), '', $name . 'nothing is left');
}
fresh('hidden');
is(im('insta5'), 0, 'a move before all rows are changed, and one past the guards');
{
	# in a part of the table that is looked at late
	old("$past INSERT INTO insta5.t SELECT x, 1 FROM generate_series(1, 100000) AS x
		WHERE hashtext(textin(record_out(ROW(x::bigint)))) & 1023 = 999 LIMIT 1");
	my $holder = IPC::Run::start([ 'psql', '-Xqd', $old->connstr($db), '-c', 'BEGIN',
			'-c', 'LOCK TABLE insta5.t IN EXCLUSIVE MODE', '-c', 'SELECT pg_sleep(3)' ],
		'>', \my $said);
	$old->poll_query_until($db, q{SELECT count(*) = 1 FROM pg_locks WHERE mode = 'ExclusiveLock'
		AND granted AND relation = 'insta5.t'::regclass}) or die;
	new('UPDATE insta5.t SET n = n + 1');
	is(im('--finish'), 6, 'a row that only the copy has is seen behind many that are on the way');
	like($out, qr/^table insta5\.t differs\n  only on the target: row \(\d+\), hash -?\d+\n(?! )/m,
		'a row that only the copy has is told, and those that were on the way are not');
	$holder->finish;
}
old("$past DELETE FROM insta5.t WHERE id < 1000000");
new('ALTER TABLE insta5.t ADD note text');
is(im('--finish'), 6, 'a table that got a column is not dropped without a comparison');
like($out, qr/^table insta5\.t has other columns on the target, or another key: make the same/m,
	'a table that got a column is named');
old('ALTER TABLE insta5.t ADD note text');
{
	my $reader = Clients::session($old, $db);
	$reader->('BEGIN; SELECT count(*) FROM insta5.t');
	is(im('--finish', '--max-wait', 1), 8, '--finish waits for a reader of the copy');
	like($err, qr/Locks of the shards have: session \d+ of \w+\.$/m, 'the reader is named');
	$reader->("PREPARE TRANSACTION 'reads'");
	is(im('--finish', '--max-wait', 1), 8, '--finish waits for a prepared transaction');
	like($err, qr/Locks of the shards have: a prepared transaction\.$/m,
		'the prepared transaction is told');
	$reader->("ROLLBACK PREPARED 'reads'");
}
is(im('--finish'), 0, '--finish when the reader has ended');

# A crash takes the sequences of the source ahead of where they stood
fresh('crashed', 'CREATE TABLE insta5.s (id serial PRIMARY KEY);
	INSERT INTO insta5.s SELECT FROM generate_series(1, 5)');
is(im({ at => 'marked' }, 'insta5'), -1, 'a move is killed before its rows are compared');
$old->stop('immediate');
$old->start;
is(old('SELECT last_value > 5 FROM insta5.s_id_seq'), 't', 'a crash takes a sequence ahead');
is(im(), 0, 'a sequence that a crash has taken ahead does not differ');
is(im('--finish'), 0, '--finish after a crash');

# Two servers behind one address: the second session is one of another server
fresh('balanced');
{
	my $services = PostgreSQL::Test::Utils::tempdir . '/services';
	append_to_file("$services.$_->[0]", "[source]\nhost=" . $_->[1]->host . "\nport="
		  . $_->[1]->port . "\ndbname=$db\n") for [ 1, $old ], [ 2, $new ];
	link "$services.1", $services or die $!;
	local $ENV{PGSERVICEFILE} = $services;
	is(im({ at => 'way back', do => "ln -f $services.2 $services" }, '--from', 'service=source',
			'--source-for-target', $old->connstr($db), 'insta5'),
		3, 'an address that leads to two servers');
	like($err, qr/Its address leads to several servers\./, 'an address of two servers is told');
	is(places(), 'insta5 insta5 frozen', 'an address of two servers: the source serves');
}
is(im(), 0, 'an address of one server');
is(im('--finish'), 0, '--finish by an address of one server');

# Workers that others use
fresh('workers');
is(im({ at => 'defined' }, 'insta5'), -1, 'a move is killed before the workers are used up');
$new->append_conf('postgresql.conf', 'max_logical_replication_workers = 1');
$new->restart;
{
	my $run = IPC::Run::start([ 'instaid-move', '--from', $old->connstr($db), '--to',
			$new->connstr($db) ], '<', \undef, '>', \my $said, '2>&1', IPC::Run::timeout(120));
	$run->pump until $said =~ /no logical replication worker of the target is free/
	  || !$run->pumpable;
	like($said, qr/is free: raise max_logical_replication_workers there/,
		'a copy that gets no worker tells so');
	$run->kill_kill;
	is(im('--status'), 0, '--status of a copy that gets no worker');
	like($out, qr/^ +no logical replication worker of the target is free$/m,
		'--status tells that no worker is free');
}
$new->append_conf('postgresql.conf', 'max_logical_replication_workers = 4');
$new->restart;
is(im(), 0, 'a copy goes on with a worker');
is(im('--finish'), 0, '--finish of a copy that got a worker');

fresh('astray');
is(im('insta5'), 0, 'a move before a row is written past the guards');
old("$past INSERT INTO insta5.t VALUES (11, 1)");
new('INSERT INTO insta5.t VALUES (11, 2)');
is(im('--finish', '--max-wait', 1), 8, 'a row that was written past the guards is not dropped');
is(old('SELECT n FROM insta5.t WHERE id = 11'), 1, 'a row that was written past the guards stays');
is(im('--finish', '--no-verify'), 0, 'a row that was written past the guards, with --no-verify');

# A way back that is lost: each command says how to go on
fresh('lost');
is(im('insta5'), 0, 'a move before its way back is lost');
old('ALTER SUBSCRIPTION instaid_move_5 DISABLE');
$new->poll_query_until($db, 'SELECT NOT bool_or(active) FROM pg_replication_slots') or die;
new('SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots;
	INSERT INTO insta5.t (n) VALUES (101)');
is(im('--reverse'), 7, 'the way back is lost: --reverse');
like($err, qr/next: --finish the move, and then move it with --from and --to exchanged\.$/m,
	'the way back is lost: --reverse tells how to go on');
is(im('--cancel'), 5, 'the way back is lost: --cancel');
like($err, qr/next: --finish the move, and then move it with --from and --to exchanged\.$/m,
	'the way back is lost: --cancel tells how to go on');
is(exchanged('--cancel'), 7, 'the way back is lost: --cancel of the other direction');
like($err, qr/next: Exchange --from and --to, and --finish; then begin again\.$/m,
	'the way back is lost: --cancel of the other direction tells how to go on');
is(im('--finish'), 6, 'the way back is lost: --finish of other rows');
like($out, qr/^ *[\d.]+  no copy follows: what was written since the switch differs, too$/m,
	'the way back is lost: --finish tells what differs');
is(im('--finish', '--no-verify'), 0, 'the way back is lost: --finish with --no-verify');
is(left(), '', 'the way back is lost: nothing is left');

# An old copy, which the wrong --from names
fresh('third');
is(im('insta5', '--one-way'), 0, 'a move with an old copy');
$new->safe_psql('postgres', 'CREATE DATABASE other_target');
$new->safe_psql('other_target', 'CREATE EXTENSION instaid');
{
	my @run = ('--from', $old->connstr($db), '--to', $new->connstr('other_target'), 'insta5');
	($rc, $out, $err) = Move::run(@run);
	is($rc, 5, 'an old copy does not move to a third server');
	like($out, qr/^  ! the source has the old copy of a move .*: move the shards from the server/m,
		'an old copy does not move: the cure is not to make it serve');
}
is(im('--finish'), 0, 'the old copy is dropped');

# A way back to another database of the same server
fresh('elsewhere');
is(im('insta5', '--target-for-source', $new->connstr('postgres')), 7,
	'--target-for-source of another database');
like($err, qr/another database than the target\.\n.*again, with the right --target-for-source\.$/m,
	'--target-for-source of another database is told');
is(places(), 'insta5 insta5 frozen', '--target-for-source of another database: the source serves');
is(im('insta5'), 0, '--target-for-source that was wrong: the same command without it');
is(im('--finish'), 0, '--target-for-source that was wrong: --finish');

# default privileges of a role without rights
fresh('default_privileges', 'ALTER DEFAULT PRIVILEGES FOR ROLE own IN SCHEMA insta5
	GRANT SELECT ON TABLES TO PUBLIC');
is(im('insta5'), 0, 'a move with default privileges of another role');
is(im('--finish'), 0, '--finish with default privileges of another role');

# names of a move that another role took
fresh('taken');
$_->safe_psql($db, "GRANT CREATE ON DATABASE $db TO own") for $old, $new;
is(im({ at => 'stopped' }, 'insta5', '--dump'), -1, 'killed while writes are refused');
new(q{SET ROLE own; CREATE PUBLICATION instaid_move_5;
	COMMENT ON PUBLICATION instaid_move_5 IS 'no json'});
is(im('--status'), 0, '--status with a publication of another role whose comment is no JSON');
is(im('--cancel'), 0, '--cancel with a publication of another role whose comment is no JSON');
new('DROP PUBLICATION instaid_move_5');
is(im('insta5'), 0, 'a move without the publication of another role');
new('SET ROLE own; CREATE SCHEMA instaid_move_5');
for my $command ('--status', '--finish')
{
	is(im($command), 1, "$command: the schema that refuses writes is of another role");
	like($err, qr/^  why:  target: schema instaid_move_5 belongs to own, and .*: drop it$/m,
		"$command names the owner of the schema that refuses writes");
}
is(im('--status', '--json'), 1,
	'--status --json with a schema of another role that refuses writes');
is($out, '', '--status --json says nothing of moves that it cannot see');
new('DROP SCHEMA instaid_move_5');
is(im('--finish'), 0, '--finish without the schema of another role');

# a function and a type that look like the guard's line in a dump
fresh('planted', q{GRANT USAGE, CREATE ON SCHEMA insta5 TO own; SET ROLE own;
	CREATE TYPE insta5."x.instaid_move_guard() OWNER TO " AS (a integer);
	CREATE FUNCTION insta5.instaid_move_guard(insta5."x.instaid_move_guard() OWNER TO ")
	RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN current_user; END'});
is(im('insta5', '--trust', 'own'), 0, 'a move with names that look like the guard in a dump');
is(new(q{SELECT insta5.instaid_move_guard(NULL)}), 'own',
	'the owner of a function that looks like the guard is who it was');
is(im('--finish'), 0, '--finish with names that look like the guard in a dump');

#### What to do next ####

# The lines that no other test meets: what they say, the command, and what was done before
sub says
{
	my ($expected, @args) = @_;
	im(@args);
	my ($next) = "$out$err" =~ /^  next: +(.*)/m;
	is($next // '', $expected, "the program says what to do next: $expected");
	return;
}

fresh('next', q{SELECT instaid.create_shard('insta6', 6)});
new('DROP EXTENSION instaid');
says('CREATE EXTENSION instaid there, or install the SQL edition, and run the same command again.',
	'insta5', '--check-only');
is($rc, 5, 'the check ends with 5 when instaid is missing on the target');
new('CREATE EXTENSION instaid');
new(q{CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS
		'BEGIN RAISE ''no tables here''; END';
	CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE TABLE')
		EXECUTE FUNCTION refuse()});
says("Create there what is missing, or have the pg_dump of the source's version first in PATH,"
	. ' and run the same command again, or --cancel.', 'insta5');
new('DROP EVENT TRIGGER refuse');
{
	my $path = PostgreSQL::Test::Utils::tempdir;
	chomp(my $programs = `$ENV{PG_CONFIG} --bindir`);
	symlink "$programs/instaid-move", "$path/instaid-move" or die;
	local $ENV{PATH} = $path;
	says("Add the directory of that version's programs to PATH, and run the same command again.");
}
says('--status tells how far it is.', '--check-only');
says('Run it without --dump, or --cancel it.', '--dump');
im({ at => 'guards' }, 'insta6');
says('Name the shards of one of them; --status shows all.', '--cancel');
im('--cancel', 'insta6');
$old->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE next');
$new->safe_psql('postgres', 'CREATE DATABASE other');
$new->safe_psql('other', 'CREATE EXTENSION instaid');
for my $case ([ 'If it is a copy, DROP PUBLICATION instaid_move_5.', 'copy', 'next' ],
	[ 'Finish or cancel that one first.', 'next', 'other' ])
{
	my ($expected, $source, $target) = @$case;
	(undef, $out, $err) = Move::run('--from', $old->connstr($source), '--to',
		$new->connstr($target), 'insta5');
	like($err, qr/^  next: \Q$expected\E$/m, "the program says what to do next: $expected");
}
{
	my $status = PostgreSQL::Test::Utils::tempdir . '/status';
	im({ at => 'following', do => 'instaid-move --from "' . $from->connstr($db) . '" --to "'
		  . $to->connstr($db) . "\" --status >$status; kill -9 \$PPID" });
	like(slurp_file($status), qr/^  run:     Session \d+ of role \w+ holds its lock\.$/m,
		'--status tells of a run that is at work');
}
says('Run the command without --finish, to its end.', '--finish');
im({ at => 'detached' }, '--cancel');
says('--cancel, or the --finish that was begun', '--status');
im('--cancel');
im({ at => 'switched' }, 'insta5');
says('Run the command without --cancel, to its end.', '--cancel');
says('run the command again, to its end', '--status');
says('Run the command without --reverse, to its end.', '--reverse');
is(im(), 0, 'a move goes on after --cancel was refused');
{
	my $holder = Clients::session($old, $db);
	$holder->('BEGIN; LOCK TABLE insta5.t IN EXCLUSIVE MODE');
	new('INSERT INTO insta5.t (n) VALUES (1)');
	says('--status tells how far.', '--verify', '--max-wait', '0.1');
	$holder->('ROLLBACK');
}
old(q{SELECT instaid.thaw_shard('insta5')});
my $apart = 'keep clients from the side that they shall not use; freeze its shard if it was thawed,'
  . ' drop it if it is new, or clean it up by hand if it was given up for lost';
says($apart, '--finish', '--no-verify');
old(q{SELECT instaid.freeze_shard('insta5')});
is(im('--finish'), 0, '--finish of a source that was thawed and frozen again');
($from, $to) = ($new, $old);
im('insta5', '--one-way');
($from, $to) = ($old, $new);
says('exchange --from and --to, and --finish', '--status');
is(exchanged('--finish'), 0, '--finish of the move with --one-way');
im({ at => 'way back' }, 'insta5');
old('DROP PUBLICATION instaid_move_5');
says($apart, '--status');

# From an older version, whose queries are written otherwise, and back
SKIP:
{
	skip 'there is no older PostgreSQL', 1 if !$ENV{INSTAID_OLD};
	my $new_source = $old;
	# allows_streaming of 19 sets what older versions do not know
	$old = Clients::server('older', { install_path => $ENV{INSTAID_OLD} }, 'wal_level = logical',
		'max_wal_senders = 10', 'max_replication_slots = 10',
		'fsync = off', 'wal_retrieve_retry_interval = 50ms');
	local $ENV{PATH} = "$ENV{PATH}:$ENV{INSTAID_OLD}/bin";
	fresh('versions', q{CREATE VIEW insta5.v AS SELECT t.id, n FROM insta5.t WHERE n IN (1, 2);
		CREATE FUNCTION insta5.one() RETURNS bigint RETURN (SELECT count(*) FROM insta5.t);
		CREATE TABLE insta5.w (id integer PRIMARY KEY, s varchar CHECK (s IN ('a', 'b')),
			r int4range, EXCLUDE USING gist (r WITH &&));
		ALTER TABLE insta5.w ENABLE ROW LEVEL SECURITY;
		CREATE POLICY p ON insta5.w USING (s = 'a' AND id BETWEEN 1 AND 9);
		CREATE STATISTICS insta5.st ON id, s FROM insta5.w;
		ALTER TABLE insta5.w ALTER s SET STATISTICS 7;
		CREATE TRIGGER t BEFORE UPDATE ON insta5.w FOR EACH ROW WHEN (NEW.id > OLD.id)
			EXECUTE FUNCTION suppress_redundant_updates_trigger()});
	is(im('insta5'), 0, 'a move to a newer PostgreSQL');
	new('INSERT INTO insta5.t (n) VALUES (1)');
	old('ALTER TABLE insta5.w ALTER s SET DEFAULT 1');
	is(im('--reverse'), 6, '--reverse to an older PostgreSQL sees a definition that was changed');
	new('ALTER TABLE insta5.w ALTER s SET DEFAULT 1');
	is(im('--reverse'), 0, '--reverse to an older PostgreSQL');
	is(old('SELECT count(*) FROM insta5.t'), 101,
		'--reverse to an older PostgreSQL brings what was written');
	is(exchanged('--finish'), 0, '--finish after --reverse to an older PostgreSQL');
	$old = $new_source;
}

# As the owner alone, there and back
SKIP:
{
	skip 'PostgreSQL 15 lets only superusers subscribe', 1 if $old->pg_version < 16;
	my ($grants) = map { $_->{text} =~ s/choose one/pw/r =~ s/DATABASE app/DATABASE owned/r }
	  grep { $_->{text} =~ /CREATE ROLE mover/ }
	  section_blocks('docs/moving-a-shard.md', 'With one command');
	for my $node ($old, $new)
	{
		$node->safe_psql('postgres', 'CREATE DATABASE owned');
		$node->safe_psql('owned', "CREATE EXTENSION instaid; $grants");
		$node->append_conf('postgresql.conf', "listen_addresses = '127.0.0.1'");
		my $hba = $node->data_dir . '/pg_hba.conf';
		my $rules = slurp_file($hba);
		unlink $hba;
		append_to_file($hba, "host all mover 127.0.0.1/32 scram-sha-256\n$rules");
		$node->restart;
	}
	($db, $from, $to) = ('owned', $old, $new);
	my @sides = map { 'host=127.0.0.1 port=' . $_->port . ' dbname=owned user=mover password=pw' }
	  $old, $new;
	old(q{SET ROLE mover; SELECT instaid.create_shard('insta5', 5);
		CREATE TABLE insta5.t (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
		INSERT INTO insta5.t (n) SELECT generate_series(1, 100)});
	my $run = sub {
		($rc, $out, $err) = Move::run('--from', $sides[0], '--to', $sides[1], @_);
		return $rc;
	};
	is($run->('insta5'), 0, 'the owner moves a shard alone');
	new('SET ROLE mover; INSERT INTO insta5.t (n) VALUES (1)');
	is($run->('--reverse'), 0, 'the owner brings a shard back alone');
	is(old('SELECT count(*) FROM insta5.t'), 101, 'the owner brings back what was written');
	@sides = reverse @sides;
	is($run->('--reverse'), 0, 'the owner moves a shard there again');
	is($run->('--verify'), 0, 'the owner finds no difference by --verify');
	@sides = reverse @sides;
	is($run->('--finish'), 0, 'the owner finishes a move alone');
	is(left(), '', 'the owner leaves nothing');
}

Move::is_all_met();
done_testing();
