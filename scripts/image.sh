#!/bin/sh
# image.sh VERSION
#
# Builds the image with Podman from the Dockerfile, and uses it: over standard input and over
# HTTP, its sandbox, and as compose.yaml starts it. If no registry can be reached, the base
# of the last stage is made of Debian's packages, and the program is the one in bin, since
# there is no Go image. Skipped by name without root or Podman, which
# PACKS_MCP_REQUIRE=podman turns into a failure.
set -eu
. scripts/lib.sh
version=$1

[ "$(id -u)" = 0 ] || skip podman "without root it needs subordinate ids; run: podman build ."
command -v podman >/dev/null || skip podman "there is no podman on the PATH"
command -v debootstrap >/dev/null || skip podman "there is no debootstrap to make a base image with"

dir=$(mktemp -d)
chmod 755 "$dir"
# Everything is in a separate folder, and the user's images are not touched.
podman="podman --root $dir/store --runroot $dir/run --storage-driver overlay --runtime runc --cgroup-manager cgroupfs"
# shellcheck disable=SC2086 # a program and its options
pod() { $podman "$@"; }
trap 'pod rm --force --all >/dev/null 2>&1; pod unmount --all >/dev/null 2>&1; chmod -R u+w "$dir" 2>/dev/null; rm -rf "$dir"' EXIT

debootstrap --variant=minbase bookworm "$dir/base" >"$dir/log" 2>&1 || {
	tail -n 3 "$dir/log" >&2
	skip podman "Debian's packages cannot be had"
}
tar -C "$dir/base" -c . | pod import - localhost/base >/dev/null 2>&1
rm -rf "$dir/base"

# If everything is built already, the first stage only copies it.
mkdir -p "$dir/context"
cp bin/packs-mcp "$dir/context/packs-mcp.bin"
cp bin/packs-mcp-sigstore "$dir/context/packs-mcp-sigstore.bin"
{
	echo 'FROM localhost/base AS build'
	echo 'COPY . /src/'
	sed -n '/^FROM debian:/,$p' Dockerfile | sed 's|^FROM debian:.*|FROM localhost/base|'
} >"$dir/Dockerfile"
[ "$(grep -c '^FROM' "$dir/Dockerfile")" = 2 ] || { echo "image: the Dockerfile has other stages than this script knows" >&2; exit 1; }
pod build --isolation chroot --network host --build-arg VERSION="$version" --tag localhost/packs-mcp --file "$dir/Dockerfile" "$dir/context" >"$dir/log" 2>&1 || {
	tail -n 15 "$dir/log" >&2
	exit 1
}

# As most containers run, with only standard input and output.
run() { pod run --rm -i --ulimit nofile=1000:1000 --ulimit nproc=1000:1000 --network none --read-only --tmpfs /tmp --cap-drop all --security-opt no-new-privileges "$@"; }
said=$(run localhost/packs-mcp version)
case $said in
*"$version"*) ;;
*) echo "image: version said $said" >&2; exit 1 ;;
esac
request='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"image","version":"1"}}}'
printf '%s\n' "$request" | run localhost/packs-mcp | grep -q '"serverInfo"' || { echo "image: no answer over standard input and output" >&2; exit 1; }
user=$(run --entrypoint id localhost/packs-mcp -u)
[ "$user" = 10001 ] || { echo "image: it runs as user $user" >&2; exit 1; }
label=$(pod inspect --format '{{index .Config.Labels "io.modelcontextprotocol.server.name"}}' localhost/packs-mcp)
[ "$label" = io.github.packs-mcp/packs-mcp ] || { echo "image: the registry's label is \"$label\"" >&2; exit 1; }
echo "$said: answers over standard input and output, as user $user"

# Over HTTP, in this machine's network, only on its loopback interface.
command -v curl >/dev/null || { echo "image: there is no curl on the PATH to ask over HTTP with" >&2; exit 1; }
token=0123456789abcdef0123456789abcdef
port=$((20000 + $$ % 20000))
pod run --detach --ulimit nofile=1000:1000 --ulimit nproc=1000:1000 --network host --read-only --tmpfs /tmp --cap-drop all --security-opt no-new-privileges \
	--env PACKS_MCP_TOKEN=$token localhost/packs-mcp serve /packs --http 127.0.0.1:$port >"$dir/id"
ask() { curl --noproxy '*' --silent --output /dev/null --write-out '%{http_code}' --retry 60 --retry-delay 1 --retry-connrefused --header 'Content-Type: application/json' --header 'Accept: application/json, text/event-stream' --data "$request" "$@" "http://127.0.0.1:$port/mcp"; }
without=$(ask) || true
with=$(ask --header "Authorization: Bearer $token") || true
if [ "$without/$with" != 401/200 ]; then
	pod logs "$(cat "$dir/id")" >&2
	echo "image: over HTTP it answered $without without a token and $with with one, not 401 and 200" >&2
	exit 1
fi
echo "over HTTP: 401 without the token, 200 with it"
echo "its sandbox: $(run localhost/packs-mcp doctor --json | grep -m 1 '"level"')"
pod rm --force --time 1 "$(cat "$dir/id")" >/dev/null
# shellcheck disable=SC2086 # the same
scripts/compose.sh "$dir" localhost/packs-mcp $podman
