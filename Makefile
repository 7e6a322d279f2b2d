# instaid: Instagram-style IDs for PostgreSQL
#
#   make && make install     build and install, for the server of PG_CONFIG
#   make demo                see it work on a private, throw-away server
#   make bench               measure it beside others, likewise
#   make test                every test, likewise; SUITES="regress 005_crash" for some
#   make test-matrix         tests on each PostgreSQL, in Debian folders; all with FULL=1
#   make bench-instructions  the instructions that an ID takes, against those stored
#
# Builds in the source tree, or elsewhere with "make -f /path/to/Makefile".

PG_CONFIG ?= pg_config

EXTENSION = instaid
MODULE_big = instaid
OBJS = src/instaid.o src/functions.o src/epoch.o src/generator.o src/sequence.o src/shards.o src/sql_support.o src/text_forms.o src/tickets.o src/autocreate.o src/segments.o src/refill.o src/source.o
DATA = instaid--1.0.sql
PGFILEDESC = "instaid - Instagram-style IDs"

# the version is written in the control file only
srcdir_of_makefile := $(dir $(firstword $(MAKEFILE_LIST)))
EXTVERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(srcdir_of_makefile)instaid.control)
PG_CPPFLAGS = -DINSTAID_VERSION='"$(EXTVERSION)"'
# for segments that are leased from other servers
PG_CPPFLAGS += -I$(libpq_srcdir)
SHLIB_LINK_INTERNAL = $(libpq)
# the server's headers are not ours to warn about
PG_CPPFLAGS += -isystem $(shell $(PG_CONFIG) --includedir-server)

REGRESS = setup fields text_forms id_type generate refuse lifecycle roles usage shards declare freeze adopt ranges partitions audit tickets sanity
ISOLATION = order create_shard create_partitions alter freeze last_tick adopt audit tickets
ISOLATION_OPTS = --inputdir=$(srcdir)/test --outputdir=test

EXTRA_CLEAN = test/results test/regression.diffs test/regression.out

# a server that was built in its own source tree does not look for ours
ifneq ($(srcdir_of_makefile),./)
VPATH = $(srcdir_of_makefile)
endif

PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifneq ($(PGXS),)
include $(PGXS)
else
all install installcheck:
	@echo "$(PG_CONFIG) not found: install PostgreSQL's development package, or set PG_CONFIG" >&2; exit 1
endif

src/instaid.o: src/compat.h src/generator.h src/segments.h src/sequence.h src/shards.h src/source.h src/stripe.h src/tickets.h
src/functions.o: src/epoch.h src/generator.h src/ids.h src/layout.h
src/epoch.o: src/epoch.h src/layout.h
src/generator.o: src/compat.h src/generator.h src/layout.h src/sequence.h
src/sequence.o: src/compat.h src/sequence.h
src/shards.o: src/compat.h src/epoch.h src/generator.h src/ids.h src/layout.h src/shards.h
src/sql_support.o: src/compat.h
src/text_forms.o: src/compat.h src/text_forms.h
src/tickets.o: src/compat.h src/segments.h src/sequence.h src/source.h src/stripe.h src/tickets.h
src/autocreate.o: src/compat.h src/tickets.h
src/segments.o: src/compat.h src/segments.h src/sequence.h src/stripe.h src/tickets.h
src/refill.o: src/compat.h src/segments.h src/sequence.h src/source.h src/stripe.h src/tickets.h
src/source.o: src/compat.h src/segments.h src/sequence.h src/source.h src/stripe.h src/tickets.h
src/instaid.o: instaid.control

# a build outside the source tree starts with an empty directory
$(OBJS) $(OBJS:.o=.bc): | $(CURDIR)/src
$(CURDIR)/src:
	mkdir -p $@

# These bring a PostgreSQL of their own, as PG_CONFIG or else Debian has it.
demo:
	@$(srcdir_of_makefile)test/lib/run test/demo.sh
test:
	@$(srcdir_of_makefile)test/lib/run test/suites.sh
test-matrix:
	@$(srcdir_of_makefile)test/matrix.sh $(VERSIONS)

# A run of another size than the documented one has a file of its own.
RESULT = $(srcdir_of_makefile)bench/result$(if $(SCALE),-$(SCALE)).tsv
bench:
	@RESULT=$(abspath $(RESULT)) $(srcdir_of_makefile)test/lib/run bench/bench.sh

# the tables and pictures of docs/benchmarks.md
bench-docs:
	@sh $(srcdir_of_makefile)bench/docs.sh $(abspath $(RESULT))

bench-instructions:
	@$(srcdir_of_makefile)test/lib/run bench/instructions.sh
# what the counts of this build are from now on
bench-instructions-store:
	@cd $(srcdir_of_makefile). && STORE=1 test/lib/run bench/instructions.sh >bench/instructions.new && \
		sed -n 's/^expected: //p' bench/instructions.new >bench/instructions.expected; \
		status=$$?; rm -f bench/instructions.new; exit $$status

.PHONY: demo test test-matrix bench bench-docs bench-instructions bench-instructions-store
