#!/bin/sh
# Installs the TypeScript clients of package-lock.json beside this script, and
# does nothing when they are there. The lock file pins each package by its
# hash; the packages' own install scripts are not run. Skipped by name without
# node, npm or a registry, which PACKS_MCP_REQUIRE=node turns into a failure.
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib.sh

for program in node npm; do
	command -v "$program" >/dev/null || skip node "there is no $program on the PATH"
done
cd test/e2e
# npm writes this file last.
if [ -f node_modules/.package-lock.json ] && [ -z "$(find package.json package-lock.json -newer node_modules/.package-lock.json)" ]; then
	exit 0
fi
rm -rf node_modules
if ! npm ci --ignore-scripts --no-audit --no-fund --loglevel=error </dev/null; then
	rm -rf node_modules
	skip node "npm could not install the clients of test/e2e"
fi
