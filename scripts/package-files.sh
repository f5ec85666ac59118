#!/bin/sh
# package-files.sh VERSION
#
# Makes the files that are packaged with the programs, in .cache/package: the manual pages,
# shell completions, and the licences of all compiled modules, for all systems in one folder.
set -eu
version=$1
out=$PWD/.cache/package
chmod -R u+w "$out" 2>/dev/null || :
rm -rf "$out"
mkdir -p "$out/man" "$out/completions" "$out/mcpb" "$out/bin" "$out/licenses/go"

CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$version" -o "$out/bin/packs-mcp" ./cmd/packs-mcp
"$out/bin/packs-mcp" man "$out/man" >"$out/man.log"
for shell in bash zsh fish; do
	"$out/bin/packs-mcp" completion $shell >"$out/completions/packs-mcp.$shell"
done
"$out/bin/packs-mcp" completion powershell >"$out/completions/packs-mcp.ps1"

scripts/licenses.sh "$out/licenses"
cp "$(go env GOROOT)/LICENSE" "$out/licenses/go/LICENSE" # of its standard library

# Packages copy whole folders with times and modes, so set the commit's time and modes
# that do not depend on the umask.
at=$(TZ=UTC git log -1 --date=format-local:%Y%m%d%H%M.%S --format=%cd)
chmod -R u=rwX,go=rX "$out/man" "$out/completions" "$out/licenses"
find "$out/man" "$out/completions" "$out/licenses" -exec env TZ=UTC touch -t "$at" {} +
