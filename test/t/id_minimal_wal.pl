# Sequences whose file is new, with wal_level = minimal.  Then nothing of the file is in the
# WAL before the transaction commits: not what it issues, and not where it starts.
# pg_regress cannot crash a server.
# not in: assert_short

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use Clients;

# With this wal_skip_threshold new files are logged when the transaction commits.
my $node = Clients::server('main', 'wal_level = minimal', 'max_wal_senders = 0',
	'wal_skip_threshold = 1GB', 'checkpoint_timeout = 1d');

# IDs of the transaction that created the sequence are not in the WAL.  IDs after its commit
# must be.
$node->safe_psql('postgres', q{SELECT instaid.create_shard('insta5', 5)});
for my $way ('CREATE SEQUENCE s', 'ALTER SEQUENCE s RESTART')
{
	# seconds ahead of the clock at the commit: only WAL can say where the sequence is
	my $last = $node->safe_psql('postgres', qq{
		SET instaid.max_drift = '1h';
		BEGIN;
		$way;
		SELECT max((SELECT max(id) FROM insta5.next_ids(1000000 + 0 * n, 's') AS id))
		FROM generate_series(1, 8) AS n;
		COMMIT;
		SELECT max(id) FROM insta5.next_ids(1000, 's') AS id;});
	$last =~ s/.*\n//s;
	$node->stop('immediate');
	$node->start;
	my $next = $node->safe_psql('postgres', q{
		SET client_min_messages = error;
		SELECT instaid.next_id('s', 5)});
	cmp_ok($next, '>', $last, "$way: IDs go on after a crash");
	$node->safe_psql('postgres', q{SELECT setval('s', 1)});
}

# The WAL writer soon flushes a record of a transaction that does not commit.  Nothing
# else flushes it here.
is($node->safe_psql('postgres', q{
	CREATE SEQUENCE open;
	CHECKPOINT;
	BEGIN;
	SELECT instaid.next_id('open', 5) > 0;
	DO $$
	DECLARE logged pg_lsn := pg_current_wal_insert_lsn();
	BEGIN
		FOR i IN 1 .. 600 LOOP
			EXIT WHEN pg_current_wal_flush_lsn() >= logged;
			PERFORM pg_sleep(0.1);
		END LOOP;
		PERFORM set_config('test.flushed', (pg_current_wal_flush_lsn() >= logged)::text, false);
	END $$;
	SELECT current_setting('test.flushed')}),
	"t\ntrue", 'the record of an open transaction is soon flushed');

# Other sessions use the old file in the millisecond of a RESTART.  They wait until the
# millisecond is over, and notifications interrupt this wait.
$node->safe_psql('postgres', 'CREATE TABLE ids (id bigint); CREATE SEQUENCE r');
append_to_file($node->basedir . '/restart.sql', q{LISTEN restarted;
BEGIN;
ALTER SEQUENCE r RESTART;
INSERT INTO ids SELECT instaid.next_id('r', 5);
NOTIFY restarted;
COMMIT;
});
$node->command_ok(
	[ 'pgbench', '-n', '-c', '8', '-t', '300', '-f', $node->basedir . '/restart.sql',
		$node->connstr('postgres') ],
	'sessions restart a sequence in turn');
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM ids'),
	'2400|2400', 'sessions restart a sequence in turn, and no ID comes twice');

$node->stop;
unlike(slurp_file($node->logfile), qr/\bleak\b|PANIC|TRAP:|XX000/,
	'the server logged no leak, and no error of its own');
done_testing();
