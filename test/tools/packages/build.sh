# Packages are built, and checked by the tools for them; in TAP.  The Debian packages are
# left in SCRATCH/result.  Started by test/lib/run.
#
# packages: build-essential debhelper fakeroot git help2man lintian pgxnclient
# packages: postgresql-server-dev-all rpm rpmlint unzip yamllint zip

set -u
. test/lib/tap.sh
. test/lib/private.sh

top=$(pwd)
git='git -c user.name=test -c user.email=test@localhost'

# The project has no mail address, and Debian no bug about it.  PostgreSQL's own flags
# can name the directory of libpq.
clean_by_lintian()
{
	lintian --fail-on error,warning \
		--suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog,initial-upload-closes-no-bugs,custom-library-search-path \
		"$SCRATCH"/result/*.changes
}

# deb_has PACKAGE FILE...: these are its files of ours, without bitcode and documentation
deb_has()
{
	deb=$1
	shift
	dpkg-deb -c "$deb"_*.deb | grep -v -e /bitcode/ -e /usr/share/doc/ -e /usr/share/man/ |
		sed -n 's,.*/\(instaid[^/]*\)$,\1,p' | sort >"$work/has"
	printf '%s\n' "$@" | diff - "$work/has"
}

# Each package has its door, and only those of tickets and instaid-move need libpq.
deb_needs()
(
	cd "$SCRATCH/result" && package=postgresql-$major-instaid &&
		deb_has "$package" instaid--1.0.sql instaid.control instaid.so &&
		deb_has "$package-tickets" instaid_tickets--1.0.sql instaid_tickets.control \
			instaid_tickets.so &&
		deb_has "$package-adopt" instaid_adopt--1.0.sql instaid_adopt.control &&
		deb_has instaid-move instaid-move instaid-move-plan &&
		for each in "$package" "$package-tickets"; do
			dpkg-deb -f "$each"_*.deb Depends | grep "^postgresql-$major[ ,]" || return
		done &&
		! dpkg-deb -f "$package"_*.deb Depends Recommends | grep libpq &&
		dpkg-deb -f "$package"-tickets_*.deb Depends | grep libpq5 &&
		! dpkg-deb -f "$package"-tickets_*.deb Depends Recommends | grep instaid &&
		dpkg-deb -f "$package"-adopt_*.deb Depends | grep -x "$package (= .*)" &&
		dpkg-deb -f instaid-move_*.deb Depends | grep libpq5 &&
		! dpkg-deb -f instaid-move_*.deb Depends | grep "postgresql-$major"
)

make_zip()
(
	mkdir "$work/git" && tar -cf - --exclude=./tmp_check . | tar -C "$work/git" -xf - && cd "$work/git" &&
		$git init -q . && $git add -A && $git commit -q -m all && make -s dist
)

tag_is_version()
(
	cd "$work/git" && $git tag v9.9.9 && ! make -s dist && $git tag -d v9.9.9 &&
		$git tag "v$version" && make -s dist
)

install_from_zip()
(
	pg_config=$(copy_postgresql "$PG_CONFIG" "$work/pg") &&
		pgxn install --yes --pg_config "$pg_config" "$zip" &&
		test -f "$("$pg_config" --pkglibdir)/instaid.so" &&
		test -f "$("$pg_config" --pkglibdir)/instaid_tickets.so" &&
		for extension in instaid instaid_tickets instaid_adopt; do
			test -f "$("$pg_config" --sharedir)/extension/$extension.control" || return
		done
)

# PostgreSQL before 18 has dynamic_library_path, and no extension_control_path
library_elsewhere()
(
	pg_config=$(copy_postgresql "$PG_CONFIG" "$work/elsewhere") &&
		make -s PG_CONFIG="$pg_config" pkglibdir="$work/lib" install && make -s clean || exit
	PATH=$(dirname "$pg_config"):$PATH
	start_server "dynamic_library_path='\$libdir:$work/lib'"
	! [ -e "$("$pg_config" --pkglibdir)/instaid.so" ] && psql -Xq -v ON_ERROR_STOP=1 \
		-c 'CREATE EXTENSION instaid' -c "SELECT instaid.create_shard('insta5', 5)" \
		-c 'SELECT insta5.next_id()'
)

# PGDG's PostgreSQL has its directories in one
build_rpm()
(
	prefix=/usr/pgsql-$major
	mkdir -p "$work/rpm/SOURCES" && cp "$zip" "$work/rpm/SOURCES/" &&
		cat >"$work/pg_config" <<-SCRIPT &&
			#!/bin/sh
			case \$1 in
				--bindir) echo $prefix/bin ;;
				--pkglibdir) echo $prefix/lib ;;
				--sharedir) echo $prefix/share ;;
				*) exec "$PG_CONFIG" "\$@" ;;
			esac
		SCRIPT
		chmod +x "$work/pg_config" &&
		rpmbuild -ba --nodeps --define "_topdir $work/rpm" --define "pgmajorversion $major" \
			--define '_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
			--define 'debug_package %{nil}' --define "llvm $llvm" --define "pg_config $work/pg_config" packaging/rpm/instaid.spec
)

rpm_needs()
(
	cd "$work/rpm/RPMS" && rpm -qpl instaid_"$major-$version"-*.rpm | grep /lib/instaid.so &&
		! rpm -qpl instaid_"$major-$version"-*.rpm | grep -e instaid_ -e instaid-move |
			grep -v "/instaid_$major" | grep . &&
		! rpm -qpR instaid_"$major-$version"-*.rpm | grep libpq &&
		rpm -qpl instaid_"$major"-tickets-[0-9]*.rpm | grep /lib/instaid_tickets.so &&
		rpm -qpR instaid_"$major"-tickets-[0-9]*.rpm | grep '^libpq\.so' &&
		! rpm -qpR instaid_"$major"-tickets-[0-9]*.rpm | grep instaid &&
		rpm -qpl instaid_"$major"-adopt-*.rpm | grep /extension/instaid_adopt.control &&
		rpm -qpR instaid_"$major"-adopt-*.rpm | grep "^instaid_$major = $version" &&
		rpm -qpl instaid_"$major"-move-*.rpm | grep /bin/instaid-move &&
		rpm -qpR instaid_"$major"-move-*.rpm | grep '^libpq\.so'
)

# the program of the RPM runs, too
rpm_moves()
(
	mkdir "$work/unpacked" && cd "$work/unpacked" &&
		rpm2archive - <"$(echo "$work"/rpm/RPMS/instaid_"$major"-move-*.rpm)" | tar -xzf - &&
		"usr/pgsql-$major/bin/instaid-move" --help | grep '^ *--reverse'
)

clean_by_rpmlint()
{
	rpmlint --ignore-unused-rpmlintrc --rpmlintrc packaging/rpm/instaid.rpmlintrc packaging/rpm/instaid.spec \
		$(find "$work/rpm/RPMS" -name '*.rpm' | grep . || echo missing.rpm)
}

major=$("$PG_CONFIG" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
llvm=$(grep -c '^with_llvm[[:space:]]*= yes' "$(dirname "$("$PG_CONFIG" --pgxs)")/../Makefile.global")
version=$(sed -n 's/^Version: *//p' packaging/rpm/instaid.spec)
zip=$work/git/dist/instaid-$version.zip

check 'the Debian packages are built' sh test/tools/packages/deb.sh
check 'a Debian package for each door; only tickets and instaid-move need libpq' deb_needs
check 'the Debian packages are clean by lintian' clean_by_lintian
check 'a zip is made from git' make_zip
check 'no zip is made if the tag names another version' tag_is_version
check 'the PGXN client installs from the zip' install_from_zip
check 'the library can be in another directory of dynamic_library_path' library_elsewhere
check 'the RPM packages are built' build_rpm
check 'an RPM for each door; only tickets and instaid-move need libpq' rpm_needs
check 'instaid-move of the RPM runs' rpm_moves
check 'the RPMs are clean by rpmlint' clean_by_rpmlint
check 'workflow, manifests and metrics are clean by yamllint' yamllint -s \
	-d '{extends: default, rules: {document-start: disable, truthy: {check-keys: false}, line-length: {max: 120}}}' \
	.github packaging monitoring
echo "1..$n"
