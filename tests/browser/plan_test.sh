#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests two plan reports, one that meets its deadline and one that does not, in a headless Chromium: `plan_test.sh
# BINARIES SOURCE FOLDER`. Exits with 77 and a message if Chromium or node is missing. FOLDER/pictures receives the
# screenshots.
set -euo pipefail
PATH=$1:$PATH
source=$2
folder=$3

skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  skip "Chromium not found"
command -v node >/dev/null || skip "node not found"

rm -rf "$folder"
mkdir -p "$folder/pictures"
cd "$folder"
export COMMFUSE_CONFIG_DIR=$source/configs
commfuse-sim plan train-70b --out met >/dev/null
sed 's/^deadline: .*/deadline: 2026-12-20/' "$source/configs/plans/train-70b.yaml" >late.yaml
status=0
commfuse-sim plan late.yaml --out missed >/dev/null || status=$?
[[ $status -eq 4 ]] || {
  printf 'a plan that misses its deadline exits with 4, not %s\n' "$status"
  exit 1
}
node "$source/tests/browser/plan_test.mjs" "$chromium" .
