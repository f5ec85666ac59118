#!/bin/sh
# mcpb.sh OS/ARCH VERSION SECONDS BINARY
#
# Called for each built program: makes a bundle of it, whose files have the time SECONDS, if
# there is one for this system. A bundle cannot specify a processor, so there is one per
# operating system.
set -eu
case $1 in
linux/amd64 | windows/amd64) name=${1%/*}-amd64 ;;
darwin/all) name=darwin-universal ;;
*) exit 0 ;;
esac
mkdir -p .cache/package/mcpb
# The environment is that of the build, which may be for another system.
env -u GOOS -u GOARCH -u GOAMD64 -u GOARM64 CGO_ENABLED=0 \
	go run ./release/mcpb -os "${1%/*}" -version "$2" -time "$3" -out ".cache/package/mcpb/packs-mcp-$name.mcpb" "$4"
