#!/bin/sh
# Use the hooks of this repository: they format what is committed.
git config core.hooksPath .githooks
chmod +x .githooks/*
cp scripts/pre-commit .git/hooks/pre-commit
