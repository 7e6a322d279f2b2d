# A quarter of the shapes of the published function's copies in test/copies.sql, each in one
# edition: adopted by their owner with the number and the epoch that their IDs have, or refused
# with a reason of its own and a cure that is run as audit() prints it.  Where others may create
# objects in public, what names no schema is refused, until the REVOKE of the HINT has been run.
# Writers go on meanwhile, and what another role has planted does not run.  Each shape is a
# database, and pg_regress has one.
#
# INSTAID_TEST_COPIES is a pattern that chooses shapes by their names, instead of a quarter.
#
# FULL=1 adds the other shapes, the other edition, public open, objects of a superuser, and writers
# not in: version assert
# takes 110 s

use strict;
use warnings;

use IPC::Run ();
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

use Clients;
use SqlEdition;

# the zone is a trap: epochs of dates are those of the database's zone
my $node = Clients::server('main', 'autovacuum = off', q{timezone = 'America/New_York'},
	'max_connections = 150', 'jit = off');
$node->safe_psql('postgres', 'CREATE ROLE dba LOGIN; CREATE ROLE app LOGIN;
	CREATE ROLE mallory LOGIN');
my $superuser = $node->safe_psql('postgres', 'SELECT current_user');

# The shapes, in the order of the file
my @shapes;
for my $text (split /^---- /m, slurp_file('test/copies.sql') =~ s/\A.*?(?=^---- )//msr)
{
	next if $text eq '';
	my ($name) = $text =~ /\A(\w+)\n/ or die "a shape has no name: $text";
	my $shape = { name => $name, text => $text =~ s/\A.*\n//r, insert => 'photos', later => '',
		call => '', keeps => '' };
	for my $line ($text =~ /^-- ((?:refused|insert|later|call|cure|app|keeps): .*)/mg)
	{
		my ($key, $value) = $line =~ /^(\w+): +(.*)/;
		$shape->{$key} = $key eq 'app' ? join ' ', $shape->{app} // (), $value : $value;
	}
	while ($text =~ /^-- (adopted|cured): (.*)/mg)
	{
		my ($key, $schema, $number, $epoch) = "$1 $2" =~
		  /^(\w+) schema (.*) shard (\d+) epoch (\d+)$/ or die "$name: $2";
		push @{ $shape->{$key} }, "$schema|$number|$epoch";
	}
	die "$name: adopted or refused?" if !$shape->{adopted} && !defined $shape->{refused};
	$shape->{insert} = $shape->{insert} eq '-' ? [] : [ split ' ', $shape->{insert} ];
	$shape->{later}  = [ split ' ', $shape->{later} ];
	$shape->{call}   = [ split /; */, $shape->{call} ];
	push @shapes, $shape;
}

# In each database, the schema driver notes which ID came from where.  What it calls is looked up
# as the caller would.
my $driver = q{
	CREATE SCHEMA driver;
	CREATE TABLE driver.made (step integer, source text, id text);
	GRANT USAGE ON SCHEMA driver TO PUBLIC;
	GRANT SELECT, INSERT ON driver.made TO PUBLIC;
	CREATE FUNCTION driver.make(step integer, tables text[], calls text[], number integer)
		RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		source text;
		key text;
	BEGIN
		FOREACH source IN ARRAY tables LOOP
			SELECT a.attname INTO STRICT key FROM pg_catalog.pg_attribute AS a
			WHERE a.attrelid = source::regclass AND pg_catalog.lower(a.attname) = 'id';
			EXECUTE pg_catalog.format('WITH new AS (
					INSERT INTO %s (n) SELECT pg_catalog.generate_series(1, %s) RETURNING %I AS id)
				INSERT INTO driver.made SELECT %s, %L, id FROM new',
				source, number, key, step, source);
		END LOOP;
		FOREACH source IN ARRAY calls LOOP
			FOR i IN 1 .. number LOOP
				EXECUTE pg_catalog.format('INSERT INTO driver.made SELECT %s, %L, %s', step,
					source, source);
			END LOOP;
		END LOOP;
	END $$;
	-- all that a refusal must leave as it was, and where sequences are
	CREATE FUNCTION driver.state() RETURNS TABLE (state text) LANGUAGE sql SECURITY DEFINER
		SET search_path = pg_catalog AS $$
		SELECT format('%s %s %s %s', p.oid, p.proowner, p.proacl, pg_get_functiondef(p.oid))
		FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
		WHERE p.prokind = 'f' AND nspname !~ '^(pg_|information_schema|instaid|driver)'
		UNION ALL
		SELECT format('%s %s %s', adrelid::regclass, adnum, pg_get_expr(adbin, adrelid))
		FROM pg_attrdef
		UNION ALL
		SELECT format('%s %s %s %s %s', c.oid, relname, relnamespace, relowner, relacl)
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE nspname !~ '^(pg_|information_schema|instaid|driver)'
		UNION ALL
		SELECT format('%s %s', to_jsonb(s) - 'last_value', COALESCE(last_value, 0) / 1000)
		FROM pg_sequences AS s WHERE schemaname !~ '^instaid'
		UNION ALL
		SELECT format('shard %s', to_jsonb(s) - 'last_id' - 'last_issued_at')
		FROM instaid.shards AS s
		ORDER BY 1 $$;
};

$node->safe_psql('postgres', 'CREATE DATABASE c OWNER dba; CREATE DATABASE s OWNER dba');
$node->safe_psql('c', "CREATE EXTENSION instaid_adopt CASCADE; $driver");
$node->safe_psql('s', SqlEdition::changed() . SqlEdition::adopting(),
	extra_params => [ '-U', 'dba' ]);
$node->safe_psql('s', $driver);

# Run statements in a database as a role; \echo and \warn end parts of what they print, and of their
# messages.  Returns both lists.
sub run_as
{
	my ($role, $database, $sql) = @_;
	my ($out, $err) = ('', '');
	$node->psql($database, $sql, stdout => \$out, stderr => \$err, on_error_stop => 0,
		on_error_die => 0,
		extra_params => [ '-U', $role, '-v', "owner=$role", '-v', "superuser=$superuser" ]);
	$err =~ s/^psql:\S+ //mg;
	return ([ map { s/^\n//r } split /^=====$/m, $out ], [ split /^=====(?:\n|\z)/m, $err ]);
}

# A text array of SQL
sub array { return 'ARRAY[' . join(', ', map { "'" . s/'/''/gr . "'" } @_) . ']::text[]' }

# The statements of a cure end with a semicolon.  After "; If ...", there are others, for another
# case; a pattern chooses among all.
sub statements
{
	my ($cure, $wanted) = @_;
	$cure =~ s/(?<=;) If .*//s if !defined $wanted;
	$wanted //= '.';
	return grep { /$wanted/ }
	  $cure =~ /(?:\A|(?<=[.;:]))\s*((?:SELECT|ALTER|CREATE|DROP|REVOKE|GRANT)\s[^;]*;)/g;
}

# The findings of audit(), as lists of code, severity, object, problem and cure
my $audit = q{SELECT format(E'%s\x1f%s\x1f%s\x1f%s\x1f%s\x1e', code, severity, object, problem,
	cure) FROM instaid.audit();};
sub findings { return map { [ split /\x1f/ ] } grep { /\S/ } split /\x1e\n?/, $_[0] // '' }
sub said { return join ' ', map { "[@$_]" } @_ }

my $state  = 'SELECT * FROM driver.state();';
my $part   = "\\echo =====\n\\warn =====\n";
my $shards = q{SELECT schema_name, shard_id, (extract(epoch FROM epoch) * 1000)::bigint
	FROM instaid.shards WHERE schema_name <> 'instaid' ORDER BY 1;};

# Which new IDs came twice, and which are not above the rows of before: those of the table, or for
# a call those of all tables.
my $repeated = q{
	SELECT format('%s came %s times from %s', id, times, sources)
	FROM (SELECT id, count(*) AS times, string_agg(source, ' ') AS sources FROM driver.made
		GROUP BY id HAVING count(*) > 1 AND max(step) > 1 LIMIT 3) AS t;};
my $not_above = q{
	WITH before AS (
		SELECT source, max(id::numeric) AS id FROM driver.made
		WHERE step = 1 AND id ~ '^-?\d+$' GROUP BY 1)
	SELECT format('%s IDs of %s are not above', count, source)
	FROM (SELECT count(*), m.source
		FROM driver.made AS m LEFT JOIN before AS b USING (source)
		WHERE m.step > 1 AND m.id ~ '^-?\d+$'
			AND m.id::numeric <= COALESCE(b.id, (SELECT max(id) FROM before))
		GROUP BY 2) AS t;};

# What is wrong with one shape in one edition, and whether it was adopted, or refused with a reason
# of its own.
sub faults
{
	my ($shape, $edition, $owner, $is_open) = @_;
	my $database = "${edition}_$shape->{name}";
	my $caller = $owner;
	my $was_open = 0;
	my ($tables, $calls) = (array(@{ $shape->{insert} }), array(@{ $shape->{call} }));
	my @faults;

	my $as_app = sub {
		my (undef, $said) = run_as('app', $database,
			$shape->{app} =~ /^\w+ / ? $shape->{app} : "INSERT INTO $shape->{app} (n) VALUES (1)");
		return @$said;
	};
	# public is open as in databases that were made before PostgreSQL 15
	$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE $edition OWNER $owner");
	my ($out, $said) = run_as($owner, $database, ($is_open ?
			'GRANT CREATE ON SCHEMA public TO PUBLIC;' : '') . qq{
		SET client_min_messages = error;
		$shape->{text}
		SET client_min_messages = error;
		SELECT driver.make(1, $tables, '{}', 50);});
	die "$shape->{name}: @$said" if @$said;
	die "$shape->{name}: no rights" if defined $shape->{app} && $as_app->();
	my ($definitions) = run_as($owner, $database, q{SELECT pg_get_functiondef(objid) || ';'
		FROM instaid._copies() WHERE classid = 'pg_proc'::regclass});

	# in which others could plant what a name without a schema finds
	if ($is_open)
	{
		($out, $said) = run_as($caller, $database,
			join $part, $state, 'CALL instaid_adopt.adopt_shards(dry_run => true);', $state, '');
		if (($said->[1] // '') =~ /other roles could let .* call their code/)
		{
			$was_open = 1;
			push @faults, 'a refusal changes something' if $out->[0] ne $out->[2];
			my @cures = map { statements($_) } $said->[1] =~ /^HINT: +(.*)/mg;
			push @faults, "another cure than a REVOKE: @cures"
			  if "@cures" !~ /^(?:REVOKE CREATE ON SCHEMA public FROM PUBLIC; ?)+$/;
			(undef, $said) = run_as($owner, $database, "@cures");
			push @faults, "the cure fails: @$said" if @$said;
		}
	}
	($out, $said) = run_as($caller, $database, join $part, $audit, $state,
		'CALL instaid_adopt.adopt_shards(dry_run => true);', "$state\n",
		"CALL instaid_adopt.adopt_shards();\n\\echo :ERROR\n", $state, $shards, $audit);
	my ($found, $before, undef, $after_dry, $has_error, $after, $there, $cures) = @$out;
	my ($announced, $reason) = map { $_ // '' } @$said[ 2, 4 ];
	push @faults, "adopt_shards() fails: $reason" if $has_error !~ /false/;
	my $has_failed = $reason =~ /could not be adopted/;
	push @faults, 'audit() finds no copy: ' . ($said->[0] // '')
	  if !grep { $_->[0] =~ /^copy/ } findings($found);
	push @faults, 'a dry run changes something' if $after_dry ne $before;
	my $is_as_expected = 0;
	my $is_adopted = $shape->{adopted} && !(defined $shape->{refused} && $has_failed);
	if ($is_adopted)
	{
		push @faults, "it is not adopted: $reason"
		  if $has_failed || grep { !/other roles have rights on sequence/ }
			  $reason =~ /^WARNING:.*/mg;
		chomp $there;
		if ($there ne join "\n", @{ $shape->{adopted} })
		{
			push @faults, "the shards are: $there";
			return ("faults", @faults);
		}
		$is_as_expected = !@faults;
		for my $shard (@{ $shape->{adopted} })
		{
			my ($schema, $number, $ms) = split /\|/, $shard;
			my @utc = gmtime(int($ms / 1000));
			my $epoch = sprintf '%d-%02d-%02d %02d:%02d:%02d', $utc[5] + 1900, $utc[4] + 1,
			  @utc[ 3, 2, 1, 0 ];
			push @faults, "no number and epoch in: $_"
			  for grep { !/\bshard $number, epoch \Q$epoch\E/ } $announced, $reason;
		}
	}
	else
	{
		push @faults, 'it is adopted' if !$has_failed && $reason !~ /^WARNING/m;
		push @faults, "the reason does not match: $reason"
		  if $reason !~ /$shape->{refused}/s || $reason =~ /They belong to another role, have/
			  || $reason =~ /^(?:ERROR|WARNING): +(?:\S+: )?\w+ \S+ does not exist$/m;
		push @faults, "something has changed:\n$before\n$after"
		  if $after ne $before && !$shape->{adopted};
		$is_as_expected = !@faults;
	}

	# Cures, as they are printed.  Where a cure is to call adopt_shards(), they are the hints of
	# what it left.
	my %keeps = map { $_ => 1 } split ' ', $shape->{keeps};
	my @left = grep { !$keeps{ $_->[0] } } findings($cures);
	my %run;
	if (($shape->{cure} // '') eq '-')
	{
		push @faults, map { "a cure is printed that fails: $_->[4]" }
		  grep { $_->[4] =~ /replace_copy/ } @left;
		return ($is_as_expected ? 'refused' . ($was_open ? ' after REVOKE' : '') : 'faults',
			@faults);
	}
	for my $round (1 .. 3)
	{
		my @cures = grep { $_->[1] eq 'error' || $is_adopted && statements($_->[4]) } @left;
		my @texts = map { $_->[4] } @cures;
		if (grep { /CALL instaid_adopt\.adopt_shards\(\)/ } @texts)
		{
			(undef, $said) = run_as($caller, $database, 'CALL instaid_adopt.adopt_shards()');
			push @texts, "@$said" =~ /^HINT: +(.*)/mg;
		}
		my @run = grep { !$run{$_}++ } map { statements($_, $shape->{cure}) } @texts;
		last if !@run;
		($out, $said) = run_as((grep { /^Let the owner/ } @texts) ? $owner : $caller, $database,
			join $part, @run, "$audit\n");
		my @asked;
		for my $i (grep { ($said->[$_] // '') =~ /ERROR/ } 0 .. $#run)
		{
			# where nothing tells the number, the cure asks for it
			push(@asked, $1), next if $said->[$i] =~ /tell the shard ID.*\nHINT: .*?: (.*)/;
			# adopt_shards() did not come to say so: the next round runs the cure again
			push(@asked, $1), delete $run{ $run[$i] }, next
			  if $said->[$i] =~ /other roles could let .*\nHINT: +(REVOKE [^;]*;)/s;
			push @faults, "the cure fails: $run[$i] $said->[$i]";
		}
		if (@asked)
		{
			($out, $said) = run_as($caller, $database, join $part, @asked, "$audit\n");
			push @faults, map { "the cure of the cure fails: $_" } grep { /ERROR/ } @$said;
			$run{$_}++ for @asked;
		}
		my %cured = map { ("$_->[0] $_->[2]" => 1) } @cures;
		@left = grep { $_->[1] eq 'error' || $cured{"$_->[0] $_->[2]"} } findings($out->[-1]);
	}
	if ($shape->{cured})
	{
		($out) = run_as($caller, $database, $shards);
		chomp(my $there = $out->[0] // '');
		push @faults, "the cures have made: $there"
		  if $there ne join "\n", @{ $shape->{cured} };
	}
	# a migration that runs again does this, too
	($out, $said) = run_as($caller, $database, join $part, (grep { /replace_copy/ } sort keys %run),
		q{SELECT instaid_adopt.replace_copy(p.oid) FROM instaid.shards AS s, pg_proc AS p
		WHERE s.schema_name <> 'instaid' AND pronamespace = s.schema_name::text::regnamespace
			AND proname = 'next_id' ORDER BY pronargs LIMIT 1;} . "\n");
	push @faults, map { "replace_copy() can run again: $_" }
	  grep { !/ERROR:  .* (?:returns IDs of shard \d+ already|does not exist)/ } @$said;
	push @faults, 'audit() still has: ' . said(@left)
	  if grep { $_->[1] eq 'error' || grep { $run{$_} } statements($_->[4]) } @left;

	# IDs of all defaults and calls.  Then a table is dropped, and the others go on.
	my ($dropped, @others) = reverse @{ $shape->{insert} }, @{ $shape->{later} };
	$tables = array(@{ $shape->{insert} }, @{ $shape->{later} });
	($dropped, @others) = reverse 'photos' if !defined $dropped;
	my $check = '';
	if ($is_adopted)
	{
		my $wanted = join ', ', map { my (undef, $number, $ms) = split /\|/;
			"($number, to_timestamp($ms / 1000.0))" } @{ $shape->{adopted} };
		$check = qq{
			SELECT format('%s IDs of another shard or time, such as %s', count(*), min(m.id))
			FROM driver.made AS m
			WHERE step = 2 AND NOT EXISTS (
				SELECT FROM (VALUES $wanted) AS w (number, epoch),
					LATERAL instaid.decode(m.id::bigint, w.epoch) AS d
				WHERE d.shard_id = w.number AND d.created_at BETWEEN :'began'::timestamptz
					AND clock_timestamp() + interval '3 s')
			HAVING count(*) > 0;};
	}
	($out, $said) = run_as($owner, $database, join $part, qq{
		SET client_min_messages = error;
		SELECT clock_timestamp() - interval '1 s' AS began \\gset
		SELECT driver.make(2, $tables, $calls, 2500);},
		"$repeated $not_above $check", qq{
		DROP TABLE $dropped;
		SELECT driver.make(3, } . array(@others) . ', '
		. array(grep { !/photos/ } @{ $shape->{call} }) . ", 10); $repeated\n");
	push @faults, "IDs afterwards: $said->[0]" if $said->[0];
	push @faults, ($out->[1] // '') . ($said->[1] // '') if ($out->[1] // '') =~ /\w/ || $said->[1];
	push @faults, "after DROP TABLE $dropped: $out->[2] $said->[2]"
	  if $out->[2] =~ /\w/ || $said->[2];
	if (defined $shape->{app})
	{
		push @faults, map { "app cannot insert any more: $_" } $as_app->() if @others;
	}
	# An application that creates the functions at each start puts them back.
	if ($is_adopted)
	{
		($out, $said) = run_as($owner, $database, join $part, "SET client_min_messages = error;
			@$definitions", "RESET client_min_messages;
			CALL instaid_adopt.adopt_shards();", $shards, $audit, "SELECT driver.make(4, "
			. array(@others) . ', ' . array(grep { !/photos/ } @{ $shape->{call} }) . ", 10);
			$repeated $not_above\n");
		push @faults, "put back: $said->[1]" if "@$said" =~ /ERROR|WARNING/;
		chomp(my $again = $out->[2] // '');
		push @faults, "put back, the shards are: $again" if $again ne $there;
		push @faults, "put back, IDs: $out->[4]" if ($out->[4] // '') =~ /\w/;
		push @faults, 'put back, audit() has: ' . said(grep { $_->[1] eq 'error' }
			findings($out->[3]));
		pop @faults if $faults[-1] eq 'put back, audit() has: ';
	}
	return ('faults', @faults) if !$is_as_expected;
	return (($is_adopted ? 'adopted' : 'refused') . ($was_open ? ' after REVOKE' : ''), @faults);
}

# The editions run at the same time, each in a process, which writes its results to a file.
sub run_shapes
{
	my ($chosen, $edition, $owner, $is_open) = @_;
	my $results = PostgreSQL::Test::Utils::tempdir . '/results';
	my $pid = fork;
	die $! if !defined $pid;
	return ($pid, $results) if $pid;
	append_to_file($results, '');
	for my $shape (@$chosen)
	{
		my ($result, @faults) = eval { faults($shape, $edition, $owner, $is_open) };
		($result, @faults) = ('faults', $@) if $@;
		append_to_file($results,
			join("\x1f", $shape->{name}, $result, join "\n", @faults) . "\x1e");
		eval {
			$node->safe_psql('postgres', "DROP DATABASE ${edition}_$shape->{name} WITH (FORCE)");
		};
	}
	POSIX::_exit(0);
}

my %expected;
for my $shape (@shapes)
{
	$expected{ $shape->{name} } = join ' or ', grep { defined $shape->{$_} } 'adopted', 'refused';
}
# Each fourth shape is a quarter, which has shapes of each kind, since like ones stand together.
# The editions take turns.
my $pattern = $ENV{INSTAID_TEST_COPIES};
my %chosen = map {
	my $turn = $_;
	$turn => [ @shapes[ grep { $pattern ? $shapes[$_]{name} =~ /$pattern/
			: $ENV{FULL} || $_ % 8 == $turn } 0 .. $#shapes ] ]
} 0, 4;
# what is adopted although public is open: names have their schemas
my %when_open = (public_unqualified => 'adopted after REVOKE', published => 'adopted',
	search_path_public => 'adopted after REVOKE', sql_language => 'adopted after REVOKE',
	layout_16 => 'refused after REVOKE');
my @open = grep { $ENV{FULL} || $when_open{ $_->{name} } }
  $pattern || $ENV{FULL} ? @{ $chosen{0} } : @shapes;

my @ways = ([ [ $chosen{0}, 'c', 'dba', 0 ], [ $chosen{4}, 's', 'dba', 0 ] ],
	[ [ \@open, 'c', 'dba', 1 ], [ \@open, 's', 'dba', 1 ] ]);
push @ways, [ [ $chosen{0}, 'c', $superuser, 0 ] ] if $ENV{FULL};
for my $ways (@ways)
{
	my $began = time;
	my @running = map { [ run_shapes(@$_), @$_ ] } @$ways;
	for my $run (@running)
	{
		my ($pid, $results, undef, $edition, $owner, $is_open) = @$run;
		my $way = ($edition eq 'c' ? 'extension' : 'SQL edition')
		  . ($is_open ? ', public is open' : '') . ($owner eq 'dba' ? '' : ', of a superuser');
		waitpid $pid, 0;
		my %count;
		for my $line (split /\x1e/, slurp_file($results))
		{
			my ($name, $result, $faults) = split /\x1f/, $line;
			$count{$result}++;
			is($faults // '', '', "$name, $way: $expected{$name}");
			is($result, $when_open{$name}, "$name, $way: $when_open{$name}")
			  if $is_open && $when_open{$name};
		}
		note(sprintf '%s: %s; after %d s', $way,
			join(', ', map { "$count{$_} $_" } sort keys %count), time - $began);
	}
}


my %text = map { $_->{name} => $_->{text} } @shapes;

# Eight clients of pgbench insert until the shape has been adopted, and new rows are there.
my %written = (function_of_each_table => [ 'items', 'clients', 'actions' ],
	$ENV{FULL} ? (public_unqualified => [ 'photos' ], sql_language => [ 'photos' ]) : ());
my $shards_exist = q{SELECT FROM instaid.shards WHERE schema_name <> 'instaid'};
my @writers;
for my $name (sort keys %written)
{
	for my $edition ('c', $ENV{FULL} ? 's' : ())
	{
		my $database = "writers_${edition}_$name";
		$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE $edition OWNER dba");
		run_as('dba', $database, $text{$name});
		my @scripts;
		for my $table (@{ $written{$name} })
		{
			my $file = PostgreSQL::Test::Utils::tempdir . "/insert_$table.sql";
			append_to_file($file, "INSERT INTO $table (n) VALUES (1);\n");
			push @scripts, '-f', $file;
		}
		my $writer = { name => "$name, $edition", database => $database,
			stop => PostgreSQL::Test::Utils::tempdir . "/$database",
			tables => $written{$name},
			ids => join(' UNION ALL ', map { "SELECT id FROM $_" } @{ $written{$name} }) };
		$writer->{pgbench} = IPC::Run::start(
			[ 'sh', '-c', 'until [ -e "$0" ]; do "$@" || exit; done', $writer->{stop},
				$node->installed_command('pgbench'), '-n', '-c', 8, '-T', 3, @scripts,
				$node->connstr($database) . ' user=dba' ],
			'>', \$writer->{out}, '2>&1');
		push @writers, $writer;
	}
}
for my $writer (@writers)
{
	$node->poll_query_until($writer->{database},
		"SELECT count(*) > 1000 FROM ($writer->{ids}) AS t") or die "$writer->{name}: no rows";
	$writer->{call} = IPC::Run::start(
		[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d',
			$node->connstr($writer->{database}) . ' user=dba' ], '<',
		\"CALL instaid_adopt.adopt_shards(); SELECT max(id) FROM ($writer->{ids}) AS t
			WHERE EXISTS ($shards_exist);\n", '>',
		\$writer->{adopted}, '2>', \$writer->{said});
}
for my $writer (@writers)
{
	$writer->{call}->finish;
	my ($adopted_at) = ($writer->{adopted} // '') =~ /^(\d+)$/m;
	ok(defined $adopted_at, "$writer->{name}: adopted while 8 clients insert")
	  or diag($writer->{said});
	$node->poll_query_until($writer->{database},
		"SELECT count(*) > 100 FROM ($writer->{ids}) AS t WHERE id > $adopted_at")
	  if defined $adopted_at;
	append_to_file($writer->{stop}, '');
	$writer->{pgbench}->finish;
	next if !defined $adopted_at;
	unlike($writer->{out}, qr/^number of failed transactions: [1-9]/m,
		"$writer->{name}: adopted while 8 clients insert, and no transaction fails");
	unlike($writer->{out}, qr/aborted|error/i,
		"$writer->{name}: adopted while 8 clients insert, and no client ends");
	my ($rows, $new, $different) = split /\|/, $node->safe_psql($writer->{database}, qq{
		SELECT count(*), count(*) FILTER (WHERE id > $adopted_at),
			count(DISTINCT id) FILTER (WHERE id > $adopted_at) FROM ($writer->{ids}) AS t});
	cmp_ok($new, '>', 0,
		"$writer->{name}: adopted while 8 clients insert, and they go on: $new of $rows rows");
	is($different, $new,
		"$writer->{name}: adopted while 8 clients insert, and no new ID comes twice, in any of"
		  . " the tables");
	is($node->safe_psql($writer->{database}, join ' UNION ALL ', map {
		"SELECT count(*) - count(DISTINCT id) FROM $_" } @{ $writer->{tables} }),
		join("\n", map { 0 } @{ $writer->{tables} }),
		"$writer->{name}: adopted while 8 clients insert, and no row has the ID of another");
	my $processed = 0;
	$processed += $1
	  while $writer->{out} =~ /^number of transactions actually processed: (\d+)/mg;
	is($rows, $processed, "$writer->{name}: adopted while 8 clients insert, and no row is lost");
}
$node->safe_psql('postgres', "DROP DATABASE $_->{database} WITH (FORCE)") for @writers;

# What mallory has put where the text of a copy could find it.  It notes whether it runs with the
# rights of another role, which a rollback does not undo.
my $note = q{
	CREATE SCHEMA m AUTHORIZATION mallory;
	CREATE SEQUENCE m.ran;
	GRANT USAGE ON SCHEMA m TO PUBLIC;
	GRANT USAGE ON SEQUENCE m.ran TO PUBLIC;
	CREATE FUNCTION m.note() RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		IF current_user <> 'mallory' THEN
			PERFORM pg_catalog.nextval('m.ran'::pg_catalog.regclass);
		END IF;
	END $$;};
my $planted = q{
	CREATE FUNCTION public.remainder(bigint, integer) RETURNS bigint LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM m.note();
		RETURN pg_catalog.mod($1, $2::bigint);
	END $$;
	CREATE OPERATOR public.% (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = public.remainder);
	CREATE FUNCTION public.nextval(text) RETURNS bigint LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM m.note();
		RETURN pg_catalog.nextval($1::regclass);
	END $$;
	CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM m.note();
		RETURN pg_catalog.clock_timestamp();
	END $$;};
my $ran = 'SELECT is_called FROM m.ran';

# Adopt what dba has loaded, after mallory has planted something.  A refusal has cures, which are
# run: what mallory could do is taken from her.
sub attack
{
	my ($name, $edition, $load, $plant, %is) = @_;
	my $database = "attack_${edition}";
	$name .= ', ' . ($edition eq 'c' ? 'extension' : 'SQL edition');
	$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE $edition OWNER dba;
		GRANT CREATE ON DATABASE $database TO mallory");
	$node->safe_psql($database, "GRANT CREATE ON SCHEMA public TO PUBLIC; $note");
	my (undef, $said) = run_as('mallory', $database, $is{before} // '');
	die "$name: @$said" if @$said;
	(undef, $said) = run_as('dba', $database, "SET client_min_messages = error; $load");
	die "$name: @$said" if @$said;
	(undef, $said) = run_as('mallory', $database, $plant);
	die "$name: @$said" if @$said;
	$node->safe_psql($database, 'REVOKE CREATE ON SCHEMA public FROM PUBLIC') if $is{revoked};
	if ($is{control})
	{
		run_as('dba', $database, $is{control});
		is($node->safe_psql($database, $ran), 't', "$name: what is planted runs if it is found");
		$node->safe_psql($database, q{ALTER SEQUENCE m.ran RESTART});
	}

	my ($out, $called) = run_as('dba', $database, join $part,
		"CALL instaid_adopt.adopt_shards(dry_run => true);",
		"CALL instaid_adopt.adopt_shards();", "$audit\n");
	my $reason = $called->[1] // '';
	is($node->safe_psql($database, $ran), 'f', "$name: no foreign code runs");
	is($node->safe_psql($database, $shards), $is{rest} // '',
		"$name: no foreign code runs, and it is not adopted");
	like($reason, $is{refused}, "$name: no foreign code runs, with a reason of its own");
	if ($is{adopted})
	{
		my @cures = map { statements($_) } $reason =~ /^HINT: +(.*)/mg;
		is("@cures", $is{revoked} ? '' : 'REVOKE CREATE ON SCHEMA public FROM PUBLIC;',
			"$name: no foreign code runs, and the cure is a REVOKE, unless that was run");
		run_as('dba', $database, "@cures");
		$node->safe_psql($database, 'DROP OWNED BY mallory CASCADE');
		(undef, $called) = run_as('dba', $database, 'CALL instaid_adopt.adopt_shards()');
		is($node->safe_psql($database, $shards), $is{adopted},
			"$name: no foreign code runs, and it is adopted when nothing of mallory is there")
		  or diag("@$called");
	}
	$is{then}->($database, $out->[2], $name) if $is{then};
	$node->safe_psql('postgres', "DROP DATABASE $database WITH (FORCE)");
	return;
}

my %with_row = map { $_ => "$text{$_} INSERT INTO photos (n) VALUES (1);" }
  grep { $text{$_} =~ /CREATE TABLE photos/ } keys %text;
my $calls_it = sub { "SET search_path = public; SELECT $_[0]()" };
my $could  = qr/could let \S+ call their code/;
for my $edition ('c', 's')
{
	for my $revoked (0, 1)
	{
		my $when = $revoked ? ', whose CREATE was revoked' : '';
		my $refused = $revoked
		  ? qr/$could.*(?:nextval\(text\)|operator %\(bigint,integer\)) belongs to mallory/s
		  : qr/$could.*PUBLIC can create objects in schema public/s;
		attack("an operator and functions$when: unqualified", $edition,
			$with_row{public_unqualified}, $planted, revoked => $revoked, refused => $refused,
			control => $calls_it->('next_id'), adopted => 'public|5|1314220021721');
		attack("an operator and functions$when: in SQL", $edition,
			$with_row{sql_language}, $planted, revoked => $revoked, refused => $refused,
			control => $calls_it->('next_id'), adopted => 'public|5|1620488843862');
		attack("an operator and functions$when: SET search_path = public", $edition,
			$with_row{search_path_public}, $planted, revoked => $revoked, refused => $refused,
			control => $calls_it->('new_id'), adopted => 'public|2|1600000000000');
		attack("functions$when: SET search_path = public, pg_catalog", $edition,
			$with_row{search_path_public}
			  =~ s/search_path = public AS/search_path = public, pg_catalog AS/r, $planted,
			revoked => $revoked, refused => $refused, control => $calls_it->('new_id'),
			adopted => 'public|2|1600000000000');
	}

	# the cure of what is refused
	attack('a function for a cure', $edition,
		"$text{sequence_argument} INSERT INTO users (n) VALUES (1);", $planted,
		control => q{SET search_path = public; SELECT next_id('users_id_seq')},
		refused => qr/argument/, then => sub {
			my ($database, $findings, $name) = @_;
			my @cures = map { statements($_->[4]) } findings($findings);
			my ($out, $said) = run_as('dba', $database, join "\n", @cures);
			is("@$said" =~ /ERROR/ ? "@$said" : scalar @cures ? '' : 'no cure', '',
				"$name: no foreign code runs, and its cure can be run");
			(undef, $said) = run_as($superuser, $database, 'INSERT INTO users (n) VALUES (2)');
			is("@$said", '', "$name: no foreign code runs, and rows be inserted");
			is($node->safe_psql($database, $ran), 'f',
				"$name: no foreign code runs, which runs no foreign code");
		});

	# what the text names belongs to mallory
	attack('a view with a function', $edition,
		$text{shard_of_table} =~ s/CREATE TABLE shard_config.*?;//sr
		  =~ s/INSERT INTO shard_config.*?;//sr, '', before => q{
			CREATE FUNCTION m.number() RETURNS integer LANGUAGE plpgsql AS $$
			BEGIN
				PERFORM m.note();
				RETURN 28;
			END $$;
			CREATE VIEW shard_config AS SELECT m.number() AS number;
			GRANT SELECT ON shard_config TO PUBLIC;},
		control => $calls_it->('next_id'), refused => qr/shard_config|$could/);
	attack('a sequence', $edition,
		$text{public_unqualified} =~ s/CREATE SEQUENCE.*?;//sr, '', revoked => 1,
		before => 'CREATE SEQUENCE table_id_seq;
			GRANT USAGE ON SEQUENCE table_id_seq TO PUBLIC;',
		refused => qr/table_id_seq/);
	attack('a sequence that the text qualifies', $edition,
		$text{public_qualified} =~ s/CREATE SEQUENCE.*?;//sr, '',
		before => 'CREATE SEQUENCE table_id_seq;
			GRANT USAGE ON SEQUENCE table_id_seq TO PUBLIC;',
		refused => qr/table_id_seq/);
	# a copy beside the owner's, and first by its name
	attack('a copy', $edition, $text{other_name}, q{
		CREATE FUNCTION a_generator() RETURNS bigint LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM m.note();
			RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
				- 1496675741352) << 23
				| (1 << 10) | (nextval('public.global_id_sequence') % 1024);
		END $$;}, control => $calls_it->('a_generator'), refused => $could,
		adopted => 'public|1|1496675741352');

	# functions that do what they should not
	my %does = (
		raises => q{RAISE 'no ID';},
		cancels => 'RAISE query_canceled;',
		commits => 'COMMIT;',
		sets_role => "SET ROLE $superuser;",
		sets_config => "PERFORM set_config('role', '$superuser', false);",
		# they make IDs, but not with the settings of before; from 19, one of them is always on
		sets_path => q{PERFORM set_config('search_path', 'm, pg_catalog', false);},
		sets_text => q{PERFORM set_config('timezone', 'Asia/Tokyo', false);}
		  . ($node->pg_version >= 19 ? ''
			: q{PERFORM set_config('standard_conforming_strings', 'off', false);}));
	my @made = ('sets_path', 'sets_text');
	my $number = 60;
	my %number = map { $_ => $number++ } sort keys %does;
	my $schemas = sub {
		return join "\n", map { qq{
			CREATE SCHEMA $_;
			GRANT USAGE ON SCHEMA $_ TO PUBLIC;
			CREATE SEQUENCE $_.ticks;
			CREATE FUNCTION $_.next_id() RETURNS bigint LANGUAGE plpgsql AS \$\$
			BEGIN
				$does{$_} $_[0]
				RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
					- 1496675741352) << 23 | ($number{$_} << 10) | (nextval('$_.ticks') % 1024);
			END \$\$;
			} } sort keys %does;
	};
	attack('functions that fail, or set something', $edition, $schemas->(''), '',
		refused => qr/no ID/,
		rest => join("\n", map { "$_|$number{$_}|1496675741352" } sort @made),
		then => sub {
			my ($database) = @_;
			is($node->safe_psql($database, q{SELECT count(*) FROM pg_proc AS p
				JOIN pg_namespace AS n ON n.oid = pronamespace
				WHERE proname = 'next_id' AND pronargs = 0 AND prosrc ~ 'nextval'
					AND n.nspname !~ '^instaid'}), scalar(keys %does) - @made,
				"functions that fail, or set something, are as they were");
		});

	# nothing of mallory's is called, whoever calls
	my $database = "attack_${edition}";
	$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE $edition OWNER dba;
		GRANT CREATE ON DATABASE $database TO mallory");
	$node->safe_psql($database, $note);
	my (undef, $said) = run_as('mallory', $database, $schemas->('PERFORM m.note();'));
	die "@$said" if @$said;
	for my $caller ('dba', $superuser)
	{
		my ($out, $called) = run_as($caller, $database, join $part,
			'CALL instaid_adopt.adopt_shards(dry_run => true);',
			"CALL instaid_adopt.adopt_shards();\n",
			(map { "SELECT instaid_adopt.adopt_shard('$_'), instaid_adopt.replace_copy(
				'$_.next_id()');\n" } sort keys %does), "$audit\n");
		my $name = "copies of mallory that change roles, called by $caller, $edition";
		is($node->safe_psql($database, $ran), 'f', "$name: none runs");
		is($node->safe_psql($database, $shards), '', "$name: none is adopted");
		# a role sees those of roles that it is a member of
		my $count = keys %does;
		like($called->[1], $caller eq 'dba' ? qr/^NOTICE:  no schema LIKE '%' can be adopted$/m
			: qr/belong to other roles\nDETAIL:  mallory has $count:/,
			"$name: " . ($caller eq 'dba' ? 'dba sees none' : 'they are listed'));
		is(scalar(grep { /ERROR: +must be owner/ } @$called), scalar(keys %does),
			"$name: each is refused by its name")
		  or diag("@$called");
	}
	$node->safe_psql('postgres', "DROP DATABASE $database WITH (FORCE)");
}

done_testing();
