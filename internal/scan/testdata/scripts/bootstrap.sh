#!/usr/bin/env bash
# Install what the scripts of this skill need, from the usual registries.
set -euo pipefail
if command -v apt-get >/dev/null; then
  sudo apt-get update && sudo apt-get install -y poppler-utils qpdf tesseract-ocr
elif command -v brew >/dev/null; then
  brew install poppler qpdf tesseract
fi
python3 -m venv .venv
. .venv/bin/activate
pip install --require-hashes -r requirements.txt
npm ci --ignore-scripts
