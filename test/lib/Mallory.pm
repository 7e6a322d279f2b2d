# A server with a role without rights, mallory, who plants code where a superuser who
# follows the documentation could run it.  Her code makes her a superuser if it runs with
# a superuser's rights, or can get them back.  The role alice has objects, too, and the role
# victim owns objects that nothing of mallory's may change.

package Mallory;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use Test::More;

our @EXPORT = qw($node start_server run_as as_superuser as_owner gained_nothing database);

our $node;
my $superuser;

sub start_server
{
	$node = PostgreSQL::Test::Cluster->new('main');
	$node->init;
	$node->append_conf('postgresql.conf',
		"log_statement = none\nautovacuum = off\nlock_timeout = '20s'\n");
	$node->start;
	$node->safe_psql('postgres',
		'CREATE ROLE mallory LOGIN; CREATE ROLE alice LOGIN; CREATE ROLE victim LOGIN');
	$superuser = $node->safe_psql('postgres', 'SELECT current_user');
	return;
}

# Run statements in a database as a role; return what psql says.
sub run_as
{
	my ($role, $database, $sql) = @_;
	my ($stdout, $stderr) = ('', '');
	IPC::Run::run([ 'psql', '-XAtq', '-d', $node->connstr($database) . " user=$role" ],
		'<', \"\\set VERBOSITY verbose\n$sql", '>', \$stdout, '2>', \$stderr);
	return "$stdout$stderr";
}

sub as_superuser
{
	my ($database, $sql) = @_;
	return run_as($superuser, $database, $sql);
}

# What is refused to a superuser, since its objects belong to this role, is repeated as the role:
# then its code runs, and must not gain anything, either.
sub as_owner
{
	my ($owner, $database, $sql) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like(as_superuser($database, $sql), qr/must\ be\ owner\ of\ .*\n
		DETAIL:\ \ It\ belongs\ to\ role\ $owner,\ and\ its\ code\ would\ run\ .*\n
		HINT:\ \ Connect\ as\ $owner\.\ SET\ ROLE\ is\ not\ enough
		|\ belong\ to\ other\ roles\nDETAIL:\ \ (?:.*\n)*?$owner\ has/x,
		"refused to a superuser: @{ [ $sql =~ /(\w+\([^;]*)/ ] }");
	gained_nothing("refused to a superuser, with nothing called");
	return run_as($owner, $database, $sql);
}

# Test that no role has become a superuser.
sub gained_nothing
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($node->safe_psql('postgres', q{
		SELECT rolname FROM pg_roles
		WHERE rolsuper AND rolname IN ('mallory', 'alice', 'victim')}), '', $name);
	return $node->safe_psql('postgres', 'ALTER ROLE mallory NOSUPERUSER');
}

# A database in which mallory has a schema with the code that she plants.  This code
# goes on after errors, and tries to get back to the role that logged in.
sub database
{
	my ($name, $extension) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $name;
		GRANT CREATE ON DATABASE $name TO mallory, alice, victim");
	$node->safe_psql($name, 'CREATE EXTENSION instaid_adopt CASCADE') if $extension;
	run_as('mallory', $name, q{
		CREATE SCHEMA m;
		-- VOLATILE, since it writes; indexes and CHECKs call it by functions that are
		-- marked IMMUTABLE
		CREATE FUNCTION m.attempt() RETURNS integer LANGUAGE plpgsql AS $$
		DECLARE
			attempt text;
		BEGIN
			FOREACH attempt IN ARRAY ARRAY[
				'ALTER ROLE mallory SUPERUSER',
				'RESET ROLE', 'ALTER ROLE mallory SUPERUSER',
				'RESET SESSION AUTHORIZATION', 'ALTER ROLE mallory SUPERUSER']
			LOOP
				BEGIN
					EXECUTE attempt;
				EXCEPTION WHEN OTHERS THEN
				END;
			END LOOP;
			RETURN 1;
		END $$;
		CREATE FUNCTION m.gain() RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
		BEGIN RETURN m.attempt(); END $$;
		CREATE FUNCTION m.gain(bigint) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
		BEGIN RETURN m.gain(); END $$;});
	as_superuser($name, 'SELECT m.gain()');
	is($node->safe_psql('postgres', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'}),
		't', "$name: the code gains if a superuser runs it");
	$node->safe_psql('postgres', 'ALTER ROLE mallory NOSUPERUSER');
	return $name;
}

1;
