#!/bin/sh
# Installs packs-mcp for the current user.
#
#   curl -fsSL https://github.com/packs-mcp/packs-mcp/releases/latest/download/install.sh | sh
#
# It downloads the archive for this system, compares its SHA-256 with the release's
# checksums.txt, and copies the programs to a folder of yours. Without a matching checksum
# it installs nothing. It never asks for root, and changes no other file.
#
#   PACKS_MCP_VERSION   the version, such as 0.1.0; otherwise the newest
#   PACKS_MCP_DIR       where to; otherwise ~/.local/bin
#   PACKS_MCP_SIGNATURE "require": fail where no cosign can check the signature
#   PACKS_MCP_URL       where releases are; otherwise GitHub. For mirrors and tests
set -eu
umask 022
# Independent of the locale: what a range such as [0-9] matches, and what cosign is asked.
LC_ALL=C
export LC_ALL

say() { printf '%s\n' "install: $*" >&2; }
die() {
	say "error: $1"
	say "hint: $2"
	say "nothing was installed"
	exit 1
}

# Everything is in a function, so that a truncated download of this script does nothing.
main() {
	exist="there are programs for Linux and macOS on x86-64 and ARM64; for Windows take the zip archive or Scoop; otherwise build it: go install github.com/packs-mcp/packs-mcp/cmd/packs-mcp@latest"
	case $(uname -s) in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	MINGW* | MSYS* | CYGWIN*) die "this script does not install on Windows" "take the zip archive, or Scoop: scoop bucket add packs-mcp https://github.com/packs-mcp/scoop-bucket, then scoop install packs-mcp" ;;
	*) die "there is no packs-mcp for $(uname -s)" "$exist" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) die "there is no packs-mcp for the processor $(uname -m)" "$exist" ;;
	esac

	url=${PACKS_MCP_URL:-https://github.com/packs-mcp/packs-mcp/releases}
	url=${url%/}
	# Plain HTTP is only for a server on this machine.
	case $url in
	*@* | *[![:graph:]]*) die "PACKS_MCP_URL is not an address without a user: $url" "use https://HOST/PATH, or leave it unset" ;;
	https://*) only='=https' ;;
	http://127.0.0.1:* | http://localhost:*) only='=http,https' ;;
	*) die "PACKS_MCP_URL is not an https address: $url" "use one, or leave it unset" ;;
	esac
	version=${PACKS_MCP_VERSION:-}
	version=${version#v}
	case $version in
	*[!0-9A-Za-z.+~-]*) die "PACKS_MCP_VERSION is not a version: $version" "write it as 0.1.0, or leave it unset for the newest" ;;
	esac
	case ${PACKS_MCP_SIGNATURE:-} in
	'' | require) ;;
	*) die "PACKS_MCP_SIGNATURE is $PACKS_MCP_SIGNATURE" "set it to require, or leave it unset" ;;
	esac
	if [ -n "${PACKS_MCP_DIR:-}" ]; then
		to=$PACKS_MCP_DIR
	elif [ -n "${HOME:-}" ]; then
		to=$HOME/.local/bin
	else
		die "there is no HOME to install in" "set PACKS_MCP_DIR to a folder"
	fi
	case $to in
	/*) ;;
	*) to=$PWD/$to ;;
	esac
	[ "$to" = / ] || to=${to%/}

	for program in tar gzip mktemp grep; do
		command -v "$program" >/dev/null || die "there is no $program on the PATH" "install it and try again"
	done
	if command -v sha256sum >/dev/null; then
		sha256() { sha256sum "$1"; }
	elif command -v shasum >/dev/null; then
		sha256() { shasum -a 256 "$1"; }
	else
		die "neither sha256sum nor shasum is on the PATH, so no checksum can be compared" "install coreutils and try again"
	fi
	if command -v curl >/dev/null; then
		get() { curl --fail --silent --show-error --location --proto "$only" --proto-redir "$only" --max-time 600 --output "$2" "$1"; }
	elif command -v wget >/dev/null; then
		get() { wget --quiet --timeout=60 --output-document="$2" "$1"; }
	else
		die "neither curl nor wget is on the PATH" "install one of them and try again"
	fi

	tmp='' new=''
	trap 'rm -rf "$tmp" "$new"' EXIT
	trap 'exit 130' INT TERM
	tmp=$(mktemp -d) || die "there is no place for temporary files" "set TMPDIR to a folder that you may write to"

	if [ -z "$version" ]; then
		base=$url/latest/download
	else
		base=$url/download/v$version
	fi
	get "$base/checksums.txt" "$tmp/checksums.txt" || die "cannot download $base/checksums.txt" "check the network, and PACKS_MCP_VERSION if you set it"

	# The line of the archive names the version. Accept only the form that releases use.
	line=$(grep -E "^[0-9a-f]{64}  packs-mcp_[0-9A-Za-z.+~-]+_${os}_${arch}\.tar\.gz\$" "$tmp/checksums.txt" || :)
	if [ "$(printf '%s\n' "$line" | grep -c .)" != 1 ]; then
		die "checksums.txt does not have exactly one archive for $os/$arch" "look at $url for what this release has; $exist"
	fi
	want=${line%%  *} file=${line#*  }
	if [ -n "$version" ] && [ "$file" != "packs-mcp_${version}_${os}_${arch}.tar.gz" ]; then
		die "checksums.txt of version $version names $file" "report this; the release is not what it says"
	fi

	signed "$base"
	get "$base/$file" "$tmp/$file" || die "cannot download $base/$file" "try again later"
	got=$(sha256 "$tmp/$file")
	got=${got%% *}
	if [ "$got" != "$want" ]; then
		die "the SHA-256 of $file is $got, and checksums.txt says $want" "try again; if it stays so, somebody changed the file: report it"
	fi
	say "$file has the checksum of the release"

	# Write the new files to a separate folder beside the old ones, then rename them: a running
	# server keeps its own.
	for program in packs-mcp packs-mcp-sigstore; do
		[ ! -d "$to/$program" ] || die "$to/$program is a folder" "move it away, or set PACKS_MCP_DIR to another folder"
	done
	if ! mkdir -p "$to" 2>/dev/null || ! new=$(mktemp -d "$to/.packs-mcp.XXXXXX" 2>/dev/null); then
		die "cannot write to the folder $to" "set PACKS_MCP_DIR to a folder that you may write to"
	fi
	tar -xzf "$tmp/$file" -C "$new" packs-mcp packs-mcp-sigstore || die "$file cannot be unpacked" "is the disk full? Otherwise report this"
	chmod 755 "$new/packs-mcp" "$new/packs-mcp-sigstore"
	"$new/packs-mcp" version >/dev/null || die "the program does not start on this machine" "may programs run in $to? If so, report this, with the output of uname -a"
	for program in packs-mcp-sigstore packs-mcp; do
		if ! mv -f "$new/$program" "$to/$program"; then
			say "error: cannot write $to/$program"
			say "hint: make it writable, and run this again"
			exit 1
		fi
	done
	say "$("$to/packs-mcp" version) is in $to"
	case ":${PATH:-}:" in
	*":$to:"*)
		first=$(command -v packs-mcp || :)
		[ "$first" = "$to/packs-mcp" ] || say "hint: your shell finds another one first: $first. Remove it, or put $to before it on your PATH"
		next=packs-mcp
		;;
	*)
		say "hint: $to is not on your PATH. Add this line to your shell's profile, such as ~/.profile: export PATH=\"$to:\$PATH\""
		next=$to/packs-mcp
		;;
	esac
	say "next: $next try, or $next setup"
}

# signed BASE checks that the release's own workflow made checksums.txt, if cosign is
# installed.
signed() {
	if ! command -v cosign >/dev/null; then
		if [ "${PACKS_MCP_SIGNATURE:-}" = require ]; then
			die "there is no cosign on the PATH to check the signature with" "install cosign, or unset PACKS_MCP_SIGNATURE"
		fi
		say "there is no cosign, so the checksums are compared and not their signature"
		return
	fi
	get "$1/checksums.txt.sigstore.json" "$tmp/checksums.txt.sigstore.json" || die "the release has no signature that can be downloaded" "report this; every release has one"
	cosign verify-blob --bundle "$tmp/checksums.txt.sigstore.json" \
		--certificate-oidc-issuer https://token.actions.githubusercontent.com \
		--certificate-identity-regexp '^https://github\.com/packs-mcp/packs-mcp/\.github/workflows/release\.yml@refs/tags/v[0-9]' \
		"$tmp/checksums.txt" >/dev/null || die "the signature of checksums.txt is not the release workflow's" "do not use these files, and report this"
	say "the release workflow signed the checksums"
}

main
