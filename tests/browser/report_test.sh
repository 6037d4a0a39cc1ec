#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A report as people get it, in a headless Chromium: `report_test.sh COMMFUSE_SIM SOURCE FOLDER`. Exits with 77, and says
# so, where Chromium or node is missing. FOLDER/pictures gets every section, light and dark.
set -euo pipefail
sim=$1
source=$2
folder=$3

skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "there is no Chromium"
command -v node >/dev/null || skip "there is no node"

rm -rf "$folder"
mkdir -p "$folder"
export COMMFUSE_CONFIG_DIR=$source/configs

# Under jitter, so that there are percentiles to draw.
for format in jsonl csv; do
  "$sim" run --axis ranks=2,4 --axis seq=2K,8K --jitter default --samples 400 -o "$format" >"$folder/rows.$format"
done

hostile=$'</script><script>globalThis.hacked = 1</script>"\'><img src=x onerror="globalThis.hacked = 2"> \u00e4 \u65e5\u672c'
"$sim" report "$folder/rows.jsonl" --title "$hostile" --out "$folder/report.html" >/dev/null
if ! grep -q 'id="block-charts"' "$folder/report.html"; then
  skip "this program was built without npm, so its reports hold no chart library"
fi
node "$source/tests/browser/report_test.mjs" "$chromium" "$folder/report.html" "$folder/rows.csv" "$folder/pictures"
