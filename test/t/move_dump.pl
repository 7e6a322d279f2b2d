# instaid-move --dump between two servers that cannot replicate, as a role that may not: the
# rows are copied while writes are refused.  Killed at each step, and cancelled.
#
# FULL=1 adds a cancellation after each step
# not in: assert
# takes 100 s

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Move;
use SqlEdition;

# wal_level = minimal
my @options = ({ auth_extra => [ '--create-role', 'own' ] }, 'max_wal_senders = 0',
	'wal_level = minimal', 'fsync = off');
my ($old, $new) = map { Clients::server($_, @options) } 'a', 'b';
$_->safe_psql('postgres', 'CREATE ROLE own LOGIN; CREATE ROLE app; CREATE DATABASE sql;
	GRANT CREATE ON DATABASE postgres, sql TO own') for $old, $new;

my $db = 'postgres';
my ($from, $to) = ($old, $new);
my ($out, $err);

# Run the program as the owner; returns its exit status, and sets $out and $err.
sub im
{
	my (@args) = @_;
	my @at = ref $args[0] ? shift @args : ();
	(my $rc, $out, $err) = Move::run(@at, '--from', $from->connstr($db) . ' user=own',
		'--to', $to->connstr($db) . ' user=own', @args);
	return $rc;
}
sub sql { my ($node, $sql) = @_; return $node->safe_psql($db, $sql) }
sub error_of { my ($node, $sql) = @_; return ($node->psql($db, $sql))[2] }
sub left { return join ' ', grep { $_ } map { sql($_, $Move::left) } $old, $new }
sub places { return Move::places($db, $old, $new) }

# With much that replication would refuse
my $schema = q{
	SET ROLE own; SET client_min_messages = warning;
	SELECT instaid.create_shard('insta5', 5);
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer,
		twice integer GENERATED ALWAYS AS (n * 2) STORED, "odd "" name" text,
		serial integer GENERATED ALWAYS AS IDENTITY);
	INSERT INTO insta5.photos (n, "odd "" name")
	SELECT i, CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN E'a\tb\\\\N\n' ELSE '' END
	FROM generate_series(1, 20000) AS i;
	ALTER TABLE insta5.photos ADD gone integer DEFAULT 1; ALTER TABLE insta5.photos DROP gone;
	CREATE TABLE insta5.likes (photo_id bigint REFERENCES insta5.photos, place serial);
	INSERT INTO insta5.likes SELECT id FROM insta5.photos LIMIT 1000;
	CREATE UNLOGGED TABLE insta5.cache (n integer); INSERT INTO insta5.cache VALUES (1), (1);
	CREATE TABLE insta5.empty (); INSERT INTO insta5.empty DEFAULT VALUES;
	CREATE TABLE insta5.events (id bigint DEFAULT insta5.next_id(), n integer)
		PARTITION BY RANGE (id);
	CREATE TABLE insta5.events_1 PARTITION OF insta5.events DEFAULT;
	INSERT INTO insta5.events (n) SELECT generate_series(1, 100);
	CREATE FUNCTION insta5.audit() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN INSERT INTO insta5.cache VALUES (2); RETURN NEW; END';
	CREATE TRIGGER audit AFTER INSERT ON insta5.likes FOR EACH ROW EXECUTE FUNCTION insta5.audit();
	ALTER TABLE insta5.likes ENABLE ALWAYS TRIGGER audit;
	CREATE MATERIALIZED VIEW insta5.counts AS SELECT count(*) FROM insta5.photos;
	CREATE FUNCTION insta5.ok(integer) RETURNS boolean LANGUAGE sql AS 'SELECT true';
	CREATE TABLE insta5.checked (n integer CHECK (insta5.ok(n)));
	INSERT INTO insta5.checked VALUES (1);
	CREATE INDEX ON insta5.photos (n);
	GRANT USAGE ON SCHEMA insta5 TO app; GRANT INSERT ON insta5.photos TO app;
	COMMENT ON TABLE insta5.photos IS 'with a comment';};
my $sums = q{SELECT count(*), sum(n), sum(twice), sum(hashtext("odd "" name")), max(serial)
		FROM insta5.photos;
	SELECT count(*), max(place), (SELECT count(*) FROM insta5.cache),
		(SELECT count(*) FROM insta5.empty), (SELECT sum(n) FROM insta5.events_1),
		(SELECT count > 0 FROM insta5.counts) FROM insta5.likes};

sql($old, $schema);
my $before = sql($old, $sums);
is(im('insta5'), 5, 'a role that is not a superuser does not move a shard without --dump');
like($out, qr/^  ! own is not a superuser of the source, .*, or move with --dump$/m,
	'the check names --dump to a role that is not a superuser');
is(im('--dump', $_), 2, "--dump is refused with $_") for '--prepare', '--switch', '--reverse';
is(im('--dump', '--check-only', 'insta5'), 0, '--dump --check-only finds nothing in the way');
like($out, qr/insta5: 6 tables, [\d.]+ [kM]B\n.*\n  - writes will be refused while all of that/,
	'--dump --check-only tells the size of what is copied');
like($out, qr/^  - the target needs [\d.]+ [kM]B of free disk or more: this is not checked$/m,
	'--dump --check-only tells the disk that it needs');
is(left(), '', '--dump --check-only changes nothing');
$new->safe_psql('postgres', 'REVOKE CREATE ON DATABASE postgres FROM own');
is(im('--dump', '--check-only', 'insta5'), 5,
	'--dump is refused to a role that may not create schemas on the target');
like($out, qr/^  ! own may not create schemas on the target: GRANT CREATE ON DATABASE$/m,
	'the right to create schemas on the target is told');
$new->safe_psql('postgres', 'GRANT CREATE ON DATABASE postgres TO own');

my $clients = Clients->start($old, { retry => 1 },
	('INSERT INTO insta5.photos (n) VALUES (0) RETURNING id;') x 3);
is(im('--dump', 'insta5'), 0, 'a move with --dump while clients write');
$clients->stop;
like($out, qr/verified: 5 tables, (?:.*\n)*.*switched.* to copy.*\n.*moved.*next: --finish$/m,
	'a move with --dump compares rows before the switch');
{
	my ($all, $parts) = $out =~ /refused for (\d+) ms \((.*)\)/;
	cmp_ok(abs($all - eval join '+', $parts =~ /(\d+)/g), '<=', 2,
		"the parts of the $all ms without writes add up: $parts");
}
{
	my (%ids, $twice);
	/^(\d+)$/ and $twice += !!$ids{$1}++ for map { split /\n/, slurp_file($_) } $clients->files;
	my %there = map { $_ => 1 } split /\n/, sql($new, 'SELECT id FROM insta5.photos');
	is(join(' ', grep { !$there{$_} } keys %ids), '',
		'of ' . keys(%ids) . ' inserts during a move with --dump none is lost');
	cmp_ok(keys %ids, '>', 0, 'clients were served before a move with --dump');
	is($twice // 0, 0, 'a move with --dump: no ID comes twice');
	like(slurp_file($clients->file(0) . '.err'), qr/shard insta5 is frozen/,
		'a move with --dump: clients are refused at the source');
}
is(places(), 'insta5 frozen insta5', 'a move with --dump: the target serves the shard');
is(sql($new, 'DELETE FROM insta5.photos WHERE n = 0') . sql($new, $sums =~ s/, max\(serial\)//r),
	$before =~ s/^(.*)\|\d+$/$1/mr,
	'a move with --dump: the target has all rows, and no trigger has fired');
like(error_of($old, $_), qr/shard insta5 is frozen/,
	"the source refuses after a move with --dump: $_")
  for 'UPDATE insta5.photos SET n = 0', 'INSERT INTO insta5.checked VALUES (1)';
is(error_of($new, 'INSERT INTO insta5.photos (n) VALUES (1); INSERT INTO insta5.likes
	SELECT max(id) FROM insta5.photos; UPDATE insta5.checked SET n = 2'), '',
	'the target takes writes after a move with --dump');
is(sql($new, q{SELECT nspowner::regrole, has_table_privilege('app', 'insta5.photos', 'INSERT'),
	(SELECT reltuples FROM pg_class WHERE oid = 'insta5.likes'::regclass),
	(SELECT count(*) > 0 FROM pg_stats WHERE schemaname = 'insta5' AND tablename = 'photos')
	FROM pg_namespace WHERE nspname = 'insta5'}), 'own|t|1000|t',
	'a move with --dump keeps owner and rights, and makes statistics');
is(im('--dump', 'insta5'), 0, 'the same command after a move with --dump does nothing');
is(im('--status'), 0, '--status after a move with --dump');
like($out, qr/^insta5: moved, .*\n  serves: .* target\n.*none\n  next: .*--finish$/m,
	'--status after a move with --dump tells to --finish');
# to a superuser, who does not believe the mark of another role
for my $case ([ 'insta5', '--check-only' ], [ 'insta%' ], [ 'insta5', '--finish' ], ['--finish'],
	['--cancel'], ['--status'])
{
	my ($rc, $said, $failed) = Move::run('--from', $from->connstr($db), '--to', $to->connstr($db),
		'--trust', 'own', @$case);
	is($rc, 5, "the move of another role: @$case");
	like($failed, qr/^instaid-move: role own has a move of these shards, or claims to have one
  why:  Publication instaid_move_5 of the target belongs to it\.
  next: Run the command as own\./m, "the role that has the move is named: @$case");
	unlike("$said$failed", qr/drop (?!its publication)/, "nothing is to be dropped: @$case");
}
is((Move::run('--from', $from->connstr($db), '--to', $to->connstr($db), '--finish', 'insta6'))[0],
	0, 'other shards than those of the move of another role');
sql($new, q{CREATE ROLE mallory; GRANT CREATE ON DATABASE postgres TO mallory; SET ROLE mallory;
	CREATE PUBLICATION instaid_move_7;
	COMMENT ON PUBLICATION instaid_move_7 IS '"insta5" no json'});
is(im('--status'), 0, 'a mark that another role forges changes nothing of a move');
sql($new, 'DROP OWNED BY mallory; DROP ROLE mallory');
is(im('--reverse'), 5, 'a move with --dump has no --reverse');
is(im('--cancel'), 5, 'a move with --dump is not cancelled after the switch');
like($err, qr/next: --finish the move, and then move it/,
	'--cancel after the switch of --dump tells to --finish');
is(im('--finish'), 0, '--finish of a move with --dump');
is(places() . left(), '- insta5', '--finish of a move with --dump leaves nothing');
($from, $to) = ($new, $old);
is(im('--dump', 'insta5'), 0, 'the way back is another move with --dump');
is(im('--finish'), 0, '--finish of the move back');
($from, $to) = ($old, $new);

# Killed at each step, and cancelled
my $only = places() . left();
my @steps = ('begun', 'guards', 'rehearsing', 'rehearsed', 'stopping', 'guarded', 'stopped',
	'made', 'copied', 'verified', 'told');
{
	my @wrong;
	for my $at ($ENV{FULL} ? @steps : ('begun', 'rehearsing', 'stopping', 'copied', 'told'))
	{
		my $got = im({ at => $at }, '--dump', 'insta5');
		push @wrong, "$at: $got" if $got != -1;
		$got = im('--cancel');
		push @wrong, "$at: --cancel $got" if $got || places() . left() ne $only;
		push @wrong, "$at: no insert" if error_of($old, 'INSERT INTO insta5.checked VALUES (1)');
	}
	is("@wrong", '', '--cancel after a kill leaves both sides as before');
	@wrong = ();
	for my $at (@steps, 'switched', 'publication dropped', 'marked')
	{
		my $got = im({ at => $at }, '--dump', 'insta5');
		push @wrong, "$at: $got" if $got != -1;
	}
	is("@wrong", '', 'the same command goes on after a kill, up to the next step');
	is(im('--dump', 'insta5'), 0, 'the same command ends well after a kill at each step');
	is(places(), 'insta5 frozen insta5', 'the target serves after a kill at each step');
	is(im('--finish'), 0, '--finish after a kill at each step');
	is(places() . left(), '- insta5', '--finish after a kill at each step leaves nothing');
	($from, $to) = ($new, $old);
	is(im('--dump', 'insta5') + im('--finish'), 0,
		'the shard moves back after a kill at each step');
	($from, $to) = ($old, $new);
}

is(im({ at => 'stopped' }, '--dump', 'insta5'), -1,
	'a move with --dump is killed while writes are refused');
is(im('insta5'), 2, 'a move with --dump does not go on without --dump');
like($err, qr/the move of insta5 has begun with --dump\n.*Writes are ref.*\n.*Run it with --dump/,
	'a move without --dump tells that it has begun with --dump');
is(im('--status'), 0, '--status after a kill of a move with --dump');
like($out, qr/^  next:    run the command again with --dump, or --cancel$/m,
	'--status after a kill tells to go on with --dump');
is(im('--cancel'), 0, '--cancel of a move with --dump that was killed');

# What fails while writes are refused is taken back
sub serves
{
	my ($what) = @_;
	is(places(), 'insta5 -', "$what: the source serves, and the target has nothing");
	is(error_of($old, 'INSERT INTO insta5.checked VALUES (1)'), '',
		"$what: the source takes writes");
	return;
}
is(im({ at => 'made', do => 'kill -TERM $PPID' }, '--dump', 'insta5'), 8,
	'SIGTERM ends a move with --dump');
serves('after SIGTERM');
is(im('--dump', 'insta5', '--on-switch', 'exit 1'), 9, 'a move with --dump whose router fails');
serves('after the router failed');
sql($old, q{CREATE OR REPLACE FUNCTION insta5.ok(integer) RETURNS boolean LANGUAGE sql
	AS 'SELECT false'});
is(im('--dump'), 1, 'a row that the target refuses stops a move with --dump');
like($err, qr/violates check constraint/, 'the error of a row that the target refuses is told');
$db = 'postgres';
sql($old, q{CREATE OR REPLACE FUNCTION insta5.ok(integer) RETURNS boolean LANGUAGE sql
	AS 'SELECT true'});
serves('after a row was refused');
sql($new, 'ALTER DEFAULT PRIVILEGES FOR ROLE own GRANT SELECT ON TABLES TO app');
is(im('--dump'), 6, 'other rights on the target stop a move with --dump');
like($out, qr/differs: acl insta5\.TABLE photos of .*\n.*\n.*target: GRANT SELECT,INSERT ON/,
	'other rights on the target are told');
unlike($out, qr/taken back|copied,/,
	'other rights on the target are seen before writes are refused');
sql($new, 'ALTER DEFAULT PRIVILEGES FOR ROLE own REVOKE SELECT ON TABLES FROM app');
sql($new, 'CREATE SCHEMA insta5');
is(im('--dump'), 5, 'a schema of that name on the target stops a move with --dump');
sql($new, 'DROP SCHEMA insta5');
is(im('--cancel'), 0, '--cancel after several failures');
is(places() . left(), $only, '--cancel after several failures leaves both sides as before');

# Rows that the target has otherwise: not seen by a copy that succeeds, but by the comparison
sql($new, q{CREATE FUNCTION public.alter() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
	IF to_regclass('insta5.checked') IS NOT NULL THEN UPDATE insta5.checked SET n = 7; END IF;
	END $$;
	CREATE EVENT TRIGGER alter ON ddl_command_end WHEN TAG IN ('CREATE INDEX')
	EXECUTE FUNCTION public.alter()});
is(im('--dump', 'insta5'), 6, 'rows that differ stop a move with --dump');
like($out, qr/^table insta5\.checked differs\n  only on the source: row \(1\)/m,
	'rows that differ after a copy are named');
serves('after rows differed');
sql($new, 'DROP EVENT TRIGGER alter');
# What another role makes meanwhile, and fits better than what the shard uses
{
	my $f = q{CREATE FUNCTION ext.f(anyelement) RETURNS boolean LANGUAGE sql AS 'SELECT true';};
	sql($_, "CREATE SCHEMA ext; GRANT USAGE ON SCHEMA ext TO PUBLIC; $f") for $from, $to;
	sql($to, 'GRANT CREATE ON SCHEMA ext TO app; SET ROLE app; CREATE SEQUENCE ext.ran;
		GRANT ALL ON SEQUENCE ext.ran TO PUBLIC');
	sql($from, 'ALTER TABLE insta5.checked ADD CONSTRAINT better CHECK (ext.f(n))');
	my $better = q{CREATE FUNCTION ext.f(integer) RETURNS boolean LANGUAGE sql
		AS 'SELECT nextval(''ext.ran'') > 0'};
	my $file = PostgreSQL::Test::Utils::tempdir . '/better.sql';
	append_to_file($file, "SET ROLE app; $better");
	my $plants = "psql -qd \"" . $to->connstr($db) . "\" -f $file";
	# when it is tried, and when rows follow
	for my $when (1, 2)
	{
		my $count = "$file.count$when";
		my $do = "echo >>$count; test `wc -l <$count` -ne $when || $plants";
		is(im({ at => 'dumped', do => $do }, '--dump', 'insta5'), 5,
			"a function of another role that fits better is refused, dump $when");
		like($out, qr/use or could use function ext\.f\(integer\) of the target, which/,
			"the function that fits better is told, dump $when");
		is(sql($to, 'SELECT is_called FROM ext.ran'), 'f', "it did not run, dump $when");
		serves("after a function that fits better, dump $when");
		is(im('--dump', 'insta5'), 5, "it is refused from the beginning, dump $when");
		sql($to, 'DROP FUNCTION ext.f(integer)');
		is(im('--cancel'), 0, "--cancel after a function that fits better, dump $when");
	}
	sql($from, 'ALTER TABLE insta5.checked DROP CONSTRAINT better');
}

is(im('--dump', 'insta5', '--no-verify'), 0, 'a move with --dump --no-verify');
unlike($out, qr/verified|--verify/, '--no-verify says nothing of a comparison');
is(im('--finish'), 0, '--finish of a move with --dump --no-verify');

# The SQL edition
$db = 'sql';
for my $node ($old, $new)
{
	$node->safe_psql('sql', SqlEdition::changed(), extra_params => [ '-U', 'own' ]);
}
sql($old, $schema);
IPC::Run::run([ 'instaid-move', '--from', $from->connstr($db), '--to', $to->connstr($db),
		'--dump', '--check-only', '--trust', 'own', 'insta5' ], '<', \undef, '>', \$out, '2>',
	\$err);
is($? >> 8, 5, 'a superuser does not move a shard of the SQL edition');
like($out, qr/^  ! schema insta5 belongs to own, .* SQL edition .*: connect as own to the source$/m,
	'a superuser is told whom to be on the source');
like($out, qr/^  ! the shards belong to own, .* SQL edition .*: connect as own to the target$/m,
	'a superuser is told whom to be on the target');
is(im('insta5'), 5, 'the owner does not move a shard of the SQL edition without --dump');
SKIP:
{
	skip 'any role may create subscriptions', 2 if $old->pg_version >= 16;
	like($out, qr/^  ! own is not a superuser of the target, .*: make this role one, .* --dump/m,
		'the owner is told that subscriptions need a superuser');
	unlike($out, qr/must be superuser.*give --/,
		'the owner is told no connection string, which would not help');
}
is(im('--dump', 'insta5'), 0, 'a move of the SQL edition with --dump');
is(places(), 'insta5 frozen insta5', 'the SQL edition: the target serves');
is(sql($new, $sums), $before, 'the SQL edition: the target has all rows');
is(error_of($new, 'INSERT INTO insta5.photos (n) VALUES (1)'), '',
	'the SQL edition: the target takes writes');
is(im('--finish'), 0, 'the SQL edition: --finish');
is(places() . left(), '- insta5', 'the SQL edition: --finish leaves nothing');
sql($new, 'SET ROLE own; SELECT instaid.freeze_shard($$insta5$$)');
($from, $to) = ($new, $old);
is(im('--dump', 'insta5'), 0, 'the SQL edition: a move of a frozen shard');
is(places(), 'insta5 frozen insta5 frozen', 'the SQL edition: a frozen shard stays frozen');
is(sql($old, 'SET ROLE own; SELECT instaid.thaw_shard($$insta5$$);
	INSERT INTO insta5.photos (n) VALUES (1); SELECT count(*) - count(DISTINCT id)
	FROM insta5.photos'), "\n0", 'the SQL edition: a frozen shard that was moved is thawed');
is(im('--finish'), 0, 'the SQL edition: --finish of a frozen shard');

Move::is_all_met();
done_testing();
