#!/bin/sh
# snapshot.sh GORELEASER-PACKAGE VERSION [FLAG]...
#
# Runs goreleaser with the tools it needs, and then writes server.json from the
# checksums. The flags are those of "goreleaser release".
set -eu
. scripts/lib.sh
package=$1 version=$2
shift 2

goreleaser=$(scripts/tool.sh goreleaser "$package" "$version") || skip goreleaser "it cannot be built"
sbom=$(scripts/release-tool.sh github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod) || skip goreleaser "cyclonedx-gomod cannot be built"

# Neither this machine's Go settings nor its paths may affect the build. Go reads its
# settings file unless the variable is set. The linker gets the commit, so Go need not look
# for it.
export GOFLAGS=-buildvcs=false
umask 022
# Without a remote, goreleaser cannot determine the commit.
if [ -z "$(git remote)" ]; then
	export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url GIT_CONFIG_VALUE_0=https://github.com/packs-mcp/packs-mcp
fi
# One build at a time: an archive lists its programs in the order in which their builds
# ended. The compiler uses every core anyway.
PATH=$(dirname "$sbom"):$PATH TZ=UTC "$goreleaser" release --clean --parallelism 1 "$@"
cp .cache/package/mcpb/*.mcpb dist/
release=$(sed -n 's/.*"version": *"\([^"]*\)".*/\1/p' dist/metadata.json)
go run ./release/registry -version "$release" dist/checksums.txt >dist/server.json
echo "packs-mcp $release: $(grep -c . dist/checksums.txt) files in dist/, with checksums.txt and server.json"
