# What the Makefiles of both libraries include.

# objects that both contain
BOTH = \
	src/background.o \
	src/relation.o \
	src/source.o
# PostgreSQL 15 lets libraries see each other's functions, and the first of a name serves all
SHLIB_EXPORTS = src/exports.txt

# the version is written in the control file only
EXTVERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(srcdir_of_makefile)instaid.control)
PG_CPPFLAGS += -DINSTAID_VERSION='"$(EXTVERSION)"'
PG_CPPFLAGS += -I$(srcdir_of_makefile)src
# the server's headers are not ours to warn about
PG_CPPFLAGS += -isystem $(shell $(PG_CONFIG) --includedir-server)

# PGXS of a server that was built in its own source tree does not set VPATH for ours
ifneq ($(srcdir_of_makefile),./)
VPATH = $(srcdir_of_makefile)
# make would take these for the objects of this build
ifneq ($(and $(wildcard $(srcdir_of_makefile)src/instaid.o),$(filter all install,$(or $(MAKECMDGOALS),all))),)
$(error The source tree has been built: run make clean in it, and then build elsewhere)
endif
endif

# pg_config names PGXS even where it is not installed
PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))

ifneq ($(PGXS),)
include $(PGXS)
else
all install installcheck uninstall clean:
	@echo "$(PG_CONFIG) not found, or its PostgreSQL has no development files: install PostgreSQL's development package, or set PG_CONFIG" >&2; exit 1
endif

# the headers are few enough to rebuild all for each of them, and for the version
$(OBJS) $(OBJS:.o=.bc): $(wildcard $(srcdir_of_makefile)src/*.h $(srcdir_of_makefile)src/*/*.h) \
	instaid.control

# a build outside the source tree starts with an empty directory
DIRECTORIES = $(addprefix $(CURDIR)/src/,ids tickets sources)
$(OBJS) $(OBJS:.o=.bc) src/exports.list: | $(DIRECTORIES)
$(DIRECTORIES):
	mkdir -p $@
