#!/bin/sh
# e2e.sh BINARY
#
# Drives the binary with the official TypeScript clients: every *.test.mjs of test/e2e, which
# finds the binary in PACKS_MCP_BIN. Skipped by name if node is missing or older than 20,
# which the newer client needs; PACKS_MCP_REQUIRE=node turns that into a failure.
set -eu
. scripts/lib.sh
case $1 in
/*) binary=$1 ;;
*) binary=$PWD/$1 ;;
esac

command -v node >/dev/null || skip node "there is no node on the PATH"
if ! node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)'; then
	skip node "node $(node --version) is older than 20"
fi
test/e2e/install.sh
if [ ! -d test/e2e/node_modules ]; then
	exit 0 # install.sh said why
fi
PACKS_MCP_BIN=$binary exec node --test --test-reporter=spec test/e2e/*.test.mjs
