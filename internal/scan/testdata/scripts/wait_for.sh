#!/usr/bin/env bash
# Wait until a port answers, then run the rest of the arguments.
set -euo pipefail
host="$1"; port="$2"; shift 2
for _ in $(seq 1 60); do
  if (echo > "/dev/tcp/$host/$port") >/dev/null 2>&1 || nc -z "$host" "$port"; then
    exec "$@"
  fi
  sleep 1
done
echo "nobody listens on $host:$port" >&2
exit 1
