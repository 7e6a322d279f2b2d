# What pg_dump takes along: a shard whose schema has another name, columns of the type
# instaid.id, and the rights of PUBLIC.  Test 008_restore has the IDs of copies.  pg_regress
# has no pg_dump.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use Clients;

my $node = Clients::server('main');
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';

# A shard is renamed and dumped, and restored into another database that has the
# extension.  It is the same shard there, and its IDs go on above the restored ones.
$node->safe_psql('postgres', q{
	SELECT instaid.create_shard('insta5', 5);
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
	ALTER SCHEMA insta5 RENAME TO "insta 5";
	INSERT INTO "insta 5".photos (n) SELECT generate_series(1, 20);
	CREATE DATABASE copy;});
$node->safe_psql('copy', 'CREATE EXTENSION instaid');
$node->command_ok([ 'pg_dump', '-n', '"insta 5"', '-f', $dump, '-d', $node->connstr('postgres') ],
	'pg_dump -n of a shard');
$node->command_ok(
	[ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('copy') ],
	'... is restored');
is($node->safe_psql('copy', q{
	SELECT schema_name, shard_id, epoch = instaid.default_epoch(), sequence FROM instaid.shards}),
	'insta 5|5|t|"insta 5".table_id_seq', 'the restored schema is the same shard');
is($node->safe_psql('copy', q{
	WITH i AS (INSERT INTO "insta 5".photos (n) VALUES (2) RETURNING id)
	SELECT i.id > (SELECT max(id) FROM "insta 5".photos), instaid.extract_shard_id(i.id)
	FROM i}),
	't|5', 'its IDs go on');

# The whole database with its extension, and a table that uses the type
$node->safe_psql('copy', qq{
	CREATE TABLE "insta 5".likes (
		id instaid.id PRIMARY KEY DEFAULT "insta 5".next_id(),
		photo_id instaid.id REFERENCES "insta 5".photos);
	INSERT INTO "insta 5".likes (photo_id) SELECT id FROM "insta 5".photos;
	CREATE TABLE copied (id bigint, photo_id instaid.id);
	COPY "insta 5".likes TO '$dump.binary' (FORMAT binary);
	COPY copied FROM '$dump.binary' (FORMAT binary)});
is($node->safe_psql('copy', q{
	SELECT count(*) > 10, count(*) = (SELECT count(*) FROM copied)
	FROM "insta 5".likes JOIN copied USING (id, photo_id)}),
	't|t', 'instaid.id is copied in binary, and has the format of bigint');
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr('copy') ],
	'pg_dump of a database');
$node->safe_psql('postgres', 'CREATE DATABASE whole');
$node->command_ok([ 'pg_restore', '-e', '-d', $node->connstr('whole'), $dump ],
	'... is restored');
is($node->safe_psql('whole', q{
	SELECT (SELECT shard_id FROM instaid.shards), "insta 5".next_id() > max(id)
	FROM "insta 5".photos}),
	'5|t', '... with its shard');
is($node->safe_psql('whole', q{
	INSERT INTO "insta 5".likes DEFAULT VALUES;
	SELECT bool_and(jsonb_typeof(to_jsonb(l)->'id') = 'string'), count(*) > 10
	FROM "insta 5".likes AS l JOIN "insta 5".photos AS p ON p.id = l.photo_id}),
	't|t', '... and with its tables of the type');
# a role without rights on the shard may decode there
is($node->safe_psql('whole', q{
	CREATE ROLE reader;
	SET ROLE reader;
	SELECT shard_id FROM instaid.decode(4001511883701836730)}),
	'854', '... and with the rights of PUBLIC');

$node->stop;
done_testing();
