#!/bin/sh
# docker.sh VERSION
#
# Builds the image packs-mcp:VERSION and tries it. Without a Docker engine, it runs the
# stages as far as possible; PACKS_MCP_REQUIRE=docker demands the engine.
set -eu
. scripts/lib.sh
version=$1

if ! docker info >/dev/null 2>&1; then
	scripts/docker-stages.sh "$version"
	skip docker "no Docker engine here; the stages were run by hand"
fi
image=packs-mcp:$(printf '%s' "$version" | tr -c 'A-Za-z0-9_.-' -)
docker build --build-arg VERSION="$version" --build-arg COMMIT="$(git rev-parse HEAD)" --tag "$image" .
scripts/smoke.sh "$version" docker run -i --rm "$image"
user=$(docker run --rm --entrypoint id "$image" -u)
if [ "$user" = 0 ]; then
	echo "$image runs as root" >&2
	exit 1
fi
