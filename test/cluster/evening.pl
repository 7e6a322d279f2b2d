# docs/an-evening.md: an existing product of 40 schemas, behind pgbouncer in transaction mode and
# with a standby, is moved to instaid while clients insert.  Each step that has a way back is run,
# taken back, and run again; at the end, all of them are taken back.  A page's blocks in
# docs_blocks.pl have neither a pool nor a standby.
#
# packages: pgbouncer prometheus-postgres-exporter curl

use strict;
use warnings;

use IO::Socket::INET;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes ();

use Clients;
use Docs;

local $ENV{PATH} = "$ENV{PATH}:/usr/sbin";
my $page = 'docs/an-evening.md';
my $directory = PostgreSQL::Test::Utils::tempdir_short;
symlink "$ENV{TESTDIR}/monitoring", "$directory/monitoring" or die $!;
my $http = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')->sockport;

### The product

@Clients::extensions = ();
my $primary = Clients::server('primary', { allows_streaming => 1 }, q{timezone = 'UTC'});
$primary->safe_psql('postgres', $_)
  for 'CREATE ROLE owner LOGIN', 'CREATE ROLE app LOGIN', 'CREATE ROLE batch',
  'CREATE ROLE evil LOGIN',
  'CREATE DATABASE app OWNER owner';
my $as_owner = $primary->connstr('app') . ' user=owner';
my $product = '';
for my $n (1 .. 40)
{
	# the last one was copied, with its number
	my $number = $n == 40 ? 39 : $n;
	$product .= qq{
		\\set schema shop$n
		\\set shard_id $number
		\\i test/lib/published.sql
		CREATE TABLE shop$n.photos (id bigint PRIMARY KEY DEFAULT shop$n.next_id(), caption text);
		CREATE TABLE shop$n.orders (id serial PRIMARY KEY, total numeric);
		CREATE TABLE shop$n.lines (order_id integer REFERENCES shop$n.orders, photo_id bigint);
		INSERT INTO shop$n.photos (caption) SELECT 'old' FROM generate_series(1, 20);
		INSERT INTO shop$n.orders (total) SELECT generate_series(1, 20);
		GRANT USAGE ON SCHEMA shop$n TO app;
		GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA shop$n TO app;
		GRANT USAGE ON ALL SEQUENCES IN SCHEMA shop$n TO app;
		GRANT INSERT ON shop$n.photos TO batch;};
}
$primary->safe_psql('app', $product =~ s/^\t+//mgr, connstr => $as_owner);

# A role without rights on it plants what the owner must not run: its code leaves a mark in the
# whole cluster.
my $as_evil = $primary->connstr('app') . ' user=evil';
$primary->safe_psql('app', 'GRANT CREATE ON DATABASE app TO evil');
$primary->safe_psql('app', q{
	CREATE SCHEMA ev; GRANT USAGE ON SCHEMA ev TO PUBLIC;
	CREATE FUNCTION ev.trap() RETURNS bigint LANGUAGE plpgsql AS $$
	BEGIN
		IF current_user <> 'evil' THEN
			EXECUTE format('ALTER ROLE %I SET application_name = evil', current_user);
		END IF;
		RETURN 1;
	END $$;
	-- what a restore runs
	CREATE TABLE ev.t (n bigint CHECK (n = ev.trap())); INSERT INTO ev.t VALUES (1);
	-- what search_path finds
	CREATE SCHEMA owner; GRANT USAGE ON SCHEMA owner TO PUBLIC;
	CREATE FUNCTION owner.format(text, text) RETURNS text LANGUAGE sql
		AS 'SELECT pg_catalog.format($1, $2) FROM ev.trap()';
	CREATE FUNCTION owner.format(text, name) RETURNS text LANGUAGE sql
		AS 'SELECT pg_catalog.format($1, $2) FROM ev.trap()';
	CREATE FUNCTION owner.format(text, regclass) RETURNS text LANGUAGE sql
		AS 'SELECT pg_catalog.format($1, $2) FROM ev.trap()'}, connstr => $as_evil);
# what looks like the product, since step 1, which counts functions
my $lures = q{
	CREATE SCHEMA shopx; GRANT USAGE ON SCHEMA shopx TO PUBLIC;
	CREATE VIEW shopx.orders AS SELECT ev.trap() AS id; GRANT SELECT ON shopx.orders TO PUBLIC;
	CREATE FUNCTION shopx.next_id() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
	ALTER VIEW shopx.orders ALTER id SET DEFAULT shopx.next_id();
	CREATE SEQUENCE shopx.orders_id_seq; GRANT ALL ON SEQUENCE shopx.orders_id_seq TO PUBLIC;
	CREATE SCHEMA shopy; CREATE TABLE shopy.orders (id serial, n bigint DEFAULT shopx.next_id())};
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

my ($pgbouncer, $pool) = Clients::pgbouncer($primary, 'app', 'app');
my @running = ($pgbouncer);
END
{
	my $status = $?;
	eval { $_->kill_kill(grace => 5) } for @running;
	$? = $status;
}

### Clients.  A statement that runs just when a way back replaces its function can fail once.

append_to_file("$directory/inserts", join '', map {
		"INSERT INTO shop$_.photos (caption) VALUES ('new') RETURNING id, '$_';\n"
		  . "INSERT INTO shop$_.orders (total) VALUES (7) RETURNING 'order';\n"
	} 1 .. 40);
my @files = map { "$directory/client$_" } 1 .. 4;
my @clients = map {
	IPC::Run::start([ 'sh', '-c', 'while [ ! -e "$0/stop" ]; do cat "$0/inserts"; sleep 0.2; done
		| psql -XqAt -d "$1"' =~ s/\n\s+/ /gr, $directory, $pool ],
		'>', $_, '2>', "$_.err")
} @files;
push @running, @clients;

# How many rows the clients have inserted; wait until there are some more
sub more_rows
{
	my $count = sub { my $sum = 0; $sum += -s $_ for @files; $sum };
	my $before = $count->();
	for (1 .. 100)
	{
		last if $count->() > $before + 3000;
		Time::HiRes::sleep(0.1);
	}
	return $count->() > $before;
}

### The page

# What a block prints and the page shows, but for numbers in a text and the width of columns
sub plain
{
	my ($text) = @_;
	# a count alone stays
	$text =~ s/\d+/N/g if $text =~ /[^\d\s]/;
	$text =~ s/^-[-+]*$/---/mg;
	return join "\n", grep { /\S/ } map { s/[ \t]+/ /gr =~ s/^ | $//gr } split /\n/, $text;
}

# Run a block.  When a step is done again, it does not begin where the page began.
sub run_block
{
	my ($block, $again) = @_;
	# the page's addresses and its superuser stand for ours
	my $text = $block->{text} =~ s/localhost:9187/localhost:$http/gr;
	$text =~ s/PGHOST=\S+/'PGHOST=' . $primary->host/e;
	$text =~ s/-U postgres/'-U ' . getpwuid $>/ge;
	$primary->wait_for_catchup($standby)
	  if $text =~ s/-h standby\.example/'-h ' . $standby->host . ' -p ' . $standby->port/ge;
	local %ENV = (%ENV, PGHOST => $primary->host, PGPORT => $primary->port, PGDATABASE => 'app',
		PGUSER => 'owner', PGOPTIONS => slurp_file($page) =~ /^export PGOPTIONS='(.*)'/m);
	my $output;
	my $ok = $block->{language} eq 'sh'
	  ? IPC::Run::run([ 'sh', '-ec', "cd $directory\n$text" ], '<', \undef, '>&', \$output,
		IPC::Run::timeout(120))
	  : IPC::Run::run([ 'psql', '-Xq', '-P', 'footer=off', '-v', 'ON_ERROR_STOP=1', '-v',
			'SHOW_CONTEXT=never' ], '<', \$text, '>&', \$output, IPC::Run::timeout(120));
	ok($ok, "line $block->{line}: runs") or diag($output);
	$output =~ s/^ +\w+ *\n-+\n *\n\n//mg;
	if (defined $block->{shows} && !$again)
	{
		my ($shows, $printed) = (plain($block->{shows}), plain($output));
		ok(index($printed, $shows) >= 0, "line $block->{line}: prints what the page shows")
		  or diag("printed:\n$output");
	}
	note("line $block->{line}:\n$output");
	return $output;
}

# Each section is a step
my (@sections, %there, %back);
for my $block (grep { $_->{language} =~ /^(?:sql|sh)$/ } blocks(slurp_file($page)))
{
	my $section = $block->{section};
	push @sections, $section unless grep { $_ eq $section } @sections;
	push @{ ($block->{is_back} ? \%back : \%there)->{$section} }, $block;
}
# the way back of all schemas is that of one, but for its first line, as the page says
my ($one, $all) = map { my $n = $_; grep { /^$n\./ } @sections } 5, 6;
like(join("\n", @sections), qr/^\Q$one\E\n\Q$all\E$/m, 'the steps of the page');
my ($first) = @{ $back{$all} };
$first->{text} .= $back{$one}[0]{text} =~ s/^awk .*\n//r;
my ($keep, $look) = map { my $n = $_; grep { /^$n\./ } @sections } 1, 4;
my $evil;
for my $section (@sections)
{
	if ($section eq $look)
	{
		$primary->safe_psql('app', $lures, connstr => $as_evil);
		$evil = $primary->background_psql('app', extra_params => [ '-U', 'evil' ]);
		$evil->query_safe('BEGIN; LOCK TABLE shopy.orders');
	}
	my @back = @{ $back{$section} // [] };
	for my $again ('', @back ? ', again' : ())
	{
		run_block($_, $again) for @{ $there{$section} };
		ok(more_rows(), "$section$again: clients insert");
		run_block($_) for $again eq '' ? @back : ();
		ok(more_rows(), "$section: clients insert after the way back") if $again eq '' && @back;
	}
	next if $section ne $keep;
	# the copy for a trial, which a bullet makes
	$primary->safe_psql('postgres', 'CREATE DATABASE app_trial OWNER owner');
	run_block({ language => 'sh', line => "after $keep", text => s/\s+/ /gr })
	  for slurp_file($page) =~ /`(pg_restore -[lL] [^`]*\.dump[^`]*)`/g;
	is($primary->safe_psql('app_trial', q{
		SELECT count(*) > 19, to_regclass('ev.t') FROM shop7.orders}),
		't|', 'a copy for a trial has what the owner has');
}

# All in the other order
for my $section (reverse grep { $back{$_} } @sections)
{
	run_block($_, ', again') for @{ $back{$section} };
	ok(more_rows(), "$section, taken back at the end: clients insert");
}
$evil->quit;
is($primary->safe_psql('app', 'SELECT setrole::regrole FROM pg_db_role_setting'), '',
	'no code of another role ran');
is($primary->safe_psql('app', q{SELECT count(*) FROM pg_proc AS p
	JOIN pg_language AS l ON l.oid = p.prolang
	WHERE lanname = 'instaid' OR pronamespace::regnamespace::text ~ 'instaid'}),
	0, 'nothing is left of instaid');

append_to_file("$directory/stop", '');
is(scalar(grep { $_->finish } @clients), 4, 'the clients end');
my @errors = grep { /ERROR/ } map { split /^/, slurp_file("$_.err") } @files;
my $known = qr/^ERROR:  function shop\d+\.next_id\(\) is not in language instaid$/;
is(join('', grep { !/$known/ } @errors), '', 'no client meets an error that the page lacks');
cmp_ok(scalar(@errors), '<', 10,
	'no client meets an error that the page lacks, and that one seldom');
my @ids = grep { /^\d+\|/ } map { split /\n/, slurp_file($_) } @files;
my (%seen, $twice);
$seen{$_}++ && $twice++ for grep { !/\|(?:39|40)$/ } @ids;
is($twice // 0, 0, 'no ID came twice, of ' . @ids);
is(join(' ', grep { /\|(\d+)$/; my $n = $1; $n < 39 && (/^(\d+)/)[0] >> 10 & 8191 ^ $n } @ids), '',
	'each has the number of its schema');

$_->stop for $primary, $standby;
done_testing();
