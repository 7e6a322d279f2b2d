# The two libraries.  The file of the second one, instaid_sources, is missing, is another version's,
# or is preloaded before or after the first one.  pg_regress cannot restart its server.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Sources;

my $dir = PostgreSQL::Test::Utils::tempdir;
my $install = "Install instaid_sources if this server lacks it, add it to shared_preload_libraries,"
  . " and restart the server.\n";

# A directory with all libraries of the server but instaid_sources
sub libraries
{
	my ($name) = @_;
	chomp(my $from = `pg_config --pkglibdir`);
	mkdir "$dir/$name" or die;
	for my $library (grep { !/instaid_sources/ } glob "$from/*.so")
	{
		symlink $library, "$dir/$name/" . $library =~ s,.*/,,r or die;
	}
	return "dynamic_library_path = '$dir/$name'";
}

# What a statement says, with the SQLSTATE
sub says
{
	my ($node, $sql) = @_;
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");
	return $stderr =~ s/^psql:\S+ //mgr;
}

# A ticket with a source that does not answer
my $create = q{CREATE SERVER nowhere FOREIGN DATA WRAPPER instaid
		OPTIONS (host '/nowhere', dbname 'postgres');
	CREATE USER MAPPING FOR PUBLIC SERVER nowhere;
	SELECT instaid.create_ticket('sourced', source => ARRAY['nowhere'])};
my $take = q{SELECT instaid.next_ticket('sourced')};
my $not_preloaded = qr/55000: ticket "sourced" has .* library instaid_sources is not preloaded/;

### The file is missing

my $node = Clients::server('primary', libraries('alone'), 'wal_level = replica',
	'max_wal_senders = 2', 'hot_standby = on');
like(says($node, q{LOAD 'instaid_sources'}),
	qr/58P01: could not access file "instaid_sources"/, 'the file is missing');
is( $node->safe_psql('postgres', q{SELECT instaid.create_shard('insta5', 5);
		SELECT instaid.extract_shard_id(insta5.next_id());
		SELECT instaid.create_ticket('plain'), instaid.next_ticket('plain');
		SET instaid.auto_create_tickets = on; SELECT instaid.next_ticket('on first use')}),
	"\n5\ninstaid_tickets.plain|1\n1", '... and IDs and tickets are made');
like(says($node, $create), qr/WARNING: .*"?sourced"? has a source.*HINT:  $install/s,
	'... and a ticket with a source is created, with a warning');
like(says($node, $take), qr/ERROR:  $not_preloaded.*HINT:  $install/s, '... but has no values');
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);
my @views = split /\n/, $node->safe_psql('postgres', q{SELECT oid::regclass FROM pg_class
	WHERE relkind = 'v' AND relnamespace = 'instaid'::regnamespace});
cmp_ok(scalar(@views), '>', 4, 'there are views');
for my $server ($node, $standby)
{
	my $name = $server->name;
	is(says($server, join '', map { "TABLE $_ \\g /dev/null\n" } @views), '', "$name: each view");
	is( $server->safe_psql('postgres', q{SELECT tickets, failed_refills FROM instaid.metrics;
			SELECT name, source FROM instaid.tickets ORDER BY name COLLATE "C";
			SELECT count(*) FROM instaid.segments;
			SELECT code, severity FROM instaid.audit() WHERE object ~ 'ticket'}),
		"3|0\non first use|\nplain|\nsourced|nowhere\n0\nnot_preloaded|error",
		"$name: metrics, tickets, segments and audit()");
}
$standby->promote;
is( $standby->safe_psql(
		'postgres', q{SELECT insta5.next_id() > 0, instaid.next_ticket('plain') > 1}),
	't|t', 'the standby is promoted: IDs and tickets go on');
$standby->stop;
$node->stop;

### Preloaded in any order

$node = Clients::server('main', "instaid.segment_timeout = '1234ms'",
	"instaid.segment_target_duration = '77s'");
$node->safe_psql('postgres', "SET client_min_messages = error; $create");
for my $libraries ('', 'instaid', 'instaid_sources', 'instaid,instaid_sources',
	'instaid_sources,instaid')
{
	my $serves = $libraries =~ /sources/ ? 1 : 0;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'\n");
	$node->restart;
	is( $node->safe_psql('postgres', q{SELECT count(*) FROM instaid.segments;
			SELECT name, setting, context FROM pg_settings
			WHERE name ~ '^instaid.segment' ORDER BY 1;
			SELECT count(*) FROM pg_shmem_allocations WHERE name ~ 'instaid'}),
		"0\ninstaid.segment_target_duration|77000|sighup\n"
		  . "instaid.segment_timeout|1234|user\n$serves",
		"preloaded '$libraries': the settings, and shared memory only for instaid_sources");
	like(says($node, $take),
		$serves ? qr/ticket "sourced" has no values left from its source/ : $not_preloaded,
		'... and a ticket with a source');
	is($node->safe_psql('postgres', q{SELECT state, failures > 0 FROM instaid.segments}),
		$serves ? 'failed|t' : '', '... and the view of segments');
}
unlike(slurp_file($node->logfile), qr/invalid configuration parameter/, 'each setting was valid');

### A library that is preloaded, and older

my $path = libraries('older');
mkdir "$dir/build" or die;
# the tree of the tests has objects of this version
system_or_bail('cp', '-R', 'src', 'Makefile.sources', 'instaid.control', "$dir/build");
system_or_bail('make', '-s', '-C', "$dir/build", '-f', 'Makefile.sources', 'EXTVERSION=0.9', $_)
  for 'clean', 'all';
rename "$dir/build/instaid_sources.so", "$dir/older/instaid_sources.so" or die;
$node->append_conf('postgresql.conf', "$path\nshared_preload_libraries = 'instaid_sources'\n");
$node->restart;
my ($version) = slurp_file('instaid.control') =~ /^default_version = '(.*)'/m or die;
like(
	says($node, $take),
	qr/ERROR:  55000: ticket "sourced" .* instaid_sources has another version than instaid
DETAIL:  The server has preloaded instaid_sources 0\.9, .* session has loaded instaid \Q$version\E\.
HINT:  Install instaid and instaid_sources of one version, and restart the server\.\n/,
	'the library of another version is refused');
is( $node->safe_psql('postgres', q{SELECT count(*) FROM instaid.segments;
		SELECT count(*) FROM instaid.audit() WHERE code = 'not_preloaded'}),
	"0\n1", '... and views and audit() work');
$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP:|XX000|PANIC|terminated by signal/, 'nothing crashed');

done_testing();
