#!/bin/sh
# smoke.sh VERSION COMMAND...
#
# Tries a built packs-mcp, started by COMMAND: it must print its version, and answer a
# client's first request.
set -eu
version=$1
shift

said=$("$@" version)
case $said in
*"$version"*) ;;
*)
	echo "\"version\" printed \"$said\", not \"$version\"" >&2
	exit 1
	;;
esac

request='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"smoke","version":"1"}}}'
answer=$(printf '%s\n' "$request" | "$@")
case $answer in
'{'*'"serverInfo"'*'}') ;;
*)
	printf 'initialize was answered with:\n%s\n' "$answer" >&2
	exit 1
	;;
esac
if [ "$(printf '%s\n' "$answer" | wc -l)" -ne 1 ]; then
	printf 'more than the answer is on standard output:\n%s\n' "$answer" >&2
	exit 1
fi
echo "packs-mcp $version: answers"
