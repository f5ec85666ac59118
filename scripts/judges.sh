# Read with ". scripts/judges.sh NAME" by the scripts that run the MCP Inspector
# and the conformance suite, after scripts/lib.sh. Installs both, once, and sets
# judges, their folder, and node, a Node that is new enough for them: the
# machine's own, or else one from npm. Skips NAME where that is not possible.
judges=$PWD/.cache/judges
scripts/npm.sh test/e2e/judges "$judges" || skip "$1" "the packages of test/e2e/judges cannot be installed"

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
[ -n "$node" ] || skip "$1" "it needs Node 22.19, and there is none for this machine in npm"
