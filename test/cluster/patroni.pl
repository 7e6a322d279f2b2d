# packages: patroni etcd-server etcd-client
#
# Two servers that Patroni and etcd look after, one of them a synchronous standby: a
# switchover, and a leader that dies, both under load.  No ID and no ticket that a client
# has received comes twice, no row is missing, and each client receives them in order.

use strict;
use warnings;

use IPC::Run ();
use List::Util qw(max);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $dir = PostgreSQL::Test::Utils::tempdir;
my %password = map { my $name = $_; $name => join '', map { sprintf '%04x', rand(65536) } 1 .. 8 }
  'etcd', 'rest', 'replicator';
my (%started, @nodes);

sub start
{
	my ($name, @command) = @_;
	$started{$name} = IPC::Run::start(\@command, '<', '/dev/null', '>>',
		"$ENV{TESTLOGDIR}/patroni_$name.log", '2>&1');
	return;
}

sub wait_for
{
	my ($what, $condition) = @_;
	my $end = time + 300;
	until ($condition->())
	{
		die "timed out: $what" if time > $end;
		sleep(0.2);
	}
	return;
}

# Kill a node as a loss of power would: Patroni first, which would start its server
# again, and then all processes of the server at once.
sub kill_node
{
	my ($node) = @_;
	$started{ $node->name }->signal('KILL');
	$started{ $node->name }->finish;
	my $file = $node->data_dir . '/postmaster.pid';
	my ($postmaster) = -f $file ? split /\n/, slurp_file($file) : return;
	kill 'STOP', $postmaster;
	kill 'KILL', split(/ /, slurp_file("/proc/$postmaster/task/$postmaster/children")), $postmaster;
	return;
}

END
{
	my $status = $?;
	append_to_file("$dir/stop", '');
	eval { kill_node($_) } for @nodes;
	eval { $started{etcd}->kill_kill };
	$? = $status;
}

### etcd, which answers only those who know its password

my $port = PostgreSQL::Test::Cluster::get_free_port();
my $etcd = "http://127.0.0.1:$port";
my $peer = 'http://127.0.0.1:' . PostgreSQL::Test::Cluster::get_free_port();
start('etcd', 'etcd', '--name', 'etcd', '--data-dir', "$dir/etcd",
	'--listen-client-urls', $etcd, '--advertise-client-urls', $etcd,
	'--listen-peer-urls', $peer, '--initial-advertise-peer-urls', $peer,
	'--initial-cluster', "etcd=$peer");

sub etcdctl
{
	my ($input, $command) = @_;
	local $ENV{ETCDCTL_API} = 3;
	return IPC::Run::run([ 'etcdctl', "--endpoints=$etcd", split / /, $command ], '<', \$input,
		'>&', \my $output);
}
wait_for('etcd answers', sub { etcdctl('', 'endpoint health') });
etcdctl("$password{etcd}\n", 'user add root --interactive=false')
	&& etcdctl('', 'user grant-role root root') && etcdctl('', 'auth enable')
  or die 'could not set the password of etcd';

### Two servers

# Wait until a node leads, and, with a second argument, the other one is its synchronous
# standby.  etcd must know it, which is what a failover goes by.
sub wait_leader
{
	my ($name, $standby) = @_;
	wait_for("$name leads", sub {
			my ($list) = run_command(
				[ 'patronictl', '-c', "$dir/node1.yml", 'list', '-f', 'tsv', 'instaid' ]);
			return $list =~ /\t$name\t.*\tLeader\trunning/
				&& (!$standby || $list =~ /\tSync Standby\t(running|streaming)/);
		});
	return;
}

for my $name ('node1', 'node2')
{
	push @nodes, my $node = PostgreSQL::Test::Cluster->new($name);
	my ($bindir) = split /\n/, $node->config_data('--bindir');
	my $rest   = '127.0.0.1:' . PostgreSQL::Test::Cluster::get_free_port();
	my $listen = '127.0.0.1:' . $node->port;
	append_to_file("$dir/$name.yml", <<"YML");
scope: instaid
name: $name
etcd3: {host: '127.0.0.1:$port', username: root, password: '$password{etcd}'}
restapi: {listen: '$rest', connect_address: '$rest',
          authentication: {username: rest, password: '$password{rest}'}}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 1
    retry_timeout: 9
    synchronous_mode: true
    postgresql:
      parameters: {shared_preload_libraries: instaid_tickets, fsync: 'off'}
  initdb: [{encoding: UTF8}, {locale: C}]
postgresql:
  listen: $listen
  connect_address: $listen
  bin_dir: $bindir
  data_dir: @{[ $node->data_dir ]}
  pgpass: $dir/$name.pgpass
  use_unix_socket: true
  parameters: {unix_socket_directories: '@{[ $node->host ]}'}
  pg_hba: [local all all trust, host replication replicator 127.0.0.1/32 scram-sha-256]
  authentication:
    superuser: {username: @{[ scalar getpwuid $> ]}}
    replication: {username: replicator, password: '$password{replicator}'}
watchdog: {mode: 'off'}
YML
	mkdir $node->basedir;
	start($name, 'patroni', "$dir/$name.yml");
	wait_leader('node1', $name eq 'node2');
}


# IDs and tickets have 19 digits, so that their order as text is right.
$nodes[0]->safe_psql('postgres', q{
	CREATE EXTENSION instaid; CREATE EXTENSION instaid_tickets;
	SELECT instaid.create_shard('insta5', 5);
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
	SELECT instaid_tickets.create('public.invoice', 2, 3, 1000000000000000000);
	CREATE TABLE invoices (id bigint PRIMARY KEY DEFAULT instaid_tickets.next('invoice'));
	SELECT instaid_tickets.create('public.segments', 2, 3, 1000000000000000000, step => 100);});

### Clients, which connect to the server that takes writes

my $bulk = 'INSERT INTO insta5.photos (n) SELECT generate_series(1, 100) RETURNING id;';
my %statements = (
	row      => 'INSERT INTO insta5.photos DEFAULT VALUES RETURNING id;',
	row_too  => 'INSERT INTO insta5.photos DEFAULT VALUES RETURNING id;',
	bulk     => "$bulk SELECT FROM pg_sleep(0.05);",
	bare     => 'SELECT insta5.next_id();',
	invoice  => 'INSERT INTO invoices DEFAULT VALUES RETURNING id;',
	ticket   => q{SELECT instaid_tickets.next('invoice');},
	segment  => q{SELECT instaid_tickets.next('segments');},
	segment2 => q{SELECT instaid_tickets.next('segments');});
my $target = join ' ', 'host=' . join(',', map { $_->host } @nodes),
	'port=' . join(',', map { $_->port } @nodes),
  'dbname=postgres target_session_attrs=read-write application_name=load';
my %clients = map {
	$_ => IPC::Run::start([ 'sh', '-c', 'until [ -e "$1/stop" ]; do
			yes "$2" | psql -XqAt -v ON_ERROR_STOP=1 -d "$3" >>"$4" 2>>"$4.err"
			sleep 0.1
		done', 'sh', $dir, $statements{$_}, $target, "$dir/$_" ])
} keys %statements;

# Wait until each client has received something more.
sub clients_go_on
{
	my %size = map { $_ => -s "$dir/$_" // 0 } keys %statements;
	wait_for("$_ goes on", sub { (-s "$dir/$_" // 0) > $size{$_} }) for keys %statements;
	sleep(2);
	return;
}
clients_go_on();

my $switchover_at = time;
system_or_bail('patronictl', '-c', "$dir/node1.yml", 'switchover', '--leader', 'node1',
	'--candidate', 'node2', '--force', 'instaid');
wait_leader('node2', 1);
clients_go_on();

# What the leader writes in its last second does not get to the standby.
my $kill_at = time;
kill 'STOP', $nodes[1]->safe_psql('postgres', 'SELECT pid FROM pg_stat_replication');
sleep(1);
kill_node($nodes[1]);
wait_leader('node1');
clients_go_on();

append_to_file("$dir/stop", '');
$nodes[0]->safe_psql('postgres',
	q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'load'});
$_->finish for values %clients;

### What they received

my %received = map { $_ => [ grep { /./ } split /\n/, slurp_file("$dir/$_") ] } keys %statements;

# How many of these are there more than once?
sub duplicates
{
	my %count;
	$count{$_}++ for @_;
	return scalar grep { $_ > 1 } values %count;
}

# How many of the values that clients received are not in the table?
sub missing
{
	my ($table, @values) = @_;
	my %there = map { $_ => 1 } split /\n/,
		$nodes[0]->safe_psql('postgres', "SELECT id FROM $table");
	return scalar grep { !$there{$_} } @values;
}

my @rows    = map { @{ $received{$_} } } 'row', 'row_too', 'bulk';
my @ids     = (@rows, @{ $received{bare} });
my @tickets = map { @{ $received{$_} } } 'invoice', 'ticket';
my @leased  = map { @{ $received{$_} } } 'segment', 'segment2';
is(duplicates(@ids), 0, 'none of ' . @ids . ' IDs comes twice');
is(duplicates(@tickets), 0, 'none of ' . @tickets . ' tickets');
is(duplicates(@leased), 0, 'none of ' . @leased . ' tickets of segments');
is(missing('insta5.photos', @rows), 0, 'none of ' . @rows . ' rows is missing');
is(missing('invoices', @{ $received{invoice} }), 0,
	'none of ' . @{ $received{invoice} } . ' rows with tickets');
for my $name ('row', 'row_too', 'bulk', 'bare', 'invoice', 'ticket')
{
	is((grep { $received{$name}[$_] <= $received{$name}[ $_ - 1 ] } 1 .. $#{ $received{$name} }), 0,
		"the client \"$name\" receives them in order");
}
for my $name (sort keys %statements)
{
	is(join('', grep { /ERROR: / && !/read-only transaction/ } split /^/,
		slurp_file("$dir/$name.err")), '',
		"the client \"$name\" receives them in order, and no statement of the client \"$name\""
		  . " fails");
}

# the seconds between IDs
my @times = sort { $a <=> $b } map { (($_ >> 23) + 1314220021721) / 1000 } @rows;
for my $case ([ 'switchover', $switchover_at, $kill_at ], [ 'kill -9', $kill_at, 'inf' ])
{
	my ($name, $from, $to) = @$case;
	diag sprintf '%s: longest gap %.1f s', $name,
		max map { $times[$_] - $times[ $_ - 1 ] }
		grep { $times[$_] >= $from && $times[ $_ - 1 ] < $to } 1 .. $#times;
}
diag @ids . ' IDs, ' . @tickets . ' tickets and ' . @leased . ' of segments received; ' . @rows
	. ' rows';

done_testing();
