#!/bin/sh
# Fetch a fixed version of a font, and check it.
set -eu
url="https://github.com/example/fonts/releases/download/v4.1/inter.zip"
curl -fsSL "$url" -o inter.zip
echo "5c6b6d7e8f0a1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2d3e4f5061728394a  inter.zip" | sha256sum -c -
unzip -q inter.zip -d fonts
