#!/bin/sh
# agents.sh BINARY [FLAG]...
#
# Runs real agents against the binary, offline, with scripted models: Claude
# Code, Codex, Gemini CLI, opencode, Qwen Code and Copilot CLI
# (test/e2e/agents_*_test.go), and a graph of LangChain.js (test/e2e/langchain).
# Each is installed from npm once. If that fails, they are skipped by name, agents or
# langchain; PACKS_MCP_REQUIRE=agents (or langchain) turns that into a failure. The
# flags are for the test of the agents: -update writes the observed facts to
# docs/reference/clients.md.
set -eu
. scripts/lib.sh
case $1 in
/*) binary=$1 ;;
*) binary=$PWD/$1 ;;
esac
shift
export PACKS_MCP_BIN="$binary"

# install NAME FOLDER DIR installs, and reports whether it succeeded. If not, NAME is
# skipped.
install() {
	if scripts/npm.sh "$2" "$3"; then
		return 0
	fi
	(skip "$1" "the packages of $2 cannot be installed") || exit 1
	return 1
}
agents=$PWD/.cache/agents
if install agents test/e2e/agents "$agents"; then
	# Some of its tests only wait, so run more of them at a time than there are cores.
	PACKS_MCP_AGENTS=$agents go test -count=1 -timeout 20m -parallel $((3 * $(cores))) -run '^TestAgents$' ./test/e2e "$@"
fi
langchain=$PWD/test/e2e/langchain
if install langchain "$langchain" "$langchain"; then
	node --test --test-reporter=spec "$langchain"/*.test.mjs
fi
