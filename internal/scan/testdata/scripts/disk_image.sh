#!/bin/sh
# Make a small disk image for a test.
set -e
dd if=/dev/zero of=disk.img bs=1M count=64
mkfs.ext4 -q disk.img
truncate -s 0 run.log
tar -C rootfs -cf - . | gzip -9 > rootfs.tar.gz
