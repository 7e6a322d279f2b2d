#!/bin/sh
#
# sql-edition/dist.sh DIRECTORY: write the SQL edition in the forms that pg_tle and
# database.dev take: one statement for pg_tle, and a folder for dbdev.

set -eu
cd "$(dirname "$0")/.."
directory=$1
version=$(sed -n "s/^default_version *= *'\(.*\)'/\1/p" instaid.control)
# database.dev wants three numbers
release=$(sed -n 's/^   "version": "\(.*\)",/\1/p' META.json)
comment="Instagram-style IDs: 64 bits, sorted by time, with the number of the shard"
rm -rf "$directory/dbdev/instaid"
mkdir -p "$directory/dbdev/instaid"

# CREATE EXTENSION is one transaction.  A script of an extension may not replace functions of
# shards, which are no part of it.
script()
{
	sed -n 's,^\\ir ,sql-edition/,p' sql-edition/all.sql |
		xargs sed '/^BEGIN;$/d; /^COMMIT;$/d; /^DO .*_update_shards()/d'
}

# the delimiter must not be in the script
if script | grep -q '\$_pgtle_\$'; then
	echo 'the script has $_pgtle_$' >&2
	exit 1
fi
{
	echo "SELECT pgtle.install_extension('instaid', '$version', '$comment',"
	printf '$_pgtle_$\n'
	script
	printf '$_pgtle_$);\n'
} >"$directory/instaid-$version-pg_tle.sql"

script >"$directory/dbdev/instaid/instaid--$release.sql"
cat >"$directory/dbdev/instaid/instaid.control" <<-END
	default_version = '$release'
	comment = '$comment'
	relocatable = false
	superuser = false
END
# links to other pages would lead nowhere there
perl -0pe 's/\[([^]]*)\]\((?!#|https?:)[^)]*\)/$1/g' docs/sql-edition.md \
	>"$directory/dbdev/instaid/README.md"
