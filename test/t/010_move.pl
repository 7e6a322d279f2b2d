# docs/moving-a-shard.md, done word for word, on two servers, while clients
# insert: no row is lost, and no ID comes twice.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;

my $page = slurp_file('docs/moving-a-shard.md');
my ($before, @ways) = $page =~ /^## Before\n(.*?)^## With pg_dump\n(.*?)^## With logical replication\n(.*)/ms;
my @statements = (
	('SET ROLE app; INSERT INTO insta5.photos DEFAULT VALUES RETURNING id;') x 3,
	'SET ROLE app; INSERT INTO insta5.likes (photo_id) SELECT min(id) FROM insta5.photos; SELECT insta5.next_id();');

sub node
{
	my ($name) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(allows_streaming => 'logical');
	$node->append_conf('postgresql.conf', "log_statement = none\n");
	$node->start;
	$node->safe_psql('postgres', 'CREATE ROLE app LOGIN');
	return $node;
}

# Do what a part of the page says.  What the shard is at the target after each
# command is noted.
my @frozen;
sub follow
{
	my ($text, %nodes) = @_;
	local $ENV{SOURCE} = $nodes{source}->connstr('postgres') =~ s/'//gr;
	local $ENV{TARGET} = $nodes{target}->connstr('postgres') =~ s/'//gr;
	while ($text =~ /^```(sh|sql) ?(\w*) ?(until empty)?\n(.*?)^```/msg)
	{
		my ($language, $where, $until_empty, $block) = ($1, $2, $3, $4);
		if ($language eq 'sh')
		{
			system('sh', '-ec', $block) == 0 or die "failed: $block";
			push @frozen, $nodes{target}->safe_psql('postgres', 'SELECT frozen FROM instaid.shards');
		}
		elsif ($until_empty)
		{
			for (1 .. 1800)
			{
				last if $nodes{$where}->safe_psql('postgres', $block) eq '';
				sleep(0.1);
			}
		}
		else
		{
			$nodes{$where}->safe_psql('postgres', $block);
		}
	}
	return;
}

for my $way (0, 1)
{
	my $name = (qw(pg_dump logical))[$way];
	my ($source, $target) = (node("source_$name"), node("target_$name"));
	$source->safe_psql('postgres', q{
		CREATE EXTENSION instaid;
		SELECT instaid.create_shard('insta5', 5);
		CREATE SEQUENCE insta5.likes_id_seq;
		CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
		CREATE TABLE insta5.likes (id bigint PRIMARY KEY DEFAULT insta5.next_id('insta5.likes_id_seq'),
			photo_id bigint REFERENCES insta5.photos);
		GRANT USAGE ON SCHEMA insta5 TO app;
		GRANT USAGE ON ALL SEQUENCES IN SCHEMA insta5 TO app;
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA insta5 TO app;
		INSERT INTO insta5.photos (n) SELECT generate_series(1, 10000);});

	my $clients = Clients->start($source, @statements);
	sleep(0.5);
	follow($before . $ways[$way], source => $source, target => $target);
	my $errors = $clients->finish;
	is($frozen[0], 't', "$name: it arrives frozen") if $way == 0;
	like($errors, qr/^(.*ERROR:  (shard insta5 is frozen|permission denied for .*)\n)+\z/, "$name: the switch stops the clients");
	my $rows = $target->safe_psql('postgres', 'SELECT count(*) FROM insta5.photos');
	my $after = Clients->start($target, @statements);
	sleep(0.5);
	is($after->stop, '', "$name: they go on at the target");

	my $old = Clients::summary($clients->files);
	my $new = Clients::summary($after->files);
	is(Clients::summary($clients->files, $after->files)->{duplicates}, 0,
		"$name: none of $old->{count} and $new->{count} IDs comes twice");
	cmp_ok($new->{first}, '>', $old->{last}, "$name: ... and they go on above");

	# what the source has, and what its clients had confirmed
	my %there = map { $_ => 1 } split /\n/, $target->safe_psql('postgres', 'SELECT id FROM insta5.photos');
	my @lost = grep { !$there{$_} } split(/\n/, $source->safe_psql('postgres', 'SELECT id FROM insta5.photos')),
	  map { split /\n/, slurp_file($_) } ($clients->files)[ 0 .. 2 ];
	is(scalar(@lost), 0, "$name: none of $rows rows is lost");
	is($target->safe_psql('postgres', 'SELECT count(*) FROM insta5.photos AS p FULL JOIN insta5.likes AS l ON p.id = l.photo_id WHERE p.id IS NULL'),
		0, "$name: ... nor what refers to them");

	is(join(' ', map { $_->safe_psql('postgres', 'SELECT shard_id, frozen FROM instaid.shards') } $source, $target),
		'5|t 5|f', "$name: the shard is frozen at the source, and not at the target");
	my ($ret, $stdout, $stderr) = $source->psql('postgres', 'SET ROLE app; UPDATE insta5.photos SET n = 0');
	like($stderr, qr/permission denied/, "$name: the source takes no update");
	$_->stop for $source, $target;
}

done_testing();
