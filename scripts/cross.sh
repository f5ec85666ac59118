#!/bin/sh
# Builds the program for each system that it is made for, and vets everything
# with its tests for each operating system; what differs by processor is in the
# build already. Nothing is run: that takes the system.
set -eu

# Machine code that nobody runs need not be fast; compiling it may be. This
# machine's own system is left as it is, since "make vet" compiled that.
here=$(go env GOHOSTOS)/$(go env GOHOSTARCH)
plain=${GOFLAGS:-}
quick="$plain '-gcflags=all=-N -l'"

failed=''
for os in linux darwin windows; do
	for arch in amd64 arm64; do
		echo "$os/$arch"
		if [ "$os/$arch" = "$here" ]; then
			export GOFLAGS="$plain"
		else
			export GOFLAGS="$quick"
		fi
		CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -o /dev/null ./... || failed="$failed $os/$arch"
		if [ "$arch" = amd64 ]; then
			CGO_ENABLED=0 GOOS=$os GOARCH=$arch go vet ./... || failed="$failed $os/$arch"
		fi
	done
done
if [ -n "$failed" ]; then
	echo "does not build for$failed" >&2
	exit 1
fi
