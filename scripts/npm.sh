#!/bin/sh
# npm.sh FOLDER DIR [FLAG]...
#
# Installs the packages of FOLDER's package-lock.json to DIR/node_modules, with the flags
# for "npm ci", unless they are installed. The lock file pins each package by its hash; the
# packages' install scripts are not run. If this is impossible here, it fails with 3 and
# prints the reason on standard error.
set -eu
folder=$1 dir=$2
shift 2

for program in node npm; do
	if ! command -v "$program" >/dev/null; then
		echo "there is no $program on the PATH" >&2
		exit 3
	fi
done
mkdir -p "$dir"
installed=$dir/node_modules/.installed.json # the lock file of the installed packages
if cmp -s "$folder/package-lock.json" "$installed"; then
	exit 0
fi
if [ "$folder" != "$dir" ]; then
	cp "$folder/package.json" "$folder/package-lock.json" "$folder/.npmrc" "$dir/"
fi
rm -rf "$dir/node_modules"
echo "installing the packages of $folder, once" >&2
if ! (cd "$dir" && npm ci "$@" --ignore-scripts --no-audit --no-fund --loglevel=error </dev/null >&2); then
	rm -rf "$dir/node_modules"
	exit 3
fi
cp "$folder/package-lock.json" "$installed"
