#!/bin/sh
set -eu
# Dump the database, compress it, and keep seven days.
out="backup/$(date +%F).sql.gz"
mkdir -p backup
PGPASSWORD="$DB_PASSWORD" pg_dump -h "$DB_HOST" -U "$DB_USER" "$DB_NAME" | gzip > "$out"
sha256sum "$out" > "$out.sha256"
aws s3 cp "$out" "s3://$BUCKET/$out"
find backup -name '*.sql.gz' -mtime +7 -delete
