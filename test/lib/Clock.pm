# A server's clock, which can be moved while the server runs (libfaketime).

package Clock;

use strict;
use warnings;

use File::Spec;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(time);

sub new
{
	my ($class) = @_;
	my $self = bless { file => File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir . '/clock') },
		$class;
	chomp($self->{library} = `faketime -f +0 printenv LD_PRELOAD`);
	die 'faketime does not work' unless $self->{library};
	$self->set(0);
	return $self;
}

# The shell command that moves the clock at once, to this many seconds from the real
# time.
sub command
{
	my ($self, $offset) = @_;
	return sprintf "echo %+.3f >%s.new && mv %s.new %s", $offset, ($self->{file}) x 3;
}

sub set
{
	my ($self, $offset) = @_;
	system($self->command($offset)) == 0 or die 'cannot set the clock';
	return;
}

# Start a server that uses this clock.  Its monotonic clock, which measures
# durations, stays real.
sub start
{
	my ($self, $node) = @_;
	local $ENV{LD_PRELOAD}                    = $self->{library};
	local $ENV{FAKETIME_TIMESTAMP_FILE}       = $self->{file};
	local $ENV{FAKETIME_NO_CACHE}             = 1;
	local $ENV{FAKETIME_DONT_FAKE_MONOTONIC}  = 1;
	local $ENV{DONT_FAKE_MONOTONIC}           = 1;	# its name before faketime 0.9.10
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
