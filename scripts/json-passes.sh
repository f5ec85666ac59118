#!/bin/sh
# json-passes.sh counts how often our code parses or writes the arguments of one call as
# JSON, and fails if that is more than TestJSONPasses allows. It compiles the test with an
# encoding/json that reports each pass, so it recompiles everything that imports
# encoding/json, which takes up to a minute the first time.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM
src=$(go env GOROOT)/src/encoding/json

# after FILE LINE TEXT copies a file of the package with TEXT inserted after line LINE.
after() {
	LINE=$2 TEXT=$3 awk '
		{ print }
		$0 == ENVIRON["LINE"] { print ENVIRON["TEXT"]; found = 1 }
		END { exit !found }' "$src/$1" >"$dir/$1" || {
		echo "json-passes: error: $src/$1 has no line: $2" >&2
		echo "json-passes: hint: this Go has another encoding/json; look at what scripts/json-passes.sh changes in it" >&2
		exit 1
	}
}

after scanner.go 'func checkValid(data []byte, scan *scanner) error {' '	passed("valid", data)'
cat >>"$dir/scanner.go" <<'GO'

// PassHook is told of each pass over a text.
var PassHook func(kind string, text []byte)

func passed(kind string, text []byte) {
	if PassHook != nil {
		PassHook(kind, text)
	}
}
GO
after stream.go 'func (dec *Decoder) readValue() (int, error) {' '	n, err := dec.readOneValue()
	if err == nil {
		passed("read", dec.buf[dec.scanp:dec.scanp+n])
	}
	return n, err
}

func (dec *Decoder) readOneValue() (int, error) {'
after indent.go 'func appendCompact(dst, src []byte, escape bool) ([]byte, error) {' '	passed("compact", src)'
after encode.go 'func appendString[Bytes []byte | string](dst []byte, src Bytes, escapeHTML bool) []byte {' '	if PassHook != nil {
		PassHook("encode", []byte(src))
	}'

{
	printf '{"Replace": {'
	comma=
	for f in scanner.go stream.go indent.go encode.go; do
		printf '%s"%s/%s": "%s/%s"' "$comma" "$src" "$f" "$dir" "$f"
		comma=', '
	done
	printf '}}\n'
} >"$dir/overlay.json"
go test -tags jsonpasses -overlay "$dir/overlay.json" -run '^TestJSONPasses$' -count=1 -v ./internal/server
