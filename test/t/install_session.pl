# CREATE EXTENSION where a schema of its name exists already, as a tool's dump of a schema can
# have created it, and in a session with other settings.  pg_regress has one database.
# not in: assert
# in: newest

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
my @extensions = ('instaid', 'instaid_tickets', 'instaid_adopt');

for my $extension (@extensions)
{
	my $create = "CREATE SCHEMA $extension";
	$node->safe_psql('planted', 'CREATE EXTENSION instaid') if $extension eq 'instaid_adopt';
	for my $case (
		# what is done before, the test
		[ $create, 'an empty schema of a superuser' ],
		[ "$create AUTHORIZATION mallory; SET ROLE mallory", 'an empty schema of the installer' ],
		[ "$create AUTHORIZATION mallory", 'an empty schema of another role' ],
		[ "$create; CREATE FUNCTION $extension.f() RETURNS integer LANGUAGE sql RETURN 1",
			'a schema with a function' ],
		[ "SET ROLE mallory; $create; CREATE SEQUENCE $extension.photos",
			'a schema with a sequence' ])
	{
		my ($before, $what) = @$case;
		my ($ret, $stdout, $stderr) = $node->psql('planted', qq{
			SET client_min_messages = error;
			DROP SCHEMA IF EXISTS $extension CASCADE;
			$before;
			\\set VERBOSITY verbose
			CREATE EXTENSION $extension}, on_error_stop => 0);
		like($stderr, qr/\A\S+ ERROR:  55000: schema "$extension" already exists\n/,
			"$extension: $what is refused");
		like($stderr, qr/^HINT:  .*un nothing in it\. Rename or drop it, and create the ext/m,
			"$extension: $what is refused, and the hint says what to do");
	}
	$node->safe_psql('planted', "SET client_min_messages = error;
		DROP SCHEMA $extension CASCADE; CREATE EXTENSION $extension CASCADE");
	$node->safe_psql('planted', "DROP EXTENSION $extension CASCADE") if $extension eq 'instaid';
}

# The scripts are parsed with the settings of the session.  PostgreSQL 19 refuses this one.
my ($ret, $stdout, $stderr) = $node->psql('planted', q{
	SET client_min_messages = error;
	DROP EXTENSION instaid_adopt, instaid_tickets, instaid;
	RESET client_min_messages;
	SET standard_conforming_strings = off;
	CREATE EXTENSION instaid;
	CREATE EXTENSION instaid_tickets;
	CREATE EXTENSION instaid_adopt;
	CREATE SEQUENCE ticket;
	SELECT instaid.create_shard('insta5', 5), instaid.renumber_shard('insta5', 6);
	SELECT instaid.extract_shard_id(insta5.next_id()), instaid_tickets.next('ticket'),
		(SELECT count(*) FROM instaid.audit()), (SELECT count(*) FROM instaid_tickets.audit())},
	on_error_stop => 0);
$stderr =~ s/.*non-standard string literals are not.*\n?(HINT.*\n?)?//;
is("$stdout$stderr", "|\n6|1|0|0", 'a session where backslashes are escapes');

$node->stop;
done_testing();
