#!/bin/sh
# Checks the shell scripts of the repository and of the example packs. Shellcheck is skipped
# by name if it is missing; PACKS_MCP_REQUIRE=shellcheck turns that into a failure.
set -eu
. scripts/lib.sh

set -- install.sh scripts/*.sh test/e2e/*.sh examples/packs/*/scripts/*.sh
for script; do
	sh -n "$script"
done
bash -n .ci/run
command -v shellcheck >/dev/null || skip shellcheck "there is no shellcheck on the PATH"
shellcheck --external-sources --shell=sh "$@"
shellcheck .ci/run
