#!/bin/sh
# Log in to the registry, with the token of the workflow.
echo "$GITHUB_TOKEN" | docker login ghcr.io -u "$GITHUB_ACTOR" --password-stdin
npm config set //registry.example.com/:_authToken "$NPM_TOKEN"
gh auth status
git config --global user.email "bot@example.com"
git config --global --add safe.directory "$PWD"
