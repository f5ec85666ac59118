#!/bin/sh
# tool.sh NAME PACKAGE VERSION
#
# Prints the path of a Go program, built once into .cache/bin. If it cannot
# be built, fails with 3, and the last lines of the reason on standard error.
set -eu
name=$1 package=$2 version=$3

bin=$PWD/.cache/bin
# A tool built with another Go version cannot read what this one compiles.
tool=$bin/$name-$version-$(go env GOVERSION)
if [ ! -x "$tool" ]; then
	mkdir -p "$bin"
	tmp=$(mktemp -d "$bin/tmp.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	echo "building $name $version, once" >&2
	if ! CGO_ENABLED=0 GOBIN=$tmp GOFLAGS=-trimpath go install "$package@$version" >"$tmp/log" 2>&1; then
		tail -n 3 "$tmp/log" >&2
		exit 3
	fi
	mv "$tmp/$name" "$tool"
fi
echo "$tool"
