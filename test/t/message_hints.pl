# The HINTs that no other test shows whole, in a table: what is done, and the hints that it meets.
# test/tools/hints.pl, which lint runs, finds a hint that no test has.
# not in: version assert

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use SqlEdition;

@Clients::extensions = ('instaid', 'instaid_adopt');
my $node = Clients::server('extension');
my $plain = SqlEdition::server('sql_edition');
$node->safe_psql('postgres', 'CREATE ROLE app LOGIN');
SqlEdition::install($plain, 'installed');

# The hints that psql prints for a script, with "..." for IDs.  If the script has lines "+++",
# another session runs what stands before the first one, and, as soon as the script waits for it,
# what stands after the second.
sub hints
{
	my ($server, $database, $role, $text) = @_;
	my ($first, $script, $later) = split /^\s*\+\+\+\n/m, $text;
	my $other;
	($first, $script) = (undef, $first) unless defined $script;
	if (defined $first)
	{
		$other = Clients::session($server, $database);
		note($other->($first));
	}
	my ($out, $err) = ('', '');
	my $file = PostgreSQL::Test::Utils::tempdir . '/script';
	append_to_file($file, $script);
	my $psql = IPC::Run::start([ $server->installed_command('psql'), '-XAtq',
		$role ? ('-U', $role) : (), '-d', $server->connstr($database), '-f', $file ],
		'<', \undef, '>', \$out, '2>', \$err);
	if (defined $later)
	{
		my $waiting = 'SELECT count(*) FROM pg_locks WHERE NOT granted';
		while ($server->safe_psql($database, $waiting) eq '0')
		{
			$psql->pump_nb;
			last unless $psql->pumpable;
		}
		note($other->($later));
	}
	$psql->finish;
	unlink $file;
	note($err);
	$other->('ROLLBACK') if $other;
	return Clients::hints($err) =~ s/\d{15,}/.../gr;
}

my @in_c = ($node, 'postgres');
my @in_sql = ($plain, 'installed');
my @in_both = (\@in_c, \@in_sql);

# A next_id() as it was published, with other arguments, or another shard ID
sub published
{
	my ($arguments, $shard) = @_;
	return 'next_id(' . ($arguments // '') . q{OUT result bigint) LANGUAGE plpgsql AS '
		BEGIN
			result := ((floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
				- 1314220021721) << 23) | (} . ($shard // 'SHARD') . q{ << 10)
				| nextval(''SCHEMA.table_id_seq'') % 1024;
		END'};
}
my $of_session = published('', q{current_setting(''app.shard'', true)::integer});

# one that only raises an error
sub raises { return published() =~ s{BEGIN}{BEGIN RAISE $_[0];}r }

# A schema with such a function
sub copy
{
	my ($schema, $shard, $function) = @_;
	$function = ($function // published()) =~ s/SCHEMA/$schema/gr =~ s/SHARD/$shard/gr;
	return "CREATE SCHEMA $schema; CREATE SEQUENCE $schema.table_id_seq;
		CREATE FUNCTION $schema.$function;
		CREATE TABLE $schema.t (id bigint PRIMARY KEY);\n";
}

my $failed = 'Each WARNING says what to do. Then call adopt_shards() again. If a shard ID is taken,'
  . ' and this is the schema that should have it, renumber the other one with'
  . ' instaid.renumber_shard().';

for my $case (
	# what is done; the server and database, or both editions'; the role; the script; the hints
	[ 'a shard ID for which another session creates a shard', \@in_both, '', q{
		BEGIN; SELECT instaid.create_shard('first', 12);
	+++
		SELECT instaid.create_shard('second', 12)}, 'Repeat the call when it has ended.' ],
	[ 'a position that was left out', \@in_c, '', q{
		SELECT instaid.create_shard('here', 11);
		SELECT instaid.restore_position('here.table_id_seq', NULL)},
		'Dump the positions again, and see the warnings.' ],
	[ 'a position of a sequence of another role', \@in_c, '', q{
		SELECT instaid.restore_position('here.table_id_seq', 5, instaid.default_epoch(), 'here',
			true, 'another')},
		'If it is the same shard, repeat the call without the owner.' ],
	[ 'a write to a table that instaid-move has stopped', \@in_both, '', q{
		SELECT instaid.create_shard('moved', 13);
		CREATE TABLE moved.t (id bigint);
		CREATE TRIGGER instaid_move_guard BEFORE INSERT ON moved.t
			EXECUTE FUNCTION instaid._move_guard('instaid_move_13');
		CREATE SCHEMA instaid_move_13;
		INSERT INTO moved.t SELECT;
		DROP SCHEMA instaid_move_13}, 'Use the shard in its new place.' ],

	# the SQL edition
	[ 'the SQL edition beside the extension', \@in_c, '', '\i sql-edition/all.sql',
		'Use the extension. "Back from the extension" in sql-edition.md leads here.' ],
	[ 'to_extension.sql without the extension', \@in_sql, 'dba',
		"\\set ON_ERROR_STOP on\n\\i sql-edition/to_extension.sql",
		'Do first what "To the extension" in sql-edition.md says.' ],
	[ 'a sequence of a shard whose range was changed', \@in_sql, 'dba', q{
		SELECT instaid.create_shard('ranges', 14);
		ALTER SEQUENCE ranges.table_id_seq MINVALUE 1;
		SELECT ranges.next_id()},
		'Use a sequence of the shard, as instaid.add_sequence() creates it. If this is one,'
		  . ' instaid.audit() has the cure.' ],
	[ 'adopt_shard() of the SQL edition, where another role may use the sequence', \@in_sql, 'dba',
		copy('granted', 16) . q{
		GRANT USAGE ON SEQUENCE granted.table_id_seq TO app;
		SELECT instaid_adopt.adopt_shard('granted')},
		'When the transactions of now have ended: REVOKE ALL ON SEQUENCE granted.table_id_seq FROM'
		  . ' app;' ],

	# adopt_column()
	[ 'adopt_column() beside a next_id() of another language', \@in_c, '', q{
		SELECT instaid.create_shard('rewritten', 15);
		CREATE OR REPLACE FUNCTION rewritten.next_id() RETURNS bigint
			LANGUAGE sql AS 'SELECT 1::bigint';
		CREATE TABLE rewritten.t (id bigint);
		SELECT instaid_adopt.adopt_column('rewritten.t', 'id')},
		'Let its owner create it again, as instaid.create_shard() does.' ],
	[ 'adopt_column() of a table with a child of another role', \@in_c, '', q{
		SELECT instaid.create_shard('parents', 17);
		CREATE TABLE parents.t (id bigint); CREATE TABLE parents.child () INHERITS (parents.t);
		ALTER TABLE parents.child OWNER TO app;
		SELECT instaid_adopt.adopt_column('parents.t', 'id')},
		'Give all of them to one owner, or detach those of other owners.' ],
	[ 'adopt_column() while another session creates a view of the column', \@in_c, '', q{
		CREATE SCHEMA viewed; CREATE TABLE viewed.t (id integer);
		SELECT instaid.create_shard('viewed', 18);
		BEGIN; CREATE VIEW viewed.v AS SELECT id FROM viewed.t;
	+++
		SELECT instaid_adopt.adopt_column('viewed.t', 'id');
	+++
		COMMIT}, 'Repeat the call.' ],
	[ 'adopt_column() with values an hour ahead of the clock', \@in_c, '', q{
		SELECT instaid.create_shard('hour', 19); CREATE TABLE hour.t (id bigint);
		INSERT INTO hour.t SELECT instaid.min_id(now() + interval '1 hour');
		SELECT instaid_adopt.adopt_column('hour.t', 'id')},
		q{To begin above it: SELECT instaid.advance_past('hour.table_id_seq', ...,}
		  . q{ '2011-08-24 21:07:01.721+00');} ],
	[ 'adopt_column() with values years ahead of the clock', \@in_c, '', q{
		SELECT instaid.create_shard('years', 20); CREATE TABLE years.t (id bigint);
		INSERT INTO years.t VALUES (5000000000000000000);
		SELECT instaid_adopt.adopt_column('years.t', 'id')},
		'Give those rows other values. Or adopt the column in a schema whose shard has an earlier'
		  . q{ epoch: SELECT instaid.create_shard('years_2008', 8191, '2008-01-01 00:00:00+00');}
		  . ' ALTER TABLE years.t SET SCHEMA years_2008;' ],

	# adopt_shard()
	[ 'adopt_shard() of a next_id() with an argument', \@in_c, '', copy('argument', 21,
			published('n integer DEFAULT 5, ')) . q{SELECT instaid_adopt.adopt_shard('argument')},
		'Rename it: ALTER FUNCTION argument.next_id(integer) RENAME TO old_next_id; Defaults follow'
		  . ' it.' ],
	[ 'adopt_shard() of a function that fails without a setting', \@in_c, '', copy('unset', 22,
			$of_session =~ s/BEGIN/BEGIN ASSERT current_setting(''app.shard'', true) > '''';/r)
		  . q{SELECT instaid_adopt.adopt_shard('unset')},
		'It depends on current_setting in unset.next_id(): write what clients'
		  . ' have there into its text, and try again.' ],
	[ 'adopt_shard() of a function that reads a setting', \@in_c, '', copy('reads', 23, $of_session)
		  . q{SET app.shard = 23; SELECT instaid_adopt.adopt_shard('reads')},
		'Pass the shard ID of the clients to instaid_adopt.adopt_shard().' ],
	[ 'adopt_shard() of a function that reads a setting, with rows', \@in_c, '',
		copy('with_rows', 24, $of_session) . q{
		ALTER TABLE with_rows.t ALTER id SET DEFAULT with_rows.next_id();
		SET app.shard = 24; INSERT INTO with_rows.t DEFAULT VALUES;
		SELECT instaid_adopt.adopt_shard('with_rows')},
		q{If the rows are right: SELECT instaid_adopt.adopt_shard('with_rows', 24);} ],
	[ 'adopt_shard() of a function that fails', \@in_c, '', copy('fails', 25, raises(q{''no''}))
		  . q{SELECT instaid_adopt.adopt_shard('fails')},
		'Correct the function, and try again. To let it return IDs of a new shard: SELECT'
		  . q{ instaid_adopt.replace_copy('fails.next_id()');} ],
	[ 'adopt_shard() while a table is given away', \@in_c, '', copy('given', 26) . q{
		ALTER TABLE given.t ALTER id SET DEFAULT given.next_id();
		BEGIN; ALTER TABLE given.t OWNER TO app;
	+++
		SELECT instaid_adopt.adopt_shard('given');
	+++
		COMMIT}, 'Try again.' ],
	[ 'adopt_shard() while the function is dropped', \@in_c, '', copy('dropped', 27) . q{
		ALTER TABLE dropped.t ALTER id SET DEFAULT dropped.next_id();
		BEGIN; DROP FUNCTION dropped.next_id() CASCADE;
	+++
		SELECT instaid_adopt.adopt_shard('dropped');
	+++
		COMMIT}, 'Try again.' ],
	[ 'adopt_shard() of a copy with another number beside the next_id() of a shard', \@in_c, '', q{
		SELECT instaid.create_shard('beside', 29); CREATE SEQUENCE beside.other_seq;}
		  . "CREATE FUNCTION beside." . published('', 28) =~ s/next_id/other_id/r
		  =~ s/SCHEMA.table_id/beside.other/r . q{;
		SELECT instaid_adopt.adopt_shard('beside')},
		'To let it return IDs of this shard: SELECT'
		  . q{ instaid_adopt.replace_copy('beside.other_id()');} ],

	# adopt_shards()
	(map { [ "adopt_shards() of a function that raises $_->[1]", \@in_c, '',
			copy("raises$_->[0]", $_->[0], raises($_->[1]))
			  . "CALL instaid_adopt.adopt_shards('raises$_->[0]')", "$_->[2]\n$failed" ] }
		[ 30, 'query_canceled', 'The function says so: correct it, and try again.' ],
		[ 31, 'lock_not_available', 'Call again when the transactions of now have ended.' ],
		[ 32, 'serialization_failure', 'Mend the cause, and try again.' ]),

	# replace_copy()
	[ 'replace_copy() of a function with an argument, and without a shard ID', \@in_c, '',
		copy('numberless', 34, published('n integer, ', 'n') =~ s{next_id}{some_id}r)
		  . q{SELECT instaid_adopt.replace_copy('numberless.some_id(integer)')},
		"If it has made IDs, roll back, and pass an earlier epoch.\n"
		  . 'Pass one that is free on all your servers: SELECT'
		  . q{ instaid_adopt.replace_copy('numberless.some_id(integer)', 8191);} ])
{
	my ($name, $where, $role, $script, $hints) = @$case;
	for my $place (ref $where->[0] eq 'ARRAY' ? @$where : $where)
	{
		is(hints(@$place, $role, $script), $hints, $name . ($where == \@in_both
			? $place == \@in_c ? ', with the extension' : ', with the SQL edition' : ''));
	}
}

done_testing();
