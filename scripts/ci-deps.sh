#!/bin/sh
# Installs the missing Debian packages that the tests and checks need. It asks no questions.
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
want file file         # checks that the binary is static
want readelf binutils  # the same
want setpriv util-linux
want shellcheck shellcheck # the scripts of the packs and of the repository
want zstd zstd         # the copy of the vulnerability database
want debootstrap debootstrap # a clean Debian for testing the package
want podman podman runc # the image, and runs in containers
want busybox busybox-static # the program in those containers
want docker-compose docker-compose containernetworking-plugins iptables # compose.yaml, with Podman
want curl curl         # requests to the image over HTTP
want rpm rpm           # lists the contents of an rpm
want chromium chromium fonts-dejavu-core # the approval page
want ssh-keygen openssh-client # packs from repositories over ssh
[ -x /usr/sbin/sshd ] || want sshd openssh-server # the same
want firefox-esr firefox-esr # the same
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || want initdb postgresql # the store that replicas share

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
