#!/bin/sh
# lint.sh NAME PACKAGE VERSION ARG...
#
# Runs a linter of the pinned version. Skipped by name if it cannot be built, which
# PACKS_MCP_REQUIRE=NAME turns into a failure.
set -eu
. scripts/lib.sh
name=$1 package=$2 version=$3
shift 3

tool=$(scripts/tool.sh "$name" "$package" "$version") || skip "$name" "it cannot be built"
exec "$tool" "$@"
