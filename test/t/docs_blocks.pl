# The blocks of README.md, of docs/ and of the pages beside code, run in their order, each page
# on servers of its own: they do not fail, and they print what the page shows.  pg_regress
# cannot read a page, and has one server.
# FULL=1 adds pages that lie, which must be found
# not in: version assert
# takes 120 s

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::Local ();

use Clients;
use Docs;

# The blocks that are not run: how many of a section, and why
my %not_run = (
	'README.md: Try it' => [ 2, 'docs_first_commands.pl runs it' ],
	'README.md: Install' => [ 2, 'it installs packages, which test/lib/run does, or needs Docker' ],
	'bench/README.md: What was measured' => [ 1,
		'it takes half an hour; the suite bench runs it at a smaller size' ],
	'docs/engines/plproxy.md: PL/Proxy' => [ 2, 'test/cluster/plproxy.pl runs it' ],
	'docs/engines/plproxy.md: Move a shard' => [ 1, 'test/cluster/plproxy.pl runs it' ],
	'docs/engines/citus.md: Citus' => [ 1, 'test/cluster/citus.pl runs it' ],
	'docs/engines/citus.md: Where rows are inserted' => [ 1, 'test/cluster/citus.pl runs it' ],
	'docs/engines/citus.md: The shard of the node on Citus' => [ 2,
		'test/cluster/citus.pl runs it' ],
	'docs/engines/patroni.md: Patroni' => [ 1,
		'test/cluster/patroni.pl has these settings, but for the watchdog' ],
	'docs/install.md: Packages' => [ 1, 'make test-packages installs packages' ],
	'docs/install.md: Docker' => [ 1, 'it needs Docker' ],
	'docs/install.md: Kubernetes' => [ 3, 'it needs Docker and Kubernetes' ],
	'docs/install.md: From source' => [ 1, 'it installs packages; test/lib/run does that' ],
	'docs/install.md: Any directory of PostgreSQL 18' =>
	  [ 2, 'test/tools/packages/image.sh installs with a prefix' ],
	'test/model/README.md: A model of the clocked sequence' =>
	  [ 1, 'the suite model runs it' ],
	'docs/moving-a-shard.md: Moving a shard' => [ 1, 'move_by_hand.pl sets these variables' ],
	'docs/moving-by-hand.md: Moving a shard by hand' => [ 1,
		'move_by_hand.pl sets these variables' ],
	'docs/moving-a-shard.md: With one command' =>
	  [ 2, 'move_program.pl and move_faults.pl run it' ],
	'docs/moving-a-shard.md: Several servers' => [ 3, 'move_plan.pl runs it' ],
	'docs/moving-a-shard.md: Without replication' => [ 1, 'move_dump.pl runs it' ],
	'docs/moving-a-shard.md: States' => [ 2, 'move_program.pl runs it' ],
	'docs/moving-by-hand.md: Before' => [ 3, 'move_by_hand.pl runs it' ],
	'docs/moving-by-hand.md: With pg_dump' => [ 4, 'move_by_hand.pl runs it' ],
	'docs/moving-by-hand.md: With logical replication' => [ 9, 'move_by_hand.pl runs it' ],
	'docs/moving-by-hand.md: A whole database with PostgreSQL 19' => [ 11,
		'id_sequence_sync.pl runs it' ],
	'monitoring/README.md: Import the metrics' => [ 1,
		'test/cluster/monitoring.pl does this' ],
	'docs/partitions.md: pg_partman' => [ 2,
		'partition_partman.pl runs it where pg_partman is installed' ],
	'docs/engines/spock.md: Spock' => [ 5, 'test/cluster/spock.pl runs it' ],
	'docs/partitions.md: TimescaleDB' => [ 1, 'test/cluster/timescaledb.pl runs it' ]);

# Pages of which a suite runs every block
my %elsewhere = ('docs/an-evening.md' => 'test/cluster/evening.pl');

# The lines of a text, with blanks and rules of one length.  psql leaves out zeros at
# the end of a time, which changes the width of the column.
sub lines
{
	my ($text) = @_;
	$text =~ s/^-[-+]*$/---/mg;
	$text =~ s/[ \t]+/ /g;
	return grep { /\S/ } map { s/^ | $//gr } split /\n/, $text;
}

# Is this ID, tick or time of the last seconds?
sub is_recent
{
	my ($piece) = @_;
	my $seconds;
	if ($piece =~ /^\d{16}$/)
	{
		$seconds = ($piece >> 10) / 1000;
	}
	elsif ($piece =~ /^\d+$/)
	{
		$seconds = (($piece >> 23) + 1314220021721) / 1000;
	}
	else
	{
		my ($year, $month, $day, $hour, $minute, $second) = split /[-: +]/, $piece;
		$seconds = $second + Time::Local::timegm(0, $minute, $hour, $day, $month - 1, $year);
	}
	return $seconds > $^T - 1 && $seconds < time + 2;
}

# What does not change with time: the shard and the sequence of an ID
sub fixed_part
{
	my ($piece) = @_;
	return $piece =~ /^\d{19}$/ ? $piece & 0x7fffff : 'time';
}

# Are the last lines of the output the ones that the page shows?  Where a recent ID,
# tick or time was printed, the page shows one of another time.
sub same
{
	my ($shown, $printed) = @_;
	my @shown   = lines($shown);
	my @printed = lines($printed);
	return 0 if !@shown || @shown > @printed;
	# every second piece is an ID, a tick or a time
	my $pieces = qr/(\b\d{19}\b|\b\d{16}\b|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?\+00)/;
	@printed = split $pieces, join "\n", @printed[ -@shown .. -1 ];
	@shown   = split $pieces, join "\n", @shown;
	return 0 if @shown != @printed;
	for my $i (0 .. $#shown)
	{
		my ($s, $p) = ($shown[$i], $printed[$i]);
		next if $s eq $p;
		return 0 if $i % 2 == 0 || !is_recent($p) || fixed_part($s) ne fixed_part($p);
	}
	return 1;
}

# Start the server that a page calls by this name, unless it is running.
my $pages = 0;

sub server
{
	my ($servers, $name) = @_;
	if (!$servers->{$name})
	{
		$servers->{$name} = Clients::server("${name}_$pages", q{timezone = 'UTC'});
		$servers->{$name}->safe_psql('postgres', 'CREATE DATABASE app');
	}
	return $servers->{$name};
}

# Run a program with a server; return whether it succeeded, and what it printed.
sub run
{
	my ($node, $input, @command) = @_;
	local ($ENV{PGHOST}, $ENV{PGPORT}, $ENV{PGDATABASE}) = ($node->host, $node->port, 'app');
	my $output;
	my $ok = IPC::Run::run([@command], '<', \$input, '>&', \$output, IPC::Run::timeout(60));
	return ($ok, $output);
}

# Run the blocks of a page; return a text for each one that the page lies about.
sub lies
{
	my ($name, @blocks) = @_;
	my (%servers, @lies);
	my $directory = PostgreSQL::Test::Utils::tempdir . '/page' . ++$pages;
	mkdir $directory;
	# a page may name a file of the source tree
	symlink "$ENV{TESTDIR}/$_", "$directory/$_" or die $! for 'common', 'sql-edition';

	for my $block (@blocks)
	{
		my ($text, $shows) = @$block{ 'text', 'shows' };
		my $node = server(\%servers, $block->{server});
		my ($ok, $output) = (1, '');
		# a host that the page names is a server of ours, and its role the one that runs the tests
		$text =~ s/\bhost=\w+\.example user=\w+/sprintf 'host=%s port=%s', $node->host,
			$node->port/eg if $block->{language} eq 'sh';
		$text =~ s{host '([\w,]+)'}{
			my @hosts = map { $servers{$_} } split /,/, $1;
			sprintf "host '%s', port '%s'", join(',', map { $_->host } @hosts),
				join(',', map { $_->port } @hosts)}eg;
		$text =~ s/\bhost=(\w+) (?=dbname=)/sprintf 'host=%s port=%s ', $servers{$1}->host,
			$servers{$1}->port/eg;
		if ($block->{language} eq 'conf')
		{
			$node->append_conf('postgresql.conf', $text);
			$node->restart;
		}
		elsif ($block->{language} eq 'sh')
		{
			($ok, $output) = run($node, '', 'sh', '-ec', "cd $directory\n$text");
		}
		elsif ($block->{until_empty})
		{
			$ok = $node->poll_query_until('app', $text, '');
		}
		else
		{
			($ok, $output) = run($node, $text, 'psql', '-Xq', '-P', 'footer=off', '-v',
				'ON_ERROR_STOP=1',
				'-v', 'SHOW_CONTEXT=never');
			# the result of a function that returns nothing
			$output =~ s/^ +\w+ *\n-+\n *\n\n//mg;
		}
		my $fails = defined $shows && $shows =~ /^ERROR:/m;
		next if !$ok == !!$fails && (!defined $shows || same($shows, $output));
		push @lies, "$name, line $block->{line}, "
			. ($ok ? 'succeeds' : 'fails') . ", and prints:\n$output"
			. (defined $shows ? "and the page shows:\n$shows" : '');
	}
	$_->stop('immediate') for values %servers;
	return @lies;
}

# Run a page; return its lies, how many blocks were run, and how many blocks of each
# section were left out.
sub run_page
{
	my ($file, $page) = @_;
	my (@run, %left_out);
	# docs_reference.pl compares signatures
	for my $block (grep { $_->{language} ne 'signature' } blocks($page))
	{
		my $section = "$file: $block->{section}";
		if ($block->{language} =~ /^(sql|conf|sh)$/ && !$not_run{$section})
		{
			push @run, map { { %$block, server => $_ } }
			  $block->{server} eq 'both' ? qw(one two) : $block->{server};
		}
		else
		{
			$left_out{$section}++;
		}
	}
	return ([ lies($file, @run) ], scalar(@run), %left_out);
}

my %left_out;
for my $file (grep { !$elsewhere{$_} } 'README.md',
	glob '{docs,docs/engines,clients/*,monitoring,bench,test/model}/*.md')
{
	# a recipe is a part of a trial in clients/; the suite lint compares the two
	my $page = slurp_file($file) =~ s/^<!-- recipe: .*\n```(?:.*\n)*?```\n//mgr;
	my ($lies, $count, %here) = run_page($file, $page);
	is(join("\n", @$lies), '', "$file: $count blocks");
	%left_out = (%left_out, %here);
	# blocks() would not find it
	ok($page !~ /^\n {4}/m, "$file: $count blocks, and none that is indented rather than fenced");
}
is_deeply(\%left_out, { map { $_ => $not_run{$_}[0] } keys %not_run },
	'no other block is left out');

# What pages say beside their blocks
my %servers;
my $app   = server(\%servers, 'claims');
my $query = sub { return $app->safe_psql('app', $_[0]) };
my ($readme, $clients) = map { slurp_file($_) } 'README.md', 'docs/clients.md';

$query->(q{
	CREATE EXTENSION instaid;
	SELECT instaid.create_shard('insta5', 5);
	SELECT format('CREATE TABLE insta5.t%s (id bigint PRIMARY KEY)', n)
	FROM generate_series(1, 130) AS n \gexec
	CREATE SCHEMA other;
	CREATE TABLE other.zz (photo_id bigint CONSTRAINT zz_key REFERENCES insta5.t130);
	CREATE TABLE other.with_default (id bigint PRIMARY KEY DEFAULT insta5.next_id());
	CREATE TABLE insta5.parted (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
	CREATE TABLE other.part PARTITION OF insta5.parted DEFAULT;
	CREATE TABLE other.child () INHERITS (insta5.t1);
	CREATE MATERIALIZED VIEW other.report AS SELECT count(*) FROM insta5.t1;
	CREATE TYPE insta5.mood AS ENUM ('good', 'bad');
	CREATE DOMAIN insta5.my_mood AS insta5.mood;
	CREATE TABLE other.moods (id bigint PRIMARY KEY, mood insta5.mood);
	CREATE FUNCTION other.title(insta5.t1) RETURNS text LANGUAGE sql AS $$SELECT 'x'$$;
	CREATE TABLE insta5.users (id bigint REFERENCES other.moods,
		mood insta5.mood[] CHECK (mood <> '{}'));
	CREATE VIEW insta5.bad_moods AS SELECT * FROM other.moods WHERE mood = 'bad';});
my (undef, $detail) = run($app, 'BEGIN; DROP SCHEMA insta5 CASCADE; ROLLBACK', 'psql', '-Xq');
like($detail, qr/and \d+ other objects/, 'DROP SCHEMA lists 100 objects');
unlike($detail, qr/zz_key/,
	'DROP SCHEMA lists 100 objects, of which a key from another schema need not be one');
my ($keys) = grep { /contype = 'f'/ }
  map { $_->{text} } section_blocks('docs/moving-by-hand.md', 'Before');
is($query->($keys), "users_id_fkey|insta5.users|other.moods\nzz_key|other.zz|insta5.t130",
	'the query of the page finds a key from another schema');
my ($outside) = map { $_->{text} } section_blocks('docs/operations.md', 'Dropping a shard');
is($query->($outside), join("\n", 'column mood of table other.moods',
		'constraint zz_key on table other.zz',
		'default value for column id of table other.with_default',
		'function other.title(insta5.t1)', 'rule _RETURN on materialized view other.report',
		'table other.child', 'table other.part'),
	'another query of the page finds all that goes in other schemas');

$query->(q{
	CREATE SEQUENCE insta5.likes_id_seq;
	CREATE TABLE insta5.likes (
		id bigint PRIMARY KEY DEFAULT insta5.next_id('insta5.likes_id_seq'::regclass));
	INSERT INTO insta5.likes DEFAULT VALUES;
	SELECT setval('insta5.likes_id_seq', last_value + (3600000::bigint << 10))
	FROM insta5.likes_id_seq;});
is( $query->(q{SELECT drift > '59 min', drift_sequence FROM instaid.shards WHERE shard_id = 5}),
	't|insta5.likes_id_seq',
	'drift is that of the sequence that is furthest ahead');

$query->(q{
	CREATE SCHEMA web;
	CREATE SEQUENCE web.s;
	CREATE FUNCTION web.by_now() RETURNS bigint LANGUAGE sql AS $$
		SELECT (extract(epoch FROM now()) * 1000)::bigint << 23 | 5 << 10 | nextval('web.s') % 1024
	$$;
	CREATE FUNCTION web.next_id(OUT result bigint) LANGUAGE plpgsql AS $$ BEGIN
		result := (extract(epoch FROM clock_timestamp()) * 1000)::bigint << 23
			| 5 << 10 | nextval('web.s') %% 1024;
	END $$;});
is($query->(q{SELECT string_agg(DISTINCT code, ' '), bool_and(cure <> '') FROM instaid.audit()}),
	'ahead_of_clock copy|t', 'each finding shows its cure');

# more than audit() folds into one row
$query->(q{SELECT format('CREATE DOMAIN web.d%s AS instaid.id CHECK (VALUE::bigint > 0)', n)
	FROM generate_series(1, 25) AS n \gexec});
my $left = q{SELECT count(*) FROM instaid.audit(fold => false) WHERE code = 'upgrade_order'};
is($query->($left), 25, 'domains that pg_upgrade would fail with');
my ($cures) = map { $_->{text} =~ /^(SET .*\\gexec\n)/ms }
  section_blocks('docs/backup.md', 'pg_upgrade');
run($app, $cures, 'psql', '-Xq');
is($query->($left), 0, 'domains that pg_upgrade would fail with: the cures change all of them');

# last of this database, since audit() reads each of them
my ($call, $shards) = $readme =~ /`(CALL instaid\.create_shards\([^`]*;)` for ([\d,]+) shards/;
$query->($call);
is($query->(q{SELECT count(*) FROM instaid.shards WHERE schema_name ~ '^user'}),
	$shards =~ tr/,//dr, 'as many shards as README says');

my ($back) = map { $_->{text} } section_blocks('docs/adopting.md',
	'Rollback: the way back');
$query->(q{SELECT instaid.create_shard('insta4', 4)});
run($app, $back =~ s/old_next_id/missing/r, 'psql', '-Xq');
is($query->(q{SELECT instaid.extract_shard_id(insta4.next_id())}), 4,
	'a way back without its file changes nothing');

# The picture, and the tables of two pages, split an ID in the same way.
my ($id)  = $readme =~ /^ (\d{19}) \|/m;
my @parts = split /\|/, $query->("SELECT $id >> 23, $id >> 10 & 8191, $id & 1023");
my %shows = (
	'README.md'      => [ $readme =~ /^\| \d+ to \d+ \|.* (\d+) \|$/mg ],
	'docs/clients.md' => [ $clients =~ /^\| [\w ]+ \| \d+ to \d+ \| .* (\d+) \|$/mg ],
	'docs/pictures/id.svg' =>
	  [ (slurp_file('docs/pictures/id.svg') =~ />(\d+)<\/text>/g)[ -3 .. -1 ] ]);
is("@{ $shows{$_} }", "@parts", "$_: the parts of an ID") for sort keys %shows;
is($query->(q{
	SELECT round(extract(epoch FROM expires_at - epoch) * 1000) = 2 ^ 40,
		round((2 ^ 40 / (365.25 * 24 * 60 * 60 * 1000))::numeric, 1)
	FROM instaid.shards WHERE shard_id = 5}), 't|34.8', '40 bits of time count: 34.8 years');

my ($tables) = grep { /TABLE insta5\.comments/ } map { $_->{text} } blocks($clients);
isnt(index(slurp_file('clients/schema.sql'), $tables),
	-1, 'recipes run on the tables of the page');

my ($engines) = slurp_file('docs/clusters.md') =~ /^## Engines\n\n.*\n.*\n((?:\|.*\n)+)/m;
my $changes = slurp_file('CHANGELOG.md');
my @works = $engines =~ /^\| \[(\w[\w\/]*)\]\S* [\d.]+ \| (?!not)/mg;
cmp_ok(scalar(@works), '>', 4, 'engines with a page');
is(join(' ', grep { $changes !~ /\Q$_\E/ } @works), '',
	'engines with a page are in the list of changes');
$app->stop('immediate');

# In the SQL edition, the page for applications holds but for the type of the extension.
my @blocks = grep { $_->{text} !~ /instaid\.id\b|remarks/ }
  blocks(slurp_file('docs/applications.md'));
$_->{text} =~ s/CREATE EXTENSION instaid;/\\i sql-edition\/all.sql/ for @blocks;
# its sequence begins with 0
delete $_->{shows} for grep { $_->{text} =~ /TABLE insta5\.photos/ } @blocks;
is(join("\n", lies('docs/applications.md', @blocks)),
	'', 'docs/applications.md, the SQL edition: ' . @blocks . ' blocks');
my $edition = server(\%servers, 'edition');
my ($installed) = run($edition, '', 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f',
	"$ENV{TESTDIR}/sql-edition/all.sql", '-f', "$ENV{TESTDIR}/sql-edition/adopting.sql");
ok($installed, 'the SQL edition');
for my $one (
	[ "CALL instaid.create_shards('u%s', 100, 611)", 1 ],
	[ "CALL instaid.create_shards('v%s', 1000, 1512)", 0 ],
	[ 'CALL instaid_adopt.adopt_shards()', 0 ])
{
	my ($statement, $works) = @$one;
	my ($ok, $says) = run($edition, '', 'psql', '-Xq', '-c', "SELECT 1; $statement");
	is(!!$ok, !!$works, "beside another statement: $statement");
	like($says, qr/invalid transaction termination/,
		"$statement fails beside another statement") unless $works;
}
$edition->stop('immediate');

# Pages that lie: the first of them, or all with FULL=1
for my $change ((
	[ 'a number', 'docs/partitions.md', 'insta5.photos_20261201', 'insta5.photos_20261202' ],
	[ 'the shard of an ID', 'docs/adopting.md', '653763', '653764' ],
	[ 'an error message', 'docs/backup.md', 'ERROR:  shard insta5 is frozen',
		'ERROR:  shard insta5 is stopped' ],
	[ 'a statement that fails', 'docs/partitions.md', 'instaid.create_partitions(',
		'instaid.create_partition(' ],
	[ 'a right that is missing', 'README.md',
		"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA insta5 TO app;\n", '' ],
	[ 'a statement that is missing', 'README.md', "SELECT instaid.create_shard('insta5', 5);\n",
		'' ])[ 0 .. ($ENV{FULL} ? 5 : 0) ])
{
	my ($name, $file, $from, $to) = @$change;
	my $page = slurp_file($file);
	$page =~ s/\Q$from\E/$to/ or die "$file has no $from";
	my ($lies) = run_page($file, $page);
	isnt(scalar(@$lies), 0, "$name: found");
}

done_testing();
