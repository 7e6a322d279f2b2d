# instaid: Instagram-style IDs for PostgreSQL
#
#   make && make install     build and install, for the server of PG_CONFIG
#   make demo                see it work on a private, throw-away server
#   make bench               measure it beside others, likewise
#   make test                the tests, likewise; SUITES="regress 005_crash" for some, FULL=1 for all
#   make test-cluster        the tests with routers, poolers, clusters and monitors
#   make test-clients        the tests with drivers and ORMs
#   make test-matrix         tests on each PostgreSQL, in Debian folders; all with FULL=1
#   make soak                10^9 IDs with crashes between, or INSTAID_SOAK_IDS; half an hour
#   make test-packages       builds, installs, upgrades and purges packages in Debian folders
#   make reference           writes the signatures of the catalog into docs/reference*.md
#   make script              assembles the script of the extension from extension/ and common/
#   make deb, make dist      the Debian packages; the zip for PGXN
#   make sql-edition         the SQL edition as one text, and for pg_tle and database.dev
#   make sql-edition-restore-list DUMP=...  lists what of a dump of the extension it can restore
#   make bench-instructions  the instructions that an ID takes, against those stored
#
# SOURCES=no builds without libpq, and so without tickets that have a source, and without instaid-move.
# Builds in the source tree, or elsewhere with "make -f /path/to/Makefile".

PG_CONFIG ?= pg_config

EXTENSION = instaid
MODULE_big = instaid
OBJS = \
	src/common.o \
	src/instaid.o \
	src/sequence.o \
	src/ids/arguments.o \
	src/ids/declaration.o \
	src/ids/execute_as.o \
	src/ids/fields.o \
	src/ids/generator.o \
	src/ids/id_sequence.o \
	src/ids/language.o \
	src/ids/next_id.o \
	src/ids/session.o \
	src/ids/settled.o \
	src/ids/shards.o \
	src/ids/text_forms.o \
	src/tickets/autocreate.o \
	src/tickets/sources.o \
	src/tickets/tickets.o \
	$(BOTH)
DATA = $(notdir $(wildcard $(srcdir_of_makefile)instaid--*.sql))
PGFILEDESC = "instaid - Instagram-style IDs"

REGRESS = setup fields text_forms id_type generate refuse lifecycle roles usage shards declare freeze adopt ranges partitions audit settled tickets metrics sanity
ISOLATION = order create_shard create_partitions alter dropped freeze deadlock last_tick adopt renumber audit settled tickets
ISOLATION_OPTS = --inputdir=$(srcdir)/test --outputdir=test

EXTRA_CLEAN = test/results test/regression.diffs test/regression.out

srcdir_of_makefile := $(dir $(firstword $(MAKEFILE_LIST)))
include $(srcdir_of_makefile)src/library.mk

# PGXS builds one library for each Makefile.  SOURCES=no leaves out what needs libpq.
ifneq ($(SOURCES),no)
ifneq ($(PGXS),)
all install uninstall clean: %: sources-%
sources-all sources-install sources-uninstall sources-clean: sources-%:
	@$(MAKE) -f $(srcdir_of_makefile)Makefile.sources $*
# after the objects that both libraries contain
sources-all: all-lib
sources-install: sources-all
.PHONY: sources-all sources-install sources-uninstall sources-clean
endif
endif

# its parts are in extension/, and what it shares with the SQL edition in common/
script:
	@cd $(srcdir_of_makefile). && perl extension/assemble.pl >extension/new && mv extension/new instaid--$(EXTVERSION).sql

# what the reference tells of functions, views and settings, as a private server has them
reference:
	@REFERENCE=1 SUITES=041_reference RESULT=$(abspath $(srcdir_of_makefile).) $(srcdir_of_makefile)test/lib/run test/suites.sh

# These bring a PostgreSQL of their own, as PG_CONFIG or else Debian has it.
demo:
	@echo 'A demonstration on a private server.  It takes about a minute.  On Debian, root'"'"'s first installs'
	@echo 'what is missing of gcc, libc6-dev, make, PostgreSQL and its development files, and names it.'
	@$(srcdir_of_makefile)test/lib/run test/demo.sh
test:
	@echo 'Tests on private servers.$(if $(SUITES),,  All of them take 8 minutes on two processors that are idle$(if $(FULL),; FULL=1 takes longer).)'
	@$(srcdir_of_makefile)test/lib/run test/suites.sh
test-cluster test-clients:
	@SUITES="$${SUITES:-$(@:test-%=%)}" $(srcdir_of_makefile)test/lib/run test/suites.sh
# as many IDs as a release is tested with
soak: export INSTAID_SOAK_IDS ?= 1000000000
soak:
	@mkdir -p $(srcdir_of_makefile)dist
	@FULL=1 SUITES=018_soak RESULT=$(abspath $(srcdir_of_makefile)dist/soak) $(srcdir_of_makefile)test/lib/run test/suites.sh
	@cat $(srcdir_of_makefile)dist/soak
test-packages:
	@$(srcdir_of_makefile)test/packages.sh $(VERSIONS)
test-matrix:
	@$(srcdir_of_makefile)test/matrix.sh $(VERSIONS)

# The Debian packages, and the zip for PGXN of what is committed.  A patch release keeps
# the version of the control file.
DISTVERSION := $(shell sed -n 's/^   "version": "\(.*\)",/\1/p' $(srcdir_of_makefile)META.json)
deb:
	@RESULT=$(abspath $(srcdir_of_makefile)dist) $(srcdir_of_makefile)test/lib/run test/packages/deb.sh
	@ls $(srcdir_of_makefile)dist/*.deb
dist:
	@cd $(srcdir_of_makefile). && tag=$$(git tag --points-at HEAD -l 'v*') && \
		{ [ "$${tag:-v$(DISTVERSION)}" = v$(DISTVERSION) ] || { echo "The tag is $$tag, and the version is $(DISTVERSION)." >&2; exit 1; }; } && \
		mkdir -p dist && git archive --prefix=instaid-$(DISTVERSION)/ -o dist/instaid-$(DISTVERSION).zip HEAD && ls dist/*.zip

# The SQL edition: see docs/sql-edition.md
sql-edition:
	@sh $(srcdir_of_makefile)sql-edition/dist.sh $(abspath $(srcdir_of_makefile)dist/sql-edition) && ls $(srcdir_of_makefile)dist/sql-edition
sql-edition-restore-list:
	@perl $(srcdir_of_makefile)sql-edition/restore_list.pl $(DUMP)

# A run of another size than the documented one has a file of its own.
RESULT = $(srcdir_of_makefile)bench/result$(if $(SCALE),-$(SCALE)).tsv
bench:
	@RESULT=$(abspath $(RESULT)) $(srcdir_of_makefile)test/lib/run bench/bench.sh

# the tables of bench/tables.md, and the pictures of docs/benchmarks.md
bench-docs:
	@sh $(srcdir_of_makefile)bench/docs.sh $(abspath $(RESULT))

bench-instructions:
	@$(srcdir_of_makefile)test/lib/run bench/instructions.sh
# what the counts of this build are from now on
bench-instructions-store:
	@cd $(srcdir_of_makefile). && STORE=1 test/lib/run bench/instructions.sh >bench/instructions.new && \
		sed -n 's/^expected: //p' bench/instructions.new >bench/instructions.expected; \
		status=$$?; rm -f bench/instructions.new; exit $$status

.PHONY: script reference demo test soak test-packages deb dist sql-edition sql-edition-restore-list test-cluster test-clients test-matrix bench bench-docs bench-instructions bench-instructions-store
