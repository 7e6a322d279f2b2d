#!/bin/sh
# test/pgtap.sh [FILE...]: the specification, in pgTAP, on the extension and on the SQL edition.
# Needs a server as test/suites.sh or "make server" starts it, and a superuser.  Each edition has a
# database of its own.  A role that is no superuser installs the SQL edition.
set -eu
cd "$(dirname "$0")/.."

# in_edition NAME OPTION...: make its database, install it by psql with the options, and test it
in_edition()
{
	edition=$1
	database=pgtap_$edition
	shift
	psql -Xq -d postgres -c "DROP DATABASE IF EXISTS $database" -c "CREATE DATABASE $database" \
		-c "GRANT CREATE ON DATABASE $database TO pgtap_owner"
	psql -Xq -v ON_ERROR_STOP=1 -d "$database" -c 'CREATE EXTENSION pgtap'
	psql -Xq -v ON_ERROR_STOP=1 -d "$database" "$@"
	psql -Xq -v ON_ERROR_STOP=1 -d "$database" -f test/pgtap/editions/setup.sql \
		-f test/pgtap/editions/differences.sql
	pg_prove -d "$database" --verbose $files >"$output" 2>&1 || failed=1
	# a failed test names its edition
	sed "/^not ok/s/\$/, in $edition/" "$output"
}

files=${*:-test/pgtap/*.sql}
PGOPTIONS='-c client_min_messages=warning'
export PGOPTIONS
output=$(mktemp)
trap 'rm -f "$output"' EXIT
psql -Xq -d postgres -c 'CREATE ROLE pgtap_owner LOGIN' 2>/dev/null || :
failed=0
in_edition extension -c 'CREATE EXTENSION instaid_adopt CASCADE'
in_edition sql_edition -U pgtap_owner -f sql-edition/all.sql -f sql-edition/adopting.sql
exit $failed
