# sql.pl DIRECTORY: write the queries of its sql/*.sql to sql.c and sql.h here.  {{name a|b}} in a query
# stands for sql/include/name.sql with a and b.  The head of a query must name its parameters.

use strict;
use warnings;

my ($from) = @ARGV;

# the text of a file without comments, and these
sub text
{
	my ($file) = @_;
	open my $in, '<', $file or die "$file: $!\n";
	my ($text, $head) = ('', '');
	while (<$in>) { /^--/ ? ($head .= $_) : ($text .= $_) }
	return $text =~ s/\s+\z//r, $head;
}
sub included
{
	my ($name, @args) = @_;
	my ($text) = text("$from/sql/include/$name.sql");
	$text =~ s/\{\{(\d)\}\}/$args[ $1 - 1 ]/g;
	return $text;
}

open my $c, '>', 'sql.c' or die "sql.c: $!\n";
open my $h, '>', 'sql.h' or die "sql.h: $!\n";
print $c qq{/* made by sql.pl */\n#include "sql.h"\n};
print $h <<'TEXT';
/* made by sql.pl */
#ifndef MOVE_SQL_H
#define MOVE_SQL_H

typedef struct Query
{
	const char *name;
	const char *text;
	int			parameters;
	int			number;
} Query;

TEXT
my $number = 0;
for my $file (sort glob "$from/sql/*.sql")
{
	my ($name) = $file =~ m,([^/]+)\.sql$,;
	my ($text, $head) = text($file);
	1 while $text =~ s/\{\{([a-z_]\w*) ?((?:(?!\{\{|\}\}).)*)\}\}/included($1, split m,\|,, $2)/ge;
	my %used = map { $_ => 1 } $text =~ /\$(\d)/g;
	my ($last) = sort { $b <=> $a } 0, keys %used;
	die "$file: the head does not name \$$_\n" for grep { $head !~ /\$$_/ } keys %used;
	$text =~ s/([\\"])/\\$1/g;
	$text =~ s/\n/\\n"\n\t"/g;
	print $c qq{const Query sql_$name = {"$name",\n\t"$text",\n$last, $number};\n};
	print $h "extern const Query sql_$name;\n";
	$number++;
}
print $h "\n#define QUERIES $number\n\n#endif\n";
