# adopt_shard() and adopt_column() while clients insert: none of them fails, and
# what they insert goes on above what was there.  In pg_regress nobody else
# is connected.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "log_statement = none\n");
$node->start;
# the published arithmetic, on a sequence of 32 bits; it notes what it makes
$node->safe_psql('postgres', q{
	CREATE EXTENSION instaid;
	CREATE SCHEMA insta5;
	CREATE SEQUENCE insta5.table_id_seq AS integer;
	CREATE TABLE insta5.old_ids (id bigint);
	CREATE FUNCTION insta5.next_id(OUT result bigint) LANGUAGE plpgsql AS $$
	DECLARE
		seq_id bigint;
		now_ms bigint;
	BEGIN
		seq_id := nextval('insta5.table_id_seq') % 1024;
		now_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
		result := ((now_ms - 1314220021721) << 23) | (5 << 10) | seq_id;
		INSERT INTO insta5.old_ids VALUES (result);
	END $$;
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
	CREATE TABLE insta5.likes (id bigint DEFAULT insta5.next_id());
	CREATE TABLE insta5.users (id serial PRIMARY KEY);
	CREATE TABLE insta5.posts (user_id integer NOT NULL REFERENCES insta5.users);
	INSERT INTO insta5.photos (n) SELECT generate_series(1, 1000);
	INSERT INTO insta5.users DEFAULT VALUES;
	-- statements that are planned once in a session
	CREATE FUNCTION insta5.add_photo() RETURNS bigint LANGUAGE plpgsql AS $$
	DECLARE result bigint; BEGIN INSERT INTO insta5.photos DEFAULT VALUES RETURNING id INTO result; RETURN result; END $$;
	CREATE FUNCTION insta5.add_user() RETURNS bigint LANGUAGE plpgsql AS $$
	DECLARE result bigint; BEGIN INSERT INTO insta5.users DEFAULT VALUES RETURNING id INTO result; RETURN result; END $$;});

# Call a function while clients run statements; return the clients, and what it said.
sub adopt
{
	my ($call, @statements) = @_;
	my $clients = Clients->start($node, @statements);
	my ($ret, $stdout, $said);
	sleep(0.5);
	($ret, $stdout, $said) = $node->psql('postgres', "SELECT $call");
	is($ret, 0, "$call while clients insert");
	sleep(0.5);
	is($clients->stop, '', '... and none of them fails');
	return ($clients, $said);
}

# What of that which clients received is wanted, a file each.
sub received
{
	my ($clients, $wanted) = @_;
	my @files;
	for my $file ($clients->files)
	{
		push @files, "$file.wanted";
		append_to_file("$file.wanted", join '', grep { chomp(my $id = $_); $wanted->($id) } split /^/, slurp_file($file));
	}
	return @files;
}

my $what = q{SELECT p.oid, array_agg(d.adrelid::regclass || ' ' || d.adbin::text ORDER BY 1)
	FROM pg_proc AS p, pg_attrdef AS d
	WHERE p.oid = 'insta5.next_id()'::regprocedure AND d.adrelid IN ('insta5.photos'::regclass, 'insta5.likes'::regclass)
	GROUP BY 1};
my $before = $node->safe_psql('postgres', $what);
my ($clients, $said) = adopt(
	q{instaid.adopt_shard('insta5', 5)},
	('INSERT INTO insta5.photos DEFAULT VALUES RETURNING id;') x 2,
	'INSERT INTO insta5.likes SELECT FROM generate_series(1, 100) RETURNING id;',
	'SELECT insta5.add_photo();',
	'BEGIN; INSERT INTO insta5.photos DEFAULT VALUES RETURNING id; INSERT INTO insta5.photos DEFAULT VALUES RETURNING id; COMMIT;',
	'SELECT insta5.next_id();');
is($node->safe_psql('postgres', $what), $before, 'function and defaults are the same objects');

my ($youngest) = $said =~ /IDs of schema insta5 go on above (\d+)/ or die $said;
is($node->safe_psql('postgres', qq{
	SELECT count(*) FROM insta5.old_ids JOIN (SELECT id FROM insta5.photos UNION ALL SELECT id FROM insta5.likes) AS t USING (id)
	WHERE id > $youngest}), 0, 'the old function makes no row above that');
# Calls that insert nothing are not waited for: some of the old function's are above it.
my %old = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', 'SELECT id FROM insta5.old_ids');
my @files = received($clients, sub { !$old{ $_[0] } });
for my $i (0 .. $#files)
{
	cmp_ok(-s $files[$i], '>', 0, "client $i goes on");
	ok(Clients::in_order($files[$i]), '... in order');
}
my $new = Clients::summary(@files);
is($new->{duplicates}, 0, "none of $new->{count} new IDs comes twice");
# All rows that were there when the function was replaced are below the others.
is($node->safe_psql('postgres', qq{
	SELECT count(*) FROM (SELECT id FROM insta5.photos UNION ALL SELECT id FROM insta5.likes) AS t
	WHERE id > $youngest AND (instaid.extract_shard_id(id) <> 5 OR id > (SELECT last_id FROM instaid.shards))}),
	0, '... and all name the shard');
is($node->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT id) FROM insta5.photos'), 0, '... in the table, too');

($clients, $said) = adopt(
	q{* FROM instaid.adopt_column('insta5.users', 'id')},
	('INSERT INTO insta5.users DEFAULT VALUES RETURNING id;') x 2,
	'SELECT insta5.add_user();',
	'INSERT INTO insta5.posts SELECT max(id) FROM insta5.users RETURNING user_id;');
like($said, qr/insta5\.posts\.user_id \(\d+ (bytes|kB)\), insta5\.users\.id \(\d+ (bytes|kB)\)/, '... with a NOTICE of the tables and their sizes');
my ($last_serial) = $node->safe_psql('postgres', 'SELECT max(id) FROM insta5.users WHERE id < 4294967296');
@files = received($clients, sub { $_[0] > $last_serial });
for my $i (0 .. $#files)
{
	cmp_ok(-s $files[$i], '>', 0, "client $i goes on");
}
$new = Clients::summary(@files[ 0 .. 2 ]);
is($new->{duplicates}, 0, "none of $new->{count} new IDs comes twice");
is($node->safe_psql('postgres', qq{
	SELECT count(*) FROM insta5.users WHERE id > $last_serial AND instaid.extract_shard_id(id) <> 5}), 0, '... and all name the shard');
my $received = grep { /\d/ } map { split /^/, slurp_file($_) } ($clients->files)[ 0 .. 2 ];
# a row may have been inserted that its client did not hear of
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM insta5.users') - 1, '>=', $received, 'no row is lost');
is($node->safe_psql('postgres', q{
	SELECT convalidated, (SELECT count(*) FROM insta5.posts LEFT JOIN insta5.users ON id = user_id WHERE id IS NULL)
	FROM pg_constraint WHERE contype = 'f' AND conrelid = 'insta5.posts'::regclass}), 't|0', 'the foreign key is valid');

done_testing();
