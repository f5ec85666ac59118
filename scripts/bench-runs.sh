#!/bin/sh
# bench-runs.sh [COMMIT]
#
# Measures runs of programs with pauses between the calls, beside bubblewrap and the build
# of a commit; as root, also as an unprivileged user. BENCH_ARGS are passed to the
# benchmark, such as -markdown.
set -eu
. scripts/lib.sh

base=${1:-}
dir=$(mktemp -d)
trap 'chmod -R u+rwx "$dir" && rm -rf "$dir"' EXIT
chmod 755 "$dir"
mkdir -m 1777 "$dir/tmp"
export CGO_ENABLED=0
build() {
	go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$dir/$1" "$2"
}
build packs-mcp ./cmd/packs-mcp
build bare ./test/bench/bare
build table ./test/bench/table
if [ -n "$base" ]; then
	mkdir "$dir/source"
	git archive "$base" | tar -x -C "$dir/source"
	(cd "$dir/source" && build base ./cmd/packs-mcp)
fi
# shellcheck disable=SC2086 # several arguments
set -- -only spaced -packs 10 -program "$dir/packs-mcp" -bare "$dir/bare" -dir "$dir/tmp" ${BENCH_ARGS:-}
if [ -n "$base" ]; then
	set -- "$@" -base "$dir/base"
fi

"$dir/table" "$@"
if [ "$(id -u)" = 0 ]; then
	command -v setpriv >/dev/null || skip setpriv "there is no setpriv to give up root's privileges with"
	cd "$dir/tmp"
	setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs \
		env -i PATH="$PATH" HOME="$dir/tmp" TMPDIR="$dir/tmp" "$dir/table" "$@"
fi
