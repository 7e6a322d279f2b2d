#!/bin/sh
# bench/docs.sh RESULT: put the tables of a result into bench/tables.md, and draw
# the pictures of docs/benchmarks.md.

set -eu

result=$1
cd "$(dirname "$0")/.."
command -v gnuplot >/dev/null ||
	{ echo 'Missing package; as root: apt-get install gnuplot-nox' >&2; exit 1; }

{
	perl bench/report.pl --plots "$result"
	echo "directory = 'docs/benchmarks'"
	cat bench/plots.gp
} | gnuplot

perl bench/report.pl "$result" >bench/tables.md
