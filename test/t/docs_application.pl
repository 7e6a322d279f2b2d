# The application of examples/app: its own tests, in a database of an ordinary role.  A page
# cannot show how its parts work together.
#
# packages: python3 python3-psycopg2

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('application');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE app LOGIN');
$node->safe_psql('postgres', 'CREATE DATABASE app OWNER app');
$node->safe_psql('app', 'CREATE EXTENSION instaid');

local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGUSER => 'app',
	PGDATABASE => 'app', PYTHONDONTWRITEBYTECODE => 1);
command_checks_all([ 'sh', '-c', 'cd examples/app && exec python3 -m unittest --verbose test_app' ],
	0, [qr/^$/], [qr/^Ran 5 tests.*^OK$/ms], 'the tests of the application pass');
$node->stop;
done_testing();
