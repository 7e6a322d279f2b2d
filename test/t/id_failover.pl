# A primary is killed under load, and its standby is promoted: a synchronous and an
# asynchronous standby, with the same clock and with a clock that is 3 s behind.  And a
# standby without instaid, in the PostgreSQL of INSTAID_PLAIN, replays its WAL.
#
# not in: assert
# in: newest

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;
use Clock;

my $row  = 'INSERT INTO insta5.photos DEFAULT VALUES RETURNING id;';
my $bulk = 'INSERT INTO insta5.photos (n) SELECT generate_series(1, 100) RETURNING id;';
my @committed = ($row, $row, $row, $bulk, $bulk);
my @received = ("BEGIN; $row ROLLBACK;", 'SELECT insta5.next_id();',
	'COPY (SELECT insta5.next_ids(100)) TO STDOUT;');

for my $case ([ 'synchronous', 0 ], [ 'synchronous', -3 ], [ 'asynchronous', 0 ],
	[ 'asynchronous', -3 ])
{
	my ($mode, $offset) = @$case;
	my $name = "$mode, $offset s";

	my $primary = Clients::server("primary_$mode$offset", { allows_streaming => 1 },
		'client_min_messages = error');
	$primary->safe_psql('postgres', q{
		SELECT instaid.create_shard('insta5', 5);
		CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);});
	$primary->backup('backup');

	my $clock = Clock->new;
	$clock->set($offset);
	my $standby = PostgreSQL::Test::Cluster->new("standby_$mode$offset");
	$standby->init_from_backup($primary, 'backup', has_streaming => 1);
	$clock->start($standby);
	cmp_ok(abs($clock->offset($standby) - $offset), '<', 1.5,
		"$name: the clock of the standby is set");
	if ($mode eq 'synchronous')
	{
		$primary->append_conf('postgresql.conf', "synchronous_standby_names = '*'\n");
		$primary->reload;
		$primary->poll_query_until('postgres',
			q{SELECT sync_state = 'sync' FROM pg_stat_replication}) or die;
	}

	# A standby refuses to make IDs, as nextval() does.  It decodes IDs and shows the shards.
	$primary->safe_psql('postgres', 'SELECT insta5.next_id()');
	$primary->wait_for_catchup($standby);
	for my $call ('insta5.next_id()', 'insta5.next_ids(10)', q{nextval('insta5.table_id_seq')})
	{
		my ($ret, $stdout, $stderr) =
		  $standby->psql('postgres', "\\set VERBOSITY verbose\nSELECT $call");
		like($stderr, qr/ERROR:  25006: /, "$name: the standby refuses $call");
	}
	is($standby->safe_psql('postgres', qq{
		SELECT schema_name, d.shard_id, last_id > 0, drift < interval '2 s' - interval '$offset s'
		FROM instaid.shards, instaid.decode(last_id) AS d}),
		'insta5|5|t|t', "$name: shows the shards");

	my $clients = Clients->start($primary, @committed, @received);
	sleep(0.5 + rand(0.5));
	$primary->stop('immediate');
	$standby->promote;
	my $rows = PostgreSQL::Test::Utils::tempdir . '/rows';
	append_to_file($rows, $standby->safe_psql('postgres',
		'SELECT id FROM insta5.photos ORDER BY id') . "\n");
	my $after = Clients->start($standby, @committed, @received);
	sleep(0.5);
	is($clients->finish . $after->stop, '', "$name: no statement fails");

	# With the same clock, no ID that a client received may come again.  With a clock
	# that is behind, this holds for the rows that reached the standby.  To a
	# synchronous standby these are all committed rows.
	my ($of, @before) =
	    $offset == 0             ? ('IDs received', $clients->files)
	  : $mode eq 'synchronous'   ? ('rows committed', ($clients->files)[ 0 .. $#committed ])
	  :                            ('rows that arrived', $rows);
	my $old = Clients::summary(@before);
	my $new = Clients::summary($after->files);
	my $all = Clients::summary(@before, $after->files);
	is($all->{duplicates}, 0,
		"$name: none of $old->{count} $of and $new->{count} later IDs comes twice");
	cmp_ok($new->{first}, '>', $old->{last}, "$name: the later IDs are above the others");

	$standby->stop;
	unlike(slurp_file($_->logfile), qr/TRAP:|XX000/, "$name: the server logged no error of its own")
		for $primary, $standby;
}

# An ID ahead of the clock waits until the standby has the WAL record that covers it,
# even if another transaction wrote that record.  Other IDs do not wait.
my $alone = Clients::server('alone', 'client_min_messages = error', 'instaid.max_drift = 1d',
	'autovacuum = off',
	'wal_level = replica', 'max_wal_senders = 4');
$alone->safe_psql('postgres', q{
	CREATE SEQUENCE ahead;
	CREATE SEQUENCE at_clock;
	SELECT instaid.advance_past('ahead', instaid.max_id(now() + interval '1 h'),
		instaid.default_epoch());});
my $seen = Clients::session($alone);
$seen->(q{SET synchronous_commit = local; SELECT instaid.next_id('ahead', 0),
	instaid.next_id('at_clock', 0)});
$alone->append_conf('postgresql.conf', "synchronous_standby_names = 'nobody'\n");
$alone->reload;
$alone->poll_query_until('postgres',
	q{SELECT current_setting('synchronous_standby_names') = 'nobody'}) or die;
my $open = Clients::session($alone);
$open->(q{CHECKPOINT; SET synchronous_commit = local; BEGIN; SELECT instaid.next_id('ahead', 0)});
$seen->(q{SET statement_timeout = '1 s'; SET synchronous_commit = on});
like($seen->(q{BEGIN; SELECT instaid.next_id('ahead', 0)}),
	qr/^ERROR:  canceling statement that waits for a synchronous standby$/m,
	'an ID that is ahead of the clock waits for the standby');
like($seen->(q{ROLLBACK; BEGIN; SELECT instaid.advance_past('ahead', 1, instaid.default_epoch())}),
	qr/ERROR: /, 'an ID that is ahead of the clock waits for the standby, as does advance_past()');
like($seen->(q{ROLLBACK; BEGIN; SET LOCAL synchronous_commit = local;
	SELECT instaid.next_id('ahead', 0)}), qr/^\d+$/,
	'an ID that is ahead of the clock waits for the standby, but not with synchronous_commit ='
	  . ' local');
like($seen->(q{ROLLBACK; BEGIN; SELECT instaid.next_id('at_clock', 0)}), qr/^\d+$/,
	'an ID that is not ahead does not wait');
$seen->('ROLLBACK');
$alone->stop('immediate');
unlike(slurp_file($alone->logfile), qr/already committed|WARNING:  canceling/,
	'an ID that is not ahead does not wait, and neither client nor log is told that a'
	  . ' transaction has committed');
is(scalar(() = slurp_file($alone->logfile) =~ /ERROR:  canceling statement/g), 2,
	'an ID that is not ahead does not wait, but once, why the call failed');

# To a server without the extension the sequence is an ordinary one.
my $primary = Clients::server('primary', { allows_streaming => 1 });
$primary->backup('backup');
my $plain = PostgreSQL::Test::Cluster->new('plain', install_path => $ENV{INSTAID_PLAIN});
$plain->init_from_backup($primary, 'backup', has_streaming => 1);
$plain->start;
my $last = $primary->safe_psql('postgres', q{
	SET instaid.max_drift = '1h';
	SELECT instaid.create_shard('insta0', 0);
	CREATE SEQUENCE s;
	SELECT count(*) FROM insta0.next_ids(1000000, 's');
	CHECKPOINT;
	SELECT (max(id) >> 23) + 1314220021721 << 10 | 1023
	FROM insta0.next_ids(1000000, 's') AS id;});
$last =~ s/.*\n//s;
$primary->wait_for_catchup($plain);
$primary->stop('immediate');
$plain->promote;
my ($ret, $stdout, $stderr) = $plain->psql('postgres', q{SELECT instaid.next_id('s', 0)});
like($stderr, qr/could not access file.*instaid/, 'a standby does not have the extension');
cmp_ok($plain->safe_psql('postgres', q{SELECT nextval('s')}), '>', $last,
	'a standby does not have the extension, and its sequence goes on above the last ID');
$plain->stop;
unlike(slurp_file($plain->logfile), qr/PANIC|TRAP:|XX000/,
	'a standby does not have the extension, and it logged no error of its own');

done_testing();
