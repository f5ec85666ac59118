#!/bin/sh
# Installs the TypeScript clients of package-lock.json beside this script, once.
# Skipped by name without node and npm, which PACKS_MCP_REQUIRE=node turns into
# a failure; the clients' own install scripts are not run.
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib.sh

for program in node npm; do
	command -v "$program" >/dev/null || skip node "there is no $program on the PATH"
done
cd test/e2e
if [ ! -f package-lock.json ]; then
	skip node "test/e2e has no package-lock.json"
fi
# npm writes this file last.
if [ -f node_modules/.package-lock.json ] && [ -z "$(find package-lock.json -newer node_modules/.package-lock.json)" ]; then
	exit 0
fi
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error </dev/null
