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

# All files of all.sql, without psql's commands.  Statements after it in its transaction are to
# find the names that they found before.
text()
{
	set_setting instaid_files.search_path search_path
	perl -e '
		sub text
		{
			local (@ARGV, $/) = "sql-edition/$_[0]";
			return <> =~ s{^\\ir (\S+)\n}{text($1)}mger;
		}
		print text($_) for @ARGV' $(sed -n 's/^\\ir //p' sql-edition/all.sql)
	set_setting search_path instaid_files.search_path
}

{
	echo "/* instaid $release, SQL edition: send this as one string, or run it by psql -1 -f */"
	echo
	text
} >"$directory/instaid-$version.sql"

# the delimiter must not be in the script
if text | grep -q '\$_pgtle_\$'; then
	echo 'the script has $_pgtle_$' >&2
	exit 1
fi
{
	echo "SELECT pgtle.install_extension('instaid', '$version', '$comment',"
	printf '$_pgtle_$\n'
	text
	printf '$_pgtle_$);\n'
} >"$directory/instaid-$version-pg_tle.sql"

text >"$directory/dbdev/instaid/instaid--$release.sql"
cat >"$directory/dbdev/instaid/instaid.control" <<-END
	default_version = '$release'
	comment = '$comment'
	relocatable = false
	superuser = false
END
# links to other pages would lead nowhere there
perl -0pe 's/\[([^]]*)\]\((?!#|https?:)[^)]*\)/$1/g' docs/sql-edition.md \
	>"$directory/dbdev/instaid/README.md"
