#!/bin/sh
# snapshot-check.sh
#
# Makes the release of the last commit twice, in two clones, with different settings and
# the second without a network, and compares every file. Then it looks into the files and
# uses them: release/snapshot_test.go and scripts/deb-check.sh. GORELEASER is "PACKAGE
# VERSION", as in the Makefile.
set -eu
. scripts/lib.sh

command -v git >/dev/null || skip git "there is no git on the PATH"
dir=$(mktemp -d)
deb=''
trap '[ -z "$deb" ] || kill "$deb" 2>/dev/null || :; wait; chmod -R u+w "$dir" && rm -rf "$dir"' EXIT
chmod 755 "$dir"
mkdir -p .cache/bin
commit=$(git rev-parse HEAD) # and nothing that is committed meanwhile

# snapshot NAME VARIABLE=VALUE... makes dir/NAME/dist.
snapshot() {
	name=$1
	shift
	git clone -q . "$dir/$name"
	git -C "$dir/$name" checkout -q --detach "$commit"
	mkdir "$dir/$name/.cache"
	ln -s "$PWD/.cache/bin" "$dir/$name/.cache/bin"
	# shellcheck disable=SC2086 # a package and a version
	if ! (cd "$dir/$name" && env "$@" scripts/snapshot.sh $GORELEASER --snapshot --skip=sign) >"$dir/$name.log" 2>&1; then
		cat "$dir/$name.log" >&2
		exit 1
	fi
	if [ ! -d "$dir/$name/dist" ]; then
		cat "$dir/$name.log" # it was skipped, and says why
		exit 0
	fi
	tail -n 1 "$dir/$name.log"
	# What goreleaser keeps for itself has the time and the place.
	(cd "$dir/$name/dist" && find . -type f ! -name artifacts.json ! -name config.yaml ! -name metadata.json -exec sha256sum {} + | LC_ALL=C sort -k 2) >"$dir/$name.sums"
}

snapshot one
version=$(sed -n 's/.*"version": *"\([^"]*\)".*/\1/p' "$dir/one/dist/metadata.json")
scripts/deb-check.sh "$dir/one/dist/packs-mcp_${version}_linux_$(go env GOARCH).deb" "$version" >"$dir/deb.log" 2>&1 &
deb=$!

(umask 077 && mkdir "$dir/home")
umask 077
snapshot 'the second, elsewhere' HOME="$dir/home" TZ=Pacific/Auckland LC_ALL=C LOGNAME=somebody GOPROXY=off \
	GOCACHE="$(go env GOCACHE)" GOMODCACHE="$(go env GOMODCACHE)" GOFLAGS=-buildvcs=true
umask 022
if ! diff "$dir/one.sums" "$dir/the second, elsewhere.sums"; then
	echo "snapshot-check: the same commit made other files the second time; they are above" >&2
	exit 1
fi
echo "$(wc -l <"$dir/one.sums") files, the same twice"

if scripts/npm.sh release/mcpb-check "$PWD/.cache/mcpb"; then
	PACKS_MCP_MCPB=$PWD/.cache/mcpb/node_modules/@anthropic-ai/mcpb/dist/cli/cli.js
	export PACKS_MCP_MCPB
fi
failed=''
PACKS_MCP_DIST=$dir/one/dist go test -count=1 -timeout 10m ./release || failed=yes
if wait "$deb"; then
	echo "the package, in a clean Debian:"
else
	failed=yes
fi
deb=''
cat "$dir/deb.log"
[ -z "$failed" ]
