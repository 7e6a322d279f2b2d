# Very many shards with the default max_locks_per_transaction.  pg_regress cannot be used:
# the shards would be there in its other tests, and a dump and a restore with -j need
# programs of their own.
#
# No test asserts a duration, since the machine may be busy.  One test asserts that a
# duration does not grow with the number of shards.
#
# FULL=1 adds shards up to 8,192 instead of 1,024, and the time of the last create_shard()

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'time';

use Clients;

my $shards = $ENV{FULL} ? 8192 : 1024;
my $last = $shards - 1;

my $node = Clients::server('main', { auth_extra => [ '--create-role', 'developer' ] });
# PostgreSQL 19 needs twice as much for as many locks
is($node->safe_psql('postgres', 'SHOW max_locks_per_transaction'),
	$node->pg_version->major >= 19 ? 128 : 64, 'max_locks_per_transaction is at its default');

# The databases belong to an ordinary role, which does all of the following.
$node->safe_psql('postgres', 'CREATE ROLE developer LOGIN CREATEDB');
$node->safe_psql('postgres', "CREATE DATABASE $_ OWNER developer") for 'many', 'single', 'copy';
my @developer = (extra_params => [ '-U', 'developer' ]);
$node->safe_psql($_, 'CREATE EXTENSION instaid', @developer) for 'many', 'single';

# run some SQL, and note how long it took
sub timed
{
	my ($what, $database, $sql) = @_;
	my $start = time;
	my $result = $node->safe_psql($database, "SET client_min_messages = warning; $sql", @developer);
	note(sprintf '%s: %.2f s', $what, time - $start);
	return $result;
}

# a statement for each shard, in which INSTA stands for its schema
sub for_each
{
	my ($sql) = @_;
	return join '', map { $sql =~ s/INSTA/insta$_/gr . ";\n" } 0 .. $last;
}

# create_shards() was interrupted, and goes on where it stopped
my $half = int($shards / 2);
timed('create_shards(), the first half', 'many', "CALL instaid.create_shards('insta%s', 0, $half)");
timed('create_shards(), all', 'many', "CALL instaid.create_shards('insta%s', 0, $last)");
is($node->safe_psql('many', q{
	SELECT count(*), count(DISTINCT shard_id), min(shard_id), max(shard_id),
		count(DISTINCT sequence)
	FROM instaid.shards}, @developer),
	"$shards|$shards|0|$last|$shards", "$shards shards");

# The last call of create_shard() takes as long as the first.  If each call read a list
# of all 8,192 shards, the last would take ten times as long.
if ($ENV{FULL})
{
	my @took;
	for my $part (0 .. 7)
	{
		my $size = $shards / 8;
		my $start = time;
		$node->safe_psql('single',
			join('', map { "SELECT instaid.create_shard('insta$_', $_);\n" }
				$part * $size .. ($part + 1) * $size - 1), @developer);
		push @took, time - $start;
	}
	note(sprintf 'create_shard(), in eighths: %s s', join ', ', map { sprintf '%.2f', $_ } @took);
	my ($first, $end) =
	  map { (sort { $a <=> $b } @$_)[1] } [ @took[ 0 .. 3 ] ], [ @took[ 4 .. 7 ] ];
	cmp_ok($end, '<', 3 * $first, 'create_shard() takes no longer when there are many shards');
}
else
{
	timed('create_shards()', 'single', "CALL instaid.create_shards('insta%s', 0, $last)");
}

# A table with rows in each shard
my $insert = 'INSERT INTO INSTA.photos (n) VALUES (1)';
timed('a table in each', 'many', for_each(
	'CREATE TABLE INSTA.photos (id bigint PRIMARY KEY DEFAULT INSTA.next_id(), n integer)'));
timed('a row in each', 'many', for_each($insert));
is(timed('the view', 'many', 'SELECT count(last_id) FROM instaid.shards'), $shards,
	'the view has the last ID of each');
is(timed('audit()', 'many', 'SELECT count(*) FROM instaid.audit()'), 0, 'audit() finds nothing');
timed('freeze and thaw', 'many',
	"SELECT instaid.freeze_shard('insta$last'); SELECT instaid.thaw_shard('insta$last')");
is(timed('metrics', 'many', 'SELECT shards, unreadable_shards FROM instaid.metrics'),
	"$shards|0", 'metrics counts all of them');
# in one transaction: the views, audit() and freeze_shard() do not keep a lock for each shard
timed('all of it in one transaction', 'many', qq{
	BEGIN;
	SELECT count(*) FROM instaid.shards;
	SELECT * FROM instaid.metrics;
	SELECT count(*) FROM instaid.audit();
	SELECT instaid.freeze_shard('insta$last');
	ROLLBACK});

# The memory that a session keeps; only a superuser may see it
my $memory = 'SELECT coalesce(sum(total_bytes), 0) FROM pg_backend_memory_contexts';
my $of_one = $node->safe_psql('many', "INSERT INTO insta5.photos (n) VALUES (1); $memory");
cmp_ok($of_one, '<', 2 * 1024 * 1024, "a session that uses one shard keeps $of_one bytes");
my $of_all = $node->safe_psql('many', for_each($insert) . "$memory WHERE name ~ '^instaid'");
cmp_ok($of_all, '<', 1024 * 1024,
	"instaid keeps $of_all bytes in a session that uses all of them");

# An ordinary role dumps and restores the database
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
my $start = time;
$node->command_ok(
	[ 'pg_dump', '-U', 'developer', '-Fc', '-f', $dump, '-d', $node->connstr('single') ],
	'the owner of the database dumps it');
note(sprintf 'pg_dump: %.2f s', time - $start);
$start = time;
# --no-owner, since ALTER FUNCTION ... OWNER TO looks the name up among all shards
$node->command_ok(
	[ 'pg_restore', '-e', '-j', '2', '--no-owner', '-U', 'developer',
		'-d', $node->connstr('copy'), $dump ],
	'... and restores it with two jobs');
note(sprintf 'pg_restore -j 2: %.2f s', time - $start);
my $declarations = q{
	SELECT md5(string_agg(concat_ws(' ', schema_name, shard_id, epoch, sequence), ','
		ORDER BY shard_id))
	FROM instaid.shards};
is($node->safe_psql('copy', $declarations, @developer),
	$node->safe_psql('single', $declarations, @developer), '... with the same shards');
is($node->safe_psql('copy', "SELECT instaid.extract_shard_id(insta$last.next_id())", @developer),
	$last, '... which make IDs');

# DROP EXTENSION takes a lock for each function and each table with a default.
my ($ret, $stdout, $stderr) = $node->psql('many',
	'SET client_min_messages = error; DROP EXTENSION instaid CASCADE', @developer);
like($stderr,
	$shards > 4000 ? qr/ERROR:  out of shared memory\nHINT:  You might need to increase/ : qr/^$/,
	'DROP EXTENSION needs more locks than the default allows for 8,192 shards');
$node->append_conf('postgresql.conf', "max_locks_per_transaction = 512\n");
$node->restart;
timed('DROP EXTENSION', 'many', 'DROP EXTENSION IF EXISTS instaid CASCADE');
is($node->safe_psql('many', q{SELECT count(*) FROM pg_proc WHERE proname ~ '^next_ids?$'}), '0',
	'... and max_locks_per_transaction = 512 is enough');

$node->stop;
done_testing();
