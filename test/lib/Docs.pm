# The blocks of a page of the documentation, for tests that run them.

package Docs;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Utils;

our @EXPORT = qw(blocks section_blocks moving_blocks follow signatures with_signatures messages);

# The blocks of a page, in order.  Each is a hash:
#
#   section      the heading above it
#   line         its line in the page
#   language     the first word after the backquotes: sql, sh, conf (a part of
#                postgresql.conf), or empty
#   server       the second word: the server that it is for, or else "main"
#   until_empty  whether the words "until empty" follow: repeat it until it prints
#                nothing
#   is_back      whether "back" is among the words: it takes back what the section does
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
			is_back     => scalar(grep { ($_ // '') eq 'back' } $server, $repeat),
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

# The blocks of a section of docs/moving-by-hand.md, and those of other sections to which
# it refers: how a shard is stopped, and how the last changes are waited for
sub moving_blocks
{
	my ($section) = @_;
	my ($dump, $logical, $here) =
	  map { [ section_blocks('docs/moving-by-hand.md', $_) ] } 'With pg_dump',
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
	  $nodes{source} ? '-c search_path=pg_catalog -c role=none' : ();
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

# The signatures that the reference of a schema shows, by its headings.  A function is given the
# edition, "extension" or "SQL edition", and a query, and returns what psql -At prints.
sub signatures
{
	my ($query, $schema, @editions) = @_;
	my (%lines, %editions);
	for my $edition (@editions)
	{
		for (split /\n/, $query->($edition, qq{
			SELECT concat_ws(E'\\t', CASE p.prokind WHEN 'p' THEN 'CALL ' ELSE '' END,
				p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
				CASE p.provolatile WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE'
					ELSE 'VOLATILE' END || CASE WHEN p.proisstrict THEN ' STRICT' ELSE '' END
				|| CASE p.proparallel WHEN 's' THEN ' PARALLEL SAFE'
					WHEN 'r' THEN ' PARALLEL RESTRICTED' ELSE ' PARALLEL UNSAFE' END)
			FROM pg_proc AS p
			WHERE p.pronamespace = '$schema'::regnamespace AND p.proname !~ '^_'
				-- the functions of the type, and of its casts
				AND p.oid NOT IN (
					SELECT c.castfunc FROM pg_cast AS c
					UNION ALL SELECT unnest(ARRAY[typinput, typoutput, typreceive, typsend]::oid[])
					FROM pg_type AS t WHERE t.typnamespace = p.pronamespace)
			ORDER BY p.proname COLLATE "C", p.pronargs, p.oid}))
		{
			my ($call, $name, $arguments, @rest) = split /\t/;
			my $marks = pop @rest;
			my ($result) = @rest;
			my @in = split /, /, _plain($arguments);
			my @out = map { s/^OUT //r } grep { /^OUT / } @in;
			@in = map { s/^IN //r } grep { !/^OUT / } @in;
			$result = _plain($result // '') =~ s/\brecord\b/'(' . join(', ', @out) . ')'/er;
			$result = " → $result" if $result ne '';
			my $line = _wrapped("${call}$schema.$name(", \@in, ")$result");
			push @{ $lines{$name} }, $line;
			$marks = 'commits' if $call =~ /^CALL/;
			$editions{$name}{$line}{$edition} = $marks;
		}
		for (split /\n/, $query->($edition, qq{
			SELECT concat_ws(E'\\t', c.relname, string_agg(a.attname || ' '
				|| format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum))
			FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
			WHERE c.relnamespace = '$schema'::regnamespace AND c.relkind = 'v'
				AND c.relname !~ '^_' GROUP BY c.oid
			UNION ALL
			SELECT t.typname FROM pg_type AS t
			WHERE t.typnamespace = '$schema'::regnamespace AND t.typelem = 0 AND t.typtype <> 'c'
				AND t.typname !~ '^_'}))
		{
			my ($name, $columns) = split /\t/;
			my $line = defined $columns
			  ? _wrapped("$schema.$name (", [ split /, /, _plain($columns) ], ')')
			  : "$schema.$name";
			push @{ $lines{$name} }, $line;
			$editions{$name}{$line}{$edition} = defined $columns ? 'view' : 'type';
		}
	}
	# instaid_adopt has no library
	my $load = $schema eq 'instaid_adopt' ? '' : "LOAD '$schema';";
	for (split /\n/, $query->('extension', qq{
		$load
		SELECT concat_ws(E'\\t', s.name, current_setting(s.name),
			CASE s.vartype WHEN 'bool' THEN 'boolean' ELSE s.vartype END
			|| COALESCE(' from ' || s.min_val || ' to ' || s.max_val, '')
			|| COALESCE(' ' || s.unit, ''), CASE s.context WHEN 'user' THEN 'any role'
				WHEN 'superuser' THEN 'superusers' ELSE 'postgresql.conf or ALTER SYSTEM' END)
		FROM pg_settings AS s WHERE s.name ~ '^$schema\[.]'}))
	{
		my ($name, $value, $type, $who) = split /\t/;
		$name =~ s/^$schema\.//;
		my $line = "$schema.$name = $value";
		push @{ $lines{$name} }, $line;
		$editions{$name}{$line}{extension} = "$type, set by $who";
	}
	return map { $_ => _with_marks($lines{$_}, $editions{$_}, @editions > 1) } keys %lines;
}

# Types and default values as people write them
sub _plain
{
	my ($text) = @_;
	$text =~ s/::(?:timestamp with time zone|[a-z]+)(?:\[\])?//g;
	return $text =~ s/timestamp with time zone/timestamptz/gr;
}

# In one line, or in lines of up to 96 characters
sub _wrapped
{
	my ($before, $parts, $after) = @_;
	my $line = $before . join(', ', @$parts) . $after;
	return $line if length $line <= 96;
	my ($text, $here) = ($before =~ s/ $//r, '');
	for my $word (split /(?<=,) |(?<=\)) (?=→)/, join(', ', @$parts) . $after)
	{
		if ($here ne '' && length "    $here $word" > 96)
		{
			$text .= "\n    $here";
			$here = '';
		}
		$here .= $here eq '' ? $word : " $word";
	}
	return "$text\n    $here";
}

# Lines of the catalogs of both editions, with what these say of each
sub _with_marks
{
	my ($lines, $editions, $has_others) = @_;
	my (%seen, @text);
	for my $line (grep { !$seen{$_}++ } @$lines)
	{
		my ($c, $sql) = @{ $editions->{$line} }{ 'extension', 'SQL edition' };
		my $marks = $c // $sql;
		$marks .= "; in the SQL edition, $sql" if defined $c && defined $sql && $c ne $sql;
		$marks .= '; only in the extension' if !defined $sql && $has_others;
		$marks .= '; only in the SQL edition' if !defined $c;
		push @text, "$line\n-- $marks\n";
	}
	return join "\n", @text;
}

# A page with these signatures below its headings "### NAME", and the names
sub with_signatures
{
	my ($page, %signatures) = @_;
	my @names;
	$page =~ s{^(\#\#\#[ ](?:instaid(?:_tickets)?\.)?(\w+)\n\n)
		(?:```signature\n(?:.*\n)*?```\n\n)?}{
		push @names, $2;
		"$1```signature\n" . ($signatures{$2} // "unknown\n") . "```\n\n"}megx;
	return ($page, @names);
}

# Patterns of all messages that the sources can print
sub messages
{
	my @patterns;
	for my $file (glob '{common,extension,adopt,sql-edition,tickets}/*.sql {,tickets/}src/{,*/}*.c')
	{
		my $source = slurp_file($file);
		my $is_sql = $file =~ /sql$/;
		$source =~ s/(?:^|\s)-- .*//mg if $is_sql;
		my $string = $is_sql ? qr/'((?:[^']|'')*)'/ : qr/"((?:[^"\\]|\\.)*)"/;
		while ($source =~ /($string(?:\s+$string)*)/g)
		{
			my $text = join '', grep { defined } $1 =~ /$string/g;
			$text = $is_sql ? $text =~ s/''/'/gr : $text =~ s/\\(.)/$1/gr;
			# what stands for a value
			my @parts = split /%(?:\d+\$)?(?:[sILdcu]|l+d|\.\*s)?/, $text =~ s/%%/\0/gr, -1;
			# too short to tell one message from another
			next if join('', @parts) =~ tr/a-zA-Z// < 10;
			push @patterns, join '.+', map { quotemeta } @parts;
		}
	}
	return @patterns;
}

1;
