#!/bin/bash
# Tag a release and publish it.
set -euo pipefail
version="$1"
[[ "$version" =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]] || { echo "not a version: $version" >&2; exit 2; }
git diff --quiet || { echo "there are changes that are not committed" >&2; exit 1; }
npm version --no-git-tag-version "${version#v}"
npm publish --access public --provenance
git tag -s "$version" -m "$version" && git push origin "$version"
gh release create "$version" --generate-notes
