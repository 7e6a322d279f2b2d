# docs/engines/plproxy.md, on two servers and a router: clients insert
# by user through the router, a shard moves to the other server meanwhile, as
# docs/moving-by-hand.md says, and the router finds each row by its ID.
#
# packages: postgresql-@PG@-plproxy

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;
use Docs;

# after an error, PL/Proxy connects again before the old session has ended
my %nodes =
  map { $_ => Clients::server($_, { allows_streaming => 'logical' }, 'max_connections = 100') }
  qw(one two router);
my @blocks = map { section_blocks('docs/engines/plproxy.md', $_) } 'PL/Proxy', 'Move a shard';
my $switch = pop @blocks;
$_->{text} =~ s/host=(\w+)\.example dbname=app/sprintf 'host=%s port=%s dbname=postgres',
	$nodes{$1}->host, $nodes{$1}->port/eg
  for @blocks, $switch;
# two servers with 32 shards each, and a table in each shard
for my $case ([ 'one', 0, 31 ], [ 'two', 32, 63 ])
{
	my ($name, $first, $last) = @$case;
	$nodes{$name}->safe_psql('postgres', qq{
		CALL instaid.create_shards('insta%s', $first, $last);
		CREATE ROLE app LOGIN;
		DO \$\$
		DECLARE s name;
		BEGIN
			FOR s IN SELECT schema_name FROM instaid.shards LOOP
				EXECUTE format('CREATE TABLE %1\$I.photos (
									id      bigint PRIMARY KEY DEFAULT %1\$I.next_id(),
									user_id bigint NOT NULL,
									caption text);
								GRANT USAGE ON SCHEMA %1\$I TO app;
								GRANT USAGE ON ALL SEQUENCES IN SCHEMA %1\$I TO app;
								GRANT SELECT, INSERT ON %1\$I.photos TO app', s);
			END LOOP;
		END \$\$;});
}
for my $block (@blocks)
{
	follow([ { %$block, server => $_ } ], %nodes)
	  for $block->{server} eq 'both' ? qw(one two) : $block->{server};
}

# Four clients of shard 5, and one of all shards
my @users = (5, 69, 133, 197, '(random() * 10000)::bigint');
my $clients = Clients->start($nodes{router}, { retry => 1 },
	map { "SET ROLE app; SELECT add_photo($_, 'sunset');" } @users);
my @files = $clients->files;

# Wait until each client has received some more IDs.
sub wait_for_ids
{
	my %size = map { $_ => -s $_ } @files;
	for (1 .. 1800)
	{
		return if !grep { -s $_ <= $size{$_} + 5000 } @files;
		sleep(0.1);
	}
	die 'the clients receive no IDs';
}

wait_for_ids();
follow([ moving_blocks($_) ], source => $nodes{one},
	target => $nodes{two})
  for 'Before', 'With logical replication';
my %old = map { $_ => 1 } split /\n/,
	$nodes{one}->safe_psql('postgres', 'SELECT id FROM insta5.photos');
follow([$switch], %nodes);
wait_for_ids();
like($clients->stop, qr/^(.*(shard insta5 is frozen|permission denied for table photos)\n)+\z/,
	'calls fail only while the shard is frozen');

# an ID of a request can have the number of another role's schema
$nodes{one}->safe_psql('postgres', q{
	CREATE SCHEMA insta5000; GRANT USAGE ON SCHEMA insta5000 TO PUBLIC;
	CREATE VIEW insta5000.photos AS SELECT 5000::bigint << 10 AS id, 'planted' AS caption;
	GRANT SELECT ON insta5000.photos TO PUBLIC});
is($nodes{router}->safe_psql('postgres', q{SET ROLE app;
	SELECT get_caption(5000::bigint << 10) IS NULL}), 't', 'no other schema is read');

is(scalar(grep { Clients::in_order($_) } @files[ 0 .. 3 ]), 4,
	'the IDs of each client of the shard increase');

my @received = map { split /\n/, slurp_file($_) } @files;
my %different = map { $_ => 1 } @received;
my @moved = sort { $a <=> $b } grep { ($_ >> 10 & 8191) == 5 } keys %different;
my $gap = 0;
for my $i (1 .. $#moved)
{
	my $ms = ($moved[$i] >> 23) - ($moved[ $i - 1 ] >> 23);
	$gap = $ms if $ms > $gap;
}
diag(@received . ' IDs, ' . @moved
	. " of the shard that moved; the longest time between two IDs of this shard: $gap ms");
is(scalar(keys %different), scalar(@received), 'no ID comes twice');
my ($first) = grep { !$old{$_} } @moved;
cmp_ok($first // 0, '>', (sort { $a <=> $b } keys %old)[-1],
	'the IDs of the new server are above those of the old server');

# also the rows whose commit no client saw
my @rows = keys %{ { %different, %old } };
is($nodes{router}->safe_psql('postgres', "SET ROLE app;
	SELECT count(*) FROM unnest('{" . join(',', @rows)
		. "}'::bigint[]) AS id WHERE get_caption(id) = 'sunset'"),
	scalar(@rows), 'no row is lost: the router finds each one by its ID');

$_->stop for values %nodes;
done_testing();
