# The commands of docs/moving-by-hand.md, run on two servers while clients insert: no
# row is lost, and no ID comes twice.  One client connects to the target from the
# start, and must be refused until the shard is there.  A subscriber that is
# disconnected is not taken for one that has all changes.
# not in: version assert

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;
use Docs;

my @before = section_blocks('docs/moving-by-hand.md', 'Before');
my @ways = map { [ moving_blocks($_) ] } 'With pg_dump', 'With logical replication';
my @statements = (
	('SET ROLE app; INSERT INTO insta5.photos DEFAULT VALUES RETURNING id;') x 3,
	'SET ROLE app; INSERT INTO insta5.likes (photo_id) SELECT min(id) FROM insta5.photos;
		SELECT insta5.next_id();');
my $shard = q{
	CREATE ROLE app LOGIN;
	SELECT instaid.create_shard('insta5', 5);
	CREATE SEQUENCE insta5.likes_id_seq;
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
	CREATE TABLE insta5.likes (id bigint PRIMARY KEY
		DEFAULT insta5.next_id('insta5.likes_id_seq'),
		photo_id bigint REFERENCES insta5.photos);
	GRANT USAGE ON SCHEMA insta5 TO app;
	GRANT USAGE ON ALL SEQUENCES IN SCHEMA insta5 TO app;
	GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA insta5 TO app;
	INSERT INTO insta5.photos (n) SELECT generate_series(1, 10000);};
my $replication = q{SELECT (SELECT count(*) FROM pg_publication)
	+ (SELECT count(*) FROM pg_subscription) + (SELECT count(*) FROM pg_replication_slots)};

for my $way (0, 1)
{
	my $name = (qw(pg_dump logical))[$way];
	my ($source, $target) = map { Clients::server("${_}_$name",
		{ allows_streaming => 'logical' }) } 'source', 'target';
	$source->safe_psql('postgres', $shard);

	# keys between the shard and another schema, and how the page finds them
	my ($keys, $others) = grep { $_->{server} eq 'source' } @before;
	is($source->safe_psql('postgres', $keys->{text}), '', "$name: no key leaves the schema");
	$source->safe_psql('postgres', q{
		CREATE TABLE public.countries (id integer PRIMARY KEY);
		ALTER TABLE insta5.photos ADD CONSTRAINT a_out
			FOREIGN KEY (n) REFERENCES public.countries NOT VALID;
		CREATE TABLE public.comments (
			photo_id bigint CONSTRAINT b_in REFERENCES insta5.photos (id))
			PARTITION BY RANGE (photo_id);
		CREATE TABLE public.comments_1 PARTITION OF public.comments DEFAULT;});
	is($source->safe_psql('postgres', $keys->{text}), "a_out|insta5.photos|countries
b_in|comments|insta5.photos", "$name: the page finds the keys that leave the schema");
	$source->safe_psql('postgres', q{
		ALTER TABLE insta5.photos DROP CONSTRAINT a_out;
		DROP TABLE public.comments, public.countries});

	# what others have in the schema
	$source->safe_psql('postgres', q{
		CREATE ROLE guest; CREATE ROLE owner;
		CREATE DOMAIN insta5.dom AS text; ALTER DOMAIN insta5.dom OWNER TO guest;
		CREATE VIEW insta5.seen AS SELECT 1; ALTER VIEW insta5.seen OWNER TO owner;
		CREATE COLLATION insta5.c FROM "C"; ALTER COLLATION insta5.c OWNER TO pg_database_owner;
		ALTER SCHEMA insta5 OWNER TO owner});
	is($source->safe_psql('postgres', $others->{text}),
		"pg_database_owner|collation insta5.c\nguest|type insta5.dom",
		"$name: the page finds what other roles have in the schema");
	$source->safe_psql('postgres', 'DROP VIEW insta5.seen; DROP DOMAIN insta5.dom;
		DROP COLLATION insta5.c; ALTER SCHEMA insta5 OWNER TO current_user');

	my $clients = Clients->start($source, @statements);
	sleep(0.5);
	my $misdirected = Clients->start($target, { retry => 1 },
		'SET ROLE app; INSERT INTO insta5.photos DEFAULT VALUES RETURNING id; RESET ROLE;
			DO $$ BEGIN PERFORM pg_sleep(0.01); END $$;');

	# the first command copies, and fails here because there is no role app
	my @blocks = @{ $ways[$way] };
	my ($copy) = grep { $blocks[$_]{language} eq 'sh' } 0 .. $#blocks;
	follow(\@before, source => $source, target => $target);
	ok(!eval { follow([ $blocks[$copy] ], source => $source, target => $target) },
		"$name: a copy that fails");
	is($target->safe_psql('postgres', q{SELECT to_regnamespace('insta5')}), '',
		"$name: a copy that fails leaves nothing behind");

	$target->safe_psql('postgres', 'CREATE ROLE app LOGIN');
	follow([ @blocks[ 0 .. $copy ] ], source => $source, target => $target);
	is($target->safe_psql('postgres', 'SELECT frozen FROM instaid.shards'), 't',
		"$name: the shard arrives frozen");
	for my $as ('', 'SET ROLE app; ')
	{
		like(($target->psql('postgres', "${as}SELECT insta5.next_id()"))[2],
			qr/ERROR:  shard insta5 is frozen/,
			"$name: the frozen shard issues no ID: ${as}next_id()");
	}
	for my $change ('INSERT INTO insta5.photos (id) VALUES (1)', 'UPDATE insta5.photos SET n = 0',
		'DELETE FROM insta5.likes')
	{
		like(($target->psql('postgres', "SET ROLE app; $change"))[2],
			qr/ERROR:  permission denied for table/, "$name: the frozen shard takes no $change");
	}
	# the client that comes too early, too, must have tried
	for (1 .. 1800)
	{
		last if slurp_file($misdirected->file(0) . '.err') =~ /denied for table photos/;
		sleep(0.1);
	}
	splice @blocks, 0, $copy + 1;
	if ($way)
	{
		my ($switch) = grep { $blocks[$_]{text} =~ /freeze_shard/ } 0 .. $#blocks;
		follow([ splice @blocks, 0, $switch ], source => $source, target => $target);
		# a table that is created all the same, as the page says what to do then
		my $later = 'CREATE TABLE insta5.later (id bigint PRIMARY KEY)';
		$source->safe_psql('postgres', "$later; INSERT INTO insta5.later VALUES (1), (2)");
		# nor do one without a key, which is updated, and its end stop the replication
		$source->safe_psql('postgres', 'CREATE TABLE insta5.log (n integer); INSERT INTO insta5.log
			VALUES (1); UPDATE insta5.log SET n = 2; DROP TABLE insta5.log');
		$target->safe_psql('postgres', $later);
		$source->safe_psql('postgres', 'ALTER PUBLICATION insta5 ADD TABLE ONLY insta5.later');
		$target->safe_psql('postgres', 'ALTER SUBSCRIPTION insta5 REFRESH PUBLICATION');
		ok($target->poll_query_until('postgres', 'SELECT count(*) = 2 FROM insta5.later'),
			"$name: the rows of a table that was created meanwhile arrive");
		$target->safe_psql('postgres', 'ALTER SUBSCRIPTION insta5 DISABLE');
		$source->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_replication')
			or die;
		my $arrived = $target->safe_psql('postgres', 'SELECT count(*) FROM insta5.photos');
		$source->poll_query_until('postgres', "SELECT count(*) > $arrived FROM insta5.photos")
			or die;
		follow([ splice @blocks, 0, 2 ], source => $source, target => $target);
		local $ENV{PGOPTIONS} = '-c statement_timeout=3s';
		like(($source->psql('postgres', $blocks[0]{text}))[2],
			qr/ERROR:  canceling statement due to statement timeout/,
			"$name: the wait for the last changes goes on while the subscriber is disconnected");
		$target->safe_psql('postgres', 'ALTER SUBSCRIPTION insta5 ENABLE');
	}
	{
		# fail rather than wait forever
		local $ENV{PGOPTIONS} = '-c statement_timeout=180s';
		follow(\@blocks, source => $source, target => $target);
	}
	my $errors = $clients->finish;
	like($errors, qr/^(.*ERROR:  (shard insta5 is frozen|permission denied for .*)\n)+\z/,
		"$name: the switch stops the clients");
	my $rows = $target->safe_psql('postgres', 'SELECT count(*) FROM insta5.photos');
	my $after = Clients->start($target, @statements);
	sleep(0.5);
	is($after->stop, '', "$name: clients go on at the target");

	like($misdirected->stop, qr/ERROR:  permission denied for table photos/,
		"$name: the client that comes too early is refused");

	my $old = Clients::summary($clients->files);
	my $new = Clients::summary($after->files);
	my $stray = Clients::summary($misdirected->files);
	is(Clients::summary($clients->files, $after->files, $misdirected->files)->{duplicates}, 0,
		"$name: none of $old->{count}, $new->{count} and $stray->{count} IDs comes twice");
	cmp_ok($new->{first}, '>', $old->{last},
		"$name: the target's IDs are above the source's");
	cmp_ok($stray->{count}, '>', 0, "$name: the client that came too early is served in the end");
	cmp_ok($stray->{first}, '>', $old->{last},
		"$name: the client that came too early has IDs above those of the source");

	# the rows of the source, and the rows whose commit its clients saw
	my %there = map { $_ => 1 } split /\n/,
	  $target->safe_psql('postgres', 'SELECT id FROM insta5.photos');
	my @lost = grep { !$there{$_} } split(/\n/,
		$source->safe_psql('postgres', 'SELECT id FROM insta5.photos')),
	  map { split /\n/, slurp_file($_) } ($clients->files)[ 0 .. 2 ];
	is(scalar(@lost), 0, "$name: none of $rows rows is lost");
	is($target->safe_psql('postgres',
		'SELECT count(*) FROM insta5.photos AS p FULL JOIN insta5.likes AS l ON p.id = l.photo_id
			WHERE p.id IS NULL'),
		0, "$name: no row of likes has lost its photo");

	is(join(' ',
		map { $_->safe_psql('postgres', 'SELECT shard_id, frozen FROM instaid.shards') } $source,
		$target),
		'5|t 5|f', "$name: the shard is frozen at the source, and not at the target");
	my ($ret, $stdout, $stderr) = $source->psql('postgres',
		'SET ROLE app; UPDATE insta5.photos SET n = 0');
	like($stderr, qr/permission denied/, "$name: the source takes no update");
	is(join(' ', map { $_->safe_psql('postgres', $replication) } $source, $target), '0 0',
		"$name: no replication is left");
	$_->stop for $source, $target;
}

# From one database of a server to another
my $server = Clients::server('one', { allows_streaming => 'logical' });
$server->safe_psql('postgres', $shard);
$server->safe_psql('postgres', 'CREATE DATABASE target');
my $clients = Clients->start($server, @statements);
{
	local $ENV{PGOPTIONS} = '-c statement_timeout=180s';
	follow([ @before, @{ $ways[1] } ], source => $server, target => [ $server, 'target' ]);
}
like($clients->finish, qr/^(.*ERROR:  (shard insta5 is frozen|permission denied for .*)\n)+\z/,
	'one server: the switch stops the clients');
is($server->safe_psql('target', $_), $server->safe_psql('postgres', $_),
	"one server, the same rows: $_")
  for map { "SELECT count(*), sum(id::numeric) FROM insta5.$_" } 'photos', 'likes';
is(join(' ', map { $server->safe_psql($_, 'SELECT shard_id, frozen FROM instaid.shards') }
	'postgres', 'target'), '5|t 5|f', 'one server: the target has the shard');
is(Clients::summary($clients->files)->{duplicates}, 0, 'one server: no ID comes twice');
cmp_ok($server->safe_psql('target', 'SELECT insta5.next_id()'), '>',
	Clients::summary($clients->files)->{last},
	'one server: the next ID of the target is above all of the source');
is(join(' ', map { $server->safe_psql($_, $replication) } 'postgres', 'target'), '0 0',
	'one server: no replication is left');
$server->stop;

done_testing();
