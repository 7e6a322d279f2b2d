# Settings that change what text means do not change what a function does: each function in
# PL/pgSQL that users call says the same.  pg_regress compares with one output, and not two
# runs with each other.
# not in: version assert

use strict;
use warnings;

use Test::More;

use Clients;

my $node = Clients::server('main');
$node->safe_psql('postgres', sprintf q{
	CREATE ROLE alice; GRANT CREATE ON DATABASE postgres TO alice;
	CREATE EXTENSION instaid_adopt;
	CREATE SCHEMA dblink; CREATE EXTENSION dblink SCHEMA dblink;
	CREATE SERVER here FOREIGN DATA WRAPPER dblink_fdw
		OPTIONS (host '%s', port '%s', dbname 'postgres', connect_timeout '20');
	CREATE USER MAPPING FOR CURRENT_USER SERVER here}, $node->host, $node->port);

# How each function is called, in this order
my $partitions = q{string_agg(p::text, ';') FROM instaid.create_partitions('q1.views',
	'2026-01-01 UTC', '2026-01-03 UTC', '1 day') AS p};
my @calls = (
	q{instaid.create_shard('q1', 11)},
	q{instaid.freeze_shard('q1')},
	q{instaid.thaw_shard('q1')},
	q{instaid.renumber_shard('q1', 13)},
	q{CALL instaid.create_shards('q%s', 21, 22)},
	q{CALL instaid_adopt.adopt_shards('q2', true)},
	q{CALL instaid_adopt.adopt_shards('q2')},
	q{instaid_adopt.adopt_shard('q3', 33)},
	q{instaid_adopt.replace_copy('q2.other(text)')},
	q{string_agg(a, ';') FROM instaid_adopt.adopt_column('q1.users', 'id') AS a},
	$partitions,
	$partitions,
	q{string_agg(regexp_replace(d, '[0-9]{15,}', 'ID'), '' ORDER BY d)
		FROM instaid.dump_positions() AS d},
	q{instaid.restore_position('q1.table_id_seq', NULL)});
is($node->safe_psql('postgres', sprintf q{
	SELECT string_agg(proname, ' ' ORDER BY proname)
	FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang
	WHERE pronamespace::regnamespace::text ~ '^instaid(_adopt)?$' AND lanname = 'plpgsql'
		AND proname !~ '^_'
	  AND proname <> ALL ('{%s}')}, join(',', map { /instaid(?:_adopt)?\.(\w+)/ } @calls)), '',
	'each function in PL/pgSQL is called');

# Run a statement; return what psql says.
sub said
{
	my ($sql) = @_;
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");
	return "$stdout$stderr\n";
}

# What the functions say with these settings, without what differs by the time, and without
# quotes
sub run_all
{
	my ($settings) = @_;
	local $ENV{PGOPTIONS} = $settings;
	# the published function, in schemas of an ordinary role
	said(qq{
		SET ROLE alice;
		CREATE SCHEMA q$_; CREATE SEQUENCE q$_.table_id_seq;
		CREATE FUNCTION q$_.next_id() RETURNS bigint LANGUAGE plpgsql AS \$\$
		BEGIN
			RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
					- 1387263000000 << 23) | (30 + $_ << 10)
				| nextval('q$_.table_id_seq') % 1024;
		END \$\$;
		CREATE FUNCTION q$_.other(a text) RETURNS bigint LANGUAGE plpgsql AS \$\$
		BEGIN
			RETURN (extract(epoch FROM now()) * 1000)::bigint << 22 | nextval(a) % 1024;
		END \$\$}) for 2, 3;
	my $all = '';
	for my $call (@calls)
	{
		# the owner adopts
		my $said = said(($call =~ /adopt_shard|replace_copy/ ? 'SET ROLE alice;' : '')
			. ($call =~ /^CALL/ ? $call : "SELECT $call"));
		$said = $said =~ s/"//gr =~ s/^.*LOCATION:.*\n//mgr
		  =~ s/\d{19}|\d{4}-\d\d-\d\d \d.*/.../gr;
		unlike($said, qr/ERROR/, "$call with $settings");
		$all .= $said;
		said(q{
			CREATE TABLE q1.users (id serial PRIMARY KEY);
			CREATE TABLE q1.refers (user_id integer REFERENCES q1.users);
			CREATE TABLE q1.views (id bigint) PARTITION BY RANGE (id);
			CREATE TABLE q1.views_default PARTITION OF q1.views DEFAULT})
		  if $call =~ /create_shard/;
	}
	said('DROP SCHEMA q1, q2, q3, q21, q22 CASCADE');
	return $all;
}

my $usual = run_all('');
for my $settings (
	# PostgreSQL 19 does not have this setting
	$node->pg_version->major < 19 ?
	  '-c standard_conforming_strings=off -c escape_string_warning=off' : (),
	'-c quote_all_identifiers=on')
{
	is(run_all($settings), $usual, "$settings changes nothing");
}

$node->stop;
done_testing();
