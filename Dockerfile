# The official image of PostgreSQL with instaid.  First build the package, for the
# PostgreSQL and the Debian of the image: make deb
FROM postgres:15-bookworm
COPY dist/postgresql-15-instaid_*.deb /tmp/
RUN apt-get update \
	&& apt-get install -y --no-install-recommends /tmp/postgresql-15-instaid_*.deb \
	&& rm -rf /tmp/*.deb /var/lib/apt/lists/*
