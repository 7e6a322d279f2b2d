# The fields of a million random IDs, and of all combinations of the fields'
# boundaries, are compared with a model in Perl, in which an ID is a string of 64
# binary digits.  pg_regress has only the server's arithmetic, and its expected output
# cannot have random numbers.
#
# INSTAID_TEST_SEED repeats a run whose log shows this seed.
# not in: version assert

use strict;
use warnings;
no warnings 'portable';    # numbers of 64 bits

use List::Util qw(uniq);
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;

my $random = 1_000_000;
my @widths = (41, 13, 10);    # ms, shard ID, sequence

# A line for COPY: an ID, and its three fields.
sub row
{
	my $bits = sprintf '%041b%013b%010b', @_;
	die "not 64 bits: @_" if length $bits != 64;
	# two's complement
	my $id = $bits =~ /^1/ ? -oct('0b' . $bits =~ tr/01/10/r) - 1 : oct "0b$bits";
	return join("\t", $id, @_) . "\n";
}

# The powers of two, the greatest number of this width, and the neighbours of each.
sub boundaries
{
	my ($width) = @_;
	return uniq grep { $_ >= 0 && $_ < 2**$width }
	  map { ($_ - 1, $_, $_ + 1) } (map { 2**$_ } 0 .. $width), 2**$width - 1;
}

# The model itself.
is(row(477017388785, 854, 954), "4001511883701836730\t477017388785\t854\t954\n",
	"model: an ID of Instagram's");
is((split /\t/, row(2**40 - 1, 8191, 1023))[0], '9223372036854775807',
	'model: the last positive ID');
is((split /\t/, row(2**40, 0, 0))[0], '-9223372036854775808', 'model: the first negative ID');
is((split /\t/, row(2**41 - 1, 8191, 1023))[0], '-1', 'model: the last ID');

my $seed = $ENV{INSTAID_TEST_SEED} // time() ^ $$;
note "INSTAID_TEST_SEED=$seed";
srand $seed;

my $file = PostgreSQL::Test::Utils::tempdir . '/ids';
my $rows = $random;
open my $copy, '>', $file or die $!;
print $copy row(map { int rand 2**$_ } @widths) for 1 .. $random;
for my $ms (boundaries(41))
{
	for my $shard_id (boundaries(13))
	{
		for my $sequence (boundaries(10))
		{
			print $copy row($ms, $shard_id, $sequence);
			$rows++;
		}
	}
}
close $copy or die $!;

my $node = Clients::server('main');
$node->safe_psql('postgres', qq{
	CREATE UNLOGGED TABLE ids (id bigint, ms bigint, shard_id integer, sequence integer);
	\\copy ids FROM '$file'
});
is($node->safe_psql('postgres', 'SELECT count(*) FROM ids'), $rows, "$rows IDs");
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM ids WHERE id < 0'),
	'>', $random / 3, "$rows IDs, and many are negative");

# Conditions that no row may fulfil.  EPOCH is replaced by an argument, or by nothing
# for the default epoch.  created_at is the time by the model.
my @wrong = (
	[ 'make_id', 'instaid.make_id(created_at, shard_id, sequence EPOCH) IS DISTINCT FROM id' ],
	[ 'make_id, 999 us later',
		q{instaid.make_id(created_at + interval '999 us', shard_id, sequence EPOCH) IS DISTINCT
			FROM id} ],
	[ 'make_id, sequence modulo 1024',
		'instaid.make_id(created_at, shard_id, sequence + 1024 * ms EPOCH) IS DISTINCT FROM id' ],
	[ 'extract_timestamp', 'instaid.extract_timestamp(id EPOCH) IS DISTINCT FROM created_at' ],
	[ 'extract_shard_id', 'instaid.extract_shard_id(id) IS DISTINCT FROM shard_id' ],
	[ 'decode', 'instaid.decode(id EPOCH) IS DISTINCT FROM ROW(created_at, shard_id, sequence)' ],
);

# The other epoch is before 1970, where ticks begin, and before 2000, where
# PostgreSQL's time begins.
for my $epoch ('2011-08-24 21:07:01.721+00', '1969-07-20 20:17:40.123+00')
{
	my $argument = $epoch =~ /^2011/ ? '' : ", '$epoch'";
	# the number of wrong rows, and one of them
	my $columns = join ', ', map {
		my $where = $_->[1] =~ s/ EPOCH/$argument/r;
		"concat_ws(', ID ', count(*) FILTER (WHERE $where), min(id) FILTER (WHERE $where))"
	} @wrong;
	my @found = split /\|/, $node->safe_psql('postgres', qq{
		SELECT $columns
		FROM (SELECT *, '$epoch'::timestamptz + ms * interval '1 ms' AS created_at
			FROM ids OFFSET 0) AS i});

	is($found[$_], '0', "epoch $epoch: $wrong[$_][0]") for 0 .. $#wrong;
}

$node->stop;
done_testing();
