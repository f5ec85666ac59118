#!/bin/sh
# tap.sh TAG
#
# Commits the cask and the Scoop manifest of a release to their repositories, which "brew"
# and "scoop" read. The release workflow calls it last, with GH_TOKEN, once the files that
# they name can be downloaded.
set -eu
tag=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
gh auth setup-git

# put REPOSITORY FILE PATH
put() {
	gh repo clone "$1" "$tmp/$1" -- -q --depth 1
	mkdir -p "$(dirname "$tmp/$1/$3")"
	cp "$2" "$tmp/$1/$3"
	git -C "$tmp/$1" add -- "$3"
	if git -C "$tmp/$1" diff --cached --quiet; then
		echo "$1 has $tag already"
		return
	fi
	git -C "$tmp/$1" -c user.name='packs-mcp releases' -c user.email=releases@packs-mcp.invalid commit -q -m "packs-mcp $tag"
	git -C "$tmp/$1" push -q
	echo "$1 has $tag"
}
put packs-mcp/homebrew-tap dist/homebrew/Casks/packs-mcp.rb Casks/packs-mcp.rb
put packs-mcp/scoop-bucket dist/scoop/packs-mcp.json bucket/packs-mcp.json
