# The references have each public function, view, type and setting of instaid's editions, and of
# instaid_tickets, under its name, with the signature of the catalog, and quote only messages that
# the sources can print.  The pages say how the editions differ, and list the findings of audit().
# With REFERENCE set, it writes the signatures into the pages: see "make reference".
# not in: assert
# in: newest

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Docs;

# What each page is about
my %schema = (
	'docs/reference.md' => 'instaid',
	'docs/reference-adopt.md' => 'instaid_adopt',
	'docs/reference-tickets.md' => 'instaid_tickets');
my @pages = sort keys %schema;

@Clients::extensions = ('instaid', 'instaid_adopt', 'instaid_tickets');

# Messages of PostgreSQL, which are not in our sources
my $of_postgresql = qr/^(?:permission\ denied\ for\ (?:database|schema|parameter)\ \w+
	| permission\ denied\ to\ set\ parameter\ "[\w.]+"
	| unrecognized\ configuration\ parameter\ "[\w.]+"
	| parameter\ "[\w.]+"\ cannot\ be\ changed\ now
	| operator\ does\ not\ exist:\ [\w.\[\]]+\ (?:=|@>)\ [\w.\[\]]+
	| value\ for\ domain\ [\w.]+\ violates\ check\ constraint\ "is_a_sequence_of_this_shard"
	| partition\ "\w+"\ would\ overlap\ partition\ "\w+"
	| START\ value\ \(\d+\)\ cannot\ be\ greater\ than\ MAXVALUE\ \(\d+\)
	| cannot\ execute\ [\w.() ]+\ (?:in\ a\ read-only\ transaction|during\ recovery
		|during\ a\ parallel\ operation)
	| schema\ "\w+"\ does\ not\ exist
	| invalid\ transaction\ termination
	| canceling\ statement\ due\ to\ lock\ timeout
	| deadlock\ detected)$/x;

# One server, with an edition in each of two databases
my $node = Clients::server('reference');
$node->safe_psql('postgres', 'CREATE DATABASE sql_edition');
$node->command_ok([ 'psql', '-Xq', '-d', $node->connstr('sql_edition'), '-f',
		'sql-edition/all.sql', '-f', 'sql-edition/adopting.sql' ], 'the SQL edition');
my (%signatures, %columns);
for my $page (@pages)
{
	my $schema = $schema{$page};
	$signatures{$page} = { signatures(
		sub {
			my ($edition, $sql) = @_;
			return $node->safe_psql($edition eq 'extension' ? 'postgres' : 'sql_edition', $sql);
		},
		$schema, 'extension', $schema eq 'instaid_tickets' ? () : 'SQL edition') };
	$columns{$page} = { $node->safe_psql('postgres', qq{
		SELECT c.relname, string_agg(a.attname, ' ' ORDER BY a.attname COLLATE "C")
		FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
		WHERE c.relnamespace = '$schema'::regnamespace AND c.relkind = 'v' AND c.relname !~ '^_'
		GROUP BY c.oid}) =~ /^(\w+)\|(.*)$/mg };
}
my @messages = messages();
my $any_message = do { my $any = join '|', @messages; qr/^(?:$any)$/ };

if ($ENV{REFERENCE})
{
	mkdir $_ for "$ENV{SCRATCH}/result", "$ENV{SCRATCH}/result/docs";
	for my $file (@pages)
	{
		my ($page) = with_signatures(slurp_file($file), %{ $signatures{$file} });
		append_to_file("$ENV{SCRATCH}/result/$file", $page);
	}
	done_testing();
	exit;
}

# What is wrong with texts of the pages
sub faults
{
	my (%texts) = @_;
	my @faults;
	for my $file (sort keys %texts)
	{
		my $page = $texts{$file};
		my %seen;
		my ($right, @names) = with_signatures($page, %{ $signatures{$file} });
		push @faults, 'another signature than in the catalog: make reference' if $page ne $right;
		$seen{$_}++ for @names;
		# the columns of a view are in the table below it
		while ($page =~ /^### (\w+)\n((?:(?!^###? ).*\n)*)/mg)
		{
			my ($view, $section) = ($1, $2);
			next unless $columns{$file}{$view};
			my ($table) = $section =~ /^\| column \| content \|\n((?:\|.*\n)*)/m;
			my $found = join ' ', sort map { /`(\w+)`/g } map { (split /\|/)[1] }
			  split /\n/, $table // '';
			push @faults, "columns of $view: $found; not $columns{$file}{$view}"
			  if $found ne $columns{$file}{$view};
		}
		while ($page =~ /^\| message \| what to do \|\n\|---\|---\|\n((?:\|.*\n)*)/mg)
		{
			push @faults, map { "no message: $_" }
			  grep { !/$any_message/ && !/$of_postgresql/ }
			  map { /`([^`]+)`/g } map { (split /(?<!\\)\|/)[1] } split /\n/, $1;
		}
		push @faults, map { "no heading $_" } grep { !$seen{$_} } sort keys %{ $signatures{$file} };
		push @faults, map { "nothing is called $_" }
		  grep { !$signatures{$file}{$_} } sort keys %seen;
		push @faults, map { "two headings $_" } grep { $seen{$_} > 1 } sort keys %seen;
	}
	return join "\n", @faults;
}

my %texts = map { $_ => slurp_file($_) } @pages;
cmp_ok(scalar(keys %{ $signatures{'docs/reference.md'} }), '>', 28, 'names in the catalogs');
cmp_ok(scalar(@messages), '>', 2000, 'messages in the sources');
is(faults(%texts), '', 'the references');
is(join(' ', grep { slurp_file($_) =~ /^```signature/m } grep { !/reference/ } glob '*.md */*.md'),
	'', 'signatures are nowhere else');

# The same names, arguments, results and properties, apart from what the page says
sub in_both
{
	my ($sql) = @_;
	return map { { map { split /=/, $_, 2 } split /\n/, $node->safe_psql($_, $sql) } } 'postgres',
	  'sql_edition';
}
my ($in_c, $in_sql) = in_both(q{
	SELECT format('%s(%s)=%s', p.proname, pg_get_function_arguments(p.oid),
		concat_ws(' ', pg_get_function_result(p.oid), p.provolatile, p.proisstrict, p.proparallel,
			p.proretset))
	FROM pg_proc AS p WHERE p.pronamespace = 'instaid'::regnamespace AND p.proname !~ '^_'
	UNION ALL
	SELECT format('%s.%s=%s', c.relname, a.attname, format_type(a.atttypid, NULL))
	FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
	WHERE c.relnamespace = 'instaid'::regnamespace AND c.relkind = 'v' AND c.relname !~ '^_'});
my %differ;
for my $name (keys %{ { %$in_c, %$in_sql } })
{
	$differ{ $name =~ s/[(.].*//r }++ if ($in_c->{$name} // '') ne ($in_sql->{$name} // '');
}
my $page = slurp_file('docs/sql-edition.md');
my ($section) = $page =~ /^## What differs\n(.*?)^## /ms or die 'the page has no section';
my %told = map { $_ => 1 } map { /`(\w+)\(/g, /view `(\w+)`/g,
	/type `(\w+)`/g } grep { /^\|/ } split /\n/, $section;
is(join(' ', grep { !$told{$_} } sort keys %differ), '',
	'docs/sql-edition.md names all functions and views that differ');

# common/ calls what each edition defines for itself, and common/README.md says how.
my @in_both = in_both(q{
	SELECT p.proname || '=' || format('%s(%s) %s', p.proname,
		string_agg(a.arg, ', ' ORDER BY a.n) FILTER (WHERE a.is_in), COALESCE(
			CASE WHEN p.proretset THEN 'SETOF ' ELSE '' END
			|| string_agg(a.arg, ', ' ORDER BY a.n) FILTER (WHERE NOT a.is_in),
			pg_get_function_result(p.oid)))
	FROM pg_proc AS p LEFT JOIN LATERAL (
		SELECT u.n, COALESCE(u.mode, 'i') = 'i', u.name || ' ' || format_type(u.type, NULL)
		FROM unnest(p.proargnames, COALESCE(p.proallargtypes, p.proargtypes::oid[]), p.proargmodes)
			WITH ORDINALITY AS u (name, type, mode, n)) AS a (n, is_in, arg) ON true
	WHERE p.pronamespace = 'instaid'::regnamespace AND p.proname ~ '^_' GROUP BY p.oid
	UNION ALL
	SELECT c.relname || '=' || format('%s %s', c.relname, string_agg(
		a.attname || ' ' || format_type(a.atttypid, NULL), ', ' ORDER BY a.attnum))
	FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
	WHERE c.relnamespace = 'instaid'::regnamespace AND c.relname ~ '^_' GROUP BY c.oid});
s/timestamp with time zone/timestamptz/g for values %{ $in_both[0] }, values %{ $in_both[1] };
($in_c, $in_sql) = @in_both;
my @names = grep { exists $in_sql->{$_} } sort keys %$in_c;
is(join("\n", map { $in_sql->{$_} } @names), join("\n", map { $in_c->{$_} } @names),
	'private functions and views of one name have one shape in both editions');
my $common = join '', map { slurp_file($_) } glob 'common/*.sql';
my %made = map { $_ => 1 } $common =~ /^CREATE OR REPLACE \w+ instaid\.(_\w+)/mg;
my %shown = map { /(\w+)/ => $_ } map { "$_->[0] $_->[1]" =~ tr/`//dr }
  map { [ (split / \| /)[ 0, 1 ] ] } slurp_file('common/README.md') =~ /^\| (`_.*)/mg;
is(join("\n", map { $shown{$_} } sort keys %shown),
	join("\n", map { $in_c->{$_} } grep { !$made{$_} } @names), 'common/README.md shows them');
is(join(' ', grep { !$made{$_} && !$shown{$_} } $common =~ s/^ *--.*//mgr =~ /\binstaid\.(_\w+)/g),
	'', 'common/ calls no other private function');

# docs/reference.md lists the findings of audit() by code, with their severities and editions.
my %findings;
for my $edition ('extension', 'SQL')
{
	my $source = slurp_file('common/findings.sql') . ($edition eq 'SQL'
		? slurp_file('sql-edition/audit.sql')
		: slurp_file('extension/audit.sql')
		  . slurp_file('src/declaration.c') =~ s/code = "(\w+)"/'$1', 'error'/gr);
	while ($source =~ /'(\w+)', (?:CASE [^,]* THEN )?'(error|warning)'(?: ELSE '(\w+)')?/g)
	{
		$findings{$1}{edition}{$edition} = 1;
		$findings{$1}{severity}{$_} = 1 for grep { defined } $2, $3;
	}
}
my @listed = grep { /^\| `\w+` \|.*\| (both|extension|SQL) \|$/ } split /\n/,
  slurp_file('docs/reference.md');
s/^\| `(\w+)` \| ([a-z, ]+) \|.*\| (\w+) \|$/$1: $2, $3/ for @listed;
my @made;
for my $code (sort keys %findings)
{
	my @editions = keys %{ $findings{$code}{edition} };
	my @severities = reverse sort keys %{ $findings{$code}{severity} };
	push @made, "$code: " . join ', ', @severities, @editions > 1 ? 'both' : @editions;
}
is(join("\n", sort @listed), join("\n", @made), 'docs/reference.md lists the codes of audit()');

# Faults that are found
for my $change (
	[ 'an argument', 'shard_id integer,', 'shard_id bigint,', 'signature' ],
	[ 'a default value', q{DEFAULT 'table_id_seq'}, q{DEFAULT 'seq'}, 'signature' ],
	[ 'the range of a setting', 'from -1 to 8191', 'from 0 to 8191', 'signature' ],
	[ 'a name', "### min_id\n", "### first_id\n", 'no heading min_id.*first_id' ],
	[ 'a column', '| `frozen` |', '| `is_frozen` |', 'columns of shards' ],
	[ 'a message', '| `shard ID 5 is taken', '| `shard ID 5 is used', 'no message' ])
{
	my ($name, $from, $to, $fault) = @$change;
	my %changed = %texts;
	$changed{'docs/reference.md'} =~ s/\Q$from\E/$to/ or die "no $from";
	like(faults(%changed), qr/$fault/s, "$name that is wrong: found");
}

done_testing();
