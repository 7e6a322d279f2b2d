# An update to a made-up next version, made as RELEASING says, which adds a function and
# changes one: what this version and each released one created still works, the catalog is the
# one of a fresh install, and the regression tests pass on the updated database.  It needs a
# PostgreSQL of its own.
# FULL=1 adds all regression tests, instead of some
# takes 70 s
# not in: assert_short

use strict;
use warnings;

use List::Util qw(uniq);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;

my $node;
my $dir = PostgreSQL::Test::Utils::tempdir;
my $new = "$ENV{SCRATCH}/instaid-next";
my ($version) = slurp_file('instaid.control') =~ /^default_version = '(.*)'/m;
my $next = $version =~ s/(\d+)$/$1 + 1/er;
my $pg_config = `sh -c '. test/lib/private.sh; copy_postgresql "\$PG_CONFIG" "\$0"' $dir/pg`;
chomp $pg_config;

# the part that both scripts of the next version have
my $changes = q{
CREATE FUNCTION instaid.new_one(id bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN id;
COMMENT ON FUNCTION instaid.new_one(bigint) IS 'the argument';
CREATE OR REPLACE FUNCTION instaid._end_of_ids(epoch timestamptz) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 7
    RETURN instaid.extract_timestamp(-9223372036854775807 - 1, epoch);
};

# Change a file of the next version.
sub edit
{
	my ($file, $pattern, $replacement) = @_;
	my $text = slurp_file("$new/$file");
	$text =~ s/$pattern/$replacement/ or die "$file is not as expected";
	unlink "$new/$file";
	append_to_file("$new/$file", $text);
	return;
}

# what a member is: definition, owner, rights and comment, as pg_upgrade has it dumped
sub members
{
	my ($node, $database) = @_;
	my ($dump) = run_command([ 'pg_dump', '--binary-upgrade', '--schema-only', '-e', 'instaid',
		$node->connstr($database) ]);
	$dump =~ s/^SELECT pg_catalog\.binary_upgrade_set_next_.*\n//mg;
	# the OID of the sequence whose position pg_dump copies
	$dump =~ s/(binary_upgrade_create_empty_extension\(.*)'\{\d+\}'/$1'{node_id_seq}'/;
	$dump =~ s/^(SET|\\restrict|\\unrestrict) .*\n//mg;
	$dump =~ s/\n{2,}/\n/g;
	# PostgreSQL 19 dumps catalogs of large objects, too
	$dump =~ s/^--\n-- Data for Name: .*?(?=^--\n-- Name: |\z)//msg;
	# the objects that 1.0 made are dumped, too
	# rights can be those of all functions, said or not
	return [ grep { !/\A.*(?:insta5|photos|DEFAULT ACL)/
			&& (!/\A.*; Type: ACL/ || /^(GRANT|REVOKE)/m) }
		split /^--\n-- (?=Name: )/m, $dump ];
}

# The functions in C: name and what arguments and result they have
sub c_functions
{
	my ($database) = @_;
	return { map { split /\|/ } split /\n/, $node->safe_psql($database, q{
		SELECT prosrc, string_agg(DISTINCT concat_ws(' ', proargtypes, prorettype, proretset), ', ')
		FROM pg_proc WHERE probin = 'instaid' GROUP BY prosrc}) };
}

system_or_bail('make', '-s', "PG_CONFIG=$pg_config", 'with_llvm=no', 'install');
my $install_path = $pg_config =~ s,/bin/pg_config$,,r;
$node = PostgreSQL::Test::Cluster->new('main', install_path => $install_path);
$node->init;
$node->append_conf('postgresql.conf',
	"lc_messages = 'C'\nshared_preload_libraries = 'instaid'\n");
$node->start;

### Objects that this version creates

$node->safe_psql('postgres', "CREATE DATABASE $_") for 'app', 'contrib_regression', 'fresh';
$node->safe_psql($_, 'CREATE EXTENSION instaid') for 'app', 'contrib_regression';
$node->safe_psql('app', q{
	SELECT instaid.create_shard('insta5', 5);
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
	CREATE TABLE insta5.likes (id instaid.id PRIMARY KEY DEFAULT insta5.next_id(),
		photo instaid.id, n integer);
	CREATE TABLE insta5.views (id bigint PRIMARY KEY DEFAULT insta5.next_id())
		PARTITION BY RANGE (id);
	SELECT instaid.create_partitions('insta5.views', now(), now() + interval '1 month',
		'1 month')});

my @ids;

# Every kind of object issues its next values.
sub goes_on
{
	my ($name) = @_;
	my @rows = split /\n/, $node->safe_psql('app', q{
		INSERT INTO insta5.photos (n) SELECT generate_series(1, 100) RETURNING id;
		INSERT INTO insta5.likes (n) VALUES (1) RETURNING id;
		INSERT INTO insta5.views DEFAULT VALUES RETURNING id});
	push @ids, @rows;
	is(scalar @rows, 102, "$name: inserts get their IDs");
	return;
}

goes_on($version);

### The next version

mkdir $new or die;
system_or_bail('sh', '-c', 'tar -cf - --exclude=./tmp_check . | tar -C "$0" -xf -', $new);
edit('instaid.control', qr/^default_version = '\K[\d.]+/m, $next);
edit('Makefile', qr/^DATA = .*/m,
	"DATA = instaid--$version.sql instaid--$version--$next.sql instaid--$next.sql");
# instaid_adopt works with an instaid of its own version only
edit('adopt/instaid_adopt.control', qr/^default_version = '\K[\d.]+/m, $next);
edit('adopt/Makefile', qr/^DATA = .*/m, "DATA = instaid_adopt--$next.sql");
append_to_file("$new/extension/ids.sql", $changes);
system_or_bail('make', '-s', '-C', $new, "PG_CONFIG=$pg_config", 'script');
my ($guard) = slurp_file("$new/extension/schema.sql") =~ /^(\\echo .*)$/m or die;
append_to_file("$new/instaid--$version--$next.sql",
	"$guard\nSELECT instaid._check_library('$next');\n$changes" . q{
DO $$
DECLARE
    role regrole;
BEGIN
    FOR role IN SELECT DISTINCT x.grantee FROM pg_default_acl AS d, aclexplode(d.defaclacl) AS x
                WHERE x.grantee NOT IN (0, d.defaclrole) LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION instaid.new_one(bigint) FROM %s', role);
    END LOOP;
END
$$;
});

# A script and a library of two versions
sub refused
{
	my ($database, $statement, $script, $library, $name) = @_;
	my ($ret, $stdout, $stderr) = $node->psql($database, $statement);
	is($stderr =~ s/^psql:\S+ //mgr =~ s/^(CONTEXT|LINE).*//msgr =~ s/\s+\z//r,
		"ERROR:  instaid $script cannot use the library of instaid $library\n"
		  . "HINT:  Install instaid $script, restart the server if it preloads the library,"
			. ' and try again in a new session.',
		"$name is refused, and the hint says what to do");
	return;
}

system_or_bail('make', '-s', '-C', $new, "PG_CONFIG=$pg_config", 'with_llvm=no', 'install');
refused('app', 'ALTER EXTENSION instaid UPDATE', $next, $version, 'an update before the restart');
refused('fresh', 'CREATE EXTENSION instaid', $next, $version,
	'an installation before the restart');
goes_on("$next is installed");

$node->restart;
goes_on("$next is loaded");

# What each earlier version creates, where default privileges give all that is new to a role
$node->safe_psql('postgres', 'CREATE ROLE other');
my @databases = ('app', 'contrib_regression');
my %functions;
for my $file (glob 'instaid--*.sql')
{
	my ($old) = $file =~ /^instaid--([\d.]+)\.sql$/ or next;
	$node->safe_psql('postgres', qq{CREATE DATABASE "from $old"});
	cmp_ok($node->safe_psql("from $old", qq{
			CREATE EXTENSION instaid VERSION '$old';
			SELECT count(fmgr_c_validator(oid)::text) FROM pg_proc WHERE probin = 'instaid'}),
		'>', 20, "the library has each function that the script of $old names");
	$node->safe_psql("from $old", "ALTER DEFAULT PRIVILEGES GRANT ALL ON $_ TO other")
	  for 'FUNCTIONS', 'SEQUENCES', 'TABLES', 'TYPES';
	push @databases, "from $old";
}
$functions{$_} = c_functions($_) for @databases;
$node->safe_psql($_, 'ALTER EXTENSION instaid UPDATE') for @databases;
$node->safe_psql('fresh', 'CREATE EXTENSION instaid');
goes_on($next);
is("@ids", join(' ', sort { $a <=> $b } uniq(@ids)),
	'the IDs increase, from the first to the last version');
is($node->safe_psql('app', "SELECT extversion FROM pg_extension WHERE extname = 'instaid'"), $next,
	'the version is the new one');
my $fresh = members($node, 'fresh');
my $is_member = qr/^ALTER EXTENSION instaid ADD |^COMMENT ON FUNCTION instaid\.new_one/m;
cmp_ok(scalar(grep { /$is_member/ } @$fresh), '>', 100, 'a fresh install has members');
is_deeply(members($node, $_), $fresh, "$_: each object is the one of a fresh install")
  for @databases;

# A session can have loaded the library of one version, and call what the script of another
# declares.  Therefore a function in C that gets other arguments gets another name.
my $c_functions = c_functions('fresh');
cmp_ok(scalar(keys %$c_functions), '>', 20, 'a fresh install has functions in C');
for my $database (@databases)
{
	my $old = $functions{$database};
	my @changed = grep { exists $old->{$_} && $old->{$_} ne $c_functions->{$_} }
	  sort keys %$c_functions;
	is("@changed", '', "$database: each function in C has the arguments that it had");
}

### The regression tests

edit($_, qr/^CREATE EXTENSION instaid;\n/m, '') for 'sql/setup.sql', 'expected/setup.out';
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->restart;
# the name of the superuser who runs them does not matter
$node->safe_psql('postgres', 'CREATE ROLE "Tester" SUPERUSER LOGIN');
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PGUSER} = 'Tester';
# each object is the one of a fresh install, where all of them pass
my @tests = $ENV{FULL} ? () : 'REGRESS=setup generate shards partitions';
my $regress = run_log([ 'make', '-s', '-C', $new, "PG_CONFIG=$pg_config", 'installcheck',
	'ISOLATION=', @tests,
	'REGRESS_OPTS=--use-existing --dbname=contrib_regression' ]);
ok($regress, 'the regression tests pass on the updated database');
diag(slurp_file("$new/regression.diffs")) unless $regress;

done_testing();
