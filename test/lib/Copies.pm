# A database that is copied in all possible ways, and whether a copy goes on above the
# original.
#
# The sequence of shard "ahead" is an hour ahead of the clock, as it is after the clock
# was set back: a copy can only know this from the state of the sequence.  Shard
# "light" follows the clock.

package Copies;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw($shards $fill $calls last_ids goes_on);

our $shards = q{
	SELECT instaid.create_shard('light', 5);
	SELECT instaid.create_shard('ahead', 6);
	CREATE TABLE light.photos (id bigint PRIMARY KEY DEFAULT light.next_id(), n integer);
	CREATE TABLE ahead.photos (id bigint PRIMARY KEY DEFAULT ahead.next_id(), n integer);};
our $fill = q{
	SET client_min_messages = error;
	SELECT setval('ahead.table_id_seq',
		(extract(epoch FROM now() + interval '1 h') * 1000)::bigint << 10);
	INSERT INTO ahead.photos (n) SELECT generate_series(1, 3000);
	INSERT INTO light.photos (n) SELECT generate_series(1, 3000);};

# Calls that take values of sequences, each of a sequence of its own.  take() stores some
# values of each call, and returns which were not above those before.  Before a sequence
# is copied, use() lets instaid write its last WAL record, which covers more values.  (In
# the copy of a sequence whose last record core wrote, nextval() believes in that record,
# and up to 32 of its values come again after a crash.)
our $calls = q{
	CREATE TABLE calls (call text PRIMARY KEY);
	CREATE TABLE taken (call text, value bigint);
	CREATE SCHEMA copied;
	CREATE FUNCTION add_calls(name text) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		call text;
	BEGIN
		FOREACH call IN ARRAY ARRAY[
			format('instaid.next_id(%L, 7)', 'copied.' || quote_ident(name || ' next_id')),
			format('nextval(%L)', 'copied.' || quote_ident(name || ' nextval')),
			format('instaid_tickets.next(%L)', 'copied.' || quote_ident(name || ' next')),
			format('nextval(%L)', 'copied.' || quote_ident(name || ' nextval of a ticket')),
			format('instaid_tickets.next(%L)',
				'copied.' || quote_ident(name || ' next of a stepped ticket')),
			format('nextval(%L)',
				'copied.' || quote_ident(name || ' nextval of a stepped ticket'))]
		LOOP
			INSERT INTO calls VALUES (call);
		END LOOP;
		FOR call IN
			SELECT format('copied.%I', name || kind)
			FROM unnest(ARRAY[' next_id', ' nextval']) AS kind
		LOOP
			EXECUTE 'CREATE SEQUENCE ' || call;
			PERFORM instaid.advance_past(call, instaid.min_id(now() + interval '1 h'),
				instaid.default_epoch());
		END LOOP;
		PERFORM instaid_tickets.create(format('copied.%I', name || kind), step => step)
		FROM (VALUES (' next', 1), (' nextval of a ticket', 1),
			(' next of a stepped ticket', 50), (' nextval of a stepped ticket', 50)
		) AS t (kind, step);
	END $$;
	CREATE FUNCTION use() RETURNS bigint LANGUAGE sql
		SET client_min_messages = error SET instaid.max_drift = '1d' AS $$
		SELECT count(CASE WHEN relname ~ '(next|ticket)$' THEN instaid_tickets.next(oid)
			ELSE instaid.next_id(oid, 7) END)
		FROM pg_class WHERE relnamespace = 'copied'::regnamespace AND relkind = 'S' $$;
	CREATE FUNCTION take() RETURNS SETOF text LANGUAGE plpgsql
		SET client_min_messages = error SET instaid.max_drift = '1d' AS $$
	DECLARE
		taker text;
		before bigint;
		first bigint;
	BEGIN
		FOR taker IN SELECT call FROM calls ORDER BY 1 LOOP
			SELECT max(value) INTO before FROM taken WHERE call = taker;
			EXECUTE format('WITH new AS (
					INSERT INTO taken SELECT %L, %s FROM generate_series(1, 10) RETURNING value)
				SELECT min(value) FROM new', taker, taker) INTO first;
			IF first <= before THEN
				RETURN NEXT format('%s: %s came after %s', taker, first, before);
			END IF;
		END LOOP;
	END $$;};

# The last IDs of the shards, by name
sub last_ids
{
	my ($node, $database) = @_;
	my %last;
	@last{ 'light', 'ahead' } = split /\|/, $node->safe_psql($database,
		'SELECT (SELECT max(id) FROM light.photos), (SELECT max(id) FROM ahead.photos)');
	return %last;
}

# Insert a row into each shard of a copy; the new IDs must be above those in %last.  Let
# the copy crash, and try again.
sub goes_on
{
	my ($name, $node, $database, %last) = @_;
	my $has_calls =
	  $node->safe_psql($database, q{SELECT count(*) FROM pg_class WHERE relname = 'calls'});
	for my $when ($name, "$name, and a crash")
	{
		if ($when ne $name)
		{
			$node->stop('immediate');
			$node->start;
		}
		for my $schema (sort keys %last)
		{
			my $next = $node->safe_psql($database, qq{
				SET client_min_messages = error;
				INSERT INTO $schema.photos DEFAULT VALUES RETURNING id});
			cmp_ok($next, '>', $last{$schema}, "$when: new IDs of $schema are above");
			$last{$schema} = $next;
		}
		is($node->safe_psql($database, 'SELECT take()'), '', "$when: no value comes again")
		  if $has_calls;
	}
	return;
}

1;
