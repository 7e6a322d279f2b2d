# The mark in a sequence's log_cnt, which instaid and instaid_tickets share, and which libraries of
# different versions read: src/common/sequence.h.  A build of each library with another mark stands
# for a later version.  pg_regress has one build, and cannot crash a server.
# not in: assert_short

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use Clients;

@Clients::extensions = ('instaid', 'instaid_tickets');

### The mark is written down here once more: -1 - (file << 32 | values that the record covers)

my $node = Clients::server('main', 'wal_level = replica', 'max_wal_senders = 0',
	'wal_writer_delay = 10s', 'autovacuum = off', 'checkpoint_timeout = 1d');
my $mark = q{SELECT -1 - log_cnt >> 32 = ((d.oid::bigint + c.relfilenode::bigint) & 2147483647),
		-1 - log_cnt & 4294967295
	FROM %1$s, pg_class AS c, pg_database AS d
	WHERE c.oid = '%1$s'::regclass AND d.datname = current_database()};
$node->safe_psql('postgres', q{CREATE SEQUENCE ticket CACHE 50; CREATE SEQUENCE ids});
$node->safe_psql('postgres', q{SELECT instaid_tickets.next('ticket'), instaid.next_id('ids', 5)});
is($node->safe_psql('postgres', sprintf $mark, 'ticket'), 't|49',
	'next() writes the file and the values that are left');
like($node->safe_psql('postgres', sprintf $mark, 'ids'), qr/^t\|\d{6,7}$/,
	'next_id() writes the file and the ticks that are left');
# what is core's, or of another file, covers nothing
$node->safe_psql('postgres', q{ALTER SEQUENCE ticket OWNED BY NONE; ALTER SEQUENCE ticket CYCLE;
	ALTER SEQUENCE ticket NO CYCLE; SELECT instaid_tickets.next('ticket')});
is($node->safe_psql('postgres', sprintf $mark, 'ticket'), 't|49',
	'next_id() writes the file and the ticks that are left, and begins anew in a new file');

### A library of another version

my $later = PostgreSQL::Test::Utils::tempdir;
for my $command (
	"cp -r src tickets Makefile META.json instaid.control $later",
	"find $later -name '*.o' -o -name '*.bc' -o -name '*.so' | xargs rm -f",
	# a later version that names the file in another way
	"perl -pi -e 's/\\(\\(uint64\\) file << 32/((uint64) (file ^ 0x2aaaaaaa) << 32/' "
	  . "$later/src/common/sequence.h",
	"grep -q 0x2aaaaaaa $later/src/common/sequence.h",
	"make -s -C $later instaid.so TICKETS=no MOVE=no with_llvm=no >$later/log 2>&1",
	"make -s -C $later/tickets instaid_tickets.so with_llvm=no >>$later/log 2>&1")
{
	system($command) == 0 or die "$command: " . slurp_file("$later/log");
}
$node->safe_psql('postgres', qq{
	CREATE FUNCTION later_next(regclass) RETURNS bigint LANGUAGE c STRICT
		AS '$later/tickets/instaid_tickets.so', 'instaid_tickets_next';
	CREATE FUNCTION later_id(regclass, integer, timestamptz) RETURNS bigint LANGUAGE c STRICT
		AS '$later/instaid.so', 'instaid_next_id'});

# One session writes the record and does not commit, the other version takes what comes next, and
# nothing else flushes WAL before the crash.  No session has both builds, whose settings have one
# name.
my $number = 0;
for my $case (
	[ 'instaid_tickets', q{instaid_tickets.next('%s')}, q{later_next('%s')} ],
	[ 'instaid', q{instaid.next_id('%s', 5, '2020-01-01+00')},
		q{later_id('%s', 5, '2020-01-01+00')} ])
{
	my ($library, $now, $later_call) = @$case;
	for my $order ([ $now, $later_call ], [ $later_call, $now ])
	{
		my $name = 'mixed' . ++$number;
		my ($first, $second) = map { sprintf "SELECT $_", $name } @$order;
		$node->safe_psql('postgres', "CREATE SEQUENCE $name CACHE 1000");
		my ($one, $two) = (Clients::session($node), Clients::session($node));
		my @values = ($one->($first), $two->($second));
		$node->safe_psql('postgres', 'CHECKPOINT');
		push @values, $one->("BEGIN; $first"), $two->($second), $two->($second), $one->($first),
		  $two->($second);
		$node->stop('immediate');
		$node->start;
		push @values, $node->safe_psql('postgres', $_) for $first, $second, $first;
		is("@values", join(' ', sort { $a <=> $b } keys %{ { map { $_ => 1 } @values } }),
			"$library: versions in turn, " . ($number % 2 ? 'the later one second' : 'it first')
			  . ', and a crash: each value is above those before');
	}
}

$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP:|XX000|PANIC/, 'the server logged no error of its own');
done_testing();
