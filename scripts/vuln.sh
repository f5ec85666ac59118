#!/bin/sh
# vuln.sh PACKAGE VERSION
#
# Looks for known vulnerabilities in what the program calls. The program that
# looks, and the database it looks into, come from the network: without either,
# the check is skipped by name, which PACKS_MCP_REQUIRE=vulndb turns into a failure.
set -eu
. scripts/lib.sh

tool=$(scripts/tool.sh govulncheck "$1" "$2") || skip vulndb "govulncheck cannot be built"
code=0
out=$("$tool" ./... 2>&1) || code=$?
case $code in
0)
	printf '%s\n' "$out"
	;;
3) # its own status for "found some"
	printf '%s\n' "$out" >&2
	exit 1
	;;
*)
	case $out in
	*"fetching vulnerabilities"* | *"no such host"* | *"dial tcp"* | *"vuln.go.dev"*)
		skip vulndb "no vulnerability database: $(printf '%s\n' "$out" | tail -n 1)"
		;;
	esac
	printf '%s\n' "$out" >&2
	exit 1
	;;
esac
