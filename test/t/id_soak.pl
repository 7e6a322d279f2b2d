# Sixteen sessions take IDs from one sequence for a long time.  The server crashes ten
# times under this load, and its clock is stepped before each restart.  Each ID that a
# session received is checked: none comes twice, they are in order, and their time is no
# further ahead than promised.  id_concurrency.pl and id_crash.pl have more ways to take
# IDs and to crash, and fewer IDs.
#
# only with FULL=1: 20 million IDs, or INSTAID_SOAK_IDS
# packages: gcc libc6-dev

use strict;
use warnings;

use List::Util qw(max sum);
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

use Clients;
use Clock;

my $ids    = $ENV{INSTAID_SOAK_IDS} || 20_000_000;
my $rounds = 10;
# how many seconds the clock is moved before each round
my @steps = (0, 2, -3, 0.5, -1, 3, -2, -0.5, 1, -4);

my $clock = Clock->new;
my $node  = Clients::server('main', 'client_min_messages = error');
$node->safe_psql('postgres', q{
	SELECT instaid.create_shard('insta5', 5);
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id());
});
$node->stop;

my @statements = (
	('COPY (SELECT insta5.next_ids(20000)) TO STDOUT;') x 10,
	('COPY (SELECT insta5.next_id() FROM generate_series(1, 2000)) TO STDOUT;') x 4,
	'INSERT INTO insta5.photos DEFAULT VALUES RETURNING id;', 'SELECT insta5.next_id();');

# The time of an ID in milliseconds since 1970
sub ms
{
	my ($id) = @_;
	return ($id >> 23) + 1314220021721;
}

# Bytes at the end of a file that has lines of 20
sub last_line
{
	my ($file) = @_;
	open my $lines, '<', $file or die $!;
	my $size = -s $lines;
	return 0 if $size < 20;
	seek $lines, $size - $size % 20 - 20, 0;
	read $lines, my $line, 19;
	return $line;
}

# Load until the sessions have received this many IDs, and crash the server.  Returns the
# files, and how often an ID was not above one that some session had received before.
sub load
{
	my ($wanted) = @_;
	my $taken    = Clients::session($node);
	my $clients  = Clients->start($node, @statements);
	my @files    = $clients->files;
	my $late     = 0;
	do
	{
		sleep 0.5;
		my $received = max(map { last_line($_) } @files);
		$late++ if $taken->('SELECT insta5.next_id()') <= $received;
	} until sum(map { (-s $_) / 20 } @files) >= $wanted;
	$node->stop('immediate');
	$clients->finish;
	return (\@files, $late);
}

my ($offset, $highest, $last, $count, $seconds, $most) = (0) x 6;
for my $round (1 .. $rounds)
{
	$offset += $steps[ $round - 1 ];
	$clock->set($offset);
	$clock->start($node);
	my $began = time;
	my ($files, $late) = load($ids / $rounds);
	$seconds += time - $began;
	# what the server's clock has read at most
	$highest = max($highest, (time + $offset) * 1000);

	my $unsorted = grep { !Clients::in_order($_) } @$files;
	my $sum      = Clients::summary(@$files);
	unlink @$files;
	# a crash sets the sequence ahead by a second at most, and load by 1,064 ms
	my $start = max($highest, $last ? ms($last) + 1001 : 0);
	my $ahead = ms($sum->{last}) - max($highest, ms($sum->{first}));

	my $problems = '';
	$problems .= "$sum->{duplicates} IDs came twice\n" if $sum->{duplicates};
	$problems .= "$unsorted sessions have IDs out of order\n" if $unsorted;
	$problems .= "$late IDs are below one that was received before\n" if $late;
	$problems .= "$sum->{first} came after $last\n" if $sum->{first} <= $last;
	$problems .= "$sum->{most} IDs in a millisecond\n" if $sum->{most} > 1024;
	$problems .= "$sum->{first} is too far ahead\n" if ms($sum->{first}) > $start;
	$problems .= "$sum->{last} is $ahead ms ahead\n" if $ahead > 1064;
	is($problems, '', "round $round, clock at $offset s: $sum->{count} IDs");

	$most  = max($most, $ahead);
	$last  = $sum->{last};
	$count += $sum->{count};
}
cmp_ok($count, '>=', $ids, "$count IDs");
Clients::report(sprintf '%d IDs of one sequence, by %d sessions, in %d s', $count,
	@statements + 0, $seconds);
Clients::report("$rounds crashes, and a step of the clock after each, by -4 to 3 s");
Clients::report(sprintf
	'no ID twice, each in order, none more than %d ms after the latest clock', $most);

done_testing();
