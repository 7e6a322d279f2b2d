# report.pl RESULT: tables in Markdown, of what bench.sh has measured
# report.pl --plots RESULT: data for plots.gp
#
# A ratio is taken in each round, between two turns that were seconds apart,
# and its median is reported, with the smallest and the largest.

use strict;
use warnings;

use File::Basename 'dirname';

my $plots = @ARGV && $ARGV[0] eq '--plots' ? shift : '';
my (@about, @columns, @turns);

while (<>)
{
	chomp;
	if (/^# (.*)/) { push @about, $1; next }
	my @values = split /\t/, $_, -1;
	if (!@columns) { @columns = @values; next }
	my %turn;
	@turn{@columns} = @values;
	push @turns, \%turn;
}

sub median
{
	my @v = sort { $a <=> $b } @_;
	return @v % 2 ? $v[ $#v / 2 ] : ($v[ @v / 2 - 1 ] + $v[ @v / 2 ]) / 2;
}

# The turns that have these values
sub turns
{
	my (%want) = @_;
	return grep
	{
		my $t = $_;
		!grep { $t->{$_} ne $want{$_} } keys %want
	} @turns;
}

# The generators, in the order of the result
sub generators
{
	my %seen;
	return grep { !$seen{$_}++ && $_ ne 'empty loop' } map { $_->{generator} } turns(@_);
}

# What a turn says
my %measure = (
	time  => sub { $_[0]{seconds} },
	rate  => sub { $_[0]{ids} / $_[0]{seconds} },
	wal   => sub { $_[0]{wal_bytes} * 1e6 / $_[0]{ids} },
	index => sub { $_[0]{index_bytes} },
	# nanoseconds an ID, without the loop around it
	id => sub {
		my ($loop) = turns(work => 'ids', generator => 'empty loop', round => $_[0]{round});
		return ($_[0]{seconds} - $loop->{seconds}) / $_[0]{ids} * 1e9;
	});

# The values of a measure, one a round
sub values_of
{
	my ($measure, %want) = @_;
	return map { $measure{$measure}->($_) } turns(%want);
}

# The ratios of two labels, one a round
sub ratios
{
	my ($measure, $label, $yardstick, %want) = @_;
	my %other = map { $_->{round} => $measure{$measure}->($_) } turns(%want, generator => $yardstick);
	return map { $measure{$measure}->($_) / $other{ $_->{round} } }
	  grep { $other{ $_->{round} } } turns(%want, generator => $label);
}

sub sum
{
	my ($column, @turns) = @_;
	my $sum = 0;
	$sum += $_->{$column} for grep { $_->{$column} ne '-' } @turns;
	return $sum;
}

sub most
{
	my ($column, @turns) = @_;
	my ($most) = sort { $b <=> $a } grep { $_ ne '-' } map { $_->{$column} } @turns;
	return defined $most ? $most : '';
}

# "median (smallest to largest)"
sub spread
{
	my ($format, @v) = @_;
	return '' unless @v;
	@v = sort { $a <=> $b } @v;
	return sprintf "$format ($format to $format)", median(@v), $v[0], $v[-1];
}

sub commas
{
	my $n = sprintf '%.0f', $_[0];
	1 while $n =~ s/^(-?\d+)(\d{3})/$1,$2/;
	return $n;
}

sub table
{
	my ($head, @lines) = @_;
	print '| ', join(' | ', @$head), " |\n|", '---|' x @$head, "\n";
	print '| ', join(' | ', @$_), " |\n" for @lines;
	print "\n";
}

# what depends on the number of shards
my @shard_works = qw(create_shard create_shards view_first view view_one audit freeze_shard first_id);
my %shard_works = (
	create_shard => 'create_shard(), one a transaction',
	create_shards => 'create_shards()',
	view_first => 'instaid.shards, first time in a session',
	view => 'instaid.shards, again',
	view_one => 'instaid.shards, one shard',
	audit => 'audit()',
	freeze_shard => 'freeze_shard()',
	first_id => 'first INSERT of a session');
my @memory_works = (
	[ memory_idle => 'a session that has done nothing' ],
	[ memory_one => 'a session that has inserted into one shard' ],
	[ memory_all => 'a session that has inserted into all shards' ],
	[ memory_next_id => 'a session that has called instaid.next_id() for all sequences' ],
	[ memory_nextval => 'a session that has called nextval() for all sequences' ]);

my @clients = do { my %c = map { $_->{clients} => 1 } turns(work => 'single'); sort { $a <=> $b } keys %c };

if ($plots)
{
	print "\$clients << EOD\n";
	print join "\n\n", map {
		my $l = $_;
		qq("$l"\n) . join '', map { "$_ " . median(values_of('rate', work => 'single', generator => $l, clients => $_)) . "\n" } @clients
	} generators(work => 'single');
	print "EOD\n";
	for my $block ([ 'time', 'id', 'ids', 1 ], [ 'size', 'index', 'load', 1048576 ])
	{
		my ($name, $measure, $work, $unit) = @$block;
		print "\$$name << EOD\n";
		printf qq("%s" %g\n), $_,
		  median(values_of($measure, work => $work, generator => $_)) / $unit
		  for generators(work => $work);
		print "EOD\n";
	}
	# milliseconds by number of shards
	print "\$shards << EOD\n";
	print join "\n\n", map {
		my $w = $_;
		qq("$shard_works{$w}"\n) . join '', map { "$_->{shards} " . $_->{seconds} * 1000 . "\n" } turns(work => $w)
	} grep { turns(work => $_) } @shard_works;
	print "EOD\n";
	exit;
}

print "- $_\n" for @about;
print "\n";

# What a small run or a busy machine measures is mostly chance.
my ($scale) = map { /^scale: ([\d.]+)/ ? $1 : () } @about;
my ($load) = map { /^load when it began: ([\d.]+)/ ? $1 : () } @about;
my @chance = (
	defined $scale && $scale < 1 ? "it did $scale of the documented work" : (),
	defined $load && $load > 0.3 ? "the machine had a load of $load when it began" : ());
print '**This run proves nothing**: ', join(', and ', @chance), ".\n\n" if @chance;

# Instructions, of the server's version, by generator: an ID alone, single-row INSERTs as most
# drivers send them and prepared, and a row of INSERT ... SELECT; as bench/instructions.sh
# names them
my %counted = (
	'given IDs' => [ '', '', '', 'brought rows' ],
	'instaid' => [ 'next_id', 'insert sent', 'insert prepared', 'insert rows' ],
	'bigserial' => [ 'nextval', 'serial sent', 'serial prepared', 'serial rows' ],
	'published function' => [ 'published' ],
	'published verbatim' => [ 'verbatim' ],
	'SQL edition' => [ 'SQL edition' ],
	'gen_random_uuid' => [ 'uuid' ],
	'uuidv7' => [ 'uuidv7' ]);
my ($major) = map { /^server: PostgreSQL (\d+)/ ? $1 : () } @about;
my (%instructions, %of_18);
open my $expected, '<', dirname(__FILE__) . '/instructions.expected' or die $!;
while (<$expected>)
{
	$instructions{$1} = $2 if /^$major x86_64 \| (.+) \| ([\d.]+)$/;
	$of_18{$1} = $2 if /^18 x86_64 \| (.+) \| ([\d.]+)$/;
}

print "### An ID and a row\n\nIDs alone are made in one statement. *Given IDs* are rows that contain their IDs already: no generator can be below them.\n\n";
my $rows = (turns(work => 'insert'))[0]{ids};
table([ 'generator', 'instructions of an ID alone', '... of an `INSERT` of one row, as most drivers send it', '... of one that is prepared', '... of a row of `INSERT ... SELECT`',
	'ns for an ID alone', '`INSERT` of ' . commas($rows) . ' rows, s', '`COPY` of these rows, s', 'kB of WAL for a million IDs alone' ],
	map {
		my $l = $_;
		[ $l, map({ my $n = $_ && $instructions{$_}; $n ? commas($n) : '' } @{ $counted{$l} // [] }[ 0 .. 3 ]),
			spread('%.0f', values_of('id', work => 'ids', generator => $l)),
			spread('%.2f', values_of('time', work => 'insert', generator => $l)),
			spread('%.2f', values_of('time', work => 'copy', generator => $l)),
			(turns(work => 'ids', generator => $l) ? sprintf '%.1f', median(values_of('wal', work => 'ids', generator => $l)) / 1000 : '') ]
	} generators(work => 'insert'));
print 'On PostgreSQL 18, an ID alone takes ', commas($of_18{next_id}), ' instructions with instaid, ',
	commas($of_18{nextval}), ' with bigserial, and ', commas($of_18{uuidv7}), " with `uuidv7()`.\n\n"
	if $of_18{uuidv7};

print "### Many sessions\n\nThe table shows rows a second. The last column is the size of the index when 16 clients have inserted 100 rows in each statement.\n\n";
table([ 'generator', map({ "$_ client" . ($_ > 1 ? 's' : '') } @clients), '16 clients, 100 rows a statement', 'index, MB' ],
	map {
		my $l = $_;
		[ $l, map({ spread('%.0f', values_of('rate', work => 'single', generator => $l, clients => $_)) } @clients),
			spread('%.0f', values_of('rate', work => 'load', generator => $l)),
			sprintf '%.1f', median(values_of('index', work => 'load', generator => $l)) / 1048576 ]
	} generators(work => 'load'));

print "Commits do not wait for the disk:\n\n";
table([ 'generator', map { "$_ client" . ($_ > 1 ? 's' : '') } @clients ],
	map {
		my ($name, $statements) = @$_;
		map {
			my $l = $_;
			[ "$l$statements", map { spread('%.0f', values_of('rate', work => $name, generator => $l, clients => $_)) } @clients ]
		} generators(work => $name)
	} [ single_nowait => '' ], [ single_unprepared => ', not prepared' ]);

# Of the SQL edition, as many clients as have a target
for my $yardstick ('published verbatim', 'bigserial')
{
	my @rates = map {
		my $name = $_;
		map {
			my @r = ratios('rate', 'SQL edition', $yardstick, work => $name, clients => $_);
			@r ? sprintf '%.2f', median(@r) : ()
		} grep { $_ < 64 } @clients
	} qw(single_nowait single_unprepared);
	print "With 1, 8 and 32 clients, the SQL edition has ", join(', ', @rates[ 0 .. 2 ]), " of the rate of $yardstick, and ",
		join(', ', @rates[ 3 .. 5 ]), " if statements are not prepared.\n\n" if @rates == 6;
}

print "### What was made\n\nThe numbers cover all turns above. An inversion is an ID below the previous ID of its session.\n\n";
table([ 'generator', 'IDs', 'duplicates', 'inversions', 'most in one ms', 'largest drift, ms' ],
	map {
		my @t = grep { $_->{work} =~ /^(ids|insert|copy|load|single|single_nowait|single_unprepared)$/ } turns(generator => $_);
		[ $_, commas(sum('ids', @t)), commas(sum('duplicates', @t)), commas(sum('inversions', @t)),
			most('most_in_ms', @t), most('drift_ms', @t) ]
	} generators(work => 'load'));

print "### Contention\n\nSessions take IDs as fast as they can, 1,000 in a statement, and store them as one array.\n\n";
my %done;
table([ 'generator', 'sequences', 'sessions', 'max_drift', 'IDs a second', 'duplicates', 'inversions', 'most in one ms', 'largest drift, ms' ],
	map {
		my $t = $_;
		my @t = turns(map { $_ => $t->{$_} } qw(work generator shards clients max_drift));
		[ $t->{generator}, $t->{shards}, $t->{clients}, $t->{generator} eq 'instaid' ? $t->{max_drift} : '',
			spread('%.0f', map { $measure{rate}->($_) } @t), sum('duplicates', @t), sum('inversions', @t),
			most('most_in_ms', @t), most('drift_ms', @t) ]
	} grep { !$done{ join ' ', @$_{qw(generator shards clients max_drift)} }++ } turns(work => 'contention'));

my %tickets = (
	nextval => '`nextval()`', plain => '`instaid_tickets.next()`',
	thousand => '`instaid_tickets.next()`, a step of 1,000',
	second => '`instaid_tickets.next()`, a step of what is taken in a second',
	from_authority => '`instaid_tickets.next()`, from another server');
if (turns(work => 'ticket'))
{
	print "### Tickets\n\nThe table shows calls a second, with one call in each transaction, and how long a call takes: the median, 99 % and 99.9 % of\nthe calls are not longer. `nextval()` does not wait for WAL that other sessions write. The other server is another database of\nthe same server.\n\n";
	table([ 'call', 'clients', 'step', 'calls a second', 'ratio to `nextval()`', 'median, ms', '99 %, ms', '99.9 %, ms' ],
		map {
			my $count = $_;
			map {
				my %want = (generator => $_, clients => $count);
				my ($step) = map { $_->{shards} } turns(%want, work => 'ticket');
				[ $tickets{$_}, $count, commas($step), spread('%.0f', values_of('rate', %want, work => 'ticket')),
					spread('%.3f', ratios('rate', $_, 'nextval', clients => $count, work => 'ticket')),
					map { sprintf '%.3f', 1000 * median(values_of('time', %want, work => $_)) } qw(ticket_p50 ticket_p99 ticket_p999) ]
			} generators(work => 'ticket', clients => $count)
		} 1, 8, 32);
}

if (my ($call) = turns(work => 'settled_id'))
{
	print "### Readers\n\nEight clients insert a row in each transaction. Two readers poll for new IDs. All transactions stay open equally long, so they commit\nnearly in the order of their IDs; those of `make demo` do not, and its naive reader misses more. The table shows how\nlong after its ID a row was read. A call of `settled_id()` with no such transaction takes ",
	  sprintf('%.1f', $call->{seconds} / $call->{ids} * 1e6), " microseconds.\n\n";
	table([ 'reader', 'open for, ms', 'rows', 'rows missed', 'median, ms', '99 % of the rows, ms' ],
		map {
			my $t = $_;
			my ($p99) = turns(work => 'reader_p99', map { $_ => $t->{$_} } qw(generator shards));
			[ $t->{generator} eq 'naive' ? 'naive' : 'up to settled_id()', $t->{shards}, commas($t->{ids}), commas($t->{inversions}),
				map { sprintf '%.1f', $_->{seconds} * 1000 } $t, $p99 ]
		} turns(work => 'reader_median'));
}

if (turns(work => 'router'))
{
	print "### Through a router\n\nThe table shows calls of a function that inserts a row, by eight clients. The router is PL/Proxy. The router, the servers and the\nclients share the processors, and `synchronous_commit` is off on the servers.\n\n";
	my %direct = map { $_->{round} => $measure{rate}->($_) } turns(work => 'router', generator => 'instaid', shards => 0);
	table([ 'inserts', 'calls a second, `DEFAULT next_id()`', 'calls a second, given IDs', 'ratio of the two', 'ratio to without a router' ],
		map {
			my ($where, %want) = ($_->[0], work => 'router', shards => $_->[1]);
			my @rates = map { [ values_of('rate', %want, generator => $_) ] } 'instaid', 'given IDs';
			[ $where, map({ spread('%.0f', @$_) } @rates), spread('%.3f', ratios('rate', 'instaid', 'given IDs', %want)),
				spread('%.3f', map { $measure{rate}->($_) / $direct{ $_->{round} } } turns(%want, generator => 'instaid')) ]
		} [ 'without a router', 0 ], [ 'through the router, one server', 1 ], [ 'through the router, two servers', 2 ]);
}

my @numbers = map { $_->{shards} } turns(work => 'create_shard');
if (@numbers)
{
	print "### By number of shards\n\nThe table shows milliseconds. Each shard has one table.\n\n";
	table([ '', map { commas($_) . ' shards' } @numbers ],
		map {
			my $w = $_;
			[ $shard_works{$w}, map { my ($t) = turns(work => $w, shards => $_); sprintf $t->{seconds} < 0.1 ? '%.1f' : '%.0f', $t->{seconds} * 1000 } @numbers ]
		} @shard_works);
	print "The table shows the memory of a session, in kB.\n\n";
	table([ '', map { commas($_) . ' shards' } @numbers ],
		map {
			my ($w, $label) = @$_;
			[ $label, map { my ($t) = turns(work => $w, shards => $_); commas($t->{ids} / 1024) } @numbers ]
		} @memory_works);
}
