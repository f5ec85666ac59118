#!/bin/sh
# inspector.sh BINARY
#
# Inspects the binary with the MCP Inspector over stdio and HTTP, in both eras of the
# protocol (test/e2e/inspector_test.go). It is installed from npm once. If that fails, this is
# skipped by name, which PACKS_MCP_REQUIRE=inspector turns into a failure;
# PACKS_MCP_REQUIRE=corpora also demands the corpus.
set -eu
. scripts/lib.sh
case $1 in
/*) binary=$1 ;;
*) binary=$PWD/$1 ;;
esac
set -- inspector
. scripts/judges.sh

PACKS_MCP_BIN=$binary PACKS_MCP_JUDGES=$judges PACKS_MCP_NODE=$node \
	exec go test -count=1 -timeout 15m -run '^TestInspector$' ./test/e2e
