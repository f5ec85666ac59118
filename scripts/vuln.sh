#!/bin/sh
# vuln.sh PACKAGE VERSION
#
# Looks for known vulnerabilities in what both programs call, on each system, and then in
# every package that the module and its tests import, on this one. It uses the online
# database, or without a network the newest copy in ../shared/data/vulndb, whose date it
# prints. First, it must find a module that is known to be vulnerable. Without govulncheck
# or a database, the check is skipped by name, which PACKS_MCP_REQUIRE=vulndb turns into a
# failure.
set -eu
. scripts/lib.sh

tool=$(scripts/tool.sh govulncheck "$1" "$2") || skip vulndb "govulncheck cannot be built"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Vulnerabilities without a fix in what only tests import: the entry, its module, the date on
# which a person assessed it, and why it may stay. There are no exceptions for the programs.
# The check fails for an entry that is no longer found, or that has a fix.
excepted='
GO-2026-5932 golang.org/x/crypto 2026-11-28 openpgp is unmaintained; the authority of our tests gets it through the one of Sigstore, and reads no OpenPGP
'

# look FOLDER ARGUMENT... runs govulncheck, and leaves its output in tmp/out. Its status 3
# means that it found some.
look() {
	code=0 folder=$1
	shift
	# shellcheck disable=SC2086 # no word, or one flag
	"$tool" $db -C "$folder" "$@" >"$tmp/out" 2>&1 || code=$?
}

# A known vulnerability: language.Parse of this version does not terminate (GO-2022-1059).
mkdir "$tmp/control"
printf 'module control\n\ngo 1.26.5\n\nrequire golang.org/x/text v0.3.7\n' >"$tmp/control/go.mod"
printf 'package main\n\nimport "golang.org/x/text/language"\n\nfunc main() { _, _, _ = language.ParseAcceptLanguage("de") }\n' >"$tmp/control/main.go"
(cd "$tmp/control" && GOFLAGS=-mod=mod go mod tidy) >"$tmp/tidy" 2>&1 || skip vulndb "the vulnerable module for the check of the check cannot be had: $(tail -n 1 "$tmp/tidy")"

db=''
look "$tmp/control" .
case $code in
0 | 3) echo "database: the network's" ;;
*)
	archive=''
	for file in ../shared/data/vulndb/osv-*.tar.zst; do # the last is the newest
		[ ! -e "$file" ] || archive=$file
	done
	[ -n "$archive" ] || skip vulndb "no vulnerability database: $(tail -n 1 "$tmp/out")"
	command -v zstd >/dev/null || skip vulndb "there is no zstd on the PATH to unpack the database"
	mkdir "$tmp/db"
	zstd -dc "$archive" | tar -x -C "$tmp/db" --strip-components=1
	date=${archive##*/osv-}
	echo "database: the copy of ${date%.tar.zst}, $(find "$tmp/db" -name '*.json' | wc -l) entries; the network's cannot be reached"
	db="-db=file://$tmp/db"
	look "$tmp/control" .
	;;
esac
if [ "$code" != 3 ] || ! grep -q GO-2022-1059 "$tmp/out"; then
	cat "$tmp/out" >&2
	echo "vuln: govulncheck did not find GO-2022-1059, which is there; so it would find nothing else either" >&2
	exit 1
fi

for os in linux darwin windows; do
	export GOOS=$os
	look . ./cmd/...
	if [ "$code" != 0 ]; then
		cat "$tmp/out" >&2
		echo "vuln: the programs for $os; see above" >&2
		exit 1
	fi
	echo "$os: $(head -n 3 "$tmp/out" | grep -m 1 'No vulnerabilities')"
done

unset GOOS
look . -test -scan package ./...
case $code in
0 | 3) ;;
*)
	cat "$tmp/out" >&2
	exit 1
	;;
esac
# One line for each: the entry, its module, and the version that fixes it, or N/A.
awk '/^Vulnerability #/ { id = $3 } /^ *Module: / { module = $2 } /^ *Fixed in: / { print id, module, $3 }' "$tmp/out" | sort -u >"$tmp/found"
if [ "$code" = 3 ] && [ ! -s "$tmp/found" ]; then
	cat "$tmp/out" >&2
	echo "vuln: govulncheck found something that this script cannot read" >&2
	exit 1
fi
failed=''
while read -r id module fix; do
	if ! printf '%s' "$excepted" | grep -q "^$id $module "; then
		echo "vuln: $id in $module, which the module or its tests import; see below" >&2
		failed=yes
	elif [ "$fix" != N/A ]; then
		echo "vuln: $id is mended in $fix: take it, and remove the exception in scripts/vuln.sh" >&2
		failed=yes
	fi
done <"$tmp/found"
printf '%s' "$excepted" | sed '/^$/d' >"$tmp/excepted"
while read -r id module day why; do
	if grep -q "^$id $module " "$tmp/found"; then
		echo "tests: $id in $module may stay, as judged on $day: $why"
	else
		echo "vuln: $id is not found in $module: remove the exception in scripts/vuln.sh" >&2
		failed=yes
	fi
done <"$tmp/excepted"
if [ -n "$failed" ]; then
	cat "$tmp/out" >&2
	exit 1
fi
echo "the whole module with its tests: nothing else"
