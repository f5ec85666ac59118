#!/bin/sh
# compose.sh DIR IMAGE PODMAN...
#
# Starts the service of compose.yaml from IMAGE with Compose, as its first lines say, and
# uses it: checks who gets an answer, and what survives a restart and a new container.
# PODMAN... is the command whose store has the image; Compose talks to it as to Docker. Files
# go to DIR. Skipped by name if there is no Compose, which PACKS_MCP_REQUIRE=compose turns
# into a failure.
set -eu
. scripts/lib.sh
dir=$1 image=$2
shift 2

if command -v docker-compose >/dev/null; then
	compose() { docker-compose --project-name "$project" "$@" </dev/null; }
elif docker compose version >/dev/null 2>&1; then
	compose() { docker compose --project-name "$project" "$@" </dev/null; }
else
	skip compose "there is neither docker-compose nor the plugin of docker"
fi
fail() {
	cat "$dir/compose.log" "$dir/service.log" >&2
	compose logs >&2 || :
	echo "compose: $1" >&2
	exit 1
}

project=packs-mcp-check-$$
# Compose gives an image that it builds this name, in version 1 and in version 2.
"$@" tag "$image" "docker.io/library/${project}_packs-mcp" "docker.io/library/$project-packs-mcp"
mkdir -p "$dir/service/packs"
: >"$dir/compose.log"
cp compose.yaml "$dir/service/"

# Without these, a container asks for more than root may have on some machines.
printf '[containers]\ndefault_ulimits = ["nofile=1000:1000", "nproc=1000:1000"]\n' >"$dir/containers.conf"
export DOCKER_HOST="unix://$dir/api.sock"
CONTAINERS_CONF=$dir/containers.conf "$@" system service --time=0 "$DOCKER_HOST" >"$dir/service.log" 2>&1 &
service=$!
trap 'PACKS_MCP_TOKEN=- compose down --volumes --timeout 1 >/dev/null 2>&1; kill $service 2>/dev/null; wait' EXIT
curl --silent --output /dev/null --retry 60 --retry-delay 1 --retry-all-errors --unix-socket "$dir/api.sock" http://podman/_ping || fail "podman does not answer at $DOCKER_HOST"

cd "$dir/service"
if PACKS_MCP_TOKEN='' compose up --no-build --detach >"$dir/compose.log" 2>&1; then
	fail "without a token it started"
fi
grep -q 'set it to 32 random digits' "$dir/compose.log" || fail "without a token it did not say what to set"

port=$((40000 + $$ % 20000))
export PACKS_MCP_TOKEN=fedcba9876543210fedcba9876543210 PACKS_MCP_PORT=$port
request='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"compose","version":"1"}}}'
ask() { curl --noproxy '*' --silent --output /dev/null --write-out '%{http_code}' --retry 60 --retry-delay 1 --retry-all-errors --header 'Content-Type: application/json' --header 'Accept: application/json, text/event-stream' --data "$request" "$@" "http://127.0.0.1:$port/mcp" || :; }
# served STARTS checks that it answers clients with the token, and that the log has that many starts.
served() {
	codes=$(ask)/$(ask --header 'Authorization: Bearer 00000000000000000000000000000000')/$(ask --header "Authorization: Bearer $PACKS_MCP_TOKEN")
	[ "$codes" = 401/401/200 ] || fail "it answered $codes without a token, with another, and with the right one, not 401/401/200"
	log=$(compose exec -T packs-mcp packs-mcp audit verify) || fail "the log does not verify: $log"
	starts=$(compose exec -T packs-mcp grep -c '"event":"server.start"' /data/audit.jsonl) || :
	[ "$starts" = "$1" ] || fail "the log has $starts starts, and there were $1"
}
compose up --no-build --detach >"$dir/compose.log" 2>&1 || fail "it does not start"
served 1
first=$(printf '%s\n' "$log" | sed -n 's/^last: 1 //p')
compose restart --timeout 5 >"$dir/compose.log" 2>&1 || fail "it does not start again"
served 2
compose down --timeout 5 >"$dir/compose.log" 2>&1 || fail "it cannot be taken down"
compose up --no-build --detach >"$dir/compose.log" 2>&1 || fail "it does not start a third time"
served 3
compose exec -T packs-mcp head -n 1 /data/audit.jsonl | grep -q "\"hash\":\"$first\"" || fail "the log does not begin with its first entry"

# The container lacks what compose.yaml removes.
run=$(compose exec -T packs-mcp sh -c 'id -u; touch /x 2>/dev/null && echo writes; touch /packs/x 2>/dev/null && echo writes; sed -n "s/^CapBnd:[[:space:]]*//p; s/^NoNewPrivs:[[:space:]]*//p" /proc/self/status' | tr '\n' ' ')
[ "$run" = '10001 0000000000000000 1 ' ] || fail "it runs as \"$run\": want user 10001, no capabilities, no new privileges, and nothing written outside its data"
echo "compose.yaml: 401 without the token, 200 with it; the log stays when it is restarted and made anew"
