# The official image of PostgreSQL with instaid:
#
#   docker build --build-arg PG_MAJOR=18 -t postgres-instaid .
#
# It is compiled in a stage of its own, so that the image has no compiler.  instaid_tickets and
# instaid-move use the libpq that the official image has.
ARG PG_MAJOR=18
FROM postgres:${PG_MAJOR} AS build
ARG PG_MAJOR
RUN apt-get update \
	&& apt-get install -y --no-install-recommends gcc libc6-dev make postgresql-server-dev-${PG_MAJOR} \
	&& rm -rf /var/lib/apt/lists/*
COPY Makefile instaid.control instaid--*.sql /src/
COPY src/ /src/src/
COPY tickets/ /src/tickets/
COPY adopt/ /src/adopt/
COPY move/ /src/move/
RUN make -C /src PG_CONFIG=/usr/lib/postgresql/${PG_MAJOR}/bin/pg_config DESTDIR=/instaid install

FROM postgres:${PG_MAJOR}
COPY --from=build /instaid/ /
