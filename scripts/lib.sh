# Shared by the scripts of this folder; source it with ". scripts/lib.sh" from the root of
# the repository.

# required NAME reports whether PACKS_MCP_REQUIRE, a comma-separated list of what a
# machine must support, has NAME.
required() {
	case ",${PACKS_MCP_REQUIRE:-}," in
	*",$1,"*) return 0 ;;
	*) return 1 ;;
	esac
}

# skip NAME REASON reports what is skipped and ends the script: with success, unless NAME
# is required.
skip() {
	if required "$1"; then
		echo "$1: required by PACKS_MCP_REQUIRE, but $2" >&2
		exit 1
	fi
	echo "skipped: $1: $2"
	exit 0
}

# cores prints how many processes may run at once.
cores() {
	getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1
}
