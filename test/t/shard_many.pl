# Very many shards with the default max_locks_per_transaction.  pg_regress cannot be used:
# the shards would be there in its other tests, and a dump and a restore with -j need
# programs of their own.
#
# No test asserts a duration, since the machine may be busy.  One test asserts that a
# duration does not grow with the number of shards.
#
# FULL=1 adds shards up to 8,192 instead of 1,024, and a database of 8,192 with 41,000 tables
# INSTAID_TEST_SHARDS, a multiple of 8, is another number of shards
# not in: version assert

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'time';

use Clients;

my $shards = $ENV{INSTAID_TEST_SHARDS} || ($ENV{FULL} ? 8192 : 1024);
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
is(timed('metrics', 'many', 'SELECT shards, unreadable FROM instaid.metrics'),
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
	'the owner of the database dumps it, and restores it with two jobs');
note(sprintf 'pg_restore -j 2: %.2f s', time - $start);
my $declarations = q{
	SELECT md5(string_agg(concat_ws(' ', schema_name, shard_id, epoch, sequence), ','
		ORDER BY shard_id))
	FROM instaid.shards};
is($node->safe_psql('copy', $declarations, @developer),
	$node->safe_psql('single', $declarations, @developer),
	'the owner of the database dumps it, with the same shards');
is($node->safe_psql('copy', "SELECT instaid.extract_shard_id(insta$last.next_id())", @developer),
	$last, 'the owner of the database dumps it: the shards make IDs');

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
	'the owner of the database dumps it, and max_locks_per_transaction = 512 is enough');

$node->stop;
how_far() if $ENV{FULL};
done_testing();

# What docs/clusters.md says of many shards with five tables each: each step succeeds, and
# its seconds or bytes are in the result.  fsync is off, as on all servers of these tests.
sub how_far
{
	my $far = Clients::server('far', 'max_locks_per_transaction = 512',
		'log_autovacuum_min_duration = 0');
	my $used = $shards < 1000 ? $shards : 1000;
	Clients::report(sprintf '%d shards with 5 tables each, PostgreSQL %s, load before: %s', $shards,
		$far->safe_psql('postgres', 'SHOW server_version'), slurp_file('/proc/loadavg') =~ /(\S+)/);

	# four roles, each with a part of the shards
	my @parts = map { [ "owner$_", $_ * $shards / 4, ($_ + 1) * $shards / 4 - 1 ] } 0 .. 3;
	$far->safe_psql('postgres', join '', 'CREATE DATABASE far;',
		map { "CREATE ROLE $_->[0]; GRANT CREATE ON DATABASE far TO $_->[0];" } @parts);
	$far->safe_psql('far', 'CREATE EXTENSION instaid');
	my $as_owners = sub {
		my ($what, $sql) = @_;
		my $all = join '', 'SET client_min_messages = warning;',
		  map { "SET SESSION AUTHORIZATION $_->[0];" . sprintf $sql, @$_[ 1, 2 ] } @parts;
		seconds($what, sub { $far->safe_psql('far', $all) });
	};
	$as_owners->('create_shards()', q{CALL instaid.create_shards('insta%%s', %d, %d);});
	# one transaction makes the tables of 64 shards
	$as_owners->('tables', q{
		DO $$ BEGIN
			FOR shard IN %d .. %d LOOP
				FOR number IN 1 .. 5 LOOP
					EXECUTE format('CREATE TABLE insta%%1$s.photos%%2$s (n integer,
						id bigint PRIMARY KEY DEFAULT insta%%1$s.next_id())', shard, number);
				END LOOP;
				IF shard %% 64 = 0 THEN COMMIT; END IF;
			END LOOP;
		END $$;});
	Clients::report($far->safe_psql('far', q{
		SELECT count(*) || ' relations, ' || pg_size_pretty(pg_database_size(current_database()))
		FROM pg_class}));

	my $insert  = sub { "INSERT INTO insta$_[0].photos1 (n) VALUES (1);" };
	my $session = Clients::session($far, 'far');
	$session->('SELECT 1');
	seconds("INSERT of a session into insta$_", sub { is($session->($insert->($_)), '') }) for 0, 1;
	for (1, $used)
	{
		my $inserts = join '', map { $insert->($_) } 0 .. $_ - 1;
		my $bytes   = $far->safe_psql('far', "$inserts $memory");
		Clients::report("memory of a session that has used $_ of the shards: $bytes bytes");
		cmp_ok($bytes, '<', 4e6 + $_ * 40e3,
			'the owner of the database dumps it: is below 4 MB and 40 kB for each shard');
	}
	seconds('VACUUM ANALYZE', sub { $far->safe_psql('far', 'VACUUM ANALYZE') });
	look($far);

	# Some sequences are an hour ahead of the clock, which a copy can know from them only.
	$far->safe_psql('far', qq{
		SELECT setval(sequence, (extract(epoch FROM now() + interval '1 h') * 1000)::bigint << 10)
		FROM instaid.shards WHERE shard_id < $used AND shard_id % 100 = 0;
		CREATE TABLE before AS SELECT schema_name, last_id, nspowner::regrole::text AS owner
			FROM instaid.shards JOIN pg_namespace ON nspname = schema_name});
	my $copied = sub {
		my ($server, $database, $how) = @_;
		$server->safe_psql($database, join '', 'SET client_min_messages = error;',
			map { $insert->($_) } 0 .. $used - 1);
		is($server->safe_psql($database, q{
			SELECT count(*), count(*) FILTER (WHERE shards.last_id > before.last_id)
			FROM instaid.shards JOIN before USING (schema_name)}),
			"$shards|$used", "$how: all shards are there, and next_id() goes on above");
		# five tables with an index, a sequence and three functions in each
		is($server->safe_psql($database, q{
			SELECT count(*) FROM before JOIN pg_namespace AS n ON nspname = schema_name
				JOIN (SELECT relnamespace, relowner FROM pg_class
					UNION ALL SELECT pronamespace, proowner FROM pg_proc) AS o (schema, role)
				ON schema = n.oid AND role = nspowner AND role::regrole::text = owner}),
			$shards * 14,
			"$how: all shards are there, and next_id() goes on above, and all that is in them"
			  . " has its owner");
	};
	my $file = "$dump.far";
	seconds('pg_dump -Fc', '-f', $file, '-d', $far->connstr('far'));
	for my $restore ('pg_restore -e -j 2', 'pg_restore -e -j 2 --use-set-session-authorization')
	{
		# the latter creates each schema as its owner
		$far->safe_psql('postgres', join '', 'CREATE DATABASE copy;',
			map { "GRANT CREATE ON DATABASE copy TO $_->[0];" } @parts);
		seconds($restore, '-d', $far->connstr('copy'), $file);
		$copied->($far, 'copy', $restore);
		$far->safe_psql('postgres', 'DROP DATABASE copy');
	}
	$far->stop;

	my $new = PostgreSQL::Test::Cluster->new('new');
	$new->init;
	$new->append_conf('postgresql.conf', 'max_locks_per_transaction = 512');
	chdir PostgreSQL::Test::Utils::tempdir or die $!;
	my $bin = $new->config_data('--bindir');
	seconds('pg_upgrade --link', '-b', $bin, '-d', $far->data_dir, '-p', $far->port,
		'-B', $bin, '-D', $new->data_dir, '-P', $new->port, '-s', $new->host);
	$new->start;
	$copied->($new, 'far', 'pg_upgrade');
	$new->stop;
	return;
}

# How long a worker of autovacuum looks at all tables when there is nothing to do: from its
# first message in the log to the one of its end
sub look
{
	my ($server) = @_;
	my $offset = -s $server->logfile;
	my $at     = qr/^\S+ \d+:(\d+):(\S+) /m;
	$server->append_conf('postgresql.conf', "autovacuum_naptime = 5s\nlog_min_messages = debug2");
	$server->reload;
	my $took;
	for (1 .. 300)
	{
		$took = ($4 - $1) % 60 * 60 + $5 - $2, last
		  if substr(slurp_file($server->logfile), $offset) =~ /
			$at .* \[(\d+)\] .* processing\ database\ "far"\n
			(?: (?! .* automatic\ (?:vacuum|analyze)) .*\n )*?
			$at .* \(PID\ \g3\)\ exited\ with\ exit\ code\ 0$/mx;
		sleep 1;
	}
	$server->append_conf('postgresql.conf', "autovacuum_naptime = 1min\nlog_min_messages = info");
	$server->reload;
	ok(defined $took, 'autovacuum looks at all tables, and finds nothing to do');
	Clients::report(sprintf q{autovacuum's look at all tables: %.3f s}, $took);
	return;
}

# Run code, or a program with these options, and note how long it took.
sub seconds
{
	my ($what, @how) = @_;
	my $start = time;
	ref $how[0] ? $how[0]->() : command_ok([ split(' ', $what), @how ], $what);
	Clients::report(sprintf '%s: %.3f s', $what, time - $start);
	return;
}
