# The extensions instaid, instaid_tickets and instaid_adopt beside each other: each one alone, all
# in each order of creation and DROP, dumps, a role with only CREATE on the database, a standby
# that lacks one of them, and pg_upgrade from the older PostgreSQL in INSTAID_OLD, or else to the
# same version.  pg_regress has one database, and no other server.
# not in: assert
# in: newest

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my @extensions = ('instaid', 'instaid_tickets', 'instaid_adopt');
# What each of them is used for, and what is then there
my %make = (
	instaid => q{
		SELECT instaid.create_shard('insta5', 5);
		CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id());},
	instaid_tickets => q{
		CREATE SCHEMA app;
		SELECT instaid_tickets.create('app.number', step => 10);
		CREATE TABLE app.invoices (
			number bigint PRIMARY KEY DEFAULT instaid_tickets.next('app.number'));},
	instaid_adopt => '');
my %use = (
	instaid => q{
		INSERT INTO insta5.photos DEFAULT VALUES;
		SELECT instaid.extract_shard_id(max(id)) = 5 FROM insta5.photos;},
	instaid_tickets => q{
		INSERT INTO app.invoices DEFAULT VALUES;
		SELECT max(number) = count(*) OR max(number) > 10 FROM app.invoices;},
	# a dry run looks at all schemas, and changes nothing
	instaid_adopt => q{
		CALL instaid_adopt.adopt_shards(dry_run => true);
		SELECT true;});
my %forget = (
	instaid => 'DROP SCHEMA insta5 CASCADE;',
	instaid_tickets => 'DROP SCHEMA app CASCADE;',
	instaid_adopt => '');

# Use these extensions; return what goes wrong.
sub failures
{
	my ($node, $database, @of) = @_;
	my @failures;
	for my $extension (@of)
	{
		my ($ret, $stdout, $stderr) = $node->psql($database,
			"SET client_min_messages = warning; $use{$extension}");
		push @failures, "$extension: $stdout $stderr" if $stdout !~ /^t\z/m || $stderr ne '';
	}
	return join '', @failures;
}

# Create an extension; with CASCADE, also instaid.
sub create
{
	my ($node, $database, $extension, $cascade) = @_;
	$node->safe_psql($database, 'SET client_min_messages = warning;'
		  . "CREATE EXTENSION $extension " . ($cascade ? 'CASCADE' : '') . ";$make{$extension}");
	return;
}

# The objects outside of the catalog whose names are those of our extensions
my $left = q{
	SELECT string_agg(pg_describe_object(classid, objid, 0), ', ')
	FROM (SELECT 'pg_namespace'::regclass, oid, nspname FROM pg_namespace
		  UNION ALL SELECT 'pg_language'::regclass, oid, lanname FROM pg_language
		  UNION ALL SELECT 'pg_foreign_data_wrapper'::regclass, oid, fdwname
			FROM pg_foreign_data_wrapper
		  UNION ALL SELECT 'pg_proc'::regclass, oid, probin FROM pg_proc)
		AS o (classid, objid, name)
	WHERE name ~ 'instaid'};

# checksums are the default only since PostgreSQL 18
my @initdb = (extra => [ '--data-checksums', '--locale=C', '--encoding=UTF8' ]);
my $main = PostgreSQL::Test::Cluster->new('main');
$main->init(@initdb, allows_streaming => 1);
$main->start;

### Each one alone

for my $extension (@extensions)
{
	$main->safe_psql('postgres', "CREATE DATABASE alone_$extension");
	create($main, "alone_$extension", $extension, 1);
	is(failures($main, "alone_$extension", $extension), '', "$extension alone is used");
	is($main->safe_psql("alone_$extension", q{
			SELECT string_agg(extname, ' ' ORDER BY extname) FROM pg_extension
			WHERE extname <> 'plpgsql'}),
		$extension eq 'instaid_adopt' ? 'instaid instaid_adopt' : $extension,
		"$extension alone is used, with no other, but instaid for instaid_adopt");
	my $all = $extension eq 'instaid_adopt' ? 'instaid' : $extension;
	$main->safe_psql("alone_$extension", "SET client_min_messages = warning; $forget{$extension}
		DROP EXTENSION $all CASCADE");
	is($main->safe_psql("alone_$extension", $left), '',
		"$extension alone is used, and leaves nothing behind");
}
my ($ret, $stdout, $stderr) = $main->psql('postgres', 'CREATE EXTENSION instaid_adopt');
like($stderr, qr/required extension "instaid" is not installed/,
	'instaid_adopt does not come before instaid');

### All of them, in each order

my @creations = (
	[ 'instaid', 'instaid_tickets', 'instaid_adopt' ],
	[ 'instaid', 'instaid_adopt', 'instaid_tickets' ],
	[ 'instaid_tickets', 'instaid', 'instaid_adopt' ]);
my @drops = (
	[ 'instaid_adopt', 'instaid', 'instaid_tickets' ],
	[ 'instaid_adopt', 'instaid_tickets', 'instaid' ],
	[ 'instaid_tickets', 'instaid_adopt', 'instaid' ]);
my $number = 0;
for my $creation (@creations)
{
	for my $drop (@drops)
	{
		my $database = 'order' . ++$number;
		$main->safe_psql('postgres', "CREATE DATABASE $database");
		create($main, $database, $_) for @$creation;
		my $failures = failures($main, $database, @$creation);
		my @there = @$drop;
		while (my $extension = shift @there)
		{
			$main->safe_psql($database, "SET client_min_messages = warning;
				$forget{$extension} DROP EXTENSION $extension");
			$failures .= failures($main, $database, @there);
		}
		is($failures . $main->safe_psql($database, $left), '',
			"created: @$creation; dropped: @$drop");
	}
}
$main->safe_psql('postgres', 'CREATE DATABASE all_of_them');
create($main, 'all_of_them', $_) for @extensions;
($ret, $stdout, $stderr) = $main->psql('all_of_them', 'DROP EXTENSION instaid');
like($stderr, qr/extension instaid_adopt depends on extension instaid/,
	'instaid is not dropped before instaid_adopt');

### Dumps

my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
is(failures($main, 'all_of_them', @extensions), '', 'all of them are used');
command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $main->connstr('all_of_them') ],
	'pg_dump of a database with all');
$main->safe_psql('postgres', 'CREATE DATABASE restored');
command_ok([ 'pg_restore', '-e', '-d', $main->connstr('restored'), $dump ],
'pg_dump of a database with all: is restored');
is(failures($main, 'restored', @extensions), '',
	'pg_dump of a database with all, and all of them go on');
# a schema with what it needs, but for the extension
for my $case ([ 'instaid', 'insta5' ], [ 'instaid_tickets', 'app' ])
{
	my ($extension, $schema) = @$case;
	my $database = "restored_$schema";
	command_ok([ 'pg_dump', '-n', $schema, '-f', $dump, '-d', $main->connstr('all_of_them') ],
		"pg_dump -n $schema");
	$main->safe_psql('postgres', "CREATE DATABASE $database");
	$main->safe_psql($database, "CREATE EXTENSION $extension");
	command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump,
		'-d', $main->connstr($database) ], 'pg_dump of a database with all: is restored');
	is(failures($main, $database, $extension), '',
		'pg_dump of a database with all, and its default goes on');
}

### A role that has nothing but CREATE on the database

$main->safe_psql('postgres', 'CREATE ROLE app LOGIN; CREATE DATABASE theirs;
	GRANT CREATE ON DATABASE theirs TO app');
$main->safe_psql('theirs', 'REVOKE CREATE ON SCHEMA public FROM PUBLIC');
$ENV{PGUSER} = 'app';
create($main, 'theirs', $_) for @extensions;
is(failures($main, 'theirs', @extensions), '', 'a role with CREATE creates and uses all of them');
$main->safe_psql('theirs', "SET client_min_messages = warning; $forget{$_} DROP EXTENSION $_")
  for reverse @extensions;
is($main->safe_psql('theirs', $left), '',
	'a role with CREATE creates and uses all of them, and drops them');
delete $ENV{PGUSER};

### A standby that lacks one

# The extensions but one, installed in a PostgreSQL
sub install_but
{
	my ($missing, $path) = @_;
	my $pg_config = `sh -c '. test/lib/private.sh; copy_postgresql "\$PG_CONFIG" "\$0"' $path`;
	chomp $pg_config;
	for my $dir ('--pkglibdir', '--sharedir')
	{
		my ($from, $to) = map { `$_ $dir` } $ENV{PG_CONFIG}, $pg_config;
		chomp($from, $to);
		for my $file (glob "$from/{,extension/}instaid*")
		{
			my ($extension) = $file =~ m,([^/.]+?)(?:--[^/]*)?\.(?:so|sql|control)\z, or next;
			next if $extension eq $missing;
			my $link = $to . substr($file, length $from);
			symlink $file, $link or die "$link: $!";
		}
	}
	return $pg_config =~ s,/bin/pg_config\z,,r;
}

$main->backup('backup');
for my $missing ('instaid', 'instaid_tickets')
{
	my ($other) = grep { $_ ne $missing } 'instaid', 'instaid_tickets';
	my $path = install_but($missing, PostgreSQL::Test::Utils::tempdir . "/without_$missing");
	my $standby = PostgreSQL::Test::Cluster->new("without_$missing", install_path => $path);
	$standby->init_from_backup($main, 'backup', has_streaming => 1);
	$standby->start;
	is(failures($main, 'all_of_them', @extensions), '',
		"the primary of a standby without $missing");
	$main->wait_for_catchup($standby);
	my $rows = 'SELECT array(SELECT id FROM insta5.photos ORDER BY 1),
		array(SELECT number FROM app.invoices ORDER BY 1)';
	is($standby->safe_psql('all_of_them', $rows), $main->safe_psql('all_of_them', $rows),
		"the primary of a standby without $missing, which has its rows");
	$standby->promote;
	is(failures($standby, 'all_of_them', $other), '',
		"the primary of a standby without $missing, and goes on with $other");
	like(failures($standby, 'all_of_them', $missing),
		qr/ERROR:  could not (access|load) .*\Q$missing\E/,
		"the primary of a standby without $missing, but not with $missing");
	$standby->stop;
	my $log = slurp_file($standby->logfile);
	unlike($log, qr/PANIC|TRAP:|XX000/,
		"the primary of a standby without $missing, and logged no error of its own");
}

### pg_upgrade

$main->stop;
my $old = PostgreSQL::Test::Cluster->new('old', install_path => $ENV{INSTAID_OLD});
$old->init(@initdb);
$old->append_conf('postgresql.conf', "shared_preload_libraries = 'instaid_tickets'\n");
$old->start;
create($old, 'postgres', $_) for @extensions;
$old->safe_psql('postgres', q{
	CREATE SERVER authority FOREIGN DATA WRAPPER instaid_tickets
		OPTIONS (host 'a,b', dbname 'authority');
	CREATE USER MAPPING FOR CURRENT_USER SERVER authority OPTIONS (password 'secret');
	CREATE FOREIGN TABLE app.leased (value bigint) SERVER authority
		OPTIONS (sequence 'app.number', step '10')});
is(failures($old, 'postgres', @extensions), '', 'all of them before pg_upgrade');
my $state = q{SELECT (SELECT max(id) FROM insta5.photos), (SELECT max(number) FROM app.invoices)};
my ($id, $value) = split /\|/, $old->safe_psql('postgres', $state);
$old->stop;
my $new = PostgreSQL::Test::Cluster->new('new');
$new->init(@initdb);
$new->append_conf('postgresql.conf', "shared_preload_libraries = 'instaid_tickets'\n");
chdir PostgreSQL::Test::Utils::tempdir or die $!;
command_ok([ 'pg_upgrade', '--no-sync',
	'-b', $old->config_data('--bindir'), '-d', $old->data_dir, '-p', $old->port,
	'-B', $new->config_data('--bindir'), '-D', $new->data_dir, '-P', $new->port,
	'-s', $new->host ], 'pg_upgrade')
  or diag(map { slurp_file($_) } glob($new->data_dir . '/pg_upgrade_output.d/*/log/*'));
$new->start;
is(failures($new, 'postgres', @extensions), '',
	'all of them before pg_upgrade, and all of them go on');
my ($new_id, $new_value) = split /\|/, $new->safe_psql('postgres', $state);
cmp_ok($new_id, '>', $id, 'all of them before pg_upgrade, with IDs above');
cmp_ok($new_value, '>', $value, 'all of them before pg_upgrade, and values above');
is($new->safe_psql('postgres', q{
	SELECT ticket, source FROM instaid_tickets.tickets WHERE source IS NOT NULL}),
	'app.leased|authority', 'all of them before pg_upgrade, and the ticket with a source');
$new->stop;
done_testing();
