# adopt_shard() and adopt_column() while clients insert: no client fails, and new IDs
# are above those that were there.  pg_regress has only one session.
# not in: version assert

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;

my $node = Clients::server('main');
# the published arithmetic, on a sequence of 32 bits; the function notes its IDs
$node->safe_psql('postgres', 'CREATE EXTENSION instaid_adopt');
$node->safe_psql('postgres', q{
	\set schema insta5
	\set shard_id 5
	\set also 'INSERT INTO insta5.old_ids VALUES (result);'
	\i test/lib/published.sql
	ALTER SEQUENCE insta5.table_id_seq AS integer;
	CREATE TABLE insta5.old_ids (id bigint);
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
	CREATE TABLE insta5.likes (id bigint DEFAULT insta5.next_id());
	CREATE TABLE insta5.users (id serial PRIMARY KEY);
	CREATE TABLE insta5.posts (user_id integer NOT NULL REFERENCES insta5.users);
	INSERT INTO insta5.photos (n) SELECT generate_series(1, 1000);
	INSERT INTO insta5.users DEFAULT VALUES;
	-- statements that a session plans only once
	CREATE FUNCTION insta5.add_photo() RETURNS bigint LANGUAGE plpgsql AS $$
	DECLARE result bigint; BEGIN INSERT INTO insta5.photos DEFAULT VALUES RETURNING id INTO result;
	RETURN result; END $$;
	CREATE FUNCTION insta5.add_user() RETURNS bigint LANGUAGE plpgsql AS $$
	DECLARE result bigint; BEGIN INSERT INTO insta5.users DEFAULT VALUES RETURNING id INTO result;
	RETURN result; END $$;});

# Call a function while clients run statements; return the clients and the messages.
sub adopt
{
	my ($call, @statements) = @_;
	my $clients = Clients->start($node, @statements);
	my ($ret, $stdout, $said);
	sleep(0.5);
	($ret, $stdout, $said) = $node->psql('postgres', "SELECT $call");
	is($ret, 0, "$call while clients insert");
	sleep(0.5);
	is($clients->stop, '', "$call while clients insert, and no client fails");
	return ($clients, $said);
}

# Files with the IDs that each client received and that are wanted.
sub received
{
	my ($clients, $wanted) = @_;
	my @files;
	for my $file ($clients->files)
	{
		push @files, "$file.wanted";
		append_to_file("$file.wanted", join '',
			grep { chomp(my $id = $_); $wanted->($id) } split /^/, slurp_file($file));
	}
	return @files;
}

my $what = q{SELECT p.oid, array_agg(d.adrelid::regclass || ' ' || d.adbin::text ORDER BY 1)
	FROM pg_proc AS p, pg_attrdef AS d
	WHERE p.oid = 'insta5.next_id()'::regprocedure
		AND d.adrelid IN ('insta5.photos'::regclass, 'insta5.likes'::regclass)
	GROUP BY 1};
my $before = $node->safe_psql('postgres', $what);
my ($clients, $said) = adopt(
	q{instaid_adopt.adopt_shard('insta5', 5)},
	('INSERT INTO insta5.photos DEFAULT VALUES RETURNING id;') x 2,
	'INSERT INTO insta5.likes SELECT FROM generate_series(1, 100) RETURNING id;',
	'SELECT insta5.add_photo();',
	'BEGIN; INSERT INTO insta5.photos DEFAULT VALUES RETURNING id;
		INSERT INTO insta5.photos DEFAULT VALUES RETURNING id; COMMIT;',
	'SELECT insta5.next_id();');
is($node->safe_psql('postgres', $what), $before, 'function and defaults are the same objects');

my ($youngest) = $said =~ /IDs of schema insta5 go on above (\d+)/ or die $said;
is($node->safe_psql('postgres', qq{
	SELECT count(*) FROM insta5.old_ids
	JOIN (SELECT id FROM insta5.photos UNION ALL SELECT id FROM insta5.likes) AS t USING (id)
	WHERE id > $youngest}), 0, 'the old function makes no row above the announced ID');
# adopt_shard() does not wait for calls that insert nothing.  Some of these calls made
# old IDs above the announced one, and of the time of new ones.
my %old;
$old{$_}++ for split /\n/, $node->safe_psql('postgres', 'SELECT id FROM insta5.old_ids');
my %times;
$times{$_}++ for map { /(\d+)/g } map { slurp_file($_) } $clients->files;
is(scalar(grep { ($old{$_} // $times{$_}) < $times{$_} } keys %times), 0,
	'no new ID repeats one that the old function made');
my @files = received($clients, sub { !$old{ $_[0] } });
for my $i (0 .. $#files)
{
	cmp_ok(-s $files[$i], '>', 0, "client $i goes on");
	ok(Clients::in_order($files[$i]), "client $i goes on, in order");
}
my $new = Clients::summary(@files);
is($new->{duplicates}, 0, "none of $new->{count} new IDs comes twice");
# All rows from before the function was replaced are below the others.
is($node->safe_psql('postgres', qq{
	SELECT count(*) FROM (SELECT id FROM insta5.photos UNION ALL SELECT id FROM insta5.likes) AS t
	WHERE id > $youngest AND (instaid.extract_shard_id(id) <> 5
		OR id > (SELECT last_id FROM instaid.shards))}),
	0, "none of $new->{count} new IDs comes twice, and all name the shard");
is($node->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT id) FROM insta5.photos'), 0,
	"none of $new->{count} new IDs comes twice, in the table, too");

($clients, $said) = adopt(
	q{* FROM instaid_adopt.adopt_column('insta5.users', 'id')},
	('INSERT INTO insta5.users DEFAULT VALUES RETURNING id;') x 2,
	'SELECT insta5.add_user();',
	'INSERT INTO insta5.posts SELECT max(id) FROM insta5.users RETURNING user_id;');
like($said, qr/insta5\.posts\.user_id \(\d+ (bytes|kB)\), insta5\.users\.id \(\d+ (bytes|kB)\)/,
	"none of $new->{count} new IDs comes twice, with a NOTICE of the tables and their sizes");
my ($last_serial) = $node->safe_psql('postgres',
	'SELECT max(id) FROM insta5.users WHERE id < 4294967296');
@files = received($clients, sub { $_[0] > $last_serial });
for my $i (0 .. $#files)
{
	cmp_ok(-s $files[$i], '>', 0, "client $i goes on");
}
$new = Clients::summary(@files[ 0 .. 2 ]);
is($new->{duplicates}, 0, "none of $new->{count} new IDs comes twice");
is($node->safe_psql('postgres', qq{
	SELECT count(*) FROM insta5.users WHERE id > $last_serial
		AND instaid.extract_shard_id(id) <> 5}), 0,
		"none of $new->{count} new IDs comes twice, and all name the shard");
my $received = grep { /\d/ } map { split /^/, slurp_file($_) } ($clients->files)[ 0 .. 2 ];
# a client may not have received the ID of the last row that it inserted
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM insta5.users') - 1, '>=', $received,
	'no row is lost');
is($node->safe_psql('postgres', q{
	SELECT convalidated, (SELECT count(*) FROM insta5.posts LEFT JOIN insta5.users ON id = user_id
		WHERE id IS NULL)
	FROM pg_constraint WHERE contype = 'f' AND conrelid = 'insta5.posts'::regclass}), 't|0',
	'the foreign key is valid');

# renumber_shard() while clients insert
my @renumbered = (
	('INSERT INTO insta5.photos DEFAULT VALUES RETURNING id;') x 2,
	'INSERT INTO insta5.likes SELECT FROM generate_series(1, 100) RETURNING id;',
	'SELECT insta5.next_id() FROM generate_series(1, 10);',
	'SELECT insta5.next_ids(2000);',
	'BEGIN; SELECT insta5.add_photo(); SELECT insta5.next_id(); COMMIT;',
	q{SELECT insta5.next_id('insta5.users_own_seq');});
$node->safe_psql('postgres', 'CREATE SEQUENCE insta5.users_own_seq');
($clients, $said) = adopt(
	q{instaid.renumber_shard('insta5', 4097), pg_sleep(0.05)},
	@renumbered);
@files = $clients->files;
for my $i (0 .. $#files)
{
	my ($old_ones, $new_ones, $wrong) = (0, 0, 0);
	for my $id (split /\n/, slurp_file($files[$i]))
	{
		my $shard_id = $id >> 10 & 8191;
		if ($shard_id == 4097) { $new_ones++ }
		elsif ($shard_id == 5 && !$new_ones) { $old_ones++ }
		else { $wrong++ }
	}
	ok($old_ones > 0 && $new_ones > 0,
		"client $i: $old_ones IDs of shard 5, then $new_ones of 4097");
	is($wrong, 0, "client $i: $old_ones IDs of shard 5, then $new_ones of 4097, and no other");
	ok(Clients::in_order($files[$i]),
		"client $i: $old_ones IDs of shard 5, then $new_ones of 4097, in order");
}
is(Clients::summary(@files[ 0 .. $#files - 1 ])->{duplicates}, 0, 'no ID comes twice');

done_testing();
