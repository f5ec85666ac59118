#!/bin/sh
# deb-check.sh DEB VERSION
#
# Installs the package in a clean Debian, and uses the program there as a new user would:
# without privileges, with an empty home. Skipped by name without root or debootstrap, which
# PACKS_MCP_REQUIRE=debootstrap turns into a failure.
set -eu
. scripts/lib.sh
deb=$1 version=$2

[ "$(id -u)" = 0 ] || skip debootstrap "only root can make a clean Debian"
command -v debootstrap >/dev/null || skip debootstrap "there is no debootstrap on the PATH"

root=$(mktemp -d)
chmod 755 "$root"
trap 'rm -rf "$root"' EXIT
# The package recommends git, and the example pack of "try" runs it.
debootstrap --variant=minbase --include=git bookworm "$root" >"$root.log" 2>&1 || {
	tail -n 5 "$root.log" >&2
	skip debootstrap "Debian's packages cannot be had"
}
rm -f "$root.log"
cp "$deb" "$root/packs-mcp.deb"
cat >"$root/inside" <<'INSIDE'
set -eu
version=$1
mount -t proc proc /proc
mount -t tmpfs tmpfs /dev
for device in null zero full random urandom tty; do
	touch "/dev/$device"
	mount --bind "/before/dev/$device" "/dev/$device"
done
ln -s /proc/self/fd /dev/fd
mount -t tmpfs tmpfs /tmp
umount -l /before

dpkg --install /packs-mcp.deb
useradd --create-home somebody
as() { env -i HOME=/home/somebody PATH=/usr/bin:/bin setpriv --reuid=somebody --regid=somebody --clear-groups --no-new-privs "$@"; }
cd /home/somebody
said=$(as packs-mcp version)
case $said in
"packs-mcp v$version "*) echo "$said" ;;
*)
	echo "version said: $said" >&2
	exit 1
	;;
esac
as packs-mcp doctor
as packs-mcp try --yes </dev/null >/tmp/try || {
	cat /tmp/try >&2
	exit 1
}
grep -q 'run\.end .*exit 0' /tmp/try
as packs-mcp doctor --json | grep -m 1 '"level"'
for file in /usr/share/man/man1/packs-mcp.1 /usr/share/bash-completion/completions/packs-mcp; do
	test -s "$file"
done
dpkg --purge packs-mcp
if [ -e /usr/bin/packs-mcp ]; then
	echo "the package does not remove the program" >&2
	exit 1
fi
INSIDE
# Use a new root, not only "chroot": in a chroot, Linux lets no program confine others.
# shellcheck disable=SC2016 # expanded there
unshare --mount --pid --fork sh -eu -c '
	mount --make-rprivate /
	mount --bind "$1" "$1"
	mkdir "$1/before"
	cd "$1"
	pivot_root . before
	exec chroot . /bin/sh /inside "$2"
' sh "$root" "$version" || {
	echo "deb-check: the package does not work in a clean Debian; the reason is above" >&2
	exit 1
}
