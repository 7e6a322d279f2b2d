# Blocks of the pages that somebody runs where another role has objects: they run no code of hers,
# and do not take her objects for the own ones.  docs_blocks.pl runs the pages where nobody else is.
# not in: version assert

use strict;
use warnings;

use Test::More;

use Docs;
use Mallory;
use SqlEdition;

start_server();

# The block of a section that matches a pattern, for a database that the test chooses
sub block
{
	my ($file, $section, $pattern) = @_;
	my @texts = grep { /$pattern/ } map { $_->{text} } section_blocks($file, $section);
	is(scalar(@texts), 1, "$file, $section: a block has $pattern");
	return $texts[0] =~ s/^\\c .*\n//mgr;
}

### What a superuser runs

# Where search_path finds a schema of the role's name, it finds functions that fit better than
# those of PostgreSQL.
my $superuser = $node->safe_psql('postgres', 'SELECT current_user');
my $lures = join '', qq{CREATE SCHEMA "$superuser"; GRANT USAGE ON SCHEMA "$superuser" TO PUBLIC;},
  map { my ($call, $result) = @$_;
	qq{CREATE FUNCTION "$superuser".$call RETURNS $result LANGUAGE sql VOLATILE
		AS \$\$SELECT m.gain()::text::$result\$\$;} }
  [ 'format(text, name)', 'text' ], [ 'format(text, name, integer)', 'text' ],
  [ 'format(text, regnamespace)', 'text' ], [ 'format(text, regclass, bigint)', 'text' ],
  [ 'replace(name, text, text)', 'text' ], [ 'setval(text, bigint)', 'bigint' ],
  [ 'pg_sequence_last_value(text)', 'bigint' ];
my ($newer, $older) = map { database($_, 1) } 'newer', 'older';
for my $db ($newer, $older)
{
	$node->safe_psql($db, 'CREATE EXTENSION instaid_tickets');
	is(run_as('mallory', $db, $lures), '', "$db: mallory has functions that fit better");
	is(run_as('mallory', $db, q{
		SELECT instaid.create_shard('mine', 7);
		CREATE FUNCTION m.sql_edition_next_ids() RETURNS integer LANGUAGE sql AS 'SELECT 1';
		CREATE FUNCTION m.sql_edition_next_id() RETURNS integer LANGUAGE sql AS 'SELECT 1';
		CREATE DOMAIN m.id_sequence AS regclass;
		CREATE FUNCTION m.next_id() RETURNS integer LANGUAGE sql AS 'SELECT 1';
		CREATE SEQUENCE m.least INCREMENT 2 MINVALUE -9223372036854775808
			START -9223372036854775808;}), "\n", "$db: mallory has objects");
	as_superuser($db, 'CREATE SEQUENCE public.invoices INCREMENT 2');
}
# what is a sequence in one state can be a view in the other
run_as('mallory', $newer, 'CREATE SEQUENCE m.t INCREMENT 2');
run_as('mallory', $older, 'CREATE VIEW m.t AS SELECT m.gain() AS last_value');
as_superuser($newer, q{SELECT nextval('public.invoices'), nextval('m.t')
	FROM generate_series(1, 9); SELECT nextval('m.least')});

my $positions = as_superuser($newer, block('docs/tickets.md', 'Backups', qr/setval/));
gained_nothing('the positions of tickets, on the newer state');
like(as_superuser($older, $positions), qr/^17$/m, 'the positions of tickets, on the older state');
gained_nothing('the positions of tickets, on the older state, run no code');
is($node->safe_psql($older, 'SELECT last_value FROM public.invoices UNION ALL
	SELECT last_value FROM m.least'), "17\n-9223372036854775808",
	'the positions of tickets, on the older state, even of one at the least bigint');

for my $case (
	[ 'docs/backup.md', 'A copy for tests', qr/freeze_shard/ ],
	[ 'docs/backup.md', 'A copy for tests', qr/renumber_shard/ ],
	[ 'docs/backup.md', 'A copy for tests', qr/setval/ ],
	[ 'docs/sql-edition.md', 'To the extension', qr/DROP FUNCTION/ ],
	[ 'docs/adopting.md', 'Many owners', qr/connect/ ])
{
	my ($file, $section, $pattern) = @$case;
	my $text = block(@$case) =~ s/ \\g \(.*\) owners\.sql/;/r;
	unlike(as_superuser($newer, $text), qr/ERROR/, "$section, $pattern: no error");
	gained_nothing("$section, $pattern: runs no code of others");
}

### What takes an object for the own one

my $db = database('own', 1);
$node->safe_psql($db, 'GRANT CREATE ON SCHEMA public TO alice');
my $boot = block('docs/adopting.md', 'Scripts that create the function', qr/create_shard/);
for my $number (900, 8)
{
	run_as('mallory', $db, qq{SELECT instaid.create_shard('insta8', $number);
		GRANT ALL ON SCHEMA insta8 TO PUBLIC});
	like(run_as('alice', $db, $boot), qr/^ERROR:  /,
		"a migration refuses mallory's shard with number $number");
	run_as('mallory', $db, 'DROP SCHEMA insta8 CASCADE');
}
is(run_as('alice', $db, "$boot$boot") . run_as('alice', $db, 'SELECT insta8.next_id() > 0'),
	"t\n", 'a migration makes a shard of its own, and can run again');

run_as('mallory', $db, q{SELECT instaid.create_shard('aaa', 1)});
like(run_as('alice', $db, block('docs/clients.md', 'Several shards', qr/accounts/)),
	qr/^1\|insta8$/m, "a new tenant gets none of mallory's shards");

### The SQL edition

$db = database('edition', 0);
$node->safe_psql($db, SqlEdition::changed());
like(run_as('alice', $db, q{SELECT instaid.create_shard('v1', 5); SELECT v1.next_id() > 0}),
	qr/^t$/m, 'a shard of the SQL edition');
run_as('mallory', $db, $node->safe_psql($db, q{
	SELECT format('CREATE SEQUENCE m.q MINVALUE %s MAXVALUE %s', min_value, max_value)
	FROM pg_sequences WHERE schemaname = 'v1'}));
like(run_as('alice', $db,
	block('docs/sql-edition.md', 'After a restore from a snapshot', qr/advance_past/)),
	qr/^\s*$/, "her shards are taken ahead, and mallory's sequence of the same range is not tried");
is($node->safe_psql($db, q{SELECT drift > '9 min' FROM instaid.shards}), 't',
	'her shards are taken ahead');

$node->stop;
done_testing();
