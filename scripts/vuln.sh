#!/bin/sh
# vuln.sh PACKAGE VERSION
#
# Looks for known vulnerabilities in what both programs call, on each system. The
# database is that of the network, or without a network the newest copy in
# ../shared/data/vulndb, whose date is printed. Before that, a module that is known to
# be vulnerable must be found. Where the program that looks, or a database, cannot be
# had, the check is skipped by name, which PACKS_MCP_REQUIRE=vulndb turns into a failure.
set -eu
. scripts/lib.sh

tool=$(scripts/tool.sh govulncheck "$1" "$2") || skip vulndb "govulncheck cannot be built"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# look FOLDER PACKAGE has govulncheck look, and leaves its words in tmp/out. Its own status for
# "found some" is 3.
look() {
	code=0
	# shellcheck disable=SC2086 # no word, or one flag
	"$tool" $db -C "$1" "$2" >"$tmp/out" 2>&1 || code=$?
}

# What must be found: language.Parse of this version does not end (GO-2022-1059).
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
