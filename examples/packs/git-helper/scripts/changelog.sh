#!/bin/sh
# changelog.sh [--from=REF] [--to=REF] [--title=TEXT]
#
# Prints the commits of FROM..TO as a Markdown changelog, and writes the same
# to changelog.md in $PACKS_WORKSPACE. Runs in a git repository, and only reads
# it. Without --from it begins at the latest tag before TO.
set -eu

die() {
	printf 'changelog: %s\n' "$1" >&2
	exit 1
}

# What a repository's own configuration may start is turned off: reading a
# history needs no other program.
repo() {
	git --no-pager --no-optional-locks -c core.fsmonitor=false -c log.showSignature=false "$@"
}

# commit REF prints the full name of a commit.
commit() {
	repo rev-parse --verify --quiet --end-of-options "$1^{commit}" || die "no commit is called \"$1\" here; see the tools log and branches"
}

from='' to='HEAD' title=''
for arg; do
	case $arg in
	--from=*) from=${arg#--from=} ;;
	--to=*) to=${arg#--to=} ;;
	--title=*) title=${arg#--title=} ;;
	*) die "unknown argument \"$arg\"; known are --from=REF, --to=REF and --title=TEXT" ;;
	esac
done

repo rev-parse --git-dir >/dev/null # git's own words when this is no repository
end=$(commit "$to")
if [ -z "$from" ]; then
	# From the parent, since a tag on the end itself would leave nothing to tell.
	from=$(repo describe --tags --abbrev=0 "$end^" 2>/dev/null || :)
fi
if [ -n "$from" ]; then
	start=$(commit "$from")
	range="$start..$end"
	span="$from..$to"
else
	range=$end
	span="everything up to $to"
fi

# One line of "hash<TAB>subject" for each commit; git keeps a subject on one line.
render() {
	repo log --no-merges --no-color --format='%h%x09%s' "$range" -- |
		title=${title:-Changes} span=$span awk -F '\t' '
		BEGIN {
			head[1] = "Breaking changes"; head[2] = "New"; head[3] = "Fixed"
			head[4] = "Faster"; head[5] = "Documentation"; head[6] = "Other changes"
		}
		{
			subject = substr($0, length($1) + 2)
			section = 6
			if (match(subject, /^[A-Za-z]+(\([^)]*\))?!?: */)) {
				type = tolower(substr(subject, 1, RLENGTH))
				rest = substr(subject, RLENGTH + 1)
				breaking = (type ~ /!: *$/)
				sub(/[^a-z].*$/, "", type)
				if (type == "feat" || type == "feature") section = 2
				else if (type == "fix" || type == "bugfix") section = 3
				else if (type == "perf") section = 4
				else if (type == "docs" || type == "doc") section = 5
				if (breaking) section = 1
				if (section < 6 && rest != "") subject = rest
			}
			gsub(/</, "\\&lt;", subject) # no HTML from a commit message
			line[section] = line[section] "- " subject " (" $1 ")\n"
			count++
		}
		END {
			title = ENVIRON["title"]
			gsub(/[[:cntrl:]]/, " ", title)
			printf "## %s\n\n%d %s, %s\n", title, count, (count == 1 ? "commit" : "commits"), ENVIRON["span"]
			for (i = 1; i <= 6; i++) if (line[i] != "") printf "\n### %s\n\n%s", head[i], line[i]
		}'
}

text=$(render)
if [ -n "${PACKS_WORKSPACE:-}" ]; then
	printf '%s\n' "$text" >"$PACKS_WORKSPACE/changelog.md"
	printf 'changelog: wrote changelog.md to the workspace\n' >&2
fi
printf '%s\n' "$text"
