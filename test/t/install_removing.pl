# Removing instaid, in both editions, by the blocks of the documentation: columns keep their rows
# and count on.  Whatever fails, nothing is dropped that is used, even if psql goes on after an
# error, as it does with what is pasted.  pg_regress has one session, and one owner.
# not in: version assert

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Docs;
use SqlEdition;

my %edition = (
	extension => {
		node => Clients::server('extension', q{timezone = 'UTC'}),
		page => [ 'docs/operations.md', 'Removing instaid' ]
	},
	SQL => {
		node => SqlEdition::server('sql', q{timezone = 'UTC'}),
		page => [ 'docs/sql-edition.md', 'Removing this edition' ]
	});

# What psql prints for statements of a role; it goes on after an error.
sub run_as
{
	my ($node, $role, $database, $sql) = @_;
	my $out;
	IPC::Run::run([ $node->installed_command('psql'), '-XAtq', '-d',
		$node->connstr($database) . " user=$role" ], '<', \$sql, '>&', \$out);
	return $out =~ s/^psql:\S+ //mgr;
}

for my $name ('extension', 'SQL')
{
	my ($node, $page) = @{ $edition{$name} }{qw(node page)};
	my ($remove) = grep { /remove_shards\.sql/ } map { $_->{text} } section_blocks(@$page);
	ok($remove, "$name: the page has the commands");
	my ($file) = $remove =~ /^(\\i .*)$/m;
	$node->safe_psql('postgres', 'CREATE ROLE ann LOGIN; CREATE ROLE bob LOGIN;'
		. ($name eq 'SQL' ? '' : 'CREATE ROLE app LOGIN; CREATE ROLE dba LOGIN SUPERUSER;')
		. 'CREATE DATABASE m; GRANT CREATE ON DATABASE m TO dba, ann, bob');
	# The SQL edition and its shards belong to one role; the extension is a superuser's.
	my $owner = $name eq 'SQL' ? 'dba' : 'ann';
	# the file as the owner of the shards, and then all
	my $removing = sub {
		return run_as($node, $owner, 'm', $file) . run_as($node, 'dba', 'm', $remove);
	};
	$node->safe_psql('m', $name eq 'SQL' ? SqlEdition::changed() . SqlEdition::adopting()
		: 'CREATE EXTENSION instaid_adopt CASCADE', extra_params => [ '-U', 'dba' ]);
	my $type = $name eq 'SQL' ? 'bigint' : 'instaid.id';
	is(run_as($node, $owner, 'm', qq{
		SET client_min_messages = error;
		SELECT instaid.create_shard('insta4', 4), instaid.create_shard('insta5', 5) \\g /dev/null
		CREATE TABLE insta4.photos (id bigint PRIMARY KEY DEFAULT insta4.next_id());
		CREATE TABLE insta5.photos (id $type PRIMARY KEY DEFAULT insta5.next_id(), n integer);
		CREATE TABLE insta5.notes (id bigint PRIMARY KEY DEFAULT insta5.next_id(),
			photo_id $type REFERENCES insta5.photos) PARTITION BY RANGE (id);
		CREATE TABLE insta5.note PARTITION OF insta5.notes DEFAULT;
		INSERT INTO insta4.photos DEFAULT VALUES;
		INSERT INTO insta5.photos (n) SELECT 1 FROM generate_series(1, 2000);
		INSERT INTO insta5.notes (photo_id) SELECT id FROM insta5.photos;
		CREATE SCHEMA bobs; GRANT USAGE, CREATE ON SCHEMA bobs TO bob;
		GRANT USAGE ON SCHEMA insta4, insta5 TO app, bob;
		GRANT INSERT, SELECT ON ALL TABLES IN SCHEMA insta4, insta5 TO app;
		}. ($name eq 'SQL'
			? 'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA insta4, insta5 TO app, bob'
			: 'GRANT USAGE ON ALL SEQUENCES IN SCHEMA insta4, insta5 TO app, bob')), '',
		'two shards');
	unlike(run_as($node, $owner, 'm', q{
		CREATE SCHEMA insta3; CREATE SEQUENCE insta3.ids;
		CREATE FUNCTION insta3.id_generator(OUT result bigint) LANGUAGE plpgsql AS $$ BEGIN
			result := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
				- 1314220021721) << 23 | (3 << 10) | nextval('insta3.ids') % 1024; END $$;
		CREATE FUNCTION insta3.another(shard bigint DEFAULT 3) RETURNS bigint LANGUAGE plpgsql AS $$
			BEGIN RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
				- 1314220021721) << 23 | (shard << 10) | nextval('insta3.ids') % 1024; END $$;
		CREATE TABLE insta3.users (id bigint PRIMARY KEY DEFAULT insta3.id_generator());
		CREATE TABLE insta3.posts (id bigint PRIMARY KEY DEFAULT insta3.another());
		CALL instaid_adopt.adopt_shards();
		INSERT INTO insta3.users SELECT; INSERT INTO insta3.posts SELECT}),
		qr/ERROR/, 'two shards, and an adopted one with functions of other names');

	# what there is of the second shard: the rows of before, defaults, functions
	my $rows = q{
		SELECT md5(string_agg(id::text, ' ' ORDER BY id)), count(*),
			(SELECT count(*) FROM insta5.notes JOIN insta5.photos AS p ON p.id = photo_id)
		FROM insta5.photos WHERE n = 1;};
	my $state = sub { return $node->safe_psql('m', $rows . q{
		SELECT a.adrelid::regclass, pg_get_expr(a.adbin, a.adrelid), instaid.default_epoch()
		FROM pg_attrdef AS a JOIN pg_class AS c ON c.oid = a.adrelid
		WHERE c.relnamespace = 'insta5'::regnamespace ORDER BY 1;
		SELECT p.oid::regprocedure FROM pg_proc AS p
		WHERE p.pronamespace = 'insta5'::regnamespace ORDER BY 1}) };
	my $before = $state->();
	my $insert = q{INSERT INTO insta4.photos DEFAULT VALUES;
		INSERT INTO insta5.photos (n) VALUES (2); INSERT INTO insta5.notes DEFAULT VALUES;};
	my $hold = Clients::session($node, 'm');
	for my $case (
		# what is in the way, how it comes there, what is said, and how it goes
		[ 'a view of the column', 'CREATE VIEW insta5.v AS SELECT id FROM insta5.photos',
			qr/ERROR:  cannot alter type of a column used by a view/, 'DROP VIEW insta5.v' ],
		[ 'a table of another owner',
			'SET ROLE bob; CREATE TABLE bobs.t (id bigint DEFAULT insta5.next_id())',
			qr/ERROR:  .*\nDETAIL:  .*table bobs\.t depends/, 'DROP TABLE bobs.t' ],
		[ 'a sequence of another owner', qq{RESET ROLE; SET ROLE bob; CREATE SEQUENCE bobs.s;
			RESET ROLE; SET ROLE $owner; GRANT EXECUTE ON FUNCTION insta5.next_id(}
			. ($name eq 'SQL' ? 'insta5.id_sequence' : 'regclass') . q{) TO app;
			CREATE TABLE insta5.lure (id bigint DEFAULT insta5.next_id('bobs.s'));
			INSERT INTO insta5.lure VALUES (9223372036854775806)},
			qr/ERROR:  must be owner of sequence bobs\.s\n/,
			'DROP TABLE insta5.lure' ],
		[ 'a child of another owner', q{
			CREATE TABLE insta5.parent (id bigint DEFAULT insta5.next_id());
			CREATE TABLE bobs.child () INHERITS (insta5.parent); INSERT INTO bobs.child VALUES (1);
			RESET ROLE; ALTER TABLE bobs.child OWNER TO bob; SET ROLE bob;
			CREATE FUNCTION bobs.gain() RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $$
			BEGIN IF current_user <> 'bob' THEN RAISE 'code of bob'; END IF; RETURN 1; END $$;
			ALTER TABLE bobs.child ADD CHECK (bobs.gain() = 1);
			CREATE INDEX ON bobs.child ((bobs.gain()))},
			qr/^(?!.*code of bob)(?=.*DETAIL:  .*table insta5\.parent depends)/s,
			'RESET ROLE; DROP TABLE insta5.parent CASCADE; DROP FUNCTION bobs.gain' ],
		[ 'IDs in a text', q{
			CREATE TABLE insta5.words (id text DEFAULT 'p' || insta5.next_id());
			INSERT INTO insta5.words DEFAULT VALUES},
			qr/ERROR:  column insta5\.words\.id is of type text
DETAIL:  .*'p'.*\nHINT:  .*ALTER TABLE insta5\.words ALTER id SET DEFAULT/,
			'DROP TABLE insta5.words' ],
		[ 'a function that calls next_id()', q{CREATE FUNCTION insta5.add() RETURNS bigint
			LANGUAGE sql RETURN insta5.next_id() + 1},
			qr/ERROR:  functions of shard insta5 are still used
DETAIL:  function insta5\.add\(\) depends .*\nHINT:  (?!.*CASCADE).*again/,
			'DROP FUNCTION insta5.add' ],
		[ 'an open INSERT', 'BEGIN; INSERT INTO insta5.photos (n) VALUES (3)',
			qr/ERROR:  canceling statement due to lock timeout/, 'ROLLBACK' ],
		[ 'a frozen shard', q{SELECT instaid.freeze_shard('insta5')},
			qr/ERROR:  shard insta5 is frozen\nHINT:  .*thaw_shard\('insta5'\)/,
			q{SELECT instaid.thaw_shard('insta5')} ])
	{
		my ($what, $how, $says, $end) = @$case;
		next if $name eq 'SQL' && $what eq 'a view of the column';	# no type changes
		is($hold->("SET ROLE $owner; $how"), '', $what) if $what !~ /frozen/;
		$hold->("SET ROLE $owner; $how") if $what =~ /frozen/;
		like($removing->(), $says, "$name: is in the way");
		$hold->("$end; RESET ROLE");
		is($state->(), $before, "$name: is in the way, and nothing is dropped");
		is(run_as($node, 'app', 'm', $insert), '', "$name: is in the way, and rows are inserted");
	}

	# what needs the functions for all: shards go, and what it needs stays
	$node->safe_psql('m', 'CREATE VIEW insta5.v AS SELECT instaid.extract_timestamp(id::bigint)
		FROM insta5.notes', extra_params => [ '-U', 'dba' ]);
	like($removing->(), qr/^ERROR:  .*DETAIL:  .*view insta5\.v depends on/ms,
		"$name: a view of the time is named");
	is($node->safe_psql('m',
		'SELECT count(*) > 2000 FROM insta5.v'), 't', "$name: a view of the time is named, and"
			  . " stays");
	$node->safe_psql('m', 'DROP VIEW insta5.v');
	unlike($removing->(), qr/ERROR/,
		"$name: a view of the time is named, and then all of instaid goes");
	is($node->safe_psql('m', q{SELECT nspname FROM pg_namespace WHERE nspname ~ '^instaid';
		SELECT count(*) FROM pg_extension WHERE extname = 'instaid'}), '0',
		"$name: a view of the time is named: really");
	is($node->safe_psql('m', $rows), (split /\n/, $before)[0],
		"$name: a view of the time is named, with all rows");
	is(run_as($node, $owner, 'm', q{SELECT count(*) FROM pg_proc
			WHERE pronamespace = 'insta3'::regnamespace;
		SELECT max(id) AS largest FROM (TABLE insta3.users UNION ALL TABLE insta3.posts) AS r \gset
		INSERT INTO insta3.posts SELECT RETURNING id - :largest;
		INSERT INTO insta3.users SELECT RETURNING id - :largest}), "0\n1\n2\n",
		"$name: a view of the time is named, and what was adopted counts on");
	my $largest = $node->safe_psql('m', q{SELECT max(id)
		FROM (SELECT id FROM insta5.photos UNION SELECT id FROM insta5.notes) AS r});
	is(run_as($node, 'app', 'm', $insert x 3), '',
		"$name: a view of the time is named, and the role inserts");
	is($node->safe_psql('m', qq{
		SELECT string_agg((id - $largest)::text, ' ' ORDER BY id)
		FROM (SELECT id FROM insta5.photos UNION ALL SELECT id FROM insta5.notes) AS r
		WHERE id > $largest}), '1 2 3 4 5 6',
		"$name: a view of the time is named, in both tables, each another ID");
	# a superuser does not create sequences for other owners
	is($node->safe_psql('m', qq{SELECT DISTINCT relowner::regrole FROM pg_class
		WHERE relnamespace::regnamespace::text ~ '^insta[45]\$'}), $owner,
		"$name: a view of the time is named, and the owner stays");
	is($node->safe_psql('m', q{SELECT string_agg(obj_description(oid, 'pg_class'), '; ')
		FROM pg_class WHERE relkind = 'S'}), '',
		"$name: a view of the time is named, and no comment of what the sequences were");
	$hold->('\q');
}

$_->{node}->stop for values %edition;
done_testing();
