# A server with instaid or with another extension of this project, and clients that request
# values from it and note every value that they receive, committed or not.
#
# packages: libipc-run-perl

package Clients;

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More ();
use Time::HiRes qw(sleep);

use Docs ();

# what is created in the database postgres of each server
our @extensions = ('instaid');

my $started = 0;

# Start a server with these settings, and create the extensions there.
# A hash before the settings is for the methods new and init of the server.
sub server
{
	my ($name, @settings) = @_;
	my %options = ref $settings[0] ? %{ shift @settings } : ();
	my $node = PostgreSQL::Test::Cluster->new($name, %options);
	$node->init(%options);
	# PostgreSQL::Test permits ten, and sessions may live a little longer than their clients
	$node->append_conf('postgresql.conf', "$_\n")
	  for 'log_statement = none', 'max_connections = 100', @settings;
	$node->start;
	$node->safe_psql('postgres', "CREATE EXTENSION $_") for @extensions;
	return $node;
}

# Kill all processes of a server at once, as a power failure does.
sub crash
{
	my ($node) = @_;
	my ($postmaster) = split /\n/, slurp_file($node->data_dir . '/postmaster.pid');
	kill 'STOP', $postmaster;		# so that it starts no process
	sleep(0.001) until slurp_file("/proc/$postmaster/stat") =~ /^\d+ \(.*\) T/;
	my @children = split ' ', slurp_file("/proc/$postmaster/task/$postmaster/children");
	kill 'KILL', @children, $postmaster;
	# the next server refuses to start while a child lives, or seems to
	for my $pid (@children, $postmaster)
	{
		sleep(0.01) while (eval { slurp_file("/proc/$pid/stat") } // '') =~ /^\d+ \(.*\) [^ZX]/;
	}
	unlink $node->data_dir . '/postmaster.pid', $node->host . '/.s.PGSQL.' . $node->port . '.lock';
	$node->{_pid} = undef;
	return;
}

# Open a session that stays open.  Returns a function that runs a statement there and
# returns what it prints.
sub session
{
	my ($node, $database) = @_;
	my ($in, $out) = ('', '');
	my $psql = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr($database // 'postgres') ],
		'<', \$in, '>', \$out, '2>&1', IPC::Run::timeout(180));
	return sub {
		my ($sql) = @_;
		($in, $out) = ("$sql;\n\\echo done\n", '');
		$psql->pump until $out =~ /^done$/m || !$psql->pumpable;
		return $out =~ s/^done\n//mr =~ s/\n\z//r;
	};
}

# Start a psql for each statement.  It repeats the statement until the server is gone
# or stop() is called, and notes what it receives.  It ends at the first error, unless
# a hash { retry => 1 } comes before the statements.
sub start
{
	my ($class, $node, @statements) = @_;
	my %options = ref $statements[0] ? %{ shift @statements } : ();
	my $self = bless {
		node => $node,
		name => 'clients ' . ++$started,
		dir  => PostgreSQL::Test::Utils::tempdir,
		psql => []
	}, $class;

	for my $i (0 .. $#statements)
	{
		push @{ $self->{psql} },
		  IPC::Run::start(
			[ 'yes', $statements[$i] =~ s/\s+/ /gr ], '|',
			[ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=' . ($options{retry} ? 0 : 1), '-d',
				$node->connstr('postgres') . " application_name='$self->{name}'" ],
			'>', $self->file($i), '2>', $self->file($i) . '.err');
	}
	$node->poll_query_until('postgres',
		"SELECT count(*) FROM pg_stat_activity WHERE application_name = '$self->{name}'",
		scalar @statements) or die 'the clients do not connect';
	return $self;
}

sub file
{
	my ($self, $i) = @_;
	return "$self->{dir}/$i";
}

# The files with what each client has received, one line per row.
sub files
{
	my ($self) = @_;
	return map { $self->file($_) } 0 .. $#{ $self->{psql} };
}

# Disconnect the clients; return the errors of their statements.
sub stop
{
	my ($self) = @_;
	$self->{node}->safe_psql('postgres',
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE application_name = '$self->{name}'");
	return $self->finish;
}

# Wait for clients whose server is gone; return the errors of their statements.
sub finish
{
	my ($self) = @_;
	eval { $_->finish } for @{ $self->{psql} };
	return join '', map { grep { /ERROR:/ } split /^/, slurp_file("$_.err") } $self->files;
}

# Are the IDs of a file in order, and different?  All IDs have 19 digits until the end
# of the format, so their order as text is right.
sub in_order
{
	my ($file) = @_;
	local $ENV{LC_ALL} = 'C';
	return system('sort', '-c', '-u', $file) == 0;
}

# Count the IDs of files that are in order: all IDs, those that came twice, and those
# of the fullest millisecond; and find the first ID and the last.
sub summary
{
	my (@files) = @_;
	my %sum = (count => 0, duplicates => 0, first => 0, last => 0, most => 0);
	my ($ms, $in_ms) = (-1, 0);

	local $ENV{LC_ALL} = 'C';
	open my $sorted, '-|', 'sort', '-m', @files or die $!;
	while (my $id = <$sorted>)
	{
		chomp $id;
		$sum{first} = $id unless $sum{count}++;
		$sum{duplicates}++ if $id == $sum{last};
		$sum{last} = $id;
		if ($id >> 23 != $ms)
		{
			$ms    = $id >> 23;
			$in_ms = 0;
		}
		$sum{most} = $in_ms if ++$in_ms > $sum{most};
	}
	close $sorted or die "sort: $?";
	return \%sum;
}

# Start pgbouncer in transaction mode, with four sessions of a database.  It listens on a socket in
# a directory of its own, under a user without a password.  Returns its process and where to
# connect.
sub pgbouncer
{
	my ($node, $database, $user) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir_short;
	append_to_file("$directory/users", qq("$user" ""\n));
	append_to_file("$directory/pgbouncer.ini", "
[databases]
$database = host=${\ $node->host} port=${\ $node->port}
[pgbouncer]
listen_addr =
unix_socket_dir = $directory
auth_type = trust
auth_file = $directory/users
pool_mode = transaction
default_pool_size = 4
logfile = $directory/log
");
	my $process = IPC::Run::start([ 'pgbouncer', '-q', "$directory/pgbouncer.ini" ],
		'<', '/dev/null', '>&', "$directory/output");
	my $pool = "host=$directory port=6432 dbname=$database user=$user";
	$node->poll_query_until($database, 'SELECT 1', '1', connstr => $pool)
	  or die slurp_file("$directory/output");
	return ($process, $pool);
}

# The HINTs in what psql prints, or in a log
sub hints
{
	my ($text) = @_;
	return join "\n", $text =~ /\bHINT:  (.*)$/mg;
}

# A line of the results of a run, which RESULT keeps (see test/lib/run)
sub report
{
	my ($line) = @_;
	Test::More::note($line);
	append_to_file("$ENV{SCRATCH}/result", "$line\n");
	return;
}

# The shard IDs that two of these servers use, by the loop of docs/clusters.md
sub shards_on_two_servers
{
	my @connections = map { "'$_'" } @_;
	my ($loop) = map { $_->{text} } grep { $_->{language} eq 'sh' }
	  Docs::section_blocks('docs/clusters.md', 'Find a shard ID that two servers use');
	$loop =~ s/in 'host=one .*?; do/in @connections; do/ or die $loop;
	my $output = '';
	my $ok = IPC::Run::run([ 'sh', '-c', $loop ], '<', \undef, '>&', \$output);
	return ($ok ? 'success' : 'failure') . ": $output";
}

1;
