#!/bin/sh
# release-tool.sh PACKAGE
#
# Prints the path of a program that release/tools/go.mod pins, built once into .cache/bin. If
# it cannot be built, fails with 3 and the last lines of the reason on standard error.
set -eu
package=$1
name=$(basename "${package%/v[0-9]}")
bin=$PWD/.cache/bin
sum=$(cksum release/tools/go.sum | cut -d ' ' -f 1)
tool=$bin/release-$sum-$(go env GOVERSION)/$name
if [ ! -x "$tool" ]; then
	mkdir -p "$(dirname "$tool")"
	tmp=$(mktemp -d "$bin/tmp.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	echo "building $name, once" >&2
	if ! CGO_ENABLED=0 go -C release/tools build -trimpath -o "$tmp/$name" "$package" >"$tmp/log" 2>&1; then
		tail -n 3 "$tmp/log" >&2
		exit 3
	fi
	mv "$tmp/$name" "$tool"
fi
echo "$tool"
