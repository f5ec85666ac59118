#!/bin/sh
# cards.sh BINARY
#
# Shows the binary's approval card on the page of the MCP Inspector, in a headless
# Chromium, and answers it, in both eras of the protocol (test/browser/inspector_test.go).
# The Inspector is installed from npm once. If that fails, this is skipped by name, which
# PACKS_MCP_REQUIRE=inspector turns into a failure; for Chromium, it is
# PACKS_MCP_REQUIRE=browser.
set -eu
. scripts/lib.sh
case $1 in
/*) binary=$1 ;;
*) binary=$PWD/$1 ;;
esac
set -- inspector
. scripts/judges.sh

PACKS_MCP_BIN=$binary PACKS_MCP_JUDGES=$judges PACKS_MCP_NODE=$node \
	exec go test -count=1 -timeout 5m -run '^TestInspectorCards$' ./test/browser
