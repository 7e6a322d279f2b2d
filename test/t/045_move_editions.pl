# instaid-move between the editions, both ways: the IDs go on above those of the other side, each
# role can do what it could, and nothing else differs.  What is the same in one edition is in
# 040_move.pl, 042_move_dump.pl and 043_move_plan.pl.
#
# FULL=1 adds kills at every step, and more moves to and fro

use strict;
use warnings;

use IPC::Open2 ();
use IPC::Run ();
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

use Clients;
use SqlEdition;

my ($old, $new) = map { Clients::server($_, { allows_streaming => 'logical',
	auth_extra => [ '--create-role', 'own' ] }, 'wal_retrieve_retry_interval = 10ms',
	'max_replication_slots = 20', 'max_wal_senders = 20', 'fsync = off') } 'a', 'b';
$_->safe_psql('postgres', 'CREATE ROLE own LOGIN; CREATE ROLE app; CREATE ROLE reader;
	CREATE ROLE late') for $old, $new;
my $tool = 'instaid-move';
my $stepping = PostgreSQL::Test::Utils::tempdir . '/instaid-move';
{
	chomp(my ($include, $lib) = map { `$ENV{PG_CONFIG} $_` } '--includedir', '--libdir');
	system('cc', '-O1', '-g', '-D_GNU_SOURCE', '-DINSTAID_MOVE_STEP=move_step', "-I$include",
		glob('src/move/*.c'), 'test/lib/move_step.c', "-L$lib", '-lpq', '-o', $stepping) == 0
	  or die 'cannot compile';
}
my %edition = (extension => 'CREATE EXTENSION instaid_adopt CASCADE',
	SQL => SqlEdition::changed() . SqlEdition::adopting());

my ($db, $from, $to) = ('postgres', $old, $new);
# the role to connect as, by the name of the server
my %user = (a => '', b => '');
my ($out, $err);

# Run the program; returns its exit status, and sets $out and $err.
sub im
{
	my (@args) = @_;
	($out, $err) = ('', '');
	my %at = ref $args[0] ? %{ shift @args } : ();
	local $ENV{MOVE_AT} = $at{at} // '';
	local $ENV{MOVE_DO} = $at{do} // 'kill -9 $PPID';
	IPC::Run::run([ %at ? $stepping : $tool, '--from', $from->connstr($db) . $user{ $from->name },
			'--to', $to->connstr($db) . $user{ $to->name }, @args ], '<', \undef, '>', \$out,
		'2>', \$err, IPC::Run::timeout(600));
	note("instaid-move @args", %at ? " at $at{at}" : '', ": ", $? >> 8, $? & 127 ? ' killed' : '',
		"\n$out$err") if $? || $ENV{VERBOSE_MOVE};
	return $? & 127 ? -1 : $? >> 8;
}
sub sql { my ($node, $sql) = @_; return $node->safe_psql($db, $sql) }
sub error_of { my ($node, $sql) = @_; return ($node->psql($db, $sql))[2] }
sub both { return join ' ', map { sql($_, $_[0]) || '-' } $old, $new }
sub left
{
	return both(q{SELECT string_agg(x, ',') FROM (
		SELECT 'slot' FROM pg_replication_slots
		UNION ALL SELECT 'publication' FROM pg_publication
		UNION ALL SELECT 'subscription' FROM pg_subscription
		UNION ALL SELECT 'guard' FROM pg_proc WHERE proname = 'instaid_move_guard') AS s (x)});
}
sub places
{
	return both(q{SELECT string_agg(schema_name || CASE WHEN frozen THEN ' frozen' ELSE '' END, ','
		ORDER BY shard_id) FROM instaid.shards});
}

# A database of this name on both servers, with these editions
sub fresh
{
	my ($name, $of_old, $of_new, $schema, @as) = @_;
	$db = $name;
	($from, $to) = ($old, $new);
	$_->safe_psql('postgres', "CREATE DATABASE $db; GRANT CREATE ON DATABASE $db TO own")
	  for $old, $new;
	@as = (extra_params => [ '-U', @as ]) if @as;
	$old->safe_psql($db, $edition{$of_old}, $of_old eq 'SQL' ? @as : ());
	$new->safe_psql($db, $edition{$of_new}, $of_new eq 'SQL' ? @as : ());
	$old->safe_psql($db, $schema, @as) if $schema;
	return;
}

# The same shard in each edition: several sequences, one of them ahead of the clock and one that
# was never used, a default of another form, and serials
sub shard
{
	my ($edition) = @_;
	my $tables = q{
		CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), who integer,
			n integer, serial integer GENERATED ALWAYS AS IDENTITY);
		CREATE TABLE insta5.likes (place serial, id bigint PRIMARY KEY
			DEFAULT insta5.next_id('insta5."likes ''id"'));
		CREATE TABLE insta5.far (id bigint PRIMARY KEY DEFAULT insta5.next_id('insta5.far_id_seq'));
		CREATE TABLE insta5.unused (id bigint PRIMARY KEY
			DEFAULT COALESCE(insta5.next_id('insta5.unused_id_seq'), 0));
		CREATE TABLE insta5.events (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer)
			PARTITION BY RANGE (id);
		CREATE TABLE insta5.events_1 PARTITION OF insta5.events DEFAULT;
		SELECT instaid.advance_past('insta5.far_id_seq',
			instaid.make_id(now() + interval '1 hour', 0, 0), instaid.default_epoch());
		COMMENT ON TABLE insta5.photos IS 'with a comment';
		CREATE FUNCTION insta5.odd() RETURNS text LANGUAGE sql AS $f$ SELECT '
    LANGUAGE of instaid
' $f$;
		GRANT USAGE ON SCHEMA insta5 TO app, reader;
		GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA insta5 TO app;
		GRANT USAGE ON SEQUENCE insta5.likes_place_seq TO app;
		GRANT SELECT ON SEQUENCE insta5.table_id_seq TO reader;
		SELECT instaid.freeze_shard('insta6');
		INSERT INTO insta5.photos (who, n) SELECT 0, generate_series(1, 1000);
		INSERT INTO insta5.likes SELECT FROM generate_series(1, 100);
		INSERT INTO insta5.far SELECT FROM generate_series(1, 10);};
	my @sequences = (q{likes 'id}, 'far_id_seq', 'unused_id_seq');
	return q{SELECT instaid.create_shard('insta5', 5); SELECT instaid.create_shard('insta6', 6);}
	  . join('', map { my $literal = s/'/''/gr; $edition eq 'SQL'
		? "SELECT instaid.add_sequence('insta5', '$literal');" : qq{CREATE SEQUENCE insta5."$_";} }
		@sequences)
	  . $tables . ($edition eq 'SQL' ? 'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA insta5 TO app;
		REVOKE ALL ON insta5.id_sequence_lock FROM app'
		: 'GRANT USAGE ON ALL SEQUENCES IN SCHEMA insta5 TO app');
}

# What an edition makes of it: the shards' sequences and defaults, and who can take IDs
my $looks = q{
	SELECT string_agg(q::text, ' ' ORDER BY q::text COLLATE "C")
	FROM instaid._shard_sequences('insta5') AS q;
	SELECT string_agg(relname || ' ' || regexp_replace(pg_get_expr(adbin, adrelid),
		'[(]([^()]*)[)]::insta5.id_sequence', '\1'), ', ' ORDER BY relname)
	FROM pg_attrdef JOIN pg_class AS c ON c.oid = adrelid
	WHERE pg_get_expr(adbin, adrelid) ~ 'next_id';
	SELECT obj_description('insta5.photos'::regclass), insta5.odd();
	SELECT string_agg(object || ' ' || problem, ', ') FROM instaid.audit()
	WHERE object !~ 'far' AND severity = 'error'};
sub rights
{
	my ($node) = @_;
	return join ' ', map { my $role = $_; error_of($node, "SET ROLE $role;
		INSERT INTO insta5.photos (who) VALUES (0); INSERT INTO insta5.likes DEFAULT VALUES;
		INSERT INTO insta5.unused DEFAULT VALUES") eq ''
		? $role : '-' } 'app', 'reader', 'late';
}

# Each sequence issues above all that it issued on any side.
my %highest;
sub goes_on
{
	my ($node, $name) = @_;
	my @wrong;
	for my $sequence ('insta5.table_id_seq', q{insta5."likes ''id"}, 'insta5.far_id_seq',
		'insta5.unused_id_seq')
	{
		next if $sequence eq 'insta5.unused_id_seq' && $name =~ /unused/;
		for my $count (1, 5, 3000)
		{
			my ($least, $most, $shards) = split /\|/, sql($node, "SELECT min(i), max(i),
				count(*) FILTER (WHERE instaid.extract_shard_id(i) <> 5)
				FROM insta5.next_ids($count, '$sequence') AS i");
			push @wrong, "$sequence: $least after $highest{$db}{$sequence}"
			  if $least <= ($highest{$db}{$sequence} // 0);
			push @wrong, "$sequence: other shards" if $shards;
			$highest{$db}{$sequence} = $most;
		}
	}
	is(join(', ', @wrong), '', $name);
	return;
}

#### Writers ####

# Each inserts into two tables, on the other server after 55000, and notes its IDs.
sub writers_start
{
	my ($count) = @_;
	my $self = { dir => PostgreSQL::Test::Utils::tempdir };
	my @servers = map { $_->connstr($db) } $from, $to;
	for my $who (1 .. $count)
	{
		my $pid = fork // die;
		push @{ $self->{pids} }, $pid;
		next if $pid;
		eval { write_rows("$self->{dir}/$who", "$self->{dir}/stop", $who, @servers) };
		POSIX::_exit(0);
	}
	return $self;
}
sub write_rows
{
	my ($file, $stop, $who, @servers) = @_;
	open my $ledger, '>', $file or die;
	$ledger->autoflush;
	open STDERR, '>', "$file.err";
	local $SIG{PIPE} = 'IGNORE';
	my $parent = getppid;
	my ($at, $n) = (0, 0);
	while (!-e $stop && getppid == $parent)
	{
		my $pid = IPC::Open2::open2(my $out, my $in, 'psql', '-XAtq', '-v', 'VERBOSITY=sqlstate',
			'-d', $servers[$at]);
		$in->autoflush;
		my $state = '00000';
		while (!-e $stop && $state eq '00000')
		{
			$n++;
			my @ids;
			print $in "BEGIN\\; INSERT INTO insta5.photos (who, n) VALUES ($who, $n)"
			  . " RETURNING 'p', id\\; INSERT INTO insta5.likes DEFAULT VALUES RETURNING 'l', id\\;"
			  . " COMMIT;\n\\echo state :SQLSTATE\n";
			$state = 'lost';
			while (my $line = readline $out)
			{
				push @ids, $line =~ tr/|/ /r if $line =~ /^[pl]\|/;
				$state = $1, last if $line =~ /^state (\w+)/;
			}
			print $ledger $state eq '00000' ? @ids : "error $state\n";
			sleep(0.01);
		}
		close $_ for $in, $out;
		waitpid $pid, 0;
		$at = 1 - $at;
		sleep(0.02);
	}
	return;
}
# End them; what is wrong with what they noted
sub writers_stop
{
	my ($self, $node, $name) = @_;
	append_to_file("$self->{dir}/stop", '');
	waitpid $_, 0 for @{ $self->{pids} };
	my (%ids, %errors, @wrong);
	for my $file (grep { !/\D\z/ } glob "$self->{dir}/*")
	{
		my %last = (p => 0, l => 0);
		for (split /\n/, slurp_file($file))
		{
			$errors{$1}++, next if /^error (\w+)/;
			my ($table, $id) = split / /;
			push @wrong, "$table $id came twice" if $ids{"$table $id"}++;
			push @wrong, "$table $id after $last{$table}" if $id <= $last{$table};
			$last{$table} = $id;
		}
	}
	my %there = map { $_ => 1 } split /\n/, sql($node, q{SELECT 'p ' || id FROM insta5.photos
		UNION ALL SELECT 'l ' || id FROM insta5.likes});
	push @wrong, map { "$_ is lost" } grep { !$there{$_} } keys %ids;
	push @wrong, split /\n/, sql($node, q{
		SELECT 'serial ' || serial FROM insta5.photos GROUP BY serial HAVING count(*) > 1
		UNION ALL SELECT 'place ' || place FROM insta5.likes GROUP BY place HAVING count(*) > 1});
	is(join(', ', @wrong[ 0 .. ($#wrong > 5 ? 5 : $#wrong) ]), '', "$name: of " . keys(%ids)
		  . ' IDs none is lost, none came twice, and they increase');
	cmp_ok(keys %ids, '>', 100, '... and there were many');
	is(join(' ', grep { !/^(55000|3F000|42P01|lost|40P01)$/ } sort keys %errors), '',
		'... and no errors but that of a frozen shard');
	return;
}

#### To and fro, while clients write ####

for my $way ([ 'SQL', 'extension' ], [ 'extension', 'SQL' ])
{
	my ($first, $second) = @$way;
	my $name = "from $first to $second";
	fresh(lc "m_$first", $first, $second, shard($first));
	my $looked = sql($old, $looks);
	my $rights = 'app - -';
	is(im('--check-only', 'insta5', 'insta6'), 0, "$name: nothing is in the way");
	is(left(), '- -', '... and nothing was changed');
	my $writers = writers_start(3);
	is(im('insta5', 'insta6', '--max-stop', 60, '--max-wait', 300), 0, '... moved');
	like($out, qr/verified: 5 tables, \d+ rows, the same/, '... and its rows are compared');
	is(places(), 'insta5 frozen,insta6 frozen insta5,insta6 frozen', '... the target serves it');
	is(im('--verify'), 0, '... --verify');
	goes_on($new, '... IDs go on, but of the unused sequence');
	is(sql($new, $looks), $looked, '... sequences and defaults are the same');
	is(rights($new), $rights, '... who could take IDs can');
	is(sql($new, q{SELECT has_sequence_privilege('app', 'insta5.table_id_seq', 'UPDATE, USAGE'),
		has_sequence_privilege('reader', 'insta5.table_id_seq', 'SELECT')}), 'f|t',
		'... and no role can set a sequence');
	sleep(0.3);
	is(im('--reverse', '--max-stop', 60, '--max-wait', 300), 0, '... --reverse');
	is(places(), 'insta5,insta6 frozen insta5 frozen,insta6 frozen', '... to the source');
	goes_on($old, '... where IDs go on');
	is(rights($old), $rights, '... for those who could take them');
	sleep(0.3);
	# the way back has a way back
	for my $place ($ENV{FULL} ? ($new, $old, $new) : $new)
	{
		($from, $to) = ($to, $from);
		is(im('--reverse', '--max-stop', 60, '--max-wait', 300), 0, '... and again');
		goes_on($place, '... IDs go on');
		sleep(0.2);
	}
	($from, $to) = ($old, $new);
	writers_stop($writers, $new, $name);
	is(im('--finish'), 0, '... --finish');
	is(places() . ' ' . left(), '- insta5,insta6 frozen - -', '... leaves nothing');

	# as it is after the move
	($from, $to) = ($new, $old);
	is(im('insta5', 'insta6'), 0, '... and back by a move of its own');
	goes_on($old, '... IDs go on');
	is(sql($old, $looks), $looked, '... sequences and defaults are as they were');
	is(rights($old), $rights, '... and rights');
	is(im('--finish'), 0, '... --finish');
	is(places() . ' ' . left(), 'insta5,insta6 frozen - - -', '... leaves nothing');
	($from, $to) = ($old, $new);
}

#### Killed, and cancelled ####

my @steps = grep { !/^(refreshed|comparing|taken back|served again|way back dropped|detached|
	slots dropped|copy dropped|guards dropped|rehearsed|made|copied|verified)$/x }
  map { slurp_file($_) =~ /\bstep\("([^"]+)"\)/g } glob('src/move/*.c');
my @few = ('dumped', 'defined', 'stopped', 'applied', 'started', 'switched');
for my $way ([ 'SQL', 'extension' ], [ 'extension', 'SQL' ])
{
	my ($first, $second) = @$way;
	fresh(lc "k_$first", $first, $second, shard($first));
	my $only = places() . left();
	my @wrong;
	for my $at ($ENV{FULL} ? @few[ 0 .. 4 ] : ('defined', 'applied'))
	{
		my @got = (im({ at => $at }, 'insta5'), im('--cancel'), places() . left(),
			error_of($old, 'INSERT INTO insta5.photos (who) VALUES (0)'));
		push @wrong, "$at: @got" if "@got" ne "-1 0 $only ";
	}
	is("@wrong", '', "from $first to $second: cancelled after a kill, both sides are as before");
	my $writers = writers_start(2);
	for my $at ($ENV{FULL} ? @steps : @few)
	{
		my $got = im({ at => $at }, 'insta5', '--max-stop', 60);
		push @wrong, "$at: $got" if $got != -1 && $got;
		# to the next one as soon as the shard is there
		sleep(0.1);
	}
	is("@wrong", '', '... killed at each step');
	is(im('insta5'), 0, '... the same command again ends');
	goes_on($new, '... and IDs go on, but of the unused sequence');
	@wrong = map { my $got = im({ at => $_ }, '--reverse'); $got == -1 ? () : "$_: $got" }
	  'stopped', 'started', 'switched';
	is("@wrong", '', '... the way back is killed');
	is(im('--reverse'), 0, '... and ends');
	writers_stop($writers, $old, '... and back');
	goes_on($old, '... and IDs go on');
	is(im('--cancel'), 0, '... --cancel');
	is(places() . left(), $only, '... leaves nothing');
}

#### Without replication, each side as the role that it needs ####

for my $way ([ 'SQL', 'extension' ], [ 'extension', 'SQL' ])
{
	my ($first, $second) = @$way;
	%user = $first eq 'SQL' ? (a => ' user=own', b => '') : (a => '', b => ' user=own');
	fresh(lc "d_$first", $first, $second, shard($first), 'own');
	is(im('insta5', '--dump', '--check-only'), 0,
		"--dump from $first to $second: nothing is in the way");
	my ($looked, $only) = (sql($old, $looks), places() . left());
	my @wrong;
	for my $at ($ENV{FULL} ? ('rehearsed', 'stopped', 'made', 'copied', 'verified', 'told')
		: ('made', 'told'))
	{
		my @got = (im({ at => $at }, 'insta5', '--dump'), im('--cancel'), places() . left());
		push @wrong, "$at: @got" if "@got" ne "-1 0 $only";
	}
	is("@wrong", '', '... killed and cancelled');
	is(im({ at => 'copied' }, 'insta5', 'insta6', '--dump'), -1, '... killed again');
	is(im('insta5', 'insta6', '--dump'), 0, '... moved');
	is(places(), 'insta5 frozen,insta6 frozen insta5,insta6 frozen', '... the target serves it');
	goes_on($new, '... IDs go on, but of the unused sequence');
	is(sql($new, $looks), $looked, '... sequences and defaults are the same');
	is(rights($new), 'app - -', '... and rights');
	is(sql($new, q{SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class
		WHERE relnamespace = 'insta5'::regnamespace AND relkind <> 'i'}), 'own',
		'... and the owner');
	is(im('--finish'), 0, '... --finish');
	is(places() . left(), '- insta5,insta6 frozen- -', '... leaves nothing');
}
%user = (a => '', b => '');

# Default privileges of the schema, for what the target's edition makes
for my $way ([ 'SQL', 'extension' ], [ 'extension', 'SQL' ])
{
	my ($first, $second) = @$way;
	fresh(lc "p_$first", $first, $second, shard($first)
		. '; ALTER DEFAULT PRIVILEGES IN SCHEMA insta5 GRANT EXECUTE ON FUNCTIONS TO late;'
		. ' ALTER DEFAULT PRIVILEGES IN SCHEMA insta5 GRANT ALL ON SEQUENCES TO late;'
		. ' ALTER DEFAULT PRIVILEGES IN SCHEMA insta5 GRANT ALL ON TABLES TO late');
	is(im('insta5'), 0, "default privileges, from $first to $second");
	is(rights($new), 'app - -', '... give no rights');
	is(im('--finish'), 0, '... --finish');
}

#### What would stop it, and what is compared ####

fresh('x_extension', 'extension', 'SQL', shard('extension') . q{;
	CREATE VIEW insta5.takes AS SELECT insta5.next_id() AS id;
	CREATE FUNCTION insta5.taken() RETURNS bigint LANGUAGE sql RETURN insta5.next_id();
	CREATE TABLE insta5.js (id instaid.id PRIMARY KEY DEFAULT insta5.next_id());
	CREATE SEQUENCE insta5.raw_id_seq;
	CREATE TABLE insta5.raw (id bigint PRIMARY KEY
		DEFAULT instaid.next_id('insta5.raw_id_seq'::regclass, 5));
	CREATE TABLE insta5.other (id bigint PRIMARY KEY DEFAULT insta5.next_id());
	ALTER TABLE insta5.other OWNER TO own; GRANT CREATE ON SCHEMA insta5 TO own;
	SET ROLE own; SELECT instaid.create_shard('insta7', 7); RESET ROLE;
	CREATE DOMAIN insta7.id_sequence AS regclass;
	CREATE DOMAIN insta5.filled AS bigint DEFAULT insta5.next_id()});
is(im('--check-only', 'insta5', 'insta7'), 5, 'what would stop a move to the SQL edition');
like($out, qr/^  ! $_/m, "... $_") for
  'rule _RETURN on view insta5\.takes uses a function or the type of its shard, .*: drop it',
  'function insta5\.taken\(\) uses a function',
  'type insta5\.filled uses .*: ALTER DOMAIN insta5\.filled DROP DEFAULT, and let its columns',
  'instaid of the target lacks what the shards use: .*type instaid\.id; let nothing use it',
  'default value for column id of table insta5\.other uses a function',
  'schema insta7 has the type id_sequence of an earlier move: DROP FUNCTION',
  'column id of insta5\.js is an instaid\.id, .* ALTER TABLE insta5\.js ALTER id TYPE bigint',
  'column id of insta5\.raw defaults to instaid\.next_id\(regclass,integer\), .*: let it default to'
  . ' insta5\.next_id\(\)',
  'the shards belong to own, .*: connect as own to the target';
unlike($out, qr/insta5\.(photos|likes|far|events)|create it there/, '... and nothing else');
sql($old, q{DROP VIEW insta5.takes; DROP FUNCTION insta5.taken; DROP DOMAIN insta5.filled;
	DROP TABLE insta5.other, insta5.raw;
	ALTER TABLE insta5.js ALTER id TYPE bigint});
is(im('--prepare', 'insta5'), 0, '... without all that, it is prepared');
sql($old, 'GRANT USAGE ON SEQUENCE insta5.unused_id_seq TO late');
is(im('--switch'), 6, 'a role that may take IDs since then');
like($out, qr/only on the source: IDs of insta5 for app late$/m, '... is told');
sql($new, 'GRANT EXECUTE ON FUNCTION insta5.next_id, insta5.next_ids TO late');
sql($new, q{ALTER TABLE insta5.far ALTER id SET DEFAULT insta5.next_id('insta5.unused_id_seq')});
is(im('--switch'), 6, '... with the same right on the target, another default');
like($out, qr/^  only on the target: column insta5\.far\.id .*'insta5\.unused_id_seq'::reg.*\)$/m,
	'... is told');
is(() = $out =~ /only on the/g, 2, '... and nothing else');
sql($new, q{ALTER TABLE insta5.far ALTER id SET DEFAULT insta5.next_id('insta5.far_id_seq')});
is(im(), 0, '... then it is moved');
is(im('--finish'), 0, '... --finish');

fresh('x_sql', 'SQL', 'extension', shard('SQL') . q{;
	CREATE VIEW insta5.takes AS SELECT insta5.next_id() AS id;
	CREATE TABLE insta5.named (id bigint PRIMARY KEY, name insta5.id_sequence);
	CREATE FUNCTION insta5.taken() RETURNS bigint LANGUAGE sql BEGIN ATOMIC
		SELECT insta5.next_id(); END;
	CREATE SCHEMA insta9; CREATE SEQUENCE insta9.ids;
	CREATE FUNCTION insta9.made() RETURNS bigint LANGUAGE sql RETURN nextval('insta9.ids');
	CREATE TABLE insta9.t (id bigint PRIMARY KEY DEFAULT insta9.made());
	SELECT instaid_adopt.replace_copy('insta9.made()', 9)});
is(im('--check-only', 'insta5', 'insta9'), 5, 'what would stop a move to the extension');
like($out, qr/^  ! $_/m, "... $_") for 'rule _RETURN on view insta5\.takes uses a function',
  'column name of table insta5\.named uses', 'function insta5\.taken\(\) uses',
  'function insta9\.made\(\) uses .*: let no column default to it, drop it,';
unlike($out, qr/insta5\.(photos|likes|far|events)/, '... and nothing else');
sql($old, 'DROP VIEW insta5.takes; DROP TABLE insta5.named; DROP FUNCTION insta5.taken;
	ALTER TABLE insta9.t ALTER id SET DEFAULT insta9.next_id(); DROP FUNCTION insta9.made');
is(im('--check-only', 'insta5', 'insta9'), 0, '... without all that, nothing is in the way');
sql($old, 'DROP SCHEMA insta9 CASCADE');

# A plan, with a shard that was adopted
sql($old, q{
	\set schema insta8
	\set shard_id 8
	\i test/lib/published.sql
	CREATE TABLE insta8.t (id bigint PRIMARY KEY DEFAULT insta8.next_id());
	SELECT instaid_adopt.adopt_shard('insta8')});
my $adopted = 'INSERT INTO insta8.t DEFAULT VALUES;
	SELECT id = (SELECT max(id) FROM insta8.t), instaid.extract_shard_id(id) FROM insta8.t
	ORDER BY ctid DESC LIMIT 1';
is(sql($old, $adopted), 't|8', 'an adopted shard');
my $servers = PostgreSQL::Test::Utils::tempdir . '/servers';
append_to_file($servers, join '', map { $_->name . ' ' . $_->connstr($db) . "\n" } $old, $new);
sub plan_of
{
	my (@args) = @_;
	IPC::Run::run([ $tool, '--plan', '--servers', $servers, @args ], '<', \undef, '>', \$out,
		'2>&1', IPC::Run::timeout(600));
	note($out) if $?;
	return $? >> 8;
}
is(plan_of('--drain', 'a', '--run', '--finish'), 0,
	'a plan that moves all shards to the extension');
is(places() . left(), '- insta5,insta6 frozen,insta8- -', '... all');
is(sql($new, $adopted), 't|8', '... the adopted one, too');
is(plan_of('--drain', 'b', '--run'), 0, '... and back');
is(places(), 'insta5,insta6 frozen,insta8 insta5 frozen,insta6 frozen,insta8 frozen', '... all');
is(sql($old, $adopted), 't|8', '... the adopted one, too');
is(plan_of('--finish'), 0, '... --finish');
goes_on($old, 'after a plan, IDs go on');

done_testing();
