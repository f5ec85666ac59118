#!/bin/sh
# release-notes.sh TAG
#
# Prints the section of CHANGELOG.md about a version, for its page at GitHub. Fails unless
# the version has a heading with a date, and text below it.
set -eu
version=${1#v}
notes=$(awk -v want="## [$version] - " '
	/^## / { on = index($0, want) == 1 && substr($0, length(want) + 1) ~ /^[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]$/; next }
	/^\[[^]]*\]: / { next }
	on' CHANGELOG.md)
if [ -z "$notes" ]; then
	echo "release-notes: CHANGELOG.md has nothing under \"## [$version] - YYYY-MM-DD\"" >&2
	exit 1
fi
printf '%s\n' "$notes"
