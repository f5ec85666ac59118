#!/bin/bash
set -euo pipefail
# Plan, show, and apply what was planned, after a question.
terraform init -input=false
terraform plan -out=plan.bin
terraform show -no-color plan.bin | tee plan.txt
read -r -p "Apply? [y/N] " answer
[[ "$answer" == y ]] && terraform apply -input=false plan.bin
aws sts get-caller-identity
aws configure list
