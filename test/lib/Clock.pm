# A server's clock, which is moved or stopped at once while the server runs, under any load:
# see moved_clock.c.

package Clock;

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Time::HiRes qw(time);

my $library;

sub new
{
	my ($class) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir;
	unless ($library)
	{
		$library = "$dir/moved_clock.so";
		system('cc', '-O2', '-shared', '-fPIC', '-o', $library, 'test/lib/moved_clock.c') == 0
		  or die 'cc';
	}
	my $self = bless { file => "$dir/clock" }, $class;
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

# The shell command that moves the clock at once
sub command
{
	my ($self, $offset) = @_;
	return sprintf q{perl -e 'open my $f, "+<:raw", "%s"; syswrite $f, pack "q2", %d, 0'},
	  $self->{file}, $offset * 1e6;
}

sub start
{
	my ($self, $node) = @_;
	local $ENV{LD_PRELOAD}  = $library;
	local $ENV{MOVED_CLOCK} = $self->{file};
	$node->start;
	return;
}

# The distance of the server's clock from the real time, in seconds.  On a busy machine the
# answer may come late.
sub offset
{
	my ($self, $node) = @_;
	my ($answer, $began);
	for (1 .. 100)
	{
		$began = time;
		$answer = $node->safe_psql('postgres', 'SELECT extract(epoch FROM clock_timestamp())');
		last if time - $began < 0.5;
	}
	return $answer - $began;
}

1;
