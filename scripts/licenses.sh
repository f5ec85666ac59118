#!/bin/sh
# licenses.sh [DIR]
#
# Checks that each module that is compiled into the programs has one of the licences
# below, on each system, and copies their texts into DIR. A licence that go-licenses
# does not recognize fails.
#
# These licences allow everybody to use, change and pass on the program, under the MIT
# licence of the rest. Add another one only if it does, too. MPL-2.0 asks for the source
# of its files, which go-licenses copies beside the text.
set -eu
allowed=MIT,ISC,BSD-2-Clause,BSD-3-Clause,Apache-2.0,MPL-2.0

tool=$(scripts/release-tool.sh github.com/google/go-licenses/v2)
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp" && rm -rf "$tmp"' EXIT
# It takes every package for one of the standard library if it does not know where that is.
GOROOT=$(go env GOROOT)
export GOROOT CGO_ENABLED=0
if "$tool" check ./cmd/packs-mcp --allowed_licenses=ISC >"$tmp/log" 2>&1; then
	echo "licenses: go-licenses finds no module at all, since one with another licence than ISC did not fail" >&2
	exit 1
fi

for os in linux darwin windows; do
	export GOOS=$os
	for main in cmd/packs-mcp*; do
		folder=. package=./$main
		if [ -e "$main/go.mod" ]; then # a module of its own
			folder=$main package=.
		fi
		if ! (cd "$folder" && "$tool" check "$package" --allowed_licenses="$allowed") >"$tmp/log" 2>&1; then
			cat "$tmp/log" >&2
			echo "licenses: a module of $main for $os has a licence other than $allowed" >&2
			exit 1
		fi
		if [ -n "${1:-}" ]; then
			(cd "$folder" && "$tool" save "$package" --save_path="$tmp/texts" --force) >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
			chmod -R u+w "$tmp/texts"
			cp -R "$tmp/texts/." "$1/"
		fi
	done
done
