#!/bin/sh
# Runs the README's first command as on a fresh machine: a clean clone, an empty home folder,
# no terminal, and no variables except PATH and what Go needs to find its modules here.
set -eu
. scripts/lib.sh

command -v git >/dev/null || skip git "there is no git on the PATH"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
git clone -q . "$tmp/clone"
mkdir "$tmp/home"
cd "$tmp/clone"
env -i PATH="$PATH" HOME="$tmp/home" GOPROXY="$(go env GOPROXY)" GOMODCACHE="$(go env GOMODCACHE)" GOCACHE="$(go env GOCACHE)" \
	go run ./cmd/packs-mcp try </dev/null >"$tmp/out"
for want in '1\. Metadata' '5\. Runs' 'Run tool status of pack git-helper' 'run\.end .*exit 0' 'its chain verifies' 'packs-mcp setup'; do
	if ! grep -q "$want" "$tmp/out"; then
		echo "try did not say: $want" >&2
		cat "$tmp/out" >&2
		exit 1
	fi
done
echo "go run ./cmd/packs-mcp try: the whole way, in an empty home"
