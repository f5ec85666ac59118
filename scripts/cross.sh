#!/bin/sh
# Builds the program for each supported system. Vets everything, including the tests, for
# each operating system, and processor-specific code for each processor. It runs nothing,
# since that needs the system. The flags are those of a release, so that a later release
# reuses most of the compiled packages.
set -eu

failed=''
for os in linux darwin windows; do
	for arch in amd64 arm64; do
		echo "$os/$arch"
		CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -o /dev/null ./... || failed="$failed $os/$arch"
		case $arch in
		amd64) packages=./... ;;
		*) packages=./internal/sandbox/... ;; # nothing else differs by processor
		esac
		CGO_ENABLED=0 GOOS=$os GOARCH=$arch go vet $packages || failed="$failed $os/$arch"
	done
done
# A processor for which there is no confinement.
CGO_ENABLED=0 GOOS=linux GOARCH=riscv64 go build ./internal/sandbox/... || failed="$failed linux/riscv64"
if [ -n "$failed" ]; then
	echo "does not build for$failed" >&2
	exit 1
fi
