# Servers without the library of instaid, on which the SQL edition is installed by a
# role that is no superuser, and what clients received from them.
#
# packages: libipc-run-perl

package SqlEdition;

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(sleep);

# Start a server that has no instaid, with these settings.  A Clock can come before them.
# The role dba owns what is installed; the role app uses it.
sub server
{
	my ($name, @settings) = @_;
	my $clock = ref $settings[0] ? shift @settings : undef;
	my $node  = PostgreSQL::Test::Cluster->new($name, install_path => $ENV{INSTAID_PLAIN});
	# the roles may connect
	$node->init(allows_streaming => 1, auth_extra => [ '--create-role', 'dba', '--create-role',
		'app' ]);
	$node->append_conf('postgresql.conf', "$_\n")
	  for 'log_statement = none', 'max_connections = 120', 'max_prepared_transactions = 5',
		# eviction of a dirty page flushes WAL
		'shared_buffers = 32MB',
		@settings;
	$clock ? $clock->start($node) : $node->start;
	$node->safe_psql('postgres', 'CREATE ROLE dba LOGIN; CREATE ROLE app LOGIN');
	return $node;
}

# The names of the files of all.sql, in its order
sub files { return slurp_file('sql-edition/all.sql') =~ /^\\ir (\S+)/mg }

# The version, and the release, which has a third number
sub version { return slurp_file('instaid.control') =~ /^default_version = '(.*)'/m }
sub release { return slurp_file('META.json') =~ /^   "version": "(.*)"/m }

# The text of a file, with those that it includes, and without other commands of psql
sub text
{
	my ($file) = @_;
	return slurp_file("sql-edition/$file") =~ s{^\\ir (\S+)\n}{text($1)}mger =~ s{^\\.*\n}{}mgr;
}

# What adopts, to be run after the other files
sub adopting { return text('adopting.sql') }

# The text of all files in a transaction, after a change: [ qr/what/, 'by what' ].
sub changed
{
	my (@changes) = @_;
	my $script = join '', "BEGIN;\n", (map { text($_) } files()), "COMMIT;\n";
	for my $change (@changes)
	{
		my ($from, $to) = @$change;
		$script =~ s/$from/$to/g or die "the script has no $from";
	}
	return $script;
}

# Create a database with a shard of dba, by the script.
sub install
{
	my ($node, $database, $script) = @_;
	$node->safe_psql('postgres',
		"CREATE DATABASE $database; GRANT CREATE ON DATABASE $database TO dba");
	$node->safe_psql($database, $script // changed() . adopting(),
		extra_params => [ '-U', 'dba' ]);
	$node->safe_psql($database, q{
		SELECT instaid.create_shard('insta5', 5);
		CREATE SEQUENCE insta5.steps;
		CREATE TABLE insta5.photos (began bigint DEFAULT nextval('insta5.steps'),
			id bigint DEFAULT insta5.next_id(), n integer);
		GRANT USAGE ON SCHEMA insta5 TO app;
		GRANT USAGE ON SEQUENCE insta5.steps TO app;
		GRANT INSERT, SELECT ON insta5.photos TO app;
		GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA insta5 TO app;}, extra_params => [ '-U', 'dba' ]);
	return;
}

# What statements of app return, and the SQLSTATEs of their errors
sub as_app
{
	my ($node, $database, $sql) = @_;
	my ($out, $err) = ('', '');
	$node->psql($database, "\\set VERBOSITY sqlstate\n$sql", extra_params => [ '-U', 'app' ],
		stdout => \$out, stderr => \$err, on_error_stop => 0, on_error_die => 0);
	return join ' ', grep { /\S/ } split /\s+/, $out . ' ' . $err =~ s/psql:\S+ ERROR: +//gr;
}

# Start sessions of app.  Each repeats its statements, in turn, until the returned object's
# stop() is called, and reconnects when it is disconnected.  A statement prints lines
#
#	began id ended
#
# where "began" and "ended" are values of a sequence that were taken before and after the ID.
my $started = 0;

sub sessions
{
	my ($class, $node, $database, $count, @statements) = @_;
	my $self = bless { node => $node, dir => PostgreSQL::Test::Utils::tempdir . '/storm'
		. ++$started,
		files => [], psql => [] }, $class;
	mkdir $self->{dir};
	for my $i (0 .. $count - 1)
	{
		# each session begins with another statement
		my @turns = map { $statements[ ($i + $_) % @statements ] } 0 .. $#statements;
		my $file = "$self->{dir}/$i";
		push @{ $self->{files} }, $file;
		local ($ENV{STATEMENTS}, $ENV{OUTPUT}, $ENV{STOP}) = (join("\n", @turns), $file,
			"$self->{dir}/stop");
		local ($ENV{CONNECTION}, $ENV{PSQL}) = ($node->connstr($database) . ' user=app',
			$node->installed_command('psql'));
		push @{ $self->{psql} }, IPC::Run::start([ 'sh', '-c', q{
			while [ ! -e "$STOP" ]; do
				{ while [ ! -e "$STOP" ]; do echo "$STATEMENTS" || exit; done; } 2>/dev/null |
					"$PSQL" -XqAt -F ' ' -d "$CONNECTION" >>"$OUTPUT" 2>>"$OUTPUT.err"
				sleep 0.01
			done} ]);
	}
	return $self;
}

# About how many bytes the sessions have received by now
sub received
{
	my ($self) = @_;
	my $bytes = 0;
	$bytes += -s $_ // 0 for @{ $self->{files} };
	return $bytes;
}

# Stop the sessions, and wait for them.  Statements that psql has read already are left out.
# Nothing is sent to a server that was killed: its psql can end before it has read the
# statement, which IPC::Run takes for an error.
sub stop
{
	my ($self) = @_;
	append_to_file("$self->{dir}/stop", '');
	while (grep { $_->pumpable } @{ $self->{psql} })
	{
		$self->{node}->psql('postgres',
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'")
		  if defined $self->{node}{_pid};
		sleep(0.05);
		$_->reap_nb for @{ $self->{psql} };
	}
	$_->finish for @{ $self->{psql} };
	return $self;
}

# The SQLSTATEs and messages of errors other than the expected ones
sub errors
{
	my ($self, $expected) = @_;
	my %seen;
	for my $file (@{ $self->{files} })
	{
		$seen{$_}++ for grep { !/$expected/ }
		  map { /^(?:psql:\S+ )?(?:ERROR|FATAL|PANIC):\s*(.*)/ }
		  split /\n/, slurp_file("$file.err");
	}
	return join "\n", sort keys %seen;
}

# What is wrong with the IDs: how many there are, came twice, are not above all IDs that
# were received before they were asked for (in the same session and in others), and how many
# the fullest millisecond has.  The IDs of earlier sessions count, too.
sub findings
{
	my ($self, @earlier) = @_;
	my %sum = (count => 0, twice => 0, inverted => 0, most => 0);
	my $dir = $self->{dir};
	local $ENV{LC_ALL} = 'C';
	# a session that was killed may have left half a line
	my $all = "$dir/all";
	my $files = join ' ', map { "$_->{dir}/[0-9]*" } $self, @earlier;
	system(qq{cat $files | grep -E '^[0-9]+ [0-9]{18,19} [0-9]+\$' >$all});
	open my $ids, '-|', 'sort', '-k2,2n', $all or die $!;
	my ($last, $ms, $in_ms) = (-1, -1, 0);
	while (<$ids>)
	{
		my $id = (split)[1];
		$sum{count}++;
		$sum{twice}++ if $id == $last;
		$last = $id;
		($ms, $in_ms) = ($id >> 23, 0) if $id >> 23 != $ms;
		$sum{most} = $in_ms if ++$in_ms > $sum{most};
	}
	close $ids;
	open my $began, '-|', 'sort', '-k1,1n', $all or die $!;
	open my $ended, '-|', 'sort', '-k3,3n', $all or die $!;
	my ($highest, @next) = (-1, split ' ', <$ended> // '');
	while (<$began>)
	{
		my ($step, $id) = split;
		while (@next && $next[2] < $step)
		{
			$highest = $next[1] if $next[1] > $highest;
			@next = split ' ', <$ended> // '';
		}
		$sum{inverted}++ if $id <= $highest;
	}
	return \%sum;
}

1;
