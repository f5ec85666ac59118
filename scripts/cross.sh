#!/bin/sh
# Builds the program, and vets everything with its tests, for each system that
# it is made for. Nothing is run: that takes the system.
set -eu

failed=''
for os in linux darwin windows; do
	for arch in amd64 arm64; do
		echo "$os/$arch"
		CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -o /dev/null ./... || failed="$failed $os/$arch"
		CGO_ENABLED=0 GOOS=$os GOARCH=$arch go vet ./... || failed="$failed $os/$arch"
	done
done
if [ -n "$failed" ]; then
	echo "does not build for$failed" >&2
	exit 1
fi
