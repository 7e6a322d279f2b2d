# CREATE EXTENSION where a schema of the tickets exists already, as a tool's dump of a schema
# can have created it, and in a session with other settings.  pg_regress has one database.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use Clients;

my $node = Clients::server('main');
$node->safe_psql('postgres', q{
	CREATE DATABASE planted;
	CREATE ROLE mallory;
	GRANT CREATE ON DATABASE planted TO mallory});
my $superuser = $node->safe_psql('postgres', 'SELECT current_user');
my $create = 'CREATE SCHEMA instaid_tickets';

for my $case (
	# what is done before, the detail of the refusal, the test
	[ $create, '', 'an empty schema of a superuser is replaced' ],
	[ "$create AUTHORIZATION mallory; SET ROLE mallory", '',
		'an empty schema of the installer is replaced' ],
	[ "$create AUTHORIZATION mallory", 'It belongs to role mallory.',
		'an empty schema of another role is refused' ],
	[ "$create; SET ROLE mallory", '', 'a superuser has created it for the installer' ],
	[ "$create; CREATE FUNCTION instaid_tickets.f() RETURNS integer LANGUAGE sql RETURN 1",
		'It is not empty.', 'a function is in the way' ],
	[ "$create; ALTER DEFAULT PRIVILEGES IN SCHEMA instaid_tickets
			GRANT ALL ON SEQUENCES TO mallory",
		'It is not empty.', 'default privileges are in the way' ],
	[ "$create; CREATE TYPE instaid_tickets.t AS ENUM ()",
		'It is not empty.', 'a type is in the way' ],
	[ "SET ROLE mallory; $create; CREATE SEQUENCE instaid_tickets.photos",
		'It is not empty.', 'a sequence is in the way' ])
{
	my ($before, $detail, $what) = @$case;
	my ($ret, $stdout, $stderr) = $node->psql('planted', qq{
		SET client_min_messages = error;
		DROP EXTENSION IF EXISTS instaid;
		DROP SCHEMA IF EXISTS instaid_tickets CASCADE;
		$before;
		\\set VERBOSITY verbose
		CREATE EXTENSION instaid;
		RESET ROLE;
		SELECT nspowner::regrole, nspname IN (
			SELECT (pg_identify_object(classid, objid, objsubid)).name FROM pg_depend
			WHERE deptype = 'e')
		FROM pg_namespace WHERE nspname = 'instaid_tickets'}, on_error_stop => 0);
	if ($detail)
	{
		like($stderr, qr/ERROR:  55000: schema "instaid_tickets" .*\nDETAIL:  \Q$detail\E/, $what);
	}
	else
	{
		is($stdout, "$superuser|t", $what);
	}
}

# The script is parsed with the settings of the session.  PostgreSQL 19 refuses this one.
my ($ret, $stdout, $stderr) = $node->psql('planted', q{
	SET client_min_messages = error;
	DROP EXTENSION IF EXISTS instaid;
	DROP SCHEMA IF EXISTS instaid_tickets CASCADE;
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
