# Crashes under load.  Clients note every ID that they receive, committed or not.  After
# each restart new IDs must be above all of them.  Twelve rounds combine each wal_level
# with each way to commit, with and without checkpoints.
#
# FULL=1 adds 18 rounds, whose crashes come at other moments
# INSTAID_TEST_ROUNDS sets another number, INSTAID_TEST_SEED the random moments.
# not in: assert
# in: newest
# takes 60 s

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;

my $rounds = $ENV{INSTAID_TEST_ROUNDS} || ($ENV{FULL} ? 30 : 12);
note 'INSTAID_TEST_SEED=' . srand($ENV{INSTAID_TEST_SEED} // int(rand(2**31)));

my $node = Clients::server('main', 'client_min_messages = error', 'max_wal_senders = 0',
	'instaid.max_drift = 1d', 'wal_writer_delay = 10s');
$node->safe_psql('postgres', q{
	SELECT instaid.create_shard('light', 5);
	SELECT instaid.create_shard('heavy', 6);
	CREATE TABLE light.photos (id bigint PRIMARY KEY DEFAULT light.next_id(), n integer);
	CREATE TABLE heavy.photos (id bigint PRIMARY KEY DEFAULT heavy.next_id(), n integer);
	CREATE UNLOGGED SEQUENCE unlogged_seq;
	-- the ID for a tick that core's nextval or setval returned
	CREATE FUNCTION id_of(tick bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
		RETURN ((tick >> 10) - 1314220021721 << 23) | (6 << 10) | (tick & 1023);
	SELECT instaid.advance_past('heavy.table_id_seq', instaid.min_id(now() + interval '1 h'),
		instaid.default_epoch());
});

# How to take an ID from each sequence
my %next_id = (
	light     => 'SELECT light.next_id()',
	heavy     => 'SELECT heavy.next_id()',
	unlogged  => q{SELECT instaid.next_id('unlogged_seq', 7)},
	temporary => q{CREATE TEMPORARY SEQUENCE IF NOT EXISTS temporary_seq;
		SELECT instaid.next_id('temporary_seq', 7)},
);

my %last = map { $_ => 0 } keys %next_id;
my $ahead = 0;

# One round: start a client for each statement of each sequence, crash the server at a
# random moment, restart it, and take an ID from each sequence.
sub crash
{
	my ($name, $beside, %statements) = @_;

	my $aside   = Clients->start($node, @$beside);
	my %clients = map { $_ => Clients->start($node, @{ $statements{$_} }) } keys %statements;
	sleep(0.1 + rand(0.5));
	# on a busy machine a client can have no ID yet
	for (1 .. 1000)
	{
		last unless grep { !grep { -s } $_->files } values %clients;
		sleep(0.1);
	}
	$node->stop('immediate');
	my $problems = join '', map { $_->finish } $aside, values %clients;
	$node->start;

	my $count = 0;
	for my $sequence (sort keys %statements)
	{
		my @files = $clients{$sequence}->files;
		my $sum   = Clients::summary(@files);
		my ($clock, $next) = split /\n/,
		  $node->safe_psql('postgres',
			"SELECT instaid.make_id(clock_timestamp(), 0, 0); $next_id{$sequence}");

		$problems .= "$sequence: no ID\n" unless $sum->{count};
		$problems .= "$sequence: a client's IDs are out of order\n"
			if grep { !Clients::in_order($_) } @files;
		$problems .= "$sequence: $sum->{duplicates} IDs came twice\n" if $sum->{duplicates};
		$problems .= "$sequence: $sum->{first} came after $last{$sequence}\n"
			if $sum->{count} && $sum->{first} <= $last{$sequence};
		$problems .= "$sequence: $next came after $sum->{last}\n" if $next <= $sum->{last};
		$ahead++ if $sequence eq 'heavy' && $sum->{last} > $clock;
		$last{$sequence} = $next;
		$count += $sum->{count};
	}
	is($problems, '', "$name: $count IDs, and the IDs after the restart are above them");
}

# Statements that a client repeats.  WAL of a row that is rolled back is soon flushed;
# WAL of a transaction that goes on is not.
my $row       = 'INSERT INTO SHARD.photos DEFAULT VALUES RETURNING id;';
my $bulk      =
	'COPY (INSERT INTO SHARD.photos (n) SELECT generate_series(1, 500) RETURNING id) TO STDOUT;';
my $rollback  = "BEGIN; $row ROLLBACK;";
my $read      = 'SELECT SHARD.next_id();';
my $read_bulk = 'COPY (SELECT SHARD.next_ids(20000)) TO STDOUT;';
my $read_on   = 'BEGIN;' . (" $read" x 2000);
my $lead      = 'SELECT max(id) FROM SHARD.next_ids(500000) AS id;';
my $lead_on   = 'BEGIN;' . (" $lead" x 500);
my $nextval   = q{INSERT INTO SHARD.photos (id) VALUES (id_of(nextval('SHARD.table_id_seq')))
	RETURNING id;};
my $setval    = q{SELECT id_of(setval('SHARD.table_id_seq', last_value + 20000 * 1024))
	FROM SHARD.table_id_seq;
	DO 'BEGIN PERFORM pg_sleep(0.05); END';};

sub of
{
	my ($shard, @statements) = @_;
	return [ map { s/SHARD/$shard/gr } @statements ];
}

# IDs of the light shard follow the clock.  IDs of the heavy shard are more than an
# hour ahead of it: only WAL can say where the sequence was.
for my $round (1 .. $rounds)
{
	my $wal_level   = (qw(minimal replica logical))[ $round % 3 ];
	my $commits     = $round % 2;
	my $checkpoints = int($round / 2) % 2;
	$node->append_conf('postgresql.conf', "wal_level = $wal_level\n");
	$node->restart;
	crash("round $round, wal_level = $wal_level" . ($commits ? ', commits' : '')
		. ($checkpoints ? ', checkpoints' : ''),
		[ $checkpoints ? 'CHECKPOINT;' : () ],
		light => of('light', $commits ? ($row, $bulk, $rollback, $read) : ($read_on) x 4),
		heavy => of('heavy', $commits ? ($row, $bulk, $read_bulk, $lead) : ($lead_on) x 4));
}
cmp_ok($ahead, '>=', $rounds / 2,
	"after $ahead of $rounds crashes only WAL could say where the heavy shard was");

# Core's functions on the same sequence.  A value of nextval can come again after a
# crash, unless it was committed.
crash("nextval and setval, round $_", [],
	heavy => of('heavy', $row, $bulk, $read, $read_bulk, $lead, $nextval, $nextval, $setval))
  for 1 .. 5;

# Without WAL the clock alone keeps the IDs increasing.
crash("unlogged and temporary, round $_", [ 'CHECKPOINT;' ],
	unlogged => [ ("$next_id{unlogged};") x 4 ], temporary => [ "$next_id{temporary};" ])
  for 1 .. 3;

$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP:|XX000/, 'the server logged no error of its own');
done_testing();
