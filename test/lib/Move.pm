# The program instaid-move for its tests: run as users run it, or with a command after a step.
#
# packages: libipc-run-perl

package Move;

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More ();

my $stepping;

# The program, compiled with test/lib/move_step.c
sub stepping
{
	return $stepping if $stepping;
	$stepping = PostgreSQL::Test::Utils::tempdir . '/instaid-move';
	chomp(my ($include, $lib) = map { `$ENV{PG_CONFIG} $_` } '--includedir', '--libdir');
	system('cc', '-O1', '-g', '-D_GNU_SOURCE', '-DINSTAID_MOVE_STEP=move_step', "-I$include",
		glob('move/*.c'), 'test/lib/move_step.c', "-L$lib", '-lpq', '-o', $stepping) == 0
	  or die 'cannot compile';
	return $stepping;
}

# The names of the steps, after which it can be killed: those of the table of states, and parts of
# them
sub steps
{
	my %names = map { $_ => 1 } `instaid-move --states` =~ /`([^`-][^`]*)`:/g,
	  map { slurp_file($_) =~ /\bkill_point\("([^"]+)"\)/g } glob('move/*.c');
	return sort keys %names;
}

# The "next" lines and the cures that the program prints, whole, each below the suite that meets it,
# or below "sometimes", if that depends on time; %s is a value
my %next;
{
	my $suite;
	for (split /\n/, slurp_file('test/move_next.txt'))
	{
		if (/^(\w+):$/) { $suite = $1 }
		else { $next{$_} = $suite }
	}
}

# Each "next" line of what was printed is in the table.
my %met;
sub meets
{
	for my $line (map { /^  next: +(.*)/mg } @_)
	{
		my @known = grep { my $words = join '.+', map { quotemeta } split /%s/, $_, -1;
			$line =~ /^$words$/ } keys %next;
		$met{$_} = 1 for @known;
		Test::More::fail("not in move_next.txt: $line") unless @known;
	}
	return;
}

# Has this suite met what the table says of it, but for what another version prints?
sub is_all_met
{
	my (@others) = @_;
	my ($suite) = $0 =~ /(\w+)\.pl$/;
	my @missing = grep { my $line = $_; !grep { $line =~ /$_/ } @others }
	  grep { $next{$_} eq $suite && !$met{$_} } sort keys %next;
	return Test::More::is(join("\n", @missing), '',
		'each "next" line and each cure of the table was met');
}

# Run it.  A hash before the arguments names a step and the command that is run after it, which
# kills the program unless there is another.  Returns the exit status, -1 if it was killed, and what
# was printed to either output.
sub run
{
	my (@args) = @_;
	my %at = ref $args[0] ? %{ shift @args } : ();
	my ($out, $err) = ('', '');
	local $ENV{MOVE_AT} = $at{at} // '';
	local $ENV{MOVE_DO} = $at{do} // 'kill -9 $PPID';
	IPC::Run::run([ %at ? stepping() : 'instaid-move', @args ], '<', \undef, '>', \$out,
		'2>', \$err, IPC::Run::timeout(3600));
	my $rc = $? & 127 ? -1 : $? >> 8;
	meets("$out$err");
	Test::More::note("instaid-move @args", %at ? " at $at{at}" : '', ': ',
		$rc < 0 ? 'killed' : $rc, "\n$out$err") if $rc || $ENV{VERBOSE_MOVE};
	return ($rc, $out, $err);
}

# A query for what a move must not leave behind
our $left = q{
	SELECT 'slot ' || slot_name FROM pg_replication_slots WHERE database = current_database()
	UNION ALL SELECT 'publication ' || pubname FROM pg_publication WHERE pubname ~ '^instaid_move'
	UNION ALL SELECT 'subscription ' || subname FROM pg_subscription WHERE subdbid = (
		SELECT oid FROM pg_database WHERE datname = current_database())
	UNION ALL SELECT 'guard ' || tgrelid::regclass FROM pg_trigger
	WHERE tgname = 'instaid_move_guard'
	UNION ALL SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname ~ '^instaid_move'};

# Which of these servers have a shard of a database, and whether it is frozen there
sub places
{
	my ($db, @nodes) = @_;
	return join ' ', map { $_->safe_psql($db, q{SELECT string_agg(schema_name
		|| CASE WHEN frozen THEN ' frozen' ELSE '' END, ',' ORDER BY schema_name)
		FROM instaid.shards}) || '-' } @nodes;
}

1;
