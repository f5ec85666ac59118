#!/bin/sh
# e2e.sh BINARY
#
# Drives the binary with the official TypeScript clients: every *.test.mjs of
# test/e2e, which finds the binary in PACKS_MCP_BIN.
set -eu
. scripts/lib.sh
binary=$1

command -v node >/dev/null || skip node "there is no node on the PATH"
set -- test/e2e/*.test.mjs
if [ ! -f "$1" ]; then
	skip e2e "test/e2e has no *.test.mjs"
fi
test/e2e/install.sh
PACKS_MCP_BIN=$PWD/$binary exec node --test "$@"
