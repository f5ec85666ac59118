#!/bin/bash
# Show one value of a secret of the cluster.
export KUBECONFIG="${KUBECONFIG:-$HOME/.kube/config}"
kubectl get secret "$1" -o jsonpath="{.data.$2}" | base64 -d
kubectl rollout restart deployment/web
source <(kubectl completion bash)
