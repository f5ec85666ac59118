#!/bin/bash
# Remove what a build made.
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
rm -rf "$ROOT/dist" "$ROOT/node_modules/.cache" ./build
find "$ROOT" -name '__pycache__' -type d -prune -exec rm -rf {} +
find "$ROOT" -name '*.pyc' -delete
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
rm -rf "${TMPDIR:-/tmp}/report-$$"
docker system prune -f
git clean -fdx -e .env
