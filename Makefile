# instaid: Instagram-style IDs for PostgreSQL
#
#   make && make install     build and install, for the server of PG_CONFIG
#   make demo                see it work on a private, throw-away server
#   make bench               measure it beside others, likewise
#   make server              a private server that stays: eval "$(make -s server)"
#   make installcheck REGRESS=ranges       one file of sql/ on your server; without REGRESS, all
#   make prove_installcheck PROVE_TESTS=test/t/shard_freeze.pl   TAP tests of what is installed
#   make test                the tests, likewise; SUITES="regress id_crash" for some, FULL=1 for all
#   make test-cluster        the tests with routers, poolers, clusters and monitors
#   make test-clients        the tests with drivers and ORMs
#   make test-matrix         tests on each PostgreSQL, in Debian folders; all with FULL=1
#   make soak                10^9 IDs with crashes between, or INSTAID_SOAK_IDS; half an hour
#   make test-packages       builds, installs, upgrades and purges packages in Debian folders
#   make reference           writes the signatures of the catalog into docs/reference*.md
#   make script              assembles the scripts of instaid and instaid_adopt from extension/, common/ and adopt/
#   make deb, make dist      the Debian packages; the zip for PGXN
#   make sql-edition         the SQL edition as one text, and for pg_tle and database.dev
#   make sql-edition-restore-list DUMP=...  lists what of a dump of the extension it can restore
#   make bench-instructions  the instructions that an ID takes, against those stored
#
# This is the extension instaid.  all, install, installcheck, uninstall and clean also do their work
# in tickets/ and adopt/, the extensions instaid_tickets and instaid_adopt, and in move/, the program
# instaid-move.  tickets/ and move/ need libpq: TICKETS=no and MOVE=no leave them out.
# Builds in the source tree, or elsewhere with "make -f /path/to/Makefile".

PG_CONFIG ?= pg_config

EXTENSION = instaid
MODULE_big = instaid
OBJS = \
	src/arguments.o \
	src/clocked_sequence.o \
	src/declaration.o \
	src/fields.o \
	src/generator.o \
	src/id_sequence.o \
	src/instaid.o \
	src/language.o \
	src/next_id.o \
	src/settled.o \
	src/shard_sequences.o \
	src/shards.o \
	src/text_forms.o \
	src/common/common.o \
	src/common/sequence.o
DATA = instaid--1.0.sql
PGFILEDESC = "instaid - Instagram-style IDs"

REGRESS = setup fields text_forms id_type generate refuse lifecycle roles usage shards declare freeze ranges partitions audit settled metrics
ISOLATION = order create_shard twins create_partitions alter dropped freeze deadlock last_tick renumber audit settled
# Files that are named on the command line run alone, after "setup", which they use.
named := $(filter command%,$(origin REGRESS) $(origin ISOLATION))
files := $(if $(filter command%,$(origin REGRESS)),$(REGRESS))
specs := $(if $(filter command%,$(origin ISOLATION)),$(ISOLATION))
ifneq ($(files)$(specs),)
override REGRESS := $(if $(files),setup $(filter-out setup,$(files)))
override ISOLATION := $(specs)
endif
ISOLATION_OPTS = --inputdir=$(srcdir)/test --outputdir=test

EXTRA_CLEAN = test/results test/regression.diffs test/regression.out

srcdir_of_makefile := $(dir $(firstword $(MAKEFILE_LIST)))
top := $(abspath $(srcdir_of_makefile))

# PostgreSQL 15 lets libraries see each other's functions, and the first of a name serves all
SHLIB_EXPORTS = src/exports.txt

# the version is written in the control file only
EXTVERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(srcdir_of_makefile)instaid.control)
PG_CPPFLAGS = -DINSTAID_VERSION='"$(EXTVERSION)"' -I$(srcdir)/src -I$(srcdir)/src/common
# the server's headers are not ours to warn about
PG_CPPFLAGS += -isystem $(shell $(PG_CONFIG) --includedir-server 2>/dev/null)

# PGXS of a server that was built in its own source tree does not set VPATH for ours
ifneq ($(srcdir_of_makefile),./)
VPATH = $(srcdir_of_makefile)
# make would take these for the objects of this build
ifneq ($(and $(wildcard $(patsubst %,$(srcdir_of_makefile)%/*.o,src tickets move)),$(filter all install,$(or $(MAKECMDGOALS),all))),)
$(error The source tree has been built: run make clean in it, and then build elsewhere)
endif
endif

# pg_config names PGXS even where it is not installed
PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))

ifneq ($(PGXS),)
include $(PGXS)

# the headers are few enough to rebuild all for each of them, and for the version
$(OBJS) $(OBJS:.o=.bc): $(wildcard $(srcdir)/src/*.h $(srcdir)/src/common/*.h) instaid.control
# a build outside the source tree starts with an empty directory
$(OBJS) $(OBJS:.o=.bc) src/exports.list: | $(CURDIR)/src/common
$(CURDIR)/src/common:
	mkdir -p $@

# the other parts
PARTS = adopt $(if $(filter no,$(TICKETS)),,tickets) $(if $(filter no,$(MOVE)),,move)
ifneq ($(and $(filter tickets move,$(PARTS)),$(filter all install,$(or $(MAKECMDGOALS),all))),)
ifeq ($(wildcard $(libpq_srcdir)/libpq-fe.h),)
$(error instaid_tickets and instaid-move need the development files of libpq; without them, run make TICKETS=no MOVE=no)
endif
endif
all: $(PARTS:%=%/all)
install: $(PARTS:%=%/install)
uninstall: $(PARTS:%=%/uninstall)
clean: adopt/clean tickets/clean move/clean
# files that are named on the command line are those of instaid
ifeq ($(named),)
installcheck: $(patsubst %,%/installcheck,$(filter-out move,$(PARTS)))
endif
# with -j, too: they have one database
tickets/installcheck: | adopt/installcheck
$(PARTS:%=%/install): %/install: %/all
steps = $(foreach part,adopt tickets move,$(addprefix $(part)/,all install installcheck uninstall clean))
.PHONY: $(steps)
$(steps):
	@mkdir -p $(@D) && $(MAKE) -C $(@D) -f $(top)/$(@D)/Makefile VPATH=$(top)/$(@D) $(@F)
else
all install installcheck uninstall clean:
	@echo "$(PG_CONFIG) not found, or its PostgreSQL has no development files: install PostgreSQL's development package, or set PG_CONFIG" >&2; exit 1
endif

# Their parts are in extension/, adopt/ and common/.  A packager's tree, which is built elsewhere,
# is left as it is, and so is that of somebody without perl: git does not keep files' times.
assembled = instaid--$(EXTVERSION).sql adopt/instaid_adopt--$(EXTVERSION).sql
ifneq ($(and $(filter ./,$(srcdir_of_makefile)),$(wildcard extension/assemble.pl),$(shell command -v perl)),)
all adopt/all: $(assembled)
$(assembled): $(wildcard extension/*.* common/*.sql adopt/[!i]*.sql)
	@perl extension/assemble.pl $@ >$@.new && mv $@.new $@
endif
script:
	@touch $(top)/extension/assemble.pl && $(MAKE) -s -C $(top) $(assembled)

# what the reference tells of functions, views and settings, as a private server has them
reference:
	@REFERENCE=1 SUITES=docs_reference RESULT=$(abspath $(srcdir_of_makefile).) $(srcdir_of_makefile)test/lib/run test/suites.sh

# These bring a PostgreSQL of their own, as PG_CONFIG or else Debian has it.
demo:
	@echo 'A demonstration on a private server.  It takes about a minute.  On Debian, root'"'"'s first installs'
	@echo 'what is missing of gcc, libc6-dev, make, PostgreSQL and its development files, and names it.'
	@$(srcdir_of_makefile)test/lib/run test/demo.sh
test:
	@echo 'Tests on private servers.$(if $(SUITES),,  All of them took 22 minutes on two busy processors$(if $(FULL),; FULL=1 takes longer).)'
	@$(srcdir_of_makefile)test/lib/run test/suites.sh
server:
	@PG_CONFIG=$(PG_CONFIG) sh $(srcdir_of_makefile)test/server.sh start
server-stop:
	@sh $(srcdir_of_makefile)test/server.sh stop
prove_installcheck:
	@PG_CONFIG=$(PG_CONFIG) sh $(srcdir_of_makefile)test/server.sh prove $(PROVE_FLAGS) $(or $(PROVE_TESTS),$(wildcard test/t/*.pl))
test-cluster test-clients:
	@SUITES="$${SUITES:-$(@:test-%=%)}" $(srcdir_of_makefile)test/lib/run test/suites.sh
# as many IDs as a release is tested with
soak: export INSTAID_SOAK_IDS ?= 1000000000
soak:
	@mkdir -p $(srcdir_of_makefile)dist
	@FULL=1 SUITES=id_soak RESULT=$(abspath $(srcdir_of_makefile)dist/soak) $(srcdir_of_makefile)test/lib/run test/suites.sh
	@cat $(srcdir_of_makefile)dist/soak
test-packages:
	@$(srcdir_of_makefile)test/tools/packages.sh $(VERSIONS)
test-matrix:
	@$(srcdir_of_makefile)test/tools/matrix.sh $(VERSIONS)

# The Debian packages, and the zip for PGXN of what is committed.  A patch release keeps
# the version of the control file.
DISTVERSION := $(shell sed -n 's/^   "version": "\(.*\)",/\1/p' $(srcdir_of_makefile)META.json)
deb:
	@RESULT=$(abspath $(srcdir_of_makefile)dist) $(srcdir_of_makefile)test/lib/run test/tools/packages/deb.sh
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

.PHONY: script reference demo server server-stop prove_installcheck test soak test-packages deb dist sql-edition sql-edition-restore-list test-cluster test-clients test-matrix bench bench-docs bench-instructions bench-instructions-store
