# The commands of docs/moving-by-hand.md that move a whole database with the sequence
# synchronization of PostgreSQL 19, run on two servers while clients insert: no row is
# lost, and no ID and no ticket comes twice.  The last tests show why these commands are
# not for a single shard.
# in: newest

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;
use Docs;

plan skip_all => 'sequence synchronization needs PostgreSQL 19'
	if qx(pg_config --version) =~ /(\d+)/ && $1 < 19;

my $section = 'A whole database with PostgreSQL 19';
# shard 5, shard 6, the shard of the node, and tickets
my @statements = (
	('SET ROLE app; INSERT INTO insta5.photos DEFAULT VALUES RETURNING id;') x 3,
	'SET ROLE app; SELECT insta6.next_id();',
	'SET ROLE app; SELECT instaid.next_id();',
	'SET ROLE app; INSERT INTO invoices DEFAULT VALUES RETURNING id;',
	q{SET ROLE app; SELECT instaid_tickets.next('invoice');});

@Clients::extensions = ('instaid', 'instaid_tickets');
my $node_shard = 'instaid.node_shard_id = 9';
my $source = Clients::server('source', { allows_streaming => 'logical' }, $node_shard);
# tickets have as many digits as IDs
$source->safe_psql('postgres', q{
	CREATE ROLE app LOGIN;
	SELECT instaid.create_shard('insta5', 5), instaid.create_shard('insta6', 6);
	SELECT instaid_tickets.create('public.invoice', 2, 3, 1000000000000000000);
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
	CREATE TABLE invoices (id bigint PRIMARY KEY DEFAULT instaid_tickets.next('invoice'));
	GRANT USAGE ON SCHEMA insta5, insta6 TO app;
	GRANT USAGE ON ALL SEQUENCES IN SCHEMA insta5, insta6, instaid, public TO app;
	GRANT SELECT, INSERT ON insta5.photos, invoices TO app;
	INSERT INTO insta5.photos (n) SELECT generate_series(1, 10000);});
my $target = PostgreSQL::Test::Cluster->new('target');
$target->init;
$target->append_conf('postgresql.conf', "wal_retrieve_retry_interval = 100ms\n$node_shard\n");
$target->start;
$target->safe_psql('postgres', 'CREATE ROLE app LOGIN');

my $clients = Clients->start($source, @statements);
sleep(0.5);
my ($refused, @as_app) = ('', on_error_stop => 0, connstr => $target->connstr('postgres')
	. ' user=app');
for my $block (moving_blocks($section))
{
	$block->{text} =~ s/DATABASE app/DATABASE postgres/;
	follow([$block], source => $source, target => $target);
	$refused .= ($target->psql('postgres', 'SELECT insta6.next_id()', @as_app))[2]
		if $block->{language} eq 'sh';
}
is($clients->finish, '', 'no statement fails before the switch');
like($refused, qr/^(.*FATAL:  too many connections for database "postgres"\n?)+\z/,
	'a client that comes too early to the target is refused');
my $after = Clients->start($target, @statements);
sleep(0.5);
is($after->stop, '', 'clients go on at the target');

for my $case ([ 'IDs of shard 5', 0, 2 ], [ 'IDs of shard 6', 3, 3 ], [ 'IDs of the node', 4, 4 ],
	[ 'tickets', 5, 6 ])
{
	my ($what, $from, $to) = @$case;
	my @old_files = ($clients->files)[ $from .. $to ];
	my @new_files = ($after->files)[ $from .. $to ];
	my $old = Clients::summary(@old_files);
	my $new = Clients::summary(@new_files);
	is(Clients::summary(@old_files, @new_files)->{duplicates}, 0,
		"none of $old->{count} and $new->{count} $what comes twice");
	cmp_ok($new->{first}, '>', $old->{last},
		"none of $old->{count} and $new->{count} $what comes twice, and the target's are above"
		  . " the source's");
	is((grep { !Clients::in_order($_) } @old_files, @new_files), 0,
		"none of $old->{count} and $new->{count} $what comes twice, in order for each client");
	diag sprintf '%s: %d and %d, none for %.1f s', $what, $old->{count}, $new->{count},
	(($new->{first} >> 23) - ($old->{last} >> 23)) / 1000 if $to < 5;
}
for my $case ([ 'insta5.photos', 0, 1, 2 ], [ 'invoices', 5 ])
{
	my ($table, @of) = @$case;
	my %there = map { $_ => 1 } split /\n/, $target->safe_psql('postgres', "SELECT id FROM $table");
	my @rows = map { split /\n/ } $source->safe_psql('postgres', "SELECT id FROM $table"),
	map { slurp_file($_) } ($clients->files)[@of];
	is((grep { !$there{$_} } @rows), 0, "no row of $table is lost");
}
is(join(' ', map { $_->safe_psql('postgres',
	q{SELECT string_agg(shard_id || '|' || frozen, ' ' ORDER BY shard_id)
		FROM instaid.shards}) } $source, $target),
	'5|true 6|true 9|true 5|false 6|false 9|false',
	'the shards are frozen at the source, and not at the target');

# Two reasons to move a single shard in another way
my $live = Clients::server('live');
$live->safe_psql('postgres', q{
	SELECT instaid.create_shard('insta5', 5), instaid.freeze_shard('insta5'),
		instaid.create_shard('insta6', 7);
	SELECT setval('insta6.table_id_seq', 8000000000000000);
	SELECT instaid_tickets.create('public.invoice', 2, 3, 1000000000000000000);});
$source->safe_psql('postgres', 'CREATE PUBLICATION sequences FOR ALL SEQUENCES');
$source->safe_psql('postgres', q{SELECT instaid.thaw_shard('insta6')});
my $connection = $source->connstr('postgres') =~ s/'//gr;
$live->safe_psql('postgres', "CREATE SUBSCRIPTION sequences CONNECTION '$connection'
	PUBLICATION sequences");
$live->poll_query_until('postgres',
	q{SELECT srsubstate = 'r' FROM pg_subscription_rel
		WHERE srrelid = 'insta6.table_id_seq'::regclass}) or die;
cmp_ok($live->safe_psql('postgres', 'SELECT last_value FROM insta6.table_id_seq'), '<',
	8000000000000000,
	'a sequence of another shard is set back');
$live->wait_for_log(qr/mismatched or renamed sequences? on subscriber \(.*"insta5\.table_id_seq"/);
is($live->safe_psql('postgres',
	q{SELECT srsubstate FROM pg_subscription_rel WHERE srrelid = 'insta5.table_id_seq'::regclass}),
	'i',
	'a frozen shard is not synchronized');
$live->safe_psql('postgres', 'DROP SUBSCRIPTION sequences');

$_->stop for $source, $target, $live;
done_testing();
