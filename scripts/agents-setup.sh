#!/bin/sh
# agents-setup.sh BINARY
#
# Runs "packs-mcp setup" for real agents, and starts them with the settings that it wrote,
# offline and with a scripted model (test/e2e/agents_setup_test.go). The agents are those of
# scripts/agents.sh, installed once. Agents that cannot be installed are skipped;
# PACKS_MCP_REQUIRE=agents turns that into a failure.
set -eu
. scripts/lib.sh
case $1 in
/*) binary=$1 ;;
*) binary=$PWD/$1 ;;
esac
agents=$PWD/.cache/agents
scripts/npm.sh test/e2e/agents "$agents" || skip agents "the packages of test/e2e/agents cannot be installed"
PACKS_MCP_BIN=$binary PACKS_MCP_AGENTS=$agents go test -count=1 -timeout 20m -parallel $((2 * $(cores))) -run '^(TestAgentsSetup|TestStopwatch)$' ./test/e2e
