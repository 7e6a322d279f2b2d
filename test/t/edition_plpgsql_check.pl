# What plpgsql_check finds in the functions of both editions, and of a shard.  pg_regress cannot
# be used, since plpgsql_check does not exist for every PostgreSQL.
#
# packages: postgresql-@PG@-plpgsql-check?
# not in: version assert

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use SqlEdition;

my $node = Clients::server('main');
plan skip_all => 'plpgsql_check is not installed for this PostgreSQL'
  if $node->safe_psql('postgres', q{SELECT 1 FROM pg_available_extensions
	WHERE name = 'plpgsql_check'}) eq '';
$node->safe_psql('postgres', 'CREATE ROLE dba LOGIN; CREATE ROLE app LOGIN');
$node->safe_psql('postgres', 'CREATE EXTENSION instaid_adopt');
SqlEdition::install($node, 's');

# Findings that stay: function, message, why
my @accepted = (
	[ qr/^instaid_adopt\._widening_plan/,
		qr/relation "pg_catalog\.pg_dist_partition" does not exist/,
		'a table of Citus' ],
	[ qr/^instaid_sql\._elsewhere/, qr/function instaid\.next_id\(regclass, .* does not exist/,
		'it calls the extension that has adopted the shard' ],
	[ qr/^instaid_sql\._open/, qr/unreachable code/,
		'a handler that does nothing leads there: another session has the lock' ],
	[ qr/^instaid\._lock_shard\(/, qr/composite OUT variable "options" is not single/,
		'callers assign the row to a record, of which plpgsql_check then knows the columns' ],
	[ qr/^instaid\.settled_id/, qr/unused parameter|end of function without RETURN/,
		'it refuses, with the arguments of the extension' ],
	[ qr/^instaid\._lock_shard_id/, qr/unused parameter "schema_name"/,
		'only that of the extension needs it' ],
	[ qr/./, qr/: RAISE: routine is marked as/, 'the text of an error is no result' ],
	[ qr/^instaid_sql\._refuse_epoch/, qr/routine is marked as IMMUTABLE/,
		'it makes texts of errors' ],
	[ qr/^instaid_sql\._utc_epoch/, qr/: IF: routine is marked as IMMUTABLE/,
		'milliseconds are the same in each time zone' ],
	[ qr/^instaid\._position/, qr/unused parameter "(shard_id|epoch)"/,
		'only that of the extension needs them' ],
	[ qr/^instaid_adopt\._hold_position/, qr/unused parameter "(schema_name|sequence)"/,
		'one edition locks the sequence, and the other one its schema' ]);

for my $database ('postgres', 's')
{
	# The schema of the check is not in the search path of a function.
	$node->safe_psql($database, 'CREATE SCHEMA checker; CREATE EXTENSION plpgsql_check
		SCHEMA checker');
	my ($checked, @findings) = split /\n/, $node->safe_psql($database, q{
		CREATE TEMPORARY TABLE routine AS
		SELECT p.oid, p.oid::regprocedure::text AS name,
			p.prorettype = 'trigger'::regtype AS is_trigger
		FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
			JOIN pg_language AS l ON l.oid = p.prolang
		WHERE l.lanname = 'plpgsql' AND n.nspname ~ '^insta';
		SELECT count(*) FROM routine;
		SELECT r.name, regexp_replace(
			concat_ws(': ', c.level, c.lineno, c.statement, c.message, c.detail, c.context),
			'\s+', ' ', 'g')
		FROM routine AS r
			-- a trigger's is checked for a table: any will do
			CROSS JOIN LATERAL checker.plpgsql_check_function_tb(r.oid,
				CASE WHEN r.is_trigger THEN 'routine'::regclass ELSE 0 END,
				fatal_errors => false) AS c
		ORDER BY r.name, c.lineno});
	cmp_ok($checked, '>', 20, "$database: $checked functions are checked");
	is(join("\n", grep { my $finding = $_; !grep { $finding =~ $_->[0] && $finding =~ $_->[1] }
		  @accepted } @findings), '',
		"$database: $checked functions are checked, which finds nothing else");
}

done_testing();
