# Copies of a server or a database: new IDs of a copy must be above all IDs of the original,
# and remain so after a crash of the copy.  The values of next_id(), of
# instaid_tickets.next() and of
# nextval() do not come again in copies that ALTER SEQUENCE makes, either.  dump_upgrade has
# the copies that pg_dump makes.
#
# Shard "light" gives IDs while it is copied and afterwards.
# not in: assert
# in: newest

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Copies;
use Docs;
use SqlEdition;

@Clients::extensions = ('instaid', 'instaid_tickets');

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
	'OWNED BY'     => 'ALTER SEQUENCE %1$s.%2$I OWNED BY copied.owner.id',
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
	"CREATE EXTENSION instaid; CREATE EXTENSION instaid_tickets; $calls
	CREATE TABLE copied.owner (id bigint)");
$main->safe_psql('altered', "SELECT add_calls('$_')") for sort keys %forms;
$main->safe_psql('altered', 'SELECT take(), use()');
$main->safe_psql('altered', qq{
	SELECT format('$forms{$_}', relnamespace::regnamespace, relname)
	FROM pg_class WHERE relname ~ '^$_ next' AND relkind = 'S' ORDER BY relname \\gexec
}) for sort keys %forms;
# it sets them back
$main->safe_psql('altered', q{DELETE FROM taken WHERE call ~ 'RESTART'});
goes_on('ALTER SEQUENCE', $main, 'altered');

### Logical replication, and a switchover to the subscriber

# Sequences are not replicated; the documentation has a command that copies their state.
my ($procedure) =
  section_blocks('docs/operations.md', 'Switching over to a logical subscriber');
ok($procedure, 'the documentation has a command for a switchover');
my ($positions) = $procedure->{text} =~ /'(.*)'/;
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
$subscriber->safe_psql('postgres', $main->safe_psql('postgres', $positions));
# sequences of others have no positions of instaid
$subscriber->safe_psql('postgres', $main->safe_psql('postgres', q{
	SELECT format('SELECT setval(%L, %s);', format('%I.%I', schemaname, sequencename), last_value)
	FROM pg_sequences WHERE schemaname = 'copied'}));
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');
is($subscriber->safe_psql('postgres', 'SELECT max(id) FROM ahead.photos'), $last{ahead},
	'logical replication: the rows are there');
goes_on('logical replication', $subscriber, 'postgres', %last);
$subscriber->stop;
### The positions of a newer state, in an older one

# Names that psql or SQL could take for something else
my $odd = q{it's :a "b" \c};
for my $edition ('extension', 'SQL edition')
{
	my ($newer, $older) = map { $edition eq 'extension' ? "${_}_c" : "${_}_sql" } 'newer', 'older';
	my @as = ();
	if ($edition eq 'extension')
	{
		$main->safe_psql('postgres', "CREATE DATABASE $newer");
		$main->safe_psql($newer, q{
			CREATE EXTENSION instaid;
			SELECT instaid.create_shard('insta5', 5);
			CREATE SEQUENCE insta5.likes_id_seq;
			CREATE TABLE insta5.likes (id bigint DEFAULT insta5.next_id('insta5.likes_id_seq'));
			CREATE SEQUENCE lone;
			CREATE TABLE photos (id bigint DEFAULT instaid.next_id('lone', 13))});
	}
	else
	{
		$main->safe_psql('postgres', 'CREATE ROLE dba LOGIN; CREATE ROLE app LOGIN');
		SqlEdition::install($main, $newer);
		@as = ('-U', 'dba');
		$main->safe_psql($newer, q{SELECT instaid.add_sequence('insta5', 'likes_id_seq');
			CREATE TABLE insta5.likes (id bigint DEFAULT insta5.next_id('insta5.likes_id_seq'));
			INSERT INTO insta5.likes DEFAULT VALUES}, extra_params => \@as);
	}
	$main->safe_psql($newer, q{
		SET client_min_messages = error;
		SELECT instaid.create_shard('insta6', 6), instaid.create_shard('insta7', 7),
			instaid.create_shard('back', 8), instaid.create_shard('unused', 9),
			instaid.create_shard('low', 12),
			instaid.create_shard('} . $odd =~ s/'/''/gr . q{', 10,
			'2026-01-01 00:00:00.123 UTC', '} . $odd =~ s/'/''/gr . q{');
		SELECT insta6.next_id(), insta7.next_id(), back.next_id();
		SELECT instaid.freeze_shard('insta7'), instaid.freeze_shard('back'),
			instaid.freeze_shard('low');
		}, extra_params => \@as);
	$main->safe_psql('postgres', "CREATE DATABASE $older TEMPLATE $newer");

	# the newer state: IDs that the clock does not know, a shard that moved away and one that
	# came back, one that was frozen again, and what the older state does not have
	$main->safe_psql($newer, q{
		SET client_min_messages = error;
		SELECT instaid.thaw_shard('low');
		SELECT instaid.advance_past(s, instaid.min_id(now() + interval '1 h', epoch), epoch)
		FROM instaid.shards, instaid._shard_sequences(schema_name) AS s
		WHERE NOT frozen AND schema_name <> 'unused';
		SELECT instaid.freeze_shard('insta6'), instaid.thaw_shard('back'),
			instaid.freeze_shard('low');
		SELECT back.next_id();
		SELECT instaid.create_shard('gone', 11);
		SELECT gone.next_id()}, extra_params => \@as);
	my $lone = $edition eq 'extension' && $main->safe_psql($newer, q{
		SELECT instaid.advance_past('lone', instaid.min_id(now() + interval '1 h'),
			instaid.default_epoch());
		INSERT INTO photos DEFAULT VALUES RETURNING id});
	my %was = (
		ids => $main->safe_psql($newer, q{
			SELECT max(instaid._last_id(q, shard_id, epoch))
			FROM instaid.shards, instaid._shard_sequences(schema_name) AS q
			WHERE schema_name = 'insta5'}, extra_params => \@as),
		odd => $main->safe_psql($newer,
			q{SELECT last_id FROM instaid.shards WHERE shard_id = 10}, extra_params => \@as),
		low => $main->safe_psql($newer,
			q{SELECT last_id FROM instaid.shards WHERE shard_id = 12}, extra_params => \@as),
		back => $main->safe_psql($newer,
			q{SELECT last_id FROM instaid.shards WHERE shard_id = 8}, extra_params => \@as));

	my $file = "$tablespace/$newer.sql";
	$main->command_ok([ 'psql', '-XqAtd', $main->connstr($newer), @as, '-c',
		'SELECT instaid.dump_positions()', '-o', $file ], "$edition: positions of the newer state");
	# twice: it never goes back, and what is there twice does no harm
	for my $time ('first', 'second')
	{
		my $shown = '';
		local $ENV{PGOPTIONS} = $time eq 'first'
		  ? '-c default_transaction_isolation=serializable' : '';
		ok(IPC::Run::run([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d',
			$main->connstr($older), @as, '-o', '/dev/null', '-f', $file ], '>&', \$shown),
			"$edition: the $time run in the older state goes to the end");
		my @told = $shown =~ /(?:WARNING|HINT):  (.*)/g;
		is("@told", 'position of sequence gone.table_id_seq not restored: it does not exist'
			  . ' If it has another name here, repeat the call with that name.',
			"$edition: restoring names what is missing");
		is($main->safe_psql($older, q{
			SELECT string_agg(schema_name, ' ' ORDER BY schema_name COLLATE "C") FROM instaid.shards
			WHERE frozen}, extra_params => \@as), 'back insta6 insta7 low',
			"$edition: what is frozen in one of them is frozen");
	}
	is($main->safe_psql($older, qq{
		SET client_min_messages = error;
		SELECT insta5.next_id() > $was{ids}, min(id) > $was{ids} FROM (
			SELECT insta5.next_id('insta5.likes_id_seq') AS id) AS i;
		SELECT instaid.thaw_shard('low'), instaid.thaw_shard('back');
		SELECT low.next_id() > $was{low}, back.next_id() > $was{back};
		SELECT min(id) > $was{odd} FROM "} . $odd =~ s/"/""/gr . q{".next_ids(2) AS id;
		SELECT unused.next_id() < instaid.min_id(now() + interval '1 min')}, extra_params => \@as),
		"t|t\n|\nt|t\nt\nt", "$edition: IDs go on above the newer state");
	is($main->safe_psql($older, "INSERT INTO photos DEFAULT VALUES RETURNING id > $lone"), 't',
		"$edition: IDs go on above the newer state, and those of a sequence that no shard"
		  . " has") if $lone;
	# what another transaction renames is named, and not left out; what one waits to alter is read
	my $altering = Clients::session($main, $newer);
	$altering->('BEGIN; ALTER SEQUENCE insta5.table_id_seq RENAME TO other;
		ALTER SEQUENCE insta6.table_id_seq RENAME TO other;
		SELECT pg_sequence_last_value(\'back.table_id_seq\')');
	my $waiting = IPC::Run::start([ 'psql', '-XqAt', '-d', $main->connstr($newer), '-c',
		'ALTER SEQUENCE back.table_id_seq CACHE 1' ], IPC::Run::timeout(180));
	$main->poll_query_until($newer, 'SELECT count(*) = 1 FROM pg_locks WHERE NOT granted')
	  or die 'nobody waits';
	$main->psql($newer, 'SELECT instaid.dump_positions()', stdout => \my $out, stderr => \my $err,
		extra_params => \@as);
	my @altered = ('insta5.table_id_seq', 'insta6.table_id_seq');
	is_deeply([ sort $err =~ /WARNING:  the position of sequence (\S+) is left out/g ],
		\@altered, "$edition: a position that cannot be read is told");
	is(Clients::hints($err), join("\n",
			('Correct that, and call dump_positions() again, as a superuser.') x 2),
		"$edition: dump_positions() says what to do about a position that it leaves out");
	is_deeply([ sort $out =~ /restore_position\('(\S+)', NULL\)/g ], \@altered,
		"$edition: dump_positions() says what to do about a position that it leaves out, and the"
		  . " file says so, too");
	$altering->('ROLLBACK');
	$waiting->finish;
	# nor is what others lock for a moment, between two looks
	append_to_file("$tablespace/alter.sql",
		"BEGIN;\nALTER SEQUENCE back.table_id_seq CACHE 1;\nCOMMIT;\n\\sleep 1 ms\n")
	  if $edition eq 'extension';
	my $pgbench = IPC::Run::start([ 'pgbench', '-n', '-T', '60', '-f', "$tablespace/alter.sql",
		$main->connstr($newer) . ($as[1] ? " user=$as[1]" : '') ], '&>', '/dev/null');
	(undef, undef, $err) = $main->psql($newer, q{
		SET client_min_messages = error;
		DO $$
		DECLARE
			missing integer := 0;
		BEGIN
			FOR n IN 1 .. 200 LOOP
				PERFORM FROM instaid.dump_positions() AS d WHERE d ~ 'back.table_id_seq';
				missing := missing + (NOT FOUND)::integer;
			END LOOP;
			SET LOCAL client_min_messages = notice;
			RAISE NOTICE '% missing', missing;
		END $$}, extra_params => \@as);
	$pgbench->kill_kill;
	like($err, qr/NOTICE:  0 missing/, "$edition: a sequence that is altered is in each file");
	# what another transaction locks does not stop the file
	my $locking = Clients::session($main, $older);
	$locking->(q{BEGIN; ALTER SEQUENCE insta5.table_id_seq CACHE 1;
		ALTER SEQUENCE back.table_id_seq CACHE 1;
		SELECT pg_sequence_last_value('insta6.table_id_seq')});
	my $shown = '';
	local $ENV{PGOPTIONS} = '-c statement_timeout=60s';
	ok(IPC::Run::run([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $main->connstr($older), @as,
		'-o', '/dev/null', '-f', $file ], '>&', \$shown),
		"$edition: a run while sequences are locked goes to the end");
	is(join(' ', sort $shown =~ /position of sequence (\S+) not restored: .* lock timeout/g),
		'back.table_id_seq insta5.table_id_seq insta6.table_id_seq', "$edition: a run while"
			  . " sequences are locked goes to the end, and names them");
	(undef, undef, $err) = $main->psql($older, q{SELECT instaid.restore_position(
		'insta5.table_id_seq', 5, instaid.default_epoch(), 'insta5', true)}, extra_params => \@as);
	like($err, qr/WARNING:  position of sequence insta5\.table_id_seq not restored: .* lock timeout
DETAIL:  .*\nHINT:  Correct the cause, and repeat the call\.$/m,
		"$edition: a run while sequences are locked goes to the end, also one of a frozen shard");
	$locking->('ROLLBACK');
	# nor is a schema that the role may not use an error
	(undef, undef, $err) = $main->psql($newer, q{SET ROLE pg_monitor;
		SELECT instaid.restore_position('insta5.table_id_seq', 5, instaid.default_epoch())});
	like($err, qr/WARNING:  position of sequence insta5\.table_id_seq not restored: permission/,
		"$edition: a run while sequences are locked goes to the end, and a position that the"
		  . " role cannot set");
}

$main->stop;

done_testing();
