# pg_partman on a table that is partitioned by its IDs: the statements of
# docs/partitions.md, and the limits that the page names.  pg_regress cannot be used,
# since pg_partman does not exist for every PostgreSQL.
#
# packages: postgresql-@PG@-partman?
# not in: version assert

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Docs;

my ($setup, $daily, @rest) = map { $_->{text} } section_blocks('docs/partitions.md', 'pg_partman');
ok($setup && $daily && !@rest, 'the documentation has statements for pg_partman');

my $node = Clients::server('main');

sub query
{
	return $node->safe_psql('postgres', "SET timezone = 'UTC'; $_[0]");
}

my $version = query(q{SELECT default_version FROM pg_available_extensions
	WHERE name = 'pg_partman'});
SKIP:
{
	skip 'pg_partman is not installed for this PostgreSQL', 1 if $version eq '';
	note "pg_partman $version";
	$setup =~ s/^.*leave the line out.*\n//m if $version !~ /^4/;

	query(q{SELECT instaid.create_shard('insta5', 5)});
	query($setup);
	query(q{CREATE VIEW partitions AS
		SELECT name, instaid.extract_timestamp(id) AS from_time FROM (
			SELECT inhrelid::regclass AS name,
				substring(inhrelid::regclass::text FROM '_p(\d+)$')::bigint AS id
			FROM pg_inherits WHERE inhparent = 'insta5.photos'::regclass) AS i
		WHERE id IS NOT NULL});
	is(query(q{SELECT count(*) FILTER (WHERE from_time <= now()
		AND from_time > now() - interval '1 day'),
			count(*) FILTER (WHERE from_time > now()) FROM partitions}),
		'1|4', 'a partition for now, and four for later');
	is(query(q{SELECT DISTINCT from_time::time FROM partitions}), '21:07:01.721',
		'days begin at the time of the epoch');
	is(query(q{SELECT count(*), min(pg_get_constraintdef(oid)), max(pg_get_constraintdef(oid))
		FROM pg_constraint
			WHERE contype = 'p' AND (conrelid = 'insta5.photos'::regclass
				OR conrelid IN (SELECT name FROM partitions))}),
		'6|PRIMARY KEY (id)|PRIMARY KEY (id)', 'the primary key is the ID alone');
	like(query(q{INSERT INTO insta5.photos (caption) VALUES ('now') RETURNING tableoid::regclass}),
		qr/_p\d+$/, 'a new row is in one of them');
	query('TRUNCATE insta5.photos');

	# the option premake counts from the largest ID
	query(q{SELECT partman.create_partition_id('insta5.photos', ARRAY(
			SELECT (instaid.min_id(now() - d * interval '1 day') / day) * day
			FROM instaid.make_id(instaid.default_epoch() + interval '1 day', 0, 0) AS day,
				unnest('{100, 50}'::integer[]) AS d));
		INSERT INTO insta5.photos
		VALUES (instaid.min_id(now() - interval '100 days')),
			(instaid.min_id(now() - interval '50 days'))});
	my $count = query('SELECT count(*) FROM partitions');
	query(q{SELECT partman.run_maintenance('insta5.photos')});
	is(query('SELECT count(*) FROM partitions'), $count,
		'pg_partman alone makes no partition for an idle table');
	is(query('SELECT count(*) FROM insta5.photos'), 2,
		'pg_partman alone makes no partition for an idle table, and drops no partition');

	query($daily);
	is(query(q{SELECT count(*) FROM partitions WHERE from_time > now()}), 7,
		'the daily statements make seven days');
	query(q{INSERT INTO insta5.photos (caption) VALUES ('now')});
	query($daily);
	is(query(q{SELECT count(*) FROM partitions WHERE from_time > now()}), 7,
		'the daily statements make seven days: once');
	is(query(q{SELECT string_agg(extract(day FROM now() - instaid.extract_timestamp(id))::text, ' '
		ORDER BY id) FROM insta5.photos}),
		'50 0', 'the daily statements make seven days, and drop the partition that is older than'
			  . ' the retention');
	is(query('SELECT count(*) FROM insta5.photos_default'), 0,
		'nothing is in the default partition');
	is(query(q{SELECT count(*) FROM insta5.photos
		WHERE instaid.created_between(id, now() - interval '1 day', 'infinity')}),
		1, 'created_between() finds the new row');
	my $removed = query(q{SELECT count(*) FROM partitions
		WHERE from_time < now() - interval '2 days'});
	like(query(q{EXPLAIN (COSTS OFF) SELECT * FROM insta5.photos
		WHERE instaid.created_between(id, now() - interval '1 day', 'infinity')}),
		qr/Subplans Removed: $removed\n/,
		'created_between() finds the new row, and skips older partitions');
}

$node->stop;
done_testing();
