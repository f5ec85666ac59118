#!/bin/sh
# conformance.sh BINARY
#
# Runs the official conformance suite on the binary over HTTP, with the expectations in
# test/e2e/judges/conformance.yaml (test/e2e/conformance_test.go). The suite is installed
# from npm once. If that fails, this is skipped by name, which
# PACKS_MCP_REQUIRE=conformance turns into a failure.
set -eu
. scripts/lib.sh
case $1 in
/*) binary=$1 ;;
*) binary=$PWD/$1 ;;
esac
set -- conformance
. scripts/judges.sh

PACKS_MCP_BIN=$binary PACKS_MCP_JUDGES=$judges PACKS_MCP_NODE=$node \
	exec go test -count=1 -timeout 10m -parallel 6 -run '^TestConformance' ./test/e2e
