# Refills of tickets with a source that go another way: over TLS, with options that only libpq
# knows, beside a preloaded library that has reserved memory; and while the ticket is dropped.
# pg_regress has one server, and cannot preload a library.
#
# packages: openssl

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Sources;

@Clients::extensions = ('instaid_tickets');

my $dir = PostgreSQL::Test::Utils::tempdir;
for my $name ('server', 'other')
{
	system('openssl req -new -x509 -days 2 -nodes -newkey rsa:2048 -subj /CN=localhost '
		  . "-keyout $dir/$name.key -out $dir/$name.crt 2>$dir/openssl.log") == 0
	  or die slurp_file("$dir/openssl.log");
	chmod 0600, "$dir/$name.key";
}
# a library that reserves memory and does not touch it
my $headers = '-I"$(pg_config --includedir-server)"';
system("cc -shared -fPIC $headers -o $dir/hog.so test/lib/hog.c") == 0
  or die 'cc failed';

my $authority = Clients::server('authority');
my $port = PostgreSQL::Test::Cluster::get_free_port();
$authority->append_conf('postgresql.conf', "$_\n")
  for q{listen_addresses = '127.0.0.1'}, "port = $port", 'ssl = on',
  "ssl_cert_file = '$dir/server.crt'", "ssl_key_file = '$dir/server.key'";
$authority->stop;
$authority->{_port} = $port;
$authority->append_conf('pg_hba.conf', 'hostssl all all 127.0.0.1/32 trust');
$authority->start;
my $node = Clients::server('main', "shared_preload_libraries = 'instaid_tickets,$dir/hog.so'");

### TLS

sub tls_source
{
	my ($name, %options) = @_;
	$authority->safe_psql('postgres', "CREATE SEQUENCE $name");
	my $list = join ', ', map { "$_ '$options{$_}'" } sort keys %options;
	$node->safe_psql('postgres', qq{
		CREATE SERVER $name FOREIGN DATA WRAPPER instaid_tickets
			OPTIONS (host '127.0.0.1', port '$port', dbname 'postgres',
				connect_timeout '20', $list);
		CREATE USER MAPPING FOR PUBLIC SERVER $name OPTIONS (user '}
		  . $node->safe_psql('postgres', 'SELECT current_user') . qq{');
		CREATE FOREIGN TABLE $name (value bigint) SERVER $name
			OPTIONS (sequence 'public.$name', step '10')});
	return;
}
my %verify = (sslmode => 'verify-ca', sslrootcert => "$dir/server.crt");
$verify{require_auth} = 'none' if $node->safe_psql('postgres', 'SHOW server_version_num') >= 160000;
tls_source('verified', %verify);
is(join(' ', take($node, 'verified', 3)), '1 2 3',
	'values come over TLS, beside a library that has reserved 1 GB');
tls_source('forged', %verify, sslrootcert => "$dir/other.crt");
like(failure($node, 'forged'), qr/certificate verify failed/,
	'values come over TLS, beside a library that has reserved 1 GB, but not from a server with'
	  . ' another certificate');

### An authority that is set back by one value: its next lease begins with the last one

tls_source('set_back', %verify);
take($node, 'set_back', 2);
wait_segment($node, 'set_back', 'spare_left > 0');
my $last = segment($node, 'set_back', 'spare_last');
$authority->safe_psql('postgres', "SELECT setval('set_back', $last - 1)");
# it is not asked for more before these are used
$node->psql('postgres', q{SELECT instaid_tickets.next('set_back')}) for 1 .. 2 * $last;
is(log_count($node, qr/it leased $last to \d+ by 1, and this server has had such values/) > 0, 1,
	'an authority that was set back by one value is refused');

### A ticket that is dropped while the worker reads its source

sub wait_for_worker
{
	my ($waits) = @_;
	$node->poll_query_until('postgres', $waits
		? q{SELECT count(*) > 0 FROM pg_locks
			WHERE NOT granted AND relation = 'pg_user_mapping'::regclass}
		: q{SELECT count(*) = 0 FROM pg_stat_activity
			WHERE backend_type = 'instaid_tickets segments'})
	  or die 'the worker does not come';
	return;
}
for my $drop ('DROP FOREIGN TABLE dropped', 'DROP SERVER dropped CASCADE')
{
	$authority->safe_psql('postgres', 'DROP SEQUENCE IF EXISTS dropped');
	$node->safe_psql('postgres', q{SET client_min_messages = error;
		DROP SERVER IF EXISTS dropped CASCADE});
	tls_source('dropped', %verify);
	wait_for_worker(0);
	# the worker finds the table and its server, and then waits for the mappings
	my $holder = Clients::session($node);
	$holder->('BEGIN; LOCK TABLE pg_catalog.pg_user_mapping');
	failure($node, 'dropped', 10);
	wait_for_worker(1);
	$holder->("SET client_min_messages = error; $drop; COMMIT");
	wait_for_worker(0);
	is($node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_class WHERE relname = 'dropped'}), 0, $drop);
}
is(join(' ', take($node, 'verified', 2)), '4 5', 'other tickets go on');

$_->stop for $node, $authority;
unlike(slurp_file($node->logfile), qr/floating-point|TRAP:|XX000|PANIC|terminated by signal/,
	'the server logged no error of its own');
done_testing();
