#!/bin/sh
# Installs the Debian packages that the tests and checks need and this machine lacks.
# Asks no questions, and does nothing if nothing is missing.
set -eu

missing=''
# want PROGRAM PACKAGE...
want() {
	program=$1
	shift
	command -v "$program" >/dev/null || missing="$missing $*"
}
want gcc gcc libc6-dev # the race detector
want git git
want make make
want node nodejs npm # the TypeScript clients
want npm npm
want file file         # the binary is static
want readelf binutils  # the same
want setpriv util-linux
want shellcheck shellcheck # the scripts of the packs, and ours
want zstd zstd         # the copy of the vulnerability database
want debootstrap debootstrap # a clean Debian for the package
want podman podman runc # the image, and runs in containers
want busybox busybox-static # what runs in them
want docker-compose docker-compose containernetworking-plugins iptables # compose.yaml, with Podman
want curl curl         # the image over HTTP
want rpm rpm           # the list of what is in one
want chromium chromium fonts-dejavu-core # the approval page
want ssh-keygen openssh-client # packs from repositories over ssh
[ -x /usr/sbin/sshd ] || want sshd openssh-server # the same
want firefox-esr firefox-esr # the same
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || want initdb postgresql # what replicas share

[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
	echo "not installed, since this is not Debian or not root:$missing"
	exit 0
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq </dev/null
# shellcheck disable=SC2086 # one word for each package
apt-get install -y -qq --no-install-recommends $missing </dev/null >/dev/null
