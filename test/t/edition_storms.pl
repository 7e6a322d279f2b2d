# The SQL edition (sql-edition/next_id.sql) under load, while the clock is moved, sessions
# are cancelled, terminated and stopped, the server is killed, and a standby is promoted.  No
# ID may come twice, and each must be greater than all that were received before it was asked
# for.  pg_regress has one session and one clock.
#
# All storms make 100,000 IDs, or INSTAID_TEST_IDS if that is less.
# FULL=1 adds runs of 20 million IDs
#
# packages: libipc-run-perl
# not in: version assert
# takes 70 s

use strict;
use warnings;

use List::Util qw(min);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;
use SqlEdition;
use Clock;

my $ids = min($ENV{INSTAID_TEST_IDS} || 'inf', $ENV{FULL} ? 20_000_000 : 100_000);

my $clock = Clock->new;
my $node  = SqlEdition::server('main', $clock, 'autovacuum = off', 'checkpoint_timeout = 1d',
	'max_wal_size = 4GB');
SqlEdition::install($node, 'm');

# ROWS is replaced by the number of rows.
my $step    = "nextval('insta5.steps')";
my $row     = "INSERT INTO insta5.photos (n) VALUES (1) RETURNING began, id, $step;";
my $rows    = 'INSERT INTO insta5.photos (n) SELECT generate_series(1, ROWS)'
  . " RETURNING began, id, $step;";
my $select  = "SELECT $step, insta5.next_id(), $step FROM generate_series(1, ROWS);";
my $several = "BEGIN; $row SAVEPOINT s; $row ROLLBACK TO s; $row COMMIT;";
my $reserve = "SELECT s, i, $step FROM (SELECT $step AS s OFFSET 0) AS x,"
  . ' insta5.next_ids(COUNT + 0 * s::integer) AS i;';

# The process IDs of the sessions of app
sub backends
{
	return split /\n/, $node->safe_psql('postgres',
		q{SELECT pid FROM pg_stat_activity WHERE usename = 'app'});
}

# Each disturbance is called again and again while the sessions run.
my $offset = 0;
my %disturb = (
	nothing => sub { },
	clock => sub { $clock->set($offset + $_[0][ rand @{ $_[0] } ]) },
	back => sub { $clock->set($offset - 3600 - rand 2) },
	advance => sub { $node->safe_psql('m',
		q{
		SELECT count(instaid.advance_past('insta5.table_id_seq',
			instaid.max_id(clock_timestamp() + n % 3 * interval '1 ms'), instaid.default_epoch()))
		FROM generate_series(1, 30) AS n}) },
	cancel => sub { $node->safe_psql('postgres',
		q{
		SELECT pg_cancel_backend(pid) FROM pg_stat_activity
		WHERE usename = 'app' AND random() < 0.5}) },
	harm => sub {
		my @pids = backends() or return;
		$node->safe_psql('postgres', q{
			SELECT CASE WHEN random() < 0.2 THEN pg_terminate_backend(pid)
				ELSE pg_cancel_backend(pid) END
			FROM pg_stat_activity WHERE usename = 'app' AND random() < 0.4});
		my $pid = $pids[ rand @pids ];
		kill 'STOP', $pid;
		sleep(0.02 * rand);
		kill 'CONT', $pid;
	},
	crash => sub { Clients::crash($node); $clock->start($node) },
	crash_back => sub { Clients::crash($node); $clock->set($offset + $_[0][ rand @{ $_[0] } ]);
		$clock->start($node) });

my $total = 0;
my @steps = (0, -3600, -0.5, 0.3, -0.003, 2, -10);
my $cut = qr/canceling statement|current transaction is aborted|savepoint "s" does not exist/;

for my $storm (
	# name, sessions, part of the IDs, pause between disturbances, which one, expected errors,
	# statements
	[ 'nothing', 16, 0.1, 0.2, [ 'nothing' ], qr/(?!)/, $rows, $select, $row ],
	[ 'clock steps', 16, 0.2, 0.1, [ clock => \@steps ], qr/(?!)/, $rows, $select, $row, $several ],
	[ 'advance_past()', 16, 0.05, 0.01, ['advance'], qr/(?!)/, $rows, $select, $row ],
	[ '64 sessions at full milliseconds', 64, 0.15, 0.3, ['back'], qr/(?!)/, $rows, $select ],
	[ 'cancel, terminate, stop', 16, 0.15, 0.02, ['harm'], $cut, $rows, $select, $several ],
	[ 'statement_timeout', 16, 0.05, 0.2, ['nothing'], $cut,
		"SET statement_timeout = 2; $select $row", "SET statement_timeout = 4; $rows $row",
			"SET statement_timeout = 1; $row" ],
	[ 'next_ids() and cancel', 16, 0.15, 0.05, ['cancel'], $cut, $reserve,
		$reserve =~ s/COUNT/500/r, $row ],
	[ 'SIGKILL of the server', 16, 0.1, 1, ['crash'], qr/./, $rows, $row ],
	[ 'SIGKILL and clock steps', 16, 0.1, 1, [ crash_back => [ 0, -3600, -0.5, 0.3 ] ], qr/./,
		$rows, $row ])
{
	my ($name, $count, $part, $pause, $disturbance, $expected, @statements) = @$storm;
	# the shard may be ahead from the storm before
	$offset += 7200;
	$clock->set($offset);
	s/ROWS/500/, s/COUNT/2000/ for @statements;
	my ($kind, @arguments) = @$disturbance;
	my $sessions = SqlEdition->sessions($node, 'm', $count, @statements);
	my $disturbed = 0;
	my $deadline = time + 300 + $ids / 1000;
	while ($disturbed < 3 || $sessions->received < $ids * $part * 35)
	{
		sleep($pause);
		$disturb{$kind}->(@arguments);
		die 'it takes too long' if time > $deadline;
		$disturbed++;
	}
	my $sum = $sessions->stop->findings;
	cmp_ok($sum->{count}, '>', 0, "$name: $sum->{count} IDs, disturbed $disturbed times");
	$total += $sum->{count};
	# stop() terminates the sessions
	is($sessions->errors(qr/$expected|terminating connection|connection to server|server closed/),
		'', "$name: no other errors");
	is($sum->{twice}, 0, "$name: no ID came twice");
	is($sum->{inverted}, 0,
		"$name: each ID is greater than those received before it was asked for");
	cmp_ok($sum->{most}, '<=', 1024, "$name: $sum->{most} IDs in the fullest ms");
}
cmp_ok($total, '>=', 0.95 * $ids, "$total IDs in all");
is($node->safe_psql('m', 'SELECT count(*) - count(DISTINCT id) FROM insta5.photos'), 0,
	'no ID is in two rows');
$node->stop;

# The primary is killed, and its synchronous standby is promoted, with the clock an hour back.
$offset += 7200;
$clock->set($offset);
my $primary = SqlEdition::server('primary', $clock, 'autovacuum = off');
SqlEdition::install($primary, 'm');
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby', install_path => $ENV{INSTAID_PLAIN});
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$clock->start($standby);
$primary->append_conf('postgresql.conf', "synchronous_standby_names = '*'\n");
$primary->reload;
$primary->poll_query_until('postgres', q{SELECT sync_state = 'sync' FROM pg_stat_replication})
  or die;
# an unlogged sequence cannot be read there
$primary->safe_psql('m', q{SET ROLE dba; SELECT instaid.create_shard('insta6', 6);
	ALTER SEQUENCE insta6.table_id_seq SET UNLOGGED});
$primary->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('m', q{SELECT string_agg(schema_name || COALESCE(last_id, 0), ' ')
	FROM instaid.shards WHERE schema_name = 'insta6';
	SELECT count(*) FROM instaid.audit() WHERE code = 'unlogged'}),
	"insta60\n1", 'an unlogged sequence of a shard stops no view on a standby');
is(SqlEdition::as_app($standby, 'm', 'SELECT insta5.next_id(); SELECT insta5.next_ids(2000)'),
	'25006 25006', 'a standby makes no IDs');
$rows =~ s/ROWS/500/;
my $before = SqlEdition->sessions($primary, 'm', 16, $rows, $row);
my $deadline = time + 300;
sleep(0.1) while $before->received < 20_000 * 35 && time < $deadline;
Clients::crash($primary);
$clock->set($offset - 3600);
$standby->promote;
my $after = SqlEdition->sessions($standby, 'm', 16, $rows, $row);
sleep(0.1) while $after->received < 20_000 * 35 && time < $deadline;
$_->stop for $before, $after;
my ($old, $all) = ($before->findings, $after->findings($before));
cmp_ok($all->{count}, '>', $old->{count},
	"promotion: $old->{count} of $all->{count} IDs before it");
is("$all->{twice} $all->{inverted}", '0 0',
	"promotion: $old->{count} of $all->{count} IDs before it: no ID came twice, and IDs increase");
is($standby->safe_psql('m', 'SELECT count(*) - count(DISTINCT id) FROM insta5.photos'), 0,
	"promotion: $old->{count} of $all->{count} IDs before it, and no ID is in two rows");

$standby->stop;
done_testing();
