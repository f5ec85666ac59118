#!/bin/sh
# Start the services of the project, and wait for them.
docker compose up -d --wait
docker run --rm -v "$PWD":/work -w /work node:22 npm test
docker run --rm -e POSTGRES_PASSWORD=example -p 127.0.0.1:5432:5432 -d postgres:17
docker exec db psql -U postgres -c 'SELECT 1'
