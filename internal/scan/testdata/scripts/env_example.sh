#!/bin/sh
# Load the settings of this project, and show which are missing.
set -a
[ -f .env ] && . ./.env
set +a
for name in API_URL API_TOKEN DB_HOST; do
  eval "value=\${$name:-}"
  [ -n "$value" ] || echo "missing: $name" >&2
done
cp -n .env.example .env
