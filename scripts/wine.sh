#!/bin/sh
# wine.sh
#
# Runs the Windows build under Wine (test/wine). Wine and mingw's linker come from Debian's
# packages, which are installed if they are missing and this is root on Debian. Skipped by
# name if there is no Wine, which PACKS_MCP_REQUIRE=wine turns into a failure.
set -eu
. scripts/lib.sh

bin=/usr/lib/wine # on nobody's PATH without the package "wine", which wants 32-bit programs
linker=x86_64-w64-mingw32-ld
have() { [ -x $bin/wine64 ] && [ -x $bin/wineserver64 ] && command -v $linker >/dev/null; }

case $(uname -s)/$(uname -m) in
Linux/x86_64) ;;
*) skip wine "the Windows build for amd64 is tried on Linux, on a machine with the same processor" ;;
esac
if ! have && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	echo "installing: wine64 binutils-mingw-w64-x86-64"
	export DEBIAN_FRONTEND=noninteractive
	{ apt-get update -qq && apt-get install -y -qq --no-install-recommends wine64 binutils-mingw-w64-x86-64; } </dev/null >/dev/null || true
fi
have || skip wine "there is no Wine, or no $linker; on Debian: apt-get install wine64 binutils-mingw-w64-x86-64"

dir=$PWD/.cache/wine
export WINEPREFIX="$dir/prefix" WINEARCH=win64 WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml='
system32=$WINEPREFIX/drive_c/windows/system32
trap '$bin/wineserver64 -k 2>/dev/null || true' EXIT
mkdir -p "$dir"
if [ ! -e "$system32/bcryptprimitives.dll" ]; then
	rm -rf "$WINEPREFIX"
	mkdir "$WINEPREFIX"
	# It keeps running, so that not every program waits for a new one.
	$bin/wineserver64 -p60
	$bin/wine64 wineboot --init >"$dir/wineboot.log" 2>&1 || skip wine "Wine does not start here; see $dir/wineboot.log"
	# Go takes random numbers from this library, which Wine 8 lacks. It only gives another name
	# to a function that Wine has elsewhere.
	printf 'LIBRARY bcryptprimitives.dll\nEXPORTS\nProcessPrng = advapi32.SystemFunction036\n' >"$dir/prng.def"
	$linker -shared -e 0 -o "$dir/prng.dll" "$dir/prng.def"
	cp "$dir/prng.dll" "$system32/bcryptprimitives.dll"
else
	$bin/wineserver64 -p60
fi

export CGO_ENABLED=0
for program in cmd/packs-mcp test/wine/greeter; do
	GOOS=windows GOARCH=amd64 go build -trimpath -o "$dir/$(basename $program).exe" "./$program"
done
# Wine's own services start with the first program, inherit its pipes, and end after the
# last one. So keep one program running.
$bin/wine64 "$dir/greeter.exe" stay </dev/null >/dev/null 2>&1 &
$bin/wine64 "$dir/packs-mcp.exe" version </dev/null >/dev/null 2>&1
PACKS_MCP_WINE=$bin/wine64 PACKS_MCP_WINE_PROGRAMS=$dir go test -count=1 -timeout 5m ./test/wine
