#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests the page in a headless Chromium: `page_test.sh BINARIES SOURCE FOLDER [ENGINE]`. ENGINE is a folder with
# engine.js and engine.wasm; if it is omitted or empty, recorded answers of the native program replace the engine. Exits
# with 77 and a message if Chromium or node is missing. FOLDER/pictures receives the screenshots.
set -euo pipefail
PATH=$1:$PATH
source=$2
folder=$3
engine=${4:-}

skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "Chromium is missing"
command -v node >/dev/null || skip "node is missing"

rm -rf "$folder"
mkdir -p "$folder/pictures"
export COMMFUSE_CONFIG_DIR=$source/configs
if [[ -n $engine && -e $engine/engine.js ]]; then
  kind=real
  cp "$engine/engine.wasm" "$engine/engine.js" "$folder"
else
  kind=
  node "$source/tests/page/record.mjs" commfuse-sim "$folder/engine.wasm"
  cp "$source/tests/page/fake_engine.js" "$folder/engine.js"
fi
node "$source/page/build.mjs" "$folder/engine.wasm" "$folder/engine.js" "$folder/page.html"
node "$source/tests/page/page_test.mjs" "$chromium" "$folder" "$kind"
