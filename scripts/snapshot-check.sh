#!/bin/sh
# snapshot-check.sh
#
# Makes the release of the last commit twice, as for a tag, in two clones, with different
# settings and the second without a network, and compares every file. Then it inspects and
# uses the files: the tests of release, and scripts/deb-check.sh. A commit without a tag gets
# one in the clones only. Finally it builds a snapshot that is not a release, as "make
# snapshot" does, for this system. GORELEASER is "PACKAGE VERSION", as in the Makefile.
set -eu
. scripts/lib.sh

command -v git >/dev/null || skip git "there is no git on the PATH"
dir=$(mktemp -d)
deb=''
trap '[ -z "$deb" ] || kill "$deb" 2>/dev/null || :; wait; chmod -R u+w "$dir" && rm -rf "$dir"' EXIT
chmod 755 "$dir"
mkdir -p .cache/bin
commit=$(git rev-parse HEAD) # ignores commits made meanwhile
tag=$(git describe --exact-match --tags --match 'v[0-9]*' "$commit" 2>/dev/null || echo v0.1.0)

# make_release NAME VARIABLE=VALUE... makes dir/NAME/dist.
make_release() {
	name=$1
	shift
	git clone -q . "$dir/$name"
	git -C "$dir/$name" checkout -q --detach "$commit"
	git -C "$dir/$name" tag --force "$tag" "$commit" >/dev/null
	mkdir "$dir/$name/.cache"
	ln -s "$PWD/.cache/bin" "$dir/$name/.cache/bin"
	# shellcheck disable=SC2086 # a package and a version
	if ! (cd "$dir/$name" && env "$@" scripts/snapshot.sh $GORELEASER --skip=sign,publish,announce) >"$dir/$name.log" 2>&1; then
		cat "$dir/$name.log" >&2
		exit 1
	fi
	if [ ! -d "$dir/$name/dist" ]; then
		cat "$dir/$name.log" # it was skipped, and says why
		exit 0
	fi
	tail -n 1 "$dir/$name.log"
	# goreleaser's own files contain the time and the place.
	(cd "$dir/$name/dist" && find . -type f ! -name artifacts.json ! -name config.yaml ! -name metadata.json -exec sha256sum {} + | LC_ALL=C sort -k 2) >"$dir/$name.sums"
}

make_release one
version=$(sed -n 's/.*"version": *"\([^"]*\)".*/\1/p' "$dir/one/dist/metadata.json")
scripts/deb-check.sh "$dir/one/dist/packs-mcp_${version}_linux_$(go env GOARCH).deb" "$version" >"$dir/deb.log" 2>&1 &
deb=$!

(umask 077 && mkdir "$dir/home")
umask 077
make_release 'the second, elsewhere' HOME="$dir/home" TZ=Pacific/Auckland LC_ALL=C LOGNAME=somebody GOPROXY=off \
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

cd "$dir/the second, elsewhere"
# shellcheck disable=SC2086 # a package and a version
if GOFLAGS=-buildvcs=false "$(scripts/tool.sh goreleaser ${GORELEASER})" build --snapshot --single-target --skip=before --clean >"$dir/snapshot.log" 2>&1; then
	set -- dist/packs-mcp_*/packs-mcp
	said=$("$1" version)
	case $said in
	"packs-mcp v"*"-dev.g$(git rev-parse --short HEAD) "*) echo "a snapshot: $said" ;;
	*)
		echo "snapshot-check: a snapshot says: $said" >&2
		failed=yes
		;;
	esac
else
	cat "$dir/snapshot.log" >&2
	failed=yes
fi
[ -z "$failed" ]
