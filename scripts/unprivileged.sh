#!/bin/sh
# unprivileged.sh [all]
#
# If root runs the tests, this repeats those of the sandbox as an unprivileged user, which
# most people are and for whom the kernel has different rules. With "all", it also runs the
# slower ones: the table with the built program, and the ordinary programs.
set -eu
. scripts/lib.sh

if [ "$(id -u)" != 0 ]; then
	echo "the tests ran without privileges already"
	exit 0
fi
command -v setpriv >/dev/null || skip setpriv "there is no setpriv to give up root's privileges with"

dir=$(mktemp -d)
trap 'chmod -R u+rwx "$dir" && rm -rf "$dir"' EXIT
chmod 755 "$dir"
mkdir -m 777 "$dir/tmp" # TMPDIR stays short, since a socket's path must be
export CGO_ENABLED=0
go test -c -o "$dir/runner" ./internal/sandbox/runner
go test -c -o "$dir/linux" ./internal/sandbox/linux
go test -c -o "$dir/program" ./internal/sandbox/program
go test -c -o "$dir/file" ./internal/sandbox/program/file
go test -c -o "$dir/paths" ./internal/sandbox/paths
go test -c -o "$dir/attack" ./test/attack
go build -buildvcs=false -o "$dir/probe" ./test/attack/probe
go build -buildvcs=false -o "$dir/packs-mcp" ./cmd/packs-mcp # the tests take it from beside the probe
if [ "${1:-}" = all ]; then
	go test -c -o "$dir/controls" ./test/sandbox
fi

cd "$dir/tmp"
# A user with no other processes: the kernel counts processes by user, and
# the limits would make other programs fail.
user=$((61184 + $$ % 4000))
# other NAME ARGUMENT... runs one of them. It need not be able to read the repository.
other() {
	name=$1
	shift
	echo "$name, as user $user"
	setpriv --reuid=$user --regid=$user --clear-groups --no-new-privs \
		env -i PATH="$PATH" HOME="$dir/tmp" TMPDIR=/tmp PACKS_MCP_REQUIRE="${PACKS_MCP_REQUIRE:-}" \
		ATTACK_TEST_PROBE="$dir/probe" "$dir/$name" "$@"
}
other paths
other program
other file
other linux
other runner
if [ "${1:-}" != all ]; then
	other attack -test.skip '^(TestDocs|TestBinary|TestOriginal|TestContainer)'
	exit 0
fi
other attack -test.skip '^(TestDocs|TestContainer)$'
other controls -test.run '^TestControls$/^(full|partial|partial-without-landlock)$' -test.skip 'TestControls/.*/loopback-interfaces'
