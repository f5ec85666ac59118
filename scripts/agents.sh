#!/bin/sh
# agents.sh BINARY
#
# Runs real agents against the binary, offline, with scripted models: Claude
# Code and Codex (test/e2e/agents_*_test.go), and a graph of LangChain.js
# (test/e2e/langchain). Each is installed from npm, once. What cannot be
# installed is skipped by name, agents or langchain; PACKS_MCP_REQUIRE=agents
# turns that into a failure.
set -eu
. scripts/lib.sh
case $1 in
/*) binary=$1 ;;
*) binary=$PWD/$1 ;;
esac
export PACKS_MCP_BIN="$binary"

# install NAME FOLDER DIR installs, or skips; it reports whether it did.
install() (
	why=$(mktemp)
	trap 'rm -f "$why"' EXIT
	if scripts/npm.sh "$2" "$3" 2>"$why"; then
		exit 0
	fi
	cat "$why" >&2
	skip "$1" "the programs of $2 cannot be installed"
)
agents=$PWD/.cache/agents
install agents test/e2e/agents "$agents"
if [ -d "$agents/node_modules" ]; then
	PACKS_MCP_AGENTS=$agents go test -count=1 -timeout 10m -run '^TestAgent' ./test/e2e
fi
