# A frozen shard is frozen where its dump is restored, with and without its data: the MAXVALUE of
# its sequences stops them.  test/specs/freeze.spec has the sessions that freeze_shard() waits for,
# and sql/freeze.sql the functions that it stops.  pg_regress has no pg_dump.
# not in: assert

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use Clients;

my $node = Clients::server('main');
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';

$node->safe_psql('postgres', q{
	SELECT instaid.create_shard('insta5', 5);
	CREATE SEQUENCE insta5.likes_id_seq;
	CREATE TABLE insta5.likes (
		id bigint PRIMARY KEY DEFAULT insta5.next_id('insta5.likes_id_seq'));
	-- what goes on above them does not do so by the clock
	SELECT instaid.advance_past(s, instaid.min_id(now() + interval '1 h'), instaid.default_epoch())
	FROM instaid._shard_sequences('insta5') AS s;
	SET client_min_messages = error;
	INSERT INTO insta5.likes DEFAULT VALUES;
	SELECT insta5.next_id(), instaid.freeze_shard('insta5');});
my ($last, $last_like) = split /\|/, $node->safe_psql('postgres',
	'SELECT s.last_id, max(l.id) FROM instaid.shards AS s, insta5.likes AS l GROUP BY s.last_id');
for my $option ('--schema-only', '--no-owner')
{
	my $copy = $option eq '--no-owner' ? 'with_data' : 'without_data';
	$node->safe_psql('postgres', "CREATE DATABASE $copy");
	$node->safe_psql($copy, 'CREATE EXTENSION instaid');
	$node->command_ok([ 'pg_dump', '-n', 'insta5', $option, '-f', $dump, '-d',
			$node->connstr('postgres') ], "pg_dump $option of a frozen shard");
	$node->command_ok(
		[ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr($copy) ],
		"pg_dump $option of a frozen shard: is restored");
	is($node->safe_psql($copy, q{
		SELECT s.frozen, bool_and(q.seqmax < 9007199254740991), count(*)
		FROM instaid.shards AS s CROSS JOIN instaid._shard_sequences('insta5') AS t
			JOIN pg_sequence AS q ON q.seqrelid = t
		GROUP BY s.frozen}), 't|t|2', "pg_dump $option of a frozen shard, with the bounds");
	like(($node->psql($copy,
		"SELECT $_"))[2], qr/ERROR:  shard insta5 is frozen/, "pg_dump $option of a frozen"
			  . " shard: no $_")
	  for 'insta5.next_id()', q{insta5.next_id('insta5.likes_id_seq')},
	  q{instaid.next_id('insta5.table_id_seq', 5)};
	$node->safe_psql($copy, q{SELECT instaid.thaw_shard('insta5')});
	is($node->safe_psql($copy, qq{SET client_min_messages = error;
		SELECT insta5.next_id() > $last, insta5.next_id('insta5.likes_id_seq') > $last_like}),
		't|t', "pg_dump $option of a frozen shard, and goes on above when it is thawed");
}

$node->stop;
done_testing();
