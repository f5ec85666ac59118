#!/bin/sh
# Post a message to the team's channel. The address is a secret of the workflow.
: "${SLACK_WEBHOOK_URL:?set it to the address of the channel}"
curl -fsS -X POST -H 'Content-type: application/json' --data "{\"text\": \"$1\"}" "$SLACK_WEBHOOK_URL"
