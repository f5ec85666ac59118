#!/bin/sh
# docker-stages.sh VERSION
#
# Runs the stages of the Dockerfile as far as possible without a Docker
# engine. The lines are read from the Dockerfile itself:
#
#   build stage   its COPY and RUN lines, in a folder of its own with an empty
#                 HOME, and only what .dockerignore lets through
#   last stage    its packages are looked up, nothing is installed; the binary
#                 is copied, and tried by an unprivileged user, with the
#                 stage's ENV and nothing else
#
# The caches of Go are this machine's, as a Docker build has its own; with
# COLD=1 they are empty too.
set -eu
version=$1

die() {
	echo "docker-stages: $1" >&2
	exit 1
}

tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp" && rm -rf "$tmp"' EXIT # the module cache is read-only
chmod 755 "$tmp"
mkdir -p "$tmp/context" "$tmp/home" "$tmp/work" "$tmp/data"

# The context: what .dockerignore names with "!", except what it excludes again, in the
# two forms that occur there.
grep -qx '\*' .dockerignore || die ".dockerignore no longer begins with nothing"
grep -v '^#' .dockerignore | while IFS= read -r line; do
	case $line in
	'' | '*') ;;
	'!'*) cp -R "${line#!}" "$tmp/context/" ;;
	'**/'*) find "$tmp/context" -depth -name "${line#\*\*/}" -exec rm -rf {} + ;;
	*) die ".dockerignore: \"$line\" is a form that this script does not know" ;;
	esac
done

# One instruction per line: comments removed, continued lines joined.
sed -e '/^#/d' Dockerfile | sed -e ':a' -e '/\\$/{N' -e 's/[[:space:]]*\\\n[[:space:]]*/ /' -e 'ba' -e '}' | grep -v '^[[:space:]]*$' >"$tmp/lines"

go=$(command -v go) || die "there is no go on the PATH"
if [ -z "${COLD:-}" ]; then
	GOCACHE=$(go env GOCACHE) GOMODCACHE=$(go env GOMODCACHE)
else
	GOCACHE=$tmp/home/cache GOMODCACHE=$tmp/home/mod
fi
# inside COMMAND runs a line of the build stage.
inside() {
	(cd "$tmp/work" && env -i PATH="$(dirname "$go"):/usr/bin:/bin" HOME="$tmp/home" GOCACHE="$GOCACHE" GOMODCACHE="$GOMODCACHE" \
		GOPROXY="$(go env GOPROXY)" GOSUMDB="$(go env GOSUMDB)" GOFLAGS=-mod=readonly CGO_ENABLED=0 VERSION="$version" COMMIT='' DATE='' sh -c "$1")
}

stage=0 ran=0 copied='' settings='' entry=''
while read -r word rest; do
	case $stage:$word in
	*:FROM)
		stage=$((stage + 1))
		[ "$stage" -le 2 ] || die "a third stage: this script knows two"
		;;
	1:WORKDIR | 1:ENV | *:ARG | *:LABEL | 2:VOLUME | 2:WORKDIR) ;;
	1:COPY)
		case $rest in
		'. .') cp -R "$tmp/context/." "$tmp/work/" ;;
		*' ./') for file in ${rest% ./}; do cp -R "$tmp/context/$file" "$tmp/work/"; done ;;
		*) die "COPY $rest: a form that this script does not know" ;;
		esac
		;;
	1:RUN)
		echo "RUN $rest"
		inside "$rest"
		ran=$((ran + 1))
		;;
	2:RUN)
		packages=$(printf '%s\n' "$rest" | sed -nE 's/.*apt-get install ([^&]*).*/\1/p' | tr ' ' '\n' | grep -v '^-' || :)
		for package in $packages; do
			if ! command -v apt-cache >/dev/null || [ -z "$(apt-cache policy bash 2>/dev/null)" ]; then
				echo "not looked up, for want of a package list: $package"
			elif ! apt-cache policy "$package" 2>/dev/null | grep -q 'Candidate: [^(]'; then
				echo "not in this machine's package lists: $package"
			else
				echo "there is a package $package"
			fi
		done
		[ -n "$packages" ] || echo "not run, it changes the system: $rest"
		;;
	2:COPY)
		# shellcheck disable=SC2086 # the words of: --from=build SOURCE TARGET
		set -- $rest
		[ "$1" = --from=build ] || die "COPY $rest: a form that this script does not know"
		mkdir -p "$tmp/image$(dirname "$3")"
		cp "$tmp/work/${2#/src/}" "$tmp/image$3"
		copied="$copied $tmp/image$3"
		;;
	2:ENV) settings="$settings $rest" ;;
	2:USER) [ "$rest" != root ] || die "the image runs as root" ;;
	2:ENTRYPOINT) entry=$rest ;;
	*) die "$word $rest: an instruction that this script does not know" ;;
	esac
done <"$tmp/lines"
if [ "$ran" = 0 ] || [ -z "$copied" ]; then
	die "the Dockerfile builds nothing, or copies nothing"
fi
case $entry in
*'"packs-mcp"]') ;;
*) die "the entry point is $entry, not packs-mcp" ;;
esac

# Static, so it needs no loader from the base image.
for program in $copied; do
	if command -v readelf >/dev/null && readelf --program-headers "$program" | grep -q INTERP; then
		die "$program asks for a dynamic loader"
	fi
	if command -v file >/dev/null; then
		case $(file "$program") in
		*'statically linked'*) ;;
		*) die "$(file "$program"), not statically linked" ;;
		esac
	fi
done
server=$tmp/image/usr/local/bin/packs-mcp
[ -x "$server" ] || die "the entry point is on no PATH"

# As in the image: no privileges, the settings of ENV, an empty /data.
settings=$(printf '%s' "$settings" | sed "s|/data|$tmp/data|")
chmod 700 "$tmp/data"
set --
if [ "$(id -u)" = 0 ]; then
	chown 10001:10001 "$tmp/data"
	set -- setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs
fi
cd "$tmp/image"
# shellcheck disable=SC2086 # one word for each setting
"$OLDPWD/scripts/smoke.sh" "$version" "$@" env -i PATH=/usr/local/bin:/usr/bin:/bin $settings "$server"
