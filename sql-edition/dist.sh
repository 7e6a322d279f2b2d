#!/bin/sh
#
# sql-edition/dist.sh DIRECTORY: write the SQL edition as one text, without psql's commands, and
# in the forms that pg_tle and database.dev take: one statement for pg_tle, and a folder for dbdev.

set -eu
cd "$(dirname "$0")/.."
directory=$1
version=$(sed -n "s/^default_version *= *'\(.*\)'/\1/p" instaid.control)
# database.dev wants three numbers
release=$(sed -n 's/^   "version": "\(.*\)",/\1/p' META.json)
comment="Instagram-style IDs: 64 bits, sorted by time, with the number of the shard"
rm -rf "$directory/dbdev/instaid"
mkdir -p "$directory/dbdev/instaid"

# set_setting NAME OTHER: a statement that gives a setting the value of another one, until the
# transaction ends
set_setting()
{
	echo "DO \$\$ BEGIN PERFORM pg_catalog.set_config('$1',"
	echo "    pg_catalog.current_setting('$2'), true); END \$\$;"
}

# text FILE: the file, all.sql or adopting.sql, with those that it includes, without psql's
# commands.  Statements after it in its transaction are to find the names that they found before.
text()
{
	set_setting instaid_files.search_path search_path
	perl -e '
		sub text
		{
			local (@ARGV, $/) = "sql-edition/$_[0]";
			return <> =~ s{^(?:BEGIN|COMMIT);\n}{}mgr =~ s{^\\ir (\S+)\n}{text($1)}mger
			  =~ s{^\\.*\n}{}mgr;
		}
		print text($_) for @ARGV' "$1"
	set_setting search_path instaid_files.search_path
}

# forms NAME FILE COMMENT REQUIRES: the one text, and the statement for pg_tle
forms()
{
	{
		echo "/* $1 $release, SQL edition: send this as one string, or run it by psql -1 -f */"
		echo
		text "$2"
	} >"$directory/$1-$version.sql"
	# the delimiter must not be in the script
	if text "$2" | grep -q '\$_pgtle_\$'; then
		echo 'the script has $_pgtle_$' >&2
		exit 1
	fi
	{
		echo "SELECT pgtle.install_extension('$1', '$version', '$3',"
		printf '$_pgtle_$\n'
		text "$2"
		printf '$_pgtle_$%s);\n' "$4"
	} >"$directory/$1-$version-pg_tle.sql"
}

forms instaid all.sql "$comment" ''
forms instaid_adopt adopting.sql 'adopting what exists: instaid, SQL edition' ", '{instaid}'"

text all.sql >"$directory/dbdev/instaid/instaid--$release.sql"
cat >"$directory/dbdev/instaid/instaid.control" <<-END
	default_version = '$release'
	comment = '$comment'
	relocatable = false
	superuser = false
END
# links to other pages would lead nowhere there
perl -0pe 's/\[([^]]*)\]\((?!#|https?:)[^)]*\)/$1/g' docs/sql-edition.md \
	>"$directory/dbdev/instaid/README.md"
