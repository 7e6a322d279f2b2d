# CREATE EXTENSION in a session with other settings.  pg_regress has one database.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use Clients;

my $node = Clients::server('main');

# The script is parsed with the settings of the session.  PostgreSQL 19 refuses this one.
my ($ret, $stdout, $stderr) = $node->psql('postgres', q{
	SET client_min_messages = error;
	DROP EXTENSION IF EXISTS instaid;
	RESET client_min_messages;
	SET standard_conforming_strings = off;
	CREATE EXTENSION instaid;
	SELECT instaid.create_shard('insta5', 5), instaid.renumber_shard('insta5', 6);
	SELECT instaid.extract_shard_id(insta5.next_id()), (SELECT count(*) FROM instaid.audit())},
	on_error_stop => 0);
$stderr =~ s/.*non-standard string literals are not.*\n?(HINT.*\n?)?//;
is("$stdout$stderr", "|\n6|0", 'a session where backslashes are escapes');

$node->stop;
done_testing();
