#!/bin/sh
# Copy the site to the server. The key is the deploy key of this project.
set -eu
KEY="${DEPLOY_KEY:-$HOME/.ssh/id_ed25519}"
if [ ! -f "$HOME/.ssh/id_ed25519" ]; then
  ssh-keygen -t ed25519 -N "" -C deploy -f "$HOME/.ssh/id_ed25519"
fi
chmod 600 "$HOME/.ssh/id_ed25519"
ssh-add ~/.ssh/id_ed25519
eval "$(ssh-agent -s)"
rsync -az --delete -e "ssh -i $KEY" ./public/ "$DEPLOY_USER@$DEPLOY_HOST:/var/www/site/"
ssh -i "$KEY" "$DEPLOY_USER@$DEPLOY_HOST" "systemctl reload nginx"
