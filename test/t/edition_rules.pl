# The rules of the SQL edition (sql-edition/): each has a check here, which
# passes on the script, and fails on a copy of the script that breaks the rule.  Clocks
# are stopped and servers killed, which pg_regress cannot do.
# not in: version assert

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use SqlEdition;
use Clock;

my $clock = Clock->new;
my $node  = SqlEdition::server('main', $clock, 'autovacuum = off');
# a whole second, at which the clock can stand still; timeouts do not end then
my $noon = 60 + int time;

# The result of statements, or their error with its SQLSTATE
sub result
{
	my ($database, $role, $sql) = @_;
	my ($out, $err) = ('', '');
	$node->psql($database, "\\set VERBOSITY sqlstate\n$sql", extra_params => [ '-U', $role ],
		stdout => \$out, stderr => \$err,
		on_error_stop => 0, on_error_die => 0);
	$err =~ s/^psql:\S+ //mg;
	$err =~ s/^(NOTICE|WARNING):.*\n//mg;
	return join "\n", grep { /\S/ } $out, $err;
}

sub session
{
	my ($database, $role) = @_;
	local $ENV{PGUSER} = $role;
	return Clients::session($node, $database);
}

# Start statements of a role in a session of its own.  Returns a function that waits until they wait
# for a lock, and returns "waits", or their result if they do not wait; with an argument, only that.
my $started = 0;

sub waiter
{
	my ($database, $role, $sql) = @_;
	my ($name, $out, $err) = ('waiter' . ++$started, '', '');
	my $psql = IPC::Run::start([ $node->installed_command('psql'), '-XqAt', '-v',
		'VERBOSITY=sqlstate', '-U', $role, '-d', $node->connstr($database)
		. " application_name='$name'" ],
		'<', \"$sql;\n\\q\n", '>', \$out, '2>', \$err, IPC::Run::timeout(120));
	my $waits = "SELECT 'waits' FROM pg_locks JOIN pg_stat_activity USING (pid)
		WHERE application_name = '$name' AND NOT granted LIMIT 1";
	return sub {
		while ($psql->pumpable)
		{
			$psql->pump_nb;
			return 'waits' if !@_ && $node->safe_psql('postgres', $waits);
		}
		$psql->finish;
		$err =~ s/^(NOTICE|WARNING):.*\n//mg;
		return join "\n", grep { /\S/ } map { s/\s+\z//r } $out, $err;
	};
}

# The result of a statement of app, or "waits" if it waits for a lock that a session of dba has.
# The statements before it do not count.  If the session of dba is to end in another way than by
# ROLLBACK, the result comes after the wait.
sub waits
{
	my ($database, $lock, $before, $sql, $end) = @_;
	my $holder = session($database, 'dba');
	$holder->("BEGIN; $lock");
	my $waiter = waiter($database, 'app', "$before\n$sql");
	my $state  = $waiter->();
	$holder->($end // 'ROLLBACK');
	my $result = $waiter->('end');
	return $end ? $result : $state;
}

# The first ID of shard 5 in a millisecond, in seconds since 1970
sub first_id { return (int($_[0] * 1000 + 0.5) - 1314220021721) * 8388608 + 5120 }

my $lock = 'LOCK TABLE insta5.id_sequence_lock IN SHARE UPDATE EXCLUSIVE MODE';

# Each check gets a database, and returns what it has seen.
my %seen = (
	# the clock stands still, and another session has the lock
	late => sub {
		my ($database) = @_;
		$clock->set(0, $noon);
		result($database, 'dba', sprintf q{SELECT setval('insta5.table_id_seq', %d)},
			first_id($noon - 0.05));
		my $late = waits($database, $lock, '', 'SELECT insta5.next_id() - '
			. first_id($noon - 0.05));
		$clock->set(0);
		return $late;
	},
	queue => sub {
		my ($database) = @_;
		$clock->set(0, $noon + 1);
		my $queued = waits($database, $lock, '', 'SELECT insta5.next_id() > 0');
		$clock->set(0);
		return $queued;
	},
	planted => sub {
		my ($database) = @_;
		$clock->set(0, $noon + 2);
		my $planted = waits($database, $lock, q{
			CREATE TEMPORARY VIEW id_sequence_lock AS SELECT 1;
			GRANT ALL ON id_sequence_lock TO PUBLIC;
			SET search_path = pg_temp, insta5;}, 'SELECT insta5.next_id() > 0');
		$clock->set(0);
		return $planted;
	},
	# what SECURITY.md says of a role that has USAGE on the schema, and no other right
	named => sub {
		my ($database) = @_;
		$clock->set(0, $noon + 5);
		$node->safe_psql($database, q{SET client_min_messages = error; DROP ROLE IF EXISTS stranger;
			CREATE ROLE stranger LOGIN; CREATE SCHEMA mine AUTHORIZATION stranger;
			CREATE TABLE mine.gate (); ALTER TABLE mine.gate OWNER TO stranger;
			GRANT USAGE ON SCHEMA insta5 TO stranger});
		my $gate = session($database, 'stranger');
		$gate->('BEGIN; LOCK TABLE mine.gate');
		my @waiters = map {
			my $waiter = waiter($database, @$_);
			$waiter->();
			$waiter
		} [ 'stranger', 'CREATE TEMP TABLE c () INHERITS (insta5.id_sequence_lock, mine.gate)' ],
			[ 'app', 'SELECT insta5.next_id() > 0' ];
		my $named = $node->safe_psql($database, q{
			SELECT b.usename, b.query ~ 'INHERITS' FROM pg_stat_activity AS w
			JOIN pg_stat_activity AS b ON b.pid = ANY (pg_blocking_pids(w.pid))
			WHERE w.usename = 'app' AND w.datname = current_database()});
		$gate->('ROLLBACK');
		my $results = join ' ', $named, map { $_->('end') =~ s/ERROR: +//r } @waiters;
		$clock->set(0);
		$node->safe_psql($database, 'DROP OWNED BY stranger; DROP ROLE stranger');
		return $results;
	},
	kept => sub {
		my ($database) = @_;
		return result($database, 'app', q{
			BEGIN;
			SELECT insta5.next_id() > 0 \g /dev/null
			SELECT insta5.next_id() > 0, count(*) FROM insta5.next_ids(3000) \g /dev/null
			SELECT count(*) FROM pg_locks WHERE mode = 'ShareUpdateExclusiveLock'});
	},
	# how many of five IDs that committed SELECTs returned come again after a crash
	repeated => sub {
		my ($database) = @_;
		$clock->set(0);
		result($database, 'app', 'SELECT insta5.next_id()');
		$node->safe_psql($database, 'CHECKPOINT');
		$clock->set(-3600);
		my ($open, $other) = map { session($database, 'app') } 1, 2;
		$other->('SELECT 1');
		# what flushes WAL in the background
		kill 'STOP', split /\n/, $node->safe_psql($database, q{SELECT pid FROM pg_stat_activity
			WHERE backend_type IN ('walwriter', 'background writer', 'checkpointer')});
		$open->('BEGIN; SELECT count(insta5.next_id()) FROM generate_series(1, 1500)');
		# the five write no WAL of their own
		$open->('SELECT insta5.next_id()')
		  until $node->safe_psql($database, 'SELECT log_cnt > 9 FROM insta5.table_id_seq') eq 't';
		my @ids = map { $other->('SELECT insta5.next_id()') } 1 .. 5;
		Clients::crash($node);
		$clock->start($node);
		my %new = map { $_ => 1 } split /\n/, result($database, 'app',
			'SELECT insta5.next_id() FROM generate_series(1, 4000)');
		$clock->set(0);
		return scalar(grep { $new{$_} } @ids);
	},
	# IDs of shard 6 that the sequence of shard 5 makes
	foreign => sub {
		my ($database) = @_;
		result($database, 'dba', q{
			SELECT instaid.create_shard('insta6', 6); GRANT USAGE ON SCHEMA insta6 TO app;
			GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA insta6 TO app; CREATE SEQUENCE insta6.o});
		$clock->set(0, $noon + 3);
		my $ids = result($database, 'app', q{
			SELECT count(*) FROM insta5.next_ids(1024);
			SELECT (insta6.next_id('insta5.table_id_seq') >> 10) & 8191;
			SELECT insta5.next_id('insta6.o');
			SELECT count(*) FROM insta6.next_ids(2000, 'insta5.table_id_seq')}) =~ s/ERROR: +//gr;
		# a shard that is created next must not be ahead of the clock
		$clock->set(0);
		return $ids;
	},
	options => sub {
		my ($database) = @_;
		$clock->set(0);
		return join ' ', map {
			result($database, 'dba',
				"ALTER SEQUENCE insta5.table_id_seq $_;"
				  . " SELECT pg_sleep(0.005) \\g /dev/null\n SELECT insta5.next_id()")
			  =~ s/ERROR: +//r
		} 'CACHE 50', 'CACHE 1 CYCLE', 'NO CYCLE INCREMENT 2',
			'INCREMENT 1 MAXVALUE 9223372036854775807';
	},
	# the shard in the ID of a call that waited for renumber_shard(), while the shard is ahead of
	# the clock; two numbers are just before the old one, as 8191 is before 0
	renumbered => sub {
		my ($database) = @_;
		$clock->set(0);
		result($database, 'dba', 'SELECT insta5.next_id()');
		my $twice = result($database, 'dba', q{SELECT instaid.renumber_shard('insta5', 7),
			instaid.renumber_shard('insta5', 8)});
		my @before = map {
			my ($from, $to) = @$_;
			result($database, 'dba', "SELECT instaid.renumber_shard('insta5', $from)");
			result($database, 'dba', "SELECT instaid.renumber_shard('insta5', $to)")
			  =~ s/ERROR: +//r
		} [ 5, 4 ], [ 0, 8191 ];
		return join ' ', $twice =~ s/ERROR: +//r, @before, map {
			my ($from, $to, $before) = @$_;
			result($database, 'dba', "SELECT instaid.renumber_shard('insta5', $from)");
			waits($database, q{SELECT setval('insta5.table_id_seq', last_value
					+ (60000::bigint << 23)) FROM insta5.table_id_seq;}
					. "SELECT instaid.renumber_shard('insta5', $to)",
				$before // '', 'SELECT insta5.next_id() >> 10 & 8191', 'COMMIT')
		} [ 8191, 6 ],
			[ 6, 2, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 \g /dev/null' ];
	},
	# what calls do that wait behind each other
	queued => sub {
		my ($database) = @_;
		$clock->set(0);
		my $open = session($database, 'app');
		$open->('BEGIN; SELECT count(insta5.next_id()) FROM generate_series(1, 3000)');
		my @waiters = map {
			my $waiter = waiter($database, @$_);
			$waiter->();
			$waiter
		} [ 'dba', q{SELECT instaid.renumber_shard('insta5', 7)} ],
			[ 'dba', q{SELECT instaid.renumber_shard('insta5', 4)} ],
			[ 'dba', q{SELECT instaid.thaw_shard('insta5')} ],
			[ 'app', 'SELECT insta5.next_id() >> 10 & 8191' ];
		$open->('COMMIT');
		return join ' ', map { $_->('end') =~ s/ERROR: +//r } @waiters;
	},
	# sequences that are added behind each other and behind renumber_shard(), and then freeze
	added => sub {
		my ($database) = @_;
		$clock->set(0);
		my $adds = session($database, 'dba');
		$adds->(q{BEGIN; SELECT instaid.add_sequence('insta5', 'a')});
		my @waiters = map {
			my $waiter = waiter($database, 'dba', "SELECT instaid.$_");
			$waiter->();
			$waiter
		} q{renumber_shard('insta5', 7)}, q{add_sequence('insta5', 'b')},
			q{freeze_shard('insta5')};
		$adds->('COMMIT');
		$_->('end') for @waiters;
		return result($database, 'dba', q{
			SELECT shard_id, frozen, (SELECT count(*) FROM instaid._shard_sequences('insta5'))
			FROM instaid.shards;
			SELECT insta5.next_id('insta5.a'); SELECT insta5.next_id('insta5.b')})
		  =~ s/ERROR: +//gr;
	},
	# a call that waits for the lock, while its schema and another one change their names
	swapped => sub {
		my ($database) = @_;
		$clock->set(0, $noon + 4);
		result($database, 'dba', q{SELECT instaid.create_shard('insta6', 6);
			CREATE VIEW insta5.same AS SELECT FROM insta5.id_sequence_lock});
		my $holder = session($database, 'dba');
		$holder->("SELECT pg_advisory_lock(1); BEGIN; $lock");
		my $call = waiter($database, 'app', 'SELECT insta5.next_id() > 0');
		$call->();
		# it has the lock after the call, whatever its name is
		my $next = waiter($database, 'dba', 'BEGIN; LOCK TABLE insta5.same'
			. ' IN SHARE UPDATE EXCLUSIVE MODE; SELECT pg_advisory_lock(1)');
		$next->();
		$holder->('ALTER SCHEMA insta5 RENAME TO s; ALTER SCHEMA insta6 RENAME TO insta5;'
			. ' ALTER SCHEMA s RENAME TO insta6; COMMIT');
		my $state = $call->();
		$holder->('SELECT pg_advisory_unlock_all()');
		$_->('end') for $next, $call;
		$clock->set(0);
		return $state;
	},
	restarted => sub {
		my ($database) = @_;
		$clock->set(0, $noon);
		my $above = result($database, 'dba', q{
			SELECT max(i) AS last FROM insta5.next_ids(1000000) AS i \gset
			ALTER SEQUENCE insta5.table_id_seq RESTART;
			SELECT insta5.next_id() > :last});
		$clock->set(0);
		return $above;
	},
	# a clock before the epoch, as after a boot without one, and one past the epoch's last ID
	outside => sub {
		my ($database) = @_;
		$clock->set(0);
		my $sql = q{
			SELECT insta5.next_id() > :last, count(i) FROM insta5.next_ids(5) AS i;
			SELECT count(i) FROM insta5.next_ids(5000) AS i WHERE i > :last;
			SELECT instaid.freeze_shard('insta5'); SELECT frozen FROM instaid.shards;
			SELECT instaid.thaw_shard('insta5')};
		my $last = result($database, 'dba', 'SELECT max(i) FROM insta5.next_ids(2000) AS i');
		my @said = map {
			$clock->set(0, $_);
			result($database, 'dba', "\\set last $last\n$sql") =~ s/\s+/ /gr =~ s/ \z//r
		} 100, 2500000000;
		my $message = result($database, 'app', "\\set VERBOSITY default\nSET timezone = 'UTC';"
			. ' INSERT INTO insta5.photos (n) VALUES (1)') =~ s/^CONTEXT.*//msr;
		$clock->set(0);
		return join '|', @said, $message, result($database, 'dba',
			'SELECT instaid.extract_timestamp(insta5.next_id()) < now() + interval \'1 min\'');
	},
	# how many milliseconds the first ID, and those 3, 4 and 9 ms after it, are from the clock
	time => sub {
		my ($database) = @_;
		my $session = session($database, 'app');
		my @ms = map {
			$clock->set(0, $noon + 10 + ($_ + 0.5) / 1000);
			$session->(q{SELECT (insta5.next_id() >> 23) + 1314220021721
				- floor(extract(epoch FROM clock_timestamp()) * 1000)})
		} 0, 3, 4, 9;
		$clock->set(0);
		return join ' ', @ms;
	},
	default_rights => sub {
		my ($database) = @_;
		result($database, 'dba', q{
			ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO app, PUBLIC;
				ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO app;
			SELECT instaid.create_shard('insta7', 7); GRANT USAGE ON SCHEMA insta7 TO app});
		return result($database, 'app', q{
			BEGIN; LOCK TABLE insta7.id_sequence_lock IN SHARE UPDATE EXCLUSIVE MODE; ROLLBACK;
			SELECT setval('insta7.table_id_seq', 5000)}) =~ s/ERROR: +//gr;
	},
	# Which sequences a superuser reads by OID, which keeps a lock?  What another role can rename
	# is not to be read by name: planning alone could run that role's code.
	by_oid => sub {
		my ($database) = @_;
		$clock->set(0);
		return result($database, 'tx', q{
			CREATE SCHEMA theirs AUTHORIZATION app; CREATE SCHEMA ours AUTHORIZATION dba;
			CREATE SEQUENCE theirs.theirs; ALTER SEQUENCE theirs.theirs OWNER TO app;
			CREATE SEQUENCE theirs.ours; CREATE SEQUENCE ours.ours;
			CREATE SEQUENCE ours.theirs; ALTER SEQUENCE ours.theirs OWNER TO app;
			SELECT nextval('theirs.theirs') + nextval('theirs.ours') + nextval('ours.ours')
				+ nextval('ours.theirs') \g /dev/null
			BEGIN;
			SELECT string_agg(s.last::text, ' ') FROM unnest(ARRAY[
				'theirs.theirs', 'theirs.ours', 'ours.ours', 'ours.theirs']::regclass[]) AS q,
				instaid._position(q, NULL, NULL) AS s;
			SELECT string_agg(c.oid::regclass::text, ' ' ORDER BY c.oid)
			FROM pg_locks JOIN pg_class AS c ON c.oid = relation
			WHERE pid = pg_backend_pid() AND c.relkind = 'S'}) =~ s/\n+/ /gr;
	},
	# what the script finds in a schema of the search path
	operators => sub {
		my ($database) = @_;
		return result($database, 'dba', q{
			SELECT count(*) FROM pg_depend WHERE refclassid = 'pg_operator'::regclass
				AND refobjid = 'public./(bigint,numeric)'::regoperator});
	},
	# what dumps of shards call
	called => sub {
		my ($database) = @_;
		return result($database, 'app', q{
			SELECT string_agg(oid::regprocedure::text,
				' ' ORDER BY oid::regprocedure::text) FROM pg_proc
			WHERE oid = ANY (ARRAY[
				to_regprocedure('instaid_sql._open(regclass, bigint,'
					' instaid_sql.sequence_options)'),
				to_regprocedure('instaid_sql._flush_at_commit()'),
				to_regprocedure('instaid_sql._next_ids(regclass,'
					' instaid_sql.sequence_options, integer)')])});
	});

# In the text itself
sub words
{
	my ($script) = @_;
	$script =~ s/^ *--.*//mg;
	return join ' ',
		$script =~ /(pg_sleep|pg_advisory\w*|SQLSTATE\ '..000'|RAISE\ SQLSTATE\ '\w+'
			|^\\\w+|\$_pgtle_\$|SET\ LOCAL)/mgx;
}

my $script = SqlEdition::changed();
(my $words = words($script)) =~ s/(?:RAISE SQLSTATE 'ID001' ?)+//g;
is($words, '',
	'no pg_sleep(), no advisory lock that waits, no class of SQLSTATEs, one SQLSTATE of its own');
for my $change (
	[ 'a class of SQLSTATEs', "SQLSTATE 'ID001' THEN" => "SQLSTATE 'ID000' THEN" ],
	[ 'a second SQLSTATE', "RAISE SQLSTATE 'ID001'" => "RAISE SQLSTATE 'ID002'" ],
	[ 'pg_sleep()', 'id := nextval' => 'PERFORM pg_sleep(0.001); id := nextval' ],
	[ 'an advisory lock', 'pg_try_advisory_xact_lock' => 'pg_advisory_xact_lock' ])
{
	my ($name, $from, $to) = @$change;
	(my $mutant = $script) =~ s/\Q$from\E/$to/ or die "the script has no $from";
	isnt(words($mutant), words($script), "found: $name");
}

# The forms for pg_tle and database.dev.  pg_tle keeps the text, and executes it as a whole.
my $dist = PostgreSQL::Test::Utils::tempdir;
my ($version) = SqlEdition::version();
my ($release) = SqlEdition::release();
$node->command_ok([ 'sh', 'sql-edition/dist.sh', $dist ], 'make sql-edition');
$node->safe_psql('postgres', q{
	CREATE DATABASE tle; GRANT CREATE ON DATABASE tle TO dba; ALTER DATABASE tle OWNER TO dba});
$node->safe_psql('tle', q{
	CREATE SCHEMA pgtle; CREATE TABLE pgtle.kept (name text, version text, script text);
	CREATE FUNCTION pgtle.install_extension(text, text, text, text) RETURNS boolean LANGUAGE sql
	BEGIN ATOMIC INSERT INTO pgtle.kept VALUES ($1, $2, $4) RETURNING true; END;}
	. slurp_file("$dist/instaid-$version-pg_tle.sql")
	. q{DO $$ BEGIN EXECUTE (SELECT script FROM pgtle.kept); END $$;
	SELECT instaid.create_shard('insta5', 5); SELECT insta5.next_id()},
	extra_params => [ '-U', 'dba' ]);
my $extension = slurp_file("$dist/instaid-$version.sql") =~ s/\A.*\n\n//r;
is($node->safe_psql('tle', 'SELECT name, version, script FROM pgtle.kept'),
	"instaid|$version|\n$extension", 'pg_tle gets the script');
is(join(' ', map { s/.*\///r } sort glob "$dist/dbdev/instaid/*"),
	"README.md instaid--$release.sql instaid.control", 'a folder for database.dev');
is(slurp_file("$dist/dbdev/instaid/instaid--$release.sql"), $extension,
	'a folder for database.dev, with the script');
like(slurp_file("$dist/dbdev/instaid/instaid.control"), qr/^default_version = '\Q$release\E'$/m,
	'a folder for database.dev, and the control file');

$node->safe_psql('template1', q{
	CREATE ROLE tx SUPERUSER LOGIN; GRANT CREATE ON SCHEMA public TO app; SET ROLE app;
	CREATE FUNCTION public.divide(bigint, numeric) RETURNS numeric LANGUAGE sql
		AS 'SELECT $1 OPERATOR(pg_catalog./) $2';
	CREATE OPERATOR public./ (LEFTARG = bigint, RIGHTARG = numeric, FUNCTION = public.divide)});
SqlEdition::install($node, 'm');
my %expected = (
	late           => '1',
	queue          => 'waits',
	planted        => 'waits',
	named          => 'stranger|t 42809 t',
	kept           => '0',
	renumbered     => '55000 55000 55000 6 2',
	repeated       => '0',
	queued         => ' 55000  7',
	added          => "7|t|3\n55000\n55000",
	swapped        => 'waits',
	foreign        => "1024\n23514\n23514\n23514",
	options        => '55000 55000 55000 55000',
	restarted      => 't',
	time           => '0 -3 0 0',
	default_rights => "42501\n42501",
	by_oid         => '1 1 1 1 theirs.theirs theirs.ours ours.theirs',
	operators      => '0',
	outside        => "t|5 5000 t| t ERROR: 22023 ERROR: 22023|ERROR:  the IDs of epoch"
	  . " 2011-08-24 21:07:01.721+00 are used up\nDETAIL:  The clock reads 2049-03-22 04:26:40+00;"
	  . " an epoch can be up to 34.8 years before it.\nHINT:  Correct the server's clock, or let"
	  . " tables use a shard with a later epoch.\n|t",
	called         => 'instaid_sql._flush_at_commit()'
	  . ' instaid_sql._next_ids(regclass,instaid_sql.sequence_options,integer)'
	  . ' instaid_sql._open(regclass,bigint,instaid_sql.sequence_options)');
for my $check (sort keys %seen)
{
	$node->safe_psql('postgres',
		"CREATE DATABASE of_$check TEMPLATE m; GRANT CREATE ON DATABASE of_$check TO dba");
	is($seen{$check}->("of_$check"), $expected{$check}, $check);
}

my @mutants = (
	# what, check, changes
	[ 'a queue while there is room', 'late', [ qr/FOR i IN 1 \.\. 50 LOOP/,
		'FOR i IN 1 .. 0 LOOP' ] ],
	[ 'no lock', 'queue', [ qr/PERFORM instaid_sql\._lock\(sequence, options\);/, '' ] ],
	[ 'the name of the lock depends on search_path', 'planted',
		[ qr/'LOCK ' OPERATOR\(pg_catalog\.\|\|\) \Kschema OPERATOR\(pg_catalog\.\|\|\)\s+'\.id/,
			q('id) ],
		[ qr/format\('LOCK %s\.(id_sequence_lock[^']*)', schema\)/, q('LOCK id_sequence_lock'
			' IN SHARE UPDATE EXCLUSIVE MODE') ] ],
	[ 'the name of the schema is read once', 'swapped', [ qr/EXIT WHEN schema = locked;/,
		'EXIT WHEN locked IS NOT NULL;' ] ],
	[ 'the block is left by RETURN', 'kept',
		[ qr/id := \S+_take\(sequence, \S+_clock\(\w+\)\);\s*END IF;\s*\KRAISE SQLSTATE 'ID001'/,
		'RETURN id' ] ],
	[ 'no WAL of its own', 'repeated',
		[ qr/PERFORM pg_logical_emit_message\(true, 'instaid', ''::text\);/, 'NULL;' ] ],
	[ 'only a transaction ID', 'repeated',
		[ qr/PERFORM pg_logical_emit_message\(true, 'instaid', ''::text\);/,
		'PERFORM pg_current_xact_id();' ] ],
	[ 'a parameter that admits every sequence', 'foreign', [ qr/CHECK \(VALUE = %s\)/,
		'CHECK (true)' ] ],
	[ 'options that are not compared', 'options',
		[ qr/WHEN pg_catalog\.pg_sequence_parameters\(sequence\) OPERATOR\(\S+\) options/,
		'WHEN true' ] ],
	[ 'a shard ID just before the old one', 'renumbered',
		[ qr/IF behind <= \S+_max_sequence\(\) \+/,
		'IF behind < 0 * ' ] ],
	[ '8191 before 0', 'renumbered',
		[ qr/\(shard\.shard_id - shard_id\)::bigint << \S+\s+& \S+_low_bits\(\)/,
			'abs(shard.shard_id - shard_id)::bigint << instaid_sql._sequence_bits()' ] ],
	[ 'two shard IDs in one transaction', 'renumbered',
		[ qr/IF declaration = ANY \(string_to_array\(renumbered, ' '\)::oid\[\]\)/, 'IF false' ] ],
	[ 'two shard IDs while a call waits', 'queued',
		[ qr/written IS DISTINCT FROM \(SELECT p\.xmin FROM/, '(SELECT false FROM' ] ],
	(map { [ "$_() by what it has read before", $_ eq 'thaw_shard' ? 'queued' : 'added',
		[ qr/EXIT WHEN sequence = locked/, "EXIT WHEN sequence = locked OR routine = '$_'" ] ] }
		'freeze_shard', 'thaw_shard', 'add_sequence'),
	[ 'a restarted sequence begins at the clock', 'restarted',
		[ qr/t \+ \(2100::bigint << \S+_ms_shift\(\)\)\s+\+ \S+_max_sequence\(\)/, 't' ] ],
	[ 'an ID of any millisecond that was opened lately', 'time', [ qr/epoch_ms \+ 3\.4995/,
		'epoch_ms + 9.4995' ] ],
	[ 'a clock past the end opens the last millisecond', 'outside',
		[ qr/AND t OPERATOR\(\S+\) 9223372036846387200/, '' ] ],
	[ 'a clock before the epoch', 'outside', [ qr/\b0(?=::pg_catalog\.float8\), )/, '-1e15' ] ],
	[ 'default privileges', 'default_rights',
		[ qr/EXECUTE format\('REVOKE ALL ON %s FROM %s', concat_ws\([^;]*;/, 'NULL;' ] ],
	[ 'the owner of the sequence', 'by_oid', [ qr/r\.oid IN \(c\.relowner, n\.nspowner\)/,
		'r.oid = n.nspowner' ] ],
	[ 'the owner of the schema', 'by_oid', [ qr/r\.oid IN \(c\.relowner, n\.nspowner\)/,
		'r.oid = c.relowner' ] ],
	[ 'the search path', 'operators',
		[ qr/PERFORM pg_catalog\.set_config\('search_path', 'pg_catalog', true\);/, 'NULL;' ],
		# which schema.sql looks at
		[ qr/IF pg_catalog\.current_setting\('search_path'\) \S+ 'pg_catalog'/, 'IF false' ] ],
	[ 'another name', 'called', [ qr/_flush_at_commit\(/, '_flush(' ] ]);
my $number = 0;
for my $mutant (@mutants)
{
	my ($name, $check, @changes) = @$mutant;
	last if ++$number > ($ENV{INSTAID_TEST_ROUNDS} || @mutants);
	my $database = "mutant$number";
	my $text = $script;
	for my $change (@changes)
	{
		my ($from, $to) = @$change;
		$text =~ s/$from/$to/g or die "the script has no $from";
	}
	SqlEdition::install($node, $database, $text);
	isnt($seen{$check}->($database), $expected{$check}, "found: $name");
}

$node->stop;
done_testing();
