# Sourced with ". scripts/judges.sh NAME" by the scripts that run the MCP Inspector and the
# conformance suite, after scripts/lib.sh. Installs what NAME needs, once, and sets judges,
# its folder, and node, a Node that is new enough: one from npm, or else the machine's own.
# Skips NAME if that fails.
case $1 in
conformance) set -- "$1" "$PWD/.cache/conformance" --omit=dev ;; # without the Inspector, which is most of it
*) set -- "$1" "$PWD/.cache/judges" ;;
esac
name=$1 judges=$2
shift 2
scripts/npm.sh test/e2e/judges "$judges" "$@" || skip "$name" "the packages of test/e2e/judges cannot be installed"

# new reports whether a Node is at least 22.19.
new() {
	"$1" -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 22 || a == 22 && b >= 19 ? 0 : 1)' 2>/dev/null
}
node=''
for candidate in "$judges"/node_modules/node-*/bin/node node; do
	if new "$candidate"; then
		node=$candidate
		break
	fi
done
[ -n "$node" ] || skip "$name" "it needs Node 22.19, and there is none for this machine in npm"
