# A server's clock, which is moved or stopped at once while the server runs, under any load:
# see moved_clock.c.

package MovedClock;

use strict;
use warnings;

use PostgreSQL::Test::Utils;

my $made = 0;

sub new
{
	my ($class) = @_;
	my $dir  = PostgreSQL::Test::Utils::tempdir;
	my $self = bless { library => "$dir/moved_clock.so", file => "$dir/clock" . ++$made }, $class;
	$made > 1 or system('cc', '-O2', '-shared', '-fPIC', '-o', $self->{library},
		'test/lib/moved_clock.c') == 0 or die 'cc';
	append_to_file($self->{file}, pack('q2', 0, 0));
	return $self;
}

# Let the clock go on at this many seconds from the real time, or stand still at a time in
# seconds since 1970.
sub set
{
	my ($self, $offset, $stopped) = @_;
	open my $file, '+<:raw', $self->{file} or die $!;
	syswrite $file, pack('q2', $offset * 1e6, ($stopped // 0) * 1e6);
	close $file;
	return;
}

sub start
{
	my ($self, $node) = @_;
	local $ENV{LD_PRELOAD}  = $self->{library};
	local $ENV{MOVED_CLOCK} = $self->{file};
	$node->start;
	return;
}

1;
