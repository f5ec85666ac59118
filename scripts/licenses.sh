#!/bin/sh
# licenses.sh [DIR]
#
# Checks that each module compiled into the programs, on each system, has one of the licences
# below, and copies the texts to DIR. It fails for a licence that go-licenses does not
# recognize.
#
# These licences allow everyone to use, change and distribute the program under the MIT
# licence. Add another one only if it does, too. MPL-2.0 requires the source of its files,
# which go-licenses copies beside the text.
set -eu
allowed=MIT,ISC,BSD-2-Clause,BSD-3-Clause,Apache-2.0,MPL-2.0

tool=$(scripts/release-tool.sh github.com/google/go-licenses/v2)
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp" && rm -rf "$tmp"' EXIT
# go-licenses treats every package as part of the standard library if it cannot find that.
GOROOT=$(go env GOROOT)
export GOROOT CGO_ENABLED=0
if "$tool" check ./cmd/packs-mcp --allowed_licenses=ISC >"$tmp/log" 2>&1; then
	echo "licenses: go-licenses finds no module at all, since one with another licence than ISC did not fail" >&2
	exit 1
fi

# Texts that go-licenses does not recognize, but that a person has read: the module, and the
# digest of its LICENSE. Each says in one paragraph that it is under Apache-2.0.
read_by_a_person='
github.com/cyberphone/json-canonicalization 6821faaddedf2d78c95bb6d98b127e9e616097afd2f6bcc34389f000d13ab12d
github.com/in-toto/attestation b3a6ac899861c2c28a1abd5c7ea8733fefaed6938d730e099c42671386032aeb
github.com/in-toto/in-toto-golang b5c26c8a2ad6dd7cac6646e470a32ee42d23c36124caac4e66c989b6545b2a44
'
set -- "${1:-}"
printf '%s' "$read_by_a_person" | while read -r module digest; do
	[ -n "$module" ] || continue
	folder=$(go list -m -f '{{.Dir}}' "$module")
	if [ "$(sha256sum "$folder/LICENSE" | cut -d ' ' -f 1)" != "$digest" ]; then
		echo "licenses: the LICENSE of $module has changed; read it, and then change its digest in scripts/licenses.sh" >&2
		exit 1
	fi
	if [ -n "$1" ]; then
		mkdir -p "$1/$module"
		cp "$folder/LICENSE" "$1/$module/LICENSE"
	fi
done
ignore=$(printf '%s' "$read_by_a_person" | sed -n 's/^\([^ ]*\) .*/--ignore=\1/p')

for os in linux darwin windows; do
	export GOOS=$os
	for main in cmd/packs-mcp*; do
		# shellcheck disable=SC2086 # one word for each module
		if ! "$tool" check $ignore "./$main" --allowed_licenses="$allowed" >"$tmp/log" 2>&1; then
			cat "$tmp/log" >&2
			echo "licenses: a module of $main for $os has a licence other than $allowed" >&2
			exit 1
		fi
		if [ -n "$1" ]; then
			# shellcheck disable=SC2086 # the same
			"$tool" save $ignore "./$main" --save_path="$tmp/texts" --force >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
			chmod -R u+w "$tmp/texts"
			cp -R "$tmp/texts/." "$1/"
			# It keeps one text per module; some modules have several, and notices.
			go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' "./$main" | sort -u >"$tmp/modules"
			while read -r module folder; do
				mkdir -p "$1/$module"
				find "$folder" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'patents*' \) -exec cp -f {} "$1/$module/" \;
			done <"$tmp/modules"
		fi
	done
done
