# The blocks of a page of the documentation, for tests that run them.

package Docs;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Utils;

our @EXPORT = qw(blocks section_blocks moving_blocks follow);

# The blocks of a page, in order.  Each is a hash:
#
#   section      the heading above it
#   line         its line in the page
#   language     the first word after the backquotes: sql, sh, conf (a part of
#                postgresql.conf), or empty
#   server       the second word: the server that it is for, or else "main"
#   until_empty  whether the words "until empty" follow: repeat it until it prints
#                nothing
#   text         its lines
#   shows        the lines of the unlabelled block that follows it, if there is one:
#                what it prints
#
# A comment "<!-- setup: NAME -->", or "<!-- setup SERVER: NAME -->", stands for the block NAME
# of test/setup.sql.
#
# A comment "<!-- again SERVER: FROM -> TO -->" stands for the block before it on another
# server, with TO in the place of FROM.
sub blocks
{
	my ($page) = @_;
	my @blocks;
	my ($section, $end) = ('', 0);
	my %setup = slurp_file('test/setup.sql') =~ /^---- (\w+)\n((?:(?!---- ).*\n)*)/mg;

	while ($page =~ /^\#+\ (?<section>.*)\n
		| ^(?<indent>\ *)```(?<info>.*)\n(?<text>(?:.*\n)*?)\k<indent>```\n
		| ^<!--\ setup(?<setup>[^:\n]*):\ (?<name>\w+)\ -->\n
		| ^<!--\ again\ (?<again>\w+):\ (?<from>.+)\ ->\ (?<to>.+)\ -->\n/mxg)
	{
		my %match = %+;
		my $line  = 1 + (substr($page, 0, $-[0]) =~ tr/\n//);
		my $gap   = substr($page, $end, $-[0] - $end);
		$end = $+[0];
		if (defined $match{section})
		{
			$section = $match{section};
			next;
		}
		if (defined $match{again})
		{
			my $text = $blocks[-1]{text} =~ s/\Q$match{from}\E/$match{to}/gr;
			push @blocks,
			  { %{ $blocks[-1] }, server => $match{again}, text => $text, shows => undef };
			next;
		}
		my $indent = $match{indent} // '';
		my $text   = ($match{text} // $setup{ $match{name} }) =~ s/^$indent//mgr;
		my ($language, $server, $repeat) = split / /,
			defined $match{setup} ? "sql$match{setup}" : $match{info}, 3;
		if (!defined $language && @blocks && $blocks[-1]{language} ne ''
			&& !defined $blocks[-1]{shows} && $gap !~ /\S/)
		{
			$blocks[-1]{shows} = $text;
			next;
		}
		push @blocks,
		  {
			section     => $section,
			line        => $line,
			language    => $language // '',
			server      => $server // 'main',
			until_empty => ($repeat // '') eq 'until empty',
			text        => $text
		  };
	}
	return @blocks;
}

# The blocks of one section of a file
sub section_blocks
{
	my ($file, $section) = @_;
	return grep { $_->{section} eq $section } blocks(slurp_file($file));
}

# The blocks of a section of docs/moving-a-shard.md, and those of other sections to which
# it refers: how a shard is stopped, and how the last changes are waited for
sub moving_blocks
{
	my ($section) = @_;
	my ($dump, $logical, $here) =
	  map { [ section_blocks('docs/moving-a-shard.md', $_) ] } 'With pg_dump',
	  'With logical replication', $section;
	my ($wait) = grep { $_->{text} =~ /pg_logical_emit_message/ } @$logical;
	return map {
		my @first;
		@first = @$dump[ 0, 1 ] if $_->{text} eq $wait->{text};
		@first = { %$wait, text => $wait->{text} =~ s/'insta5'/'app'/r }
		  if $_->{text} =~ /REFRESH SEQUENCES/;
		(@first, $_)
	} @$here;
}

# Run blocks on the servers that they are for, in the databases postgres, or, for a
# server given as [ $node, $database ], in that one.  A shell command has a variable with
# the connection string of each server: SOURCE for "source".
sub follow
{
	my ($blocks, %nodes) = @_;
	my %databases =
	  map { $_ => ref $nodes{$_} eq 'ARRAY' ? $nodes{$_} : [ $nodes{$_}, 'postgres' ] } keys %nodes;
	local @ENV{ map { uc } keys %databases } =
	  map { $_->[0]->connstr($_->[1]) =~ s/'//gr } values %databases;
	# as the page does that moves shards from one to the other
	local $ENV{PGOPTIONS} = join ' ', $ENV{PGOPTIONS} // (),
	  $nodes{source} ? '-c search_path=pg_catalog' : ();
	for my $block (@$blocks)
	{
		my $text = $block->{text};
		my ($node, $database) = @{ $databases{ $block->{server} } // [] };
		if ($block->{language} eq 'sh')
		{
			system('sh', '-ec', $text) == 0 or die "failed: $text";
		}
		elsif ($block->{until_empty})
		{
			$node->poll_query_until($database, $text, '') or die "never empty: $text";
		}
		else
		{
			$node->safe_psql($database, $text);
		}
	}
	return;
}

1;
