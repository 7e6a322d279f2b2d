# An existing table becomes a partition, by the page, in both editions: what refers to it works
# before the boundary and after it, which a moved clock reaches.  pg_regress cannot move a clock.
# not in: version assert

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::Local ();

use Clients;
use Docs;
use Clock;
use SqlEdition;

my $clock = Clock->new;
my %node = (SQL => SqlEdition::server('sql', $clock, q{timezone = 'UTC'}),
	extension => Clients::server('extension', q{timezone = 'UTC'}));
$node{extension}->stop;
$clock->start($node{extension});
$node{SQL}->safe_psql('postgres', SqlEdition::changed());

my ($add) = map { $_->{text} } grep { $_->{text} =~ /date_trunc/ }
  section_blocks('docs/partitions.md', 'create_partitions()');
my @blocks = map { $_->{text} } section_blocks('docs/partitions.md', 'An existing table');
$add =~ s/photos/albums/;
is(scalar(@blocks), 3, 'the setup, and two blocks');

for my $edition ('extension', 'SQL')
{
	my $node = $node{$edition};
	my $run  = sub { return $node->safe_psql('postgres', $_[0]) };
	my $at = sub { $clock->set(0, Time::Local::timegm(0, 0, 12, @_)); return };
	# a row of every table by the role, and through the view
	my $use = q{
		SET ROLE reports;
		INSERT INTO insta5.albums (title) VALUES ('new')
			ON CONFLICT ON CONSTRAINT albums_pkey DO NOTHING RETURNING id \gset
		RESET ROLE;
		INSERT INTO insta5.songs (album_id) VALUES (:id);
		SET ROLE reports;
		SELECT title, (SELECT insta5.full_title(a) FROM insta5.albums AS a WHERE a.id = :id)
		FROM insta5.titles WHERE id = :id;
		RESET ROLE;
		SELECT tableoid::regclass FROM insta5.albums WHERE id = :id;
		SELECT code, object FROM instaid.audit()};

	$at->(26, 10, 2026);
	$run->(q{SELECT instaid.create_shard('insta5', 5)});
	$run->($blocks[0] . ($edition eq 'SQL'
		? 'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA insta5 TO reports'
		: 'GRANT USAGE ON SEQUENCE insta5.table_id_seq TO reports'));
	like($run->($blocks[1]),
		qr/^constraint songs_album_id_fkey .*^function insta5\.full_title.*^rule .*titles$/ms,
		"$edition: the page names what refers to the table");
	$run->($blocks[2]);
	is($run->($use), "new|new\ninsta5.albums_old",
		"$edition: the page names what refers to the table, and it works before the boundary");
	is($run->($add), 'insta5.albums_20270201',
		"$edition: the page names what refers to the table, with the statement that adds"
		  . " partitions, which skips what the old table holds");
	$at->(2, 11, 2026);
	is($run->($use), "new|new\ninsta5.albums_20261201",
		"$edition: the page names what refers to the table, and after it");
	is($run->($add), 'insta5.albums_20270301',
		"$edition: the page names what refers to the table, and the statement adds the next one");
	is($run->(q{SELECT count(*) FROM insta5.albums WHERE title = 'first'}), '1',
		"$edition: the page names what refers to the table, to old rows");
}

$_->stop for values %node;
done_testing();
