# The application of examples/app: the commands of its page, as one pastes them, and its own
# tests in a database of an ordinary role.  A page cannot show how its parts work together.
#
# packages: python3 python3-psycopg2
# not in: assert_short

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Docs;

{
	local %ENV = (%ENV, SERVER => PostgreSQL::Test::Utils::tempdir_short,
		PYTHONDONTWRITEBYTECODE => 1);
	# the page's shell has none of them, and make would run this suite again
	delete @ENV{qw(SCRATCH SUITES MAKEFLAGS MAKEOVERRIDES MAKELEVEL MFLAGS)};
	my ($commands, $by_hand) = map { $_->{text} } blocks(slurp_file('examples/app/README.md'));
	my $typed = join '', map { "$_\n" } $by_hand =~ /^>>> (.*)/mg;
	my ($printed, $errors);
	IPC::Run::run([ 'sh', '-ec', $commands ], \$typed, \$printed, \$errors);
	is($?, 0, 'the commands of the page');
	like($errors, qr/^Ran 6 tests.*^OK$/ms, 'the commands of the page run the tests');
	like($printed, qr/"second".*"first".*'note'/s, 'the commands of the page, by hand');
	diag("$printed\n$errors") unless Test::More->builder->is_passing;
	system('make', '-s', 'server-stop');
}

my $node = PostgreSQL::Test::Cluster->new('application');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE app LOGIN');
$node->safe_psql('postgres', 'CREATE DATABASE app OWNER app');
$node->safe_psql('app', 'CREATE EXTENSION instaid');

local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGUSER => 'app',
	PGDATABASE => 'app', PYTHONDONTWRITEBYTECODE => 1);
command_checks_all([ 'sh', '-c', 'cd examples/app && exec python3 -m unittest --verbose test_app' ],
	0, [qr/^$/], [qr/^Ran 6 tests.*^OK$/ms], 'the tests of the application pass');
$node->stop;
done_testing();
