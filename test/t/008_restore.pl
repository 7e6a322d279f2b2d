# Copies of a server or a database: new IDs of a copy must be above all IDs of the original,
# and remain so after a crash of the copy.  The values of next_id(), next_ticket() and
# nextval() do not come again in copies that ALTER SEQUENCE makes, either.  027_dump has
# the copies that pg_dump makes.
#
# Shard "light" gives IDs while it is copied and afterwards.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Copies;
use Docs;

my $main = Clients::server('main', { has_archiving => 1, allows_streaming => 'logical' });
$main->safe_psql('postgres', "$shards $calls SELECT add_calls('copied'), take()");
$main->safe_psql('postgres', "$fill SELECT use()");
my %last = last_ids($main, 'postgres');

### pg_basebackup, and recovery to a point in time, under load

my $clients =
  Clients->start($main, ('INSERT INTO light.photos DEFAULT VALUES RETURNING id;') x 4);
$main->backup('backup');
$main->safe_psql('postgres', $fill);
my %later = last_ids($main, 'postgres');
my $segment = $main->safe_psql('postgres',
	q{SELECT pg_walfile_name(pg_create_restore_point('later'))});
$main->safe_psql('postgres', 'SELECT pg_switch_wal()');
$main->poll_query_until('postgres',
	"SELECT last_archived_wal >= '$segment' FROM pg_stat_archiver") or die;
$clients->stop;
$last{light} = $later{light} = Clients::summary($clients->files)->{last};

my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($main, 'backup');
$copy->append_conf('postgresql.conf', "archive_mode = off\n");	# it is on the same timeline
$copy->start;
goes_on('pg_basebackup', $copy, 'postgres', %last);
$copy->stop;

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($main, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', "archive_mode = off\n");
$standby->start;
$main->wait_for_catchup($standby);
$standby->promote;
goes_on('promoted standby', $standby, 'postgres', %last);
$standby->stop;

my $point = PostgreSQL::Test::Cluster->new('point');
$point->init_from_backup($main, 'backup', has_restoring => 1, standby => 0);
$point->append_conf('postgresql.conf',
	"recovery_target_name = 'later'\nrecovery_target_action = 'promote'\n");
$point->start;
$point->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die;
goes_on('point in time', $point, 'postgres', %later);
$point->stop;

### A copy of a database

%last = last_ids($main, 'postgres');
$main->safe_psql('template1', 'CHECKPOINT');
for my $strategy ('wal_log', 'file_copy')
{
	$main->safe_psql('postgres', 'SELECT use()');
	$main->safe_psql('template1',
		"CREATE DATABASE $strategy TEMPLATE postgres STRATEGY $strategy");
	goes_on("TEMPLATE, $strategy", $main, $strategy, %last);
}
my $tablespace = PostgreSQL::Test::Utils::tempdir;
$main->safe_psql('postgres', "CREATE TABLESPACE elsewhere LOCATION '$tablespace'");
%last = last_ids($main, 'wal_log');
$main->safe_psql('wal_log', 'SELECT use()');
$main->safe_psql('postgres', 'ALTER DATABASE wal_log SET TABLESPACE elsewhere');
goes_on('SET TABLESPACE', $main, 'wal_log', %last);

### ALTER SEQUENCE

# Each form, most of which copy the sequence to a new file; where %1$s.%2$I is the sequence
my %forms = (
	'START'        => 'ALTER SEQUENCE %1$s.%2$I START 7',
	'RESTART'      => 'ALTER SEQUENCE %1$s.%2$I RESTART',
	'RESTART WITH' => 'ALTER SEQUENCE %1$s.%2$I RESTART WITH 5000',
	'MINVALUE'     => 'ALTER SEQUENCE %1$s.%2$I MINVALUE 0',
	'MAXVALUE'     => 'ALTER SEQUENCE %1$s.%2$I MAXVALUE 9223372036854775806',
	'INCREMENT'    => 'ALTER SEQUENCE %1$s.%2$I INCREMENT 1',
	'CACHE'        => 'ALTER SEQUENCE %1$s.%2$I CACHE 1',
	'NO CYCLE'     => 'ALTER SEQUENCE %1$s.%2$I NO CYCLE',
	'AS'           => 'ALTER SEQUENCE %1$s.%2$I AS bigint',
	'OWNED BY'     => 'ALTER SEQUENCE %1$s.%2$I OWNED BY instaid_tickets.owner.id',
	'OWNER TO'     => 'ALTER SEQUENCE %1$s.%2$I OWNER TO CURRENT_USER',
	'SET LOGGED'   => 'ALTER SEQUENCE %1$s.%2$I SET UNLOGGED;
		ALTER SEQUENCE %1$s.%2$I SET LOGGED',
	'SET SCHEMA'   => 'ALTER SEQUENCE %1$s.%2$I SET SCHEMA public;
		ALTER SEQUENCE %2$I SET SCHEMA %1$s',
	'RENAME'       => 'ALTER SEQUENCE %1$s.%2$I RENAME TO other;
		ALTER SEQUENCE %1$s.other RENAME TO %2$I',
	'ROLLBACK'     => 'BEGIN; ALTER SEQUENCE %1$s.%2$I START 7; ROLLBACK');
$main->safe_psql('postgres', 'CREATE DATABASE altered');
$main->safe_psql('altered',
	"CREATE EXTENSION instaid; CREATE TABLE instaid_tickets.owner (id bigint); $calls");
$main->safe_psql('altered', "SELECT add_calls('$_')") for sort keys %forms;
$main->safe_psql('altered', 'SELECT take(), use()');
$main->safe_psql('altered', qq{
	SELECT format('$forms{$_}', relnamespace::regnamespace, relname)
	FROM pg_class WHERE relname ~ '^$_ (next|nextval)' ORDER BY relname \\gexec
}) for sort keys %forms;
# it sets them back
$main->safe_psql('altered', q{DELETE FROM taken WHERE call ~ 'RESTART'});
goes_on('ALTER SEQUENCE', $main, 'altered');

### Logical replication, and a switchover to the subscriber

# Sequences are not replicated; the documentation has a statement that copies their state.
my ($procedure) =
  section_blocks('docs/operations.md', 'Switching over to a logical subscriber');
ok($procedure, 'the documentation has a statement for a switchover');
my $subscriber = Clients::server('subscriber', { allows_streaming => 'logical' });
$subscriber->safe_psql('postgres', "$shards $calls SELECT add_calls('copied')");
$main->safe_psql('postgres',
	'CREATE PUBLICATION p FOR TABLE light.photos, ahead.photos, taken');
$subscriber->safe_psql('postgres', sprintf 'CREATE SUBSCRIPTION s CONNECTION $$%s$$ PUBLICATION p',
	$main->connstr('postgres'));
$subscriber->wait_for_subscription_sync($main, 's');
$main->safe_psql('postgres', $fill);
%last = last_ids($main, 'postgres');
$main->wait_for_catchup('s');
$subscriber->safe_psql('postgres', $main->safe_psql('postgres', $procedure->{text}));
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');
is($subscriber->safe_psql('postgres', 'SELECT max(id) FROM ahead.photos'), $last{ahead},
	'logical replication: the rows are there');
goes_on('logical replication', $subscriber, 'postgres', %last);
$subscriber->stop;
$main->stop;

done_testing();
