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

done_testing();
