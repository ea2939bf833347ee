#!/usr/bin/env bash
# The packages of Node that tests/integrations/gateway uses, into FOLDER: tools/node_packages.sh FOLDER. The tests are
# told of it by LLMSTREAM_NODE_MODULES=FOLDER.
set -euo pipefail

folder=${1:?the folder to install into}
mkdir -p "$folder"
cp "$(dirname "${BASH_SOURCE[0]}")/../tests/integrations/gateway/package.json" "$folder/"
cd "$folder"
npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error
