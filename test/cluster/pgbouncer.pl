# pgbouncer in transaction mode: 16 clients share 4 sessions of the server.  No ID comes
# twice.  With CACHE 1 and with CACHE 32, the IDs of each client increase, and so do those of
# each session of the server: when a transaction ends, its session drops the IDs that it has
# reserved.
#
# packages: pgbouncer

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;

local $ENV{PATH} = "$ENV{PATH}:/usr/sbin";
my $node = Clients::server('main', 'synchronous_commit = off');
$node->safe_psql('postgres', q{
	SELECT instaid.create_shard('insta5', 5);
	CREATE UNLOGGED TABLE insta5.photos (
		id bigint DEFAULT insta5.next_id(), pid integer DEFAULT pg_backend_pid(),
		xid xid8 DEFAULT pg_current_xact_id());});

my ($pgbouncer, $pool) = Clients::pgbouncer($node, 'postgres', scalar getpwuid $>);
my $directory = PostgreSQL::Test::Utils::tempdir;
append_to_file("$directory/inserts",
	"INSERT INTO insta5.photos DEFAULT VALUES RETURNING id;\n" x 1000);

for my $cache (1, 32)
{
	$node->safe_psql('postgres', "ALTER SEQUENCE insta5.table_id_seq CACHE $cache;
		TRUNCATE insta5.photos");
	my @files = map { "$directory/cache$cache.$_" } 1 .. 16;
	my @clients = map {
		IPC::Run::start([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $pool, '-f',
			"$directory/inserts" ], '>', $_, '2>', "$_.err")
	} @files;
	is(scalar(grep { $_->finish } @clients), 16, "CACHE $cache: 16 clients insert");

	my ($sessions, $ids, $different, $back) = split /\|/, $node->safe_psql('postgres', '
		SELECT count(DISTINCT pid), count(*), count(DISTINCT id), count(*) FILTER (WHERE back)
		FROM (SELECT pid, id, id < lag(id) OVER (PARTITION BY pid ORDER BY xid) AS back
			FROM insta5.photos) AS p');
	is("$ids $different", '16000 16000', "CACHE $cache: no ID comes twice");
	like($sessions, qr/^[234]\z/, "CACHE $cache: they share sessions of the server");
	is($back, 0, "CACHE $cache: the IDs of each session of the server increase");

	my $out_of_order = 0;
	for my $file (@files)
	{
		my $last = 0;
		for my $id (split /\n/, slurp_file($file))
		{
			$out_of_order++ if $id < $last;
			$last = $id;
		}
	}
	is($out_of_order, 0, "CACHE $cache: the IDs of each client increase");
	diag("CACHE $cache: $ids IDs, $sessions sessions, "
		  . "$out_of_order IDs below the previous ID of their client");
}

$pgbouncer->kill_kill;
$node->stop;
done_testing();
