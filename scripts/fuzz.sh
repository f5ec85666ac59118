#!/bin/sh
# fuzz.sh [TIME [PARTS]]
#
# Runs every fuzz target of the repository for TIME (30s), two per core at once with one
# worker each, since a check that takes minutes is not run. With PARTS, it runs only one
# part of the targets, which depends on the commit. A failing input stays in the package's
# testdata/fuzz, where "go test" finds it from then on.
set -eu
. scripts/lib.sh

# one DIR NAME TIME runs one target, and prints one line if it succeeds.
if [ "${1:-}" = one ]; then
	code=0
	out=$(go test -run '^$' -fuzz "^$3\$" -fuzztime "$4" -fuzzminimizetime 5s -parallel 1 "./$2" 2>&1) || code=$?
	# Go can take the end of the time for a failure (golang.org/issue/75804);
	# there is no failing input then.
	case $code:$out in
	0:*) ;;
	*"Failing input written"*) code=1 ;;
	*"context deadline exceeded"*) code=0 ;;
	esac
	if [ "$code" -ne 0 ]; then
		printf '%s %s: FAIL\n%s\n' "$2" "$3" "$out" >&2
		exit 1
	fi
	printf '%s %s: %s\n' "$2" "$3" "$(printf '%s\n' "$out" | grep '^fuzz: elapsed' | tail -n 1)"
	exit 0
fi

time=${1:-30s}
targets=$(find . -name '*_test.go' -not -path '*/.*/*' -not -path '*/node_modules/*' -not -path '*/testdata/*' \
	-exec grep -HoE '^func Fuzz[A-Z0-9_][A-Za-z0-9_]*\(' {} + | sed -E 's|^\./(.*)/[^/]*:func (.*)\($|\1 \2|' | sort)
if [ -z "$targets" ]; then
	echo "no fuzz targets"
	exit 0
fi
parts=${2:-1}
if [ "$parts" -gt 1 ]; then
	commit=$(git rev-parse HEAD 2>/dev/null) || commit=0000
	part=$((0x$(printf '%.4s' "$commit") % parts))
	targets=$(printf '%s\n' "$targets" | awk -v parts="$parts" -v part="$part" 'NR % parts == part')
	echo "part $part of $parts, by the commit:"
fi
jobs=$((2 * $(cores)))
echo "$(printf '%s\n' "$targets" | wc -l | tr -d ' ') fuzz targets, $time each, $jobs at once"
# shellcheck disable=SC2016 # the inner shell expands these
printf '%s\n' "$targets" | TIME=$time xargs -n 2 -P "$jobs" sh -c 'exec scripts/fuzz.sh one "$1" "$2" "$TIME"' fuzz
