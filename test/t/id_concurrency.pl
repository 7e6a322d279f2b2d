# Many sessions take IDs from one sequence at once, and note every ID that they
# receive.  pg_regress has only one session.  A duplicate needs two sessions that are
# descheduled at the wrong moment.  This takes millions of IDs, and more sessions
# than processors.  The control shows that the IDs are enough.
#
# FULL=1 adds runs of 20 million IDs, instead of two million
# INSTAID_TEST_IDS sets another number.
# not in: version assert

use strict;
use warnings;

use IPC::Run ();
use POSIX qw(ceil);
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;

my $ids      = $ENV{INSTAID_TEST_IDS} || ($ENV{FULL} ? 20_000_000 : 2_000_000);
my $sessions = 16;
my $rows     = 2000;

my $node = Clients::server('main', 'client_min_messages = error');
$node->safe_psql('postgres', q{
	SELECT instaid.create_shard('insta5', 5);
	CREATE SEQUENCE control_seq;
	-- the ID for a tick that core's nextval returned
	CREATE FUNCTION id_of(tick bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
		RETURN ((tick >> 10) - 1314220021721 << 23) | (5 << 10) | (tick & 1023);
});

# Statements of a session.  ROWS is replaced by the number of rows.
my $next_id = 'SELECT insta5.next_id() FROM generate_series(1, ROWS)';
my $next_ids = 'SELECT insta5.next_ids(ROWS)';
my $nextval =
  q{SELECT CASE WHEN n % 2 = 0 THEN insta5.next_id() ELSE id_of(nextval('insta5.table_id_seq')) END
    FROM generate_series(1, ROWS) AS n};
my $control = q{
	SELECT (((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23)
		| (5 << 10) | (nextval('control_seq') % 1024)
	FROM generate_series(1, ROWS)};

my @runs = (
	# name, IDs, rows per statement, statements that take turns
	[ 'rows of a statement', $ids, $rows, $next_id ],
	[ 'next_ids and next_id', $ids, $rows, $next_ids, $next_id ],
	[ 'nextval and next_id', $ids, $rows, $nextval, $next_id ],
	[ 'single rows', $ids / 40, 1, $next_id ],
);

my $dir = PostgreSQL::Test::Utils::tempdir;

# Run the statements in all sessions; return the files with what they received.
sub load
{
	my ($count, $rows, @statements) = @_;
	my (@files, @psql);

	s/ROWS/$rows/ for @statements;
	open my $script, '>', "$dir/script" or die $!;
	print $script "COPY ($statements[$_ % @statements]) TO STDOUT;\n" =~ s/\n(?=.)/ /gr
	  for 1 .. ceil($count / $sessions / $rows);
	close $script;

	for my $session (1 .. $sessions)
	{
		push @files, "$dir/session$session";
		push @psql,
		  IPC::Run::start(
			[ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'),
				'-f', "$dir/script" ],
			'>', $files[-1]);
	}
	$_->finish or die "psql: $?" for @psql;
	return @files;
}

for my $run (@runs)
{
	my ($name, $wanted, $rows, @statements) = @$run;

	my @files = load($wanted, $rows, @statements);

	is(scalar(grep { !Clients::in_order($_) } @files), 0,
		"$name: the IDs of each session increase");
	my $sum = Clients::summary(@files);
	cmp_ok($sum->{count}, '>=', $wanted, "$name: $sum->{count} IDs");
	is($sum->{duplicates}, 0, "$name: no ID came twice");
	cmp_ok($sum->{most}, '<=', 1024, "$name: $sum->{most} IDs in the fullest ms");
	unlink @files;
}

# The control: the same arithmetic over core's nextval fails the same check.
my @files = load(2_000_000, $rows, $control);
system('sort', '-o', $_, $_) == 0 or die 'sort' for @files;
my $sum = Clients::summary(@files);
cmp_ok($sum->{duplicates}, '>', 0,
	"control: $sum->{duplicates} of $sum->{count} IDs over nextval came twice");

$node->stop;
done_testing();
