# What trials of instaid-move have found, each with its test: 040_move.pl has the moves
# themselves, and what ends them.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

use Clients;
use Move;

my @settings = ('wal_retrieve_retry_interval = 10ms', 'max_replication_slots = 20',
	'max_wal_senders = 20', 'fsync = off');
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

#### Guards ####

fresh('guards', q{CREATE SCHEMA instaid_move_5; CREATE TABLE insta5.u (n integer PRIMARY KEY);
	CREATE FUNCTION insta5.instaid_move_guard() RETURNS trigger LANGUAGE plpgsql
	AS 'BEGIN RETURN NEW; END';
	CREATE TRIGGER instaid_move_guard BEFORE INSERT ON insta5.u FOR EACH ROW
	EXECUTE FUNCTION insta5.instaid_move_guard()});
is(im('insta5'), 5, 'a schema has the name of the move');
like($out, qr/^  ! schema instaid_move_5 exists on the source, .*: drop it$/m,
	'a schema with the name of the move is told');
old('DROP SCHEMA instaid_move_5');
is(im('--prepare', 'insta5'), 0, 'a shard with a trigger and a function of the name of the guards');
old('ALTER TABLE insta5.t DISABLE TRIGGER ALL');
is(im('--switch'), 0, 'a guard that was disabled since');
like(error_of($old, "INSERT INTO insta5.$_ VALUES (1)"), qr/shard insta5 is frozen/,
	"the source refuses writes to $_, whose guard did not fire before") for 't', 'u';
is(new('INSERT INTO insta5.u VALUES (1); SELECT count(*) FROM insta5.u'), 1,
	'the target takes writes');
{
	my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
	$old->command_ok([ 'pg_dump', '-n', 'insta5', '-f', $dump, $old->connstr($db) ],
		'dump of a shard that was moved');
	$old->safe_psql('postgres', 'CREATE DATABASE restored');
	$old->safe_psql('restored', 'CREATE EXTENSION instaid');
	$old->command_ok([ 'psql', '-Xq1', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d',
		$old->connstr('restored') ], '... is restored elsewhere');
	is($old->safe_psql('restored', q{SELECT instaid.thaw_shard('insta5');
		INSERT INTO insta5.t (n) VALUES (1); SELECT count(*) FROM insta5.t}) =~ s/^\n//r, 101,
		'a dump of a shard that was moved takes writes once it is thawed');
}
is(im('--finish'), 0, 'finished');
is(new("SELECT tgfoid::regproc FROM pg_trigger WHERE tgname = 'instaid_move_guard'"), '',
	'--finish drops the guards');
is(new("SELECT to_regprocedure('insta5.instaid_move_guard()')"), 'insta5.instaid_move_guard()',
	'... and not the function of the name');

# a transaction whose snapshot is older than the stop
fresh('snapshot');
{
	my $session = Clients::session($old, $db);
	$session->('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	is(im('insta5'), 0, 'moved beside a REPEATABLE READ transaction');
	like($session->('UPDATE insta5.t SET n = 0'), qr/shard insta5 is frozen/,
		'an older snapshot does not pass the guard');
}
is(im('--finish'), 0, 'finished');
is(left(), '', 'nothing is left');

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
is(im('--prepare', 'insta5'), 0, 'prepared');
old(join ';', map { $_->[0] } grep { $_->[0] !~ /MAXVALUE/ } @changes);
is(im('--switch'), 6, 'definitions that were changed since');
like($out, qr/^  (?:differs|only on the source): \Q$_->[1]\E/m, "changed since: $_->[0]")
  for grep { $_->[0] !~ /MAXVALUE/ } @changes;
like($out, qr/^  differs: domain insta5\.d of .*\n    source: .* DEFAULT 5;\n    target: CREATE DOMAIN/m,
	'the lines that differ are shown');
is(places(), 'insta5 insta5 frozen', 'the source still serves');
new(join ';', map { $_->[0] } grep { $_->[0] !~ /MAXVALUE/ } @changes);
old($changes[2][0]);
is(im('--switch'), 6, 'a MAXVALUE that was changed since');
like($out, qr/^  only on the source: sequence insta5\.m has MAXVALUE 99$/m, 'it is told');
new($changes[2][0]);
is(im({ at => 'stopping', do => 'psql -qd "' . $old->connstr($db)
		. '" -c "ALTER DOMAIN insta5.d SET DEFAULT 6"' }, '--switch'), 6,
	'a definition that is changed while writes are refused');
like($out, qr/attempt 1 was taken back: the definitions have changed\n(?:.*\n)*  differs: domain insta5\.d/,
	'it is seen then, and compared afterwards');
new('ALTER DOMAIN insta5.d SET DEFAULT 6');
is(im('--switch'), 0, 'with the same changes on both sides, it switches');
unlike($out, qr/taken back/, 'and at once');
is(im('--finish'), 0, 'finished');

done_testing();
