# TimescaleDB: a hypertable by ID, with clients that insert, chunk exclusion by time, columnar
# compression, a continuous aggregate by time, and retention.  It runs the blocks of the section
# "TimescaleDB" of docs/partitions.md.
#
# Debian has no package of TimescaleDB.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Docs;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;
my $available = $node->safe_psql('postgres',
	q{SELECT count(*) FROM pg_available_extensions WHERE name = 'timescaledb'});
plan skip_all => 'TimescaleDB is not installed in this PostgreSQL' if !$available;
$node->append_conf('postgresql.conf', "$_\n")
  for q{shared_preload_libraries = 'timescaledb'}, q{timescaledb.telemetry_level = off},
	q{timezone = 'UTC'};
$node->restart;

sub run { return $node->safe_psql('postgres', $_[0]) }

sub failure
{
	my ($sql) = @_;
	my ($status, undef, $stderr) = $node->psql('postgres', $sql);
	return $status ? $stderr : 'no error';
}

run(q{CREATE EXTENSION timescaledb; CREATE EXTENSION instaid_adopt CASCADE;
	SELECT instaid.create_shard('insta5', 5); SELECT instaid.create_shard('insta6', 6)});
my @blocks = section_blocks('docs/partitions.md', 'TimescaleDB');
run($_->{text}) for @blocks;
note 'TimescaleDB ' . run(q{SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'});

# rows of some days, one an hour
sub insert_old
{
	my ($from, $to) = @_;
	return run(qq{WITH new AS (INSERT INTO insta5.photos
		SELECT instaid.make_id(t, 5, 0), 'old' FROM generate_series(
			now() - interval '$from days', now() - interval '$to days', '1 hour') AS t
		RETURNING id) SELECT count(*) FROM new});
}
my $rows = 40000 + insert_old(80, 1);
$node->pgbench('--no-vacuum --client=8 --jobs=2 --transactions=250', 0, [qr/8 clients|clients: 8/],
	[qr/^$/], 'eight clients insert',
	{ '001_timescaledb' => q{INSERT INTO insta5.photos (caption)
		SELECT 'new' FROM generate_series(1, 20)} });
is(run('SELECT count(*), count(DISTINCT id) FROM insta5.photos'), "$rows|$rows",
	'no ID came twice');
cmp_ok(run(q{SELECT num_chunks FROM timescaledb_information.hypertables
	WHERE hypertable_name = 'photos'}), '>=', 80, 'there is a chunk for each day');
my $plan = run(q{EXPLAIN (COSTS OFF) SELECT * FROM insta5.photos
	WHERE instaid.created_between(id, now() - interval '2 days', now() - interval '1 day')});
my $chunks = () = $plan =~ /_hyper_\d+_\d+_chunk /g;
cmp_ok($chunks, '<=', 3, 'created_between() excludes chunks');
like(run(q{SELECT object || ': ' || problem FROM instaid.audit() WHERE severity = 'error'}),
	qr/^$/, 'audit() finds no error');

# compression of what is older than a week
run(q{ALTER TABLE insta5.photos SET (timescaledb.compress, timescaledb.compress_orderby = 'id')});
cmp_ok(run(q{SELECT count(compress_chunk(c, true)) FROM show_chunks('insta5.photos',
	older_than => instaid.min_id(now() - interval '7 days')) AS c}), '>', 70,
	'chunks are compressed');
is(run('SELECT count(*), count(DISTINCT id) FROM insta5.photos'), "$rows|$rows",
	'chunks are compressed, and have their rows');

# retention drops what is older than 90 days
insert_old(100, 95);
run('CALL run_job(' . run(q{SELECT job_id FROM timescaledb_information.jobs
	WHERE proc_name = 'policy_retention'}) . ')');
is(run(q{SELECT count(*) FROM insta5.photos
	WHERE instaid.created_between(id, '-infinity', now() - interval '91 days')}), '0',
	'the retention policy drops old chunks');
is(run('SELECT count(*) FROM insta5.photos'), $rows,
	'the retention policy drops old chunks, and no others');

# a continuous aggregate needs a bucket of integers
run(q{CREATE MATERIALIZED VIEW insta5.daily WITH (timescaledb.continuous) AS
	SELECT time_bucket(86400000::bigint << 23, id) AS day, count(*) AS photos
	FROM insta5.photos GROUP BY 1 WITH NO DATA});
run(q{CALL refresh_continuous_aggregate('insta5.daily', NULL, NULL)});
is(run('SELECT sum(photos) FROM insta5.daily'), run('SELECT count(*) FROM insta5.photos'),
	'a continuous aggregate counts by day');
like(failure(q{CREATE MATERIALIZED VIEW insta5.by_time WITH (timescaledb.continuous) AS
	SELECT time_bucket('1 day', instaid.extract_timestamp(id)) AS day, count(*)
	FROM insta5.photos GROUP BY 1 WITH NO DATA}), qr/time_bucket|bucket/,
	'a continuous aggregate counts by day, but not by extract_timestamp()');

# the type instaid.id
run(q{CREATE TABLE insta6.photos (id instaid.id PRIMARY KEY DEFAULT insta6.next_id());
	SELECT create_hypertable('insta6.photos', by_range('id',
		instaid.make_id(instaid.default_epoch() + interval '1 day', 0, 0)));
	INSERT INTO insta6.photos SELECT FROM generate_series(1, 3000)});
is(run('SELECT count(DISTINCT id) FROM insta6.photos'), '3000',
	'a column of instaid.id partitions a hypertable');
is(run(q{SELECT count(*) FROM insta6.photos
	WHERE instaid.created_between(id, now() - interval '1 day', 'infinity')}), '3000',
	'a column of instaid.id partitions a hypertable, and is read by time');
like(failure(q{
	CREATE FUNCTION insta6.now_id() RETURNS bigint LANGUAGE sql STABLE RETURN instaid.min_id(now());
	SELECT set_integer_now_func('insta6.photos', 'insta6.now_id')}),
	qr/custom time function not supported/,
	'a column of instaid.id partitions a hypertable, but its policies have no time');

# the columns of tables that exist are adopted
run(q{CREATE TABLE insta6.likes (id bigint NOT NULL PRIMARY KEY);
	SELECT create_hypertable('insta6.likes', by_range('id',
		instaid.make_id(instaid.default_epoch() + interval '1 day', 0, 0)));
	SELECT instaid_adopt.adopt_column('insta6.likes', 'id');
	INSERT INTO insta6.likes SELECT FROM generate_series(1, 3000)});
is(run('SELECT count(DISTINCT id) FROM insta6.likes'), '3000', 'adopt_column()');
done_testing();
