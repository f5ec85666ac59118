#!/bin/sh
# Prints "-race" if the race detector works here; on most systems it needs a C compiler and
# cgo. Otherwise prints nothing, and the reason on standard error.
set -eu
. scripts/lib.sh

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
printf 'package main\n\nfunc main() {}\n' >"$tmp/main.go"
if why=$(go build -race -o "$tmp/main" "$tmp/main.go" 2>&1) && why=$("$tmp/main" 2>&1); then
	echo "-race"
	exit 0
fi
why=$(printf '%s\n' "$why" | grep -v '^#' | head -n 1)
skip race "this machine cannot build with it: $why" >&2
