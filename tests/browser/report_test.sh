#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests a report in a headless Chromium: `report_test.sh BINARIES SOURCE FOLDER`. Exits with 77 and a message if
# Chromium or node is missing. FOLDER/pictures receives every section, light and dark, and the printed pages.
set -euo pipefail
PATH=$1:$PATH
source=$2
folder=$3

skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "Chromium not found"
command -v node >/dev/null || skip "node not found"

rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
export COMMFUSE_CONFIG_DIR=$source/configs

# With jitter, so that there are percentiles to draw.
for format in jsonl csv; do
  commfuse-sim run --model llama-3.1-8b --axis ranks=2,4 --axis seq=2K,8K --jitter default --samples 400 \
    -o "$format" >"rows.$format"
done
commfuse-validate run --executor cpu --model llama-3.1-8b --ranks 2 --seq 8K --strategy serial,sliced,commfuse \
  --iterations 9 --spans --out record.json >/dev/null

# Prints measured times of an invented machine: latency and rate, varied by up to 6%.
made_up() {
  awk -v latency="$1" -v rate="$2" 'BEGIN {
    for (ranks = 2; ranks <= 8; ranks *= 2) for (bytes = 1024; bytes <= 2 ^ 30; bytes *= 2) {
      stray = (stray + 0.618034) % 1;
      moved = bytes * (ranks - 1) / ranks;
      print ranks "," bytes "," (latency * ranks + moved / rate) * (0.94 + 0.12 * stray) } }'
}
{
  printf 'op,ngpus,bytes,time_us\n'
  made_up 4 330000 | sed 's/^/all_gather,/'
} >collectives.csv
{
  printf 'device,op,ngpus,devices_per_node,bytes,median_us\n'
  made_up 5 200000 | sed -n 's/^2,/made-up,send_recv,2,2,/p'
} >exchanges.csv

hostile=$'</script><script>globalThis.hacked = 1</script>"\'><img src=x onerror="globalThis.hacked = 2"> \u00e4 \u65e5\u672c'
commfuse-sim report rows.jsonl --title "$hostile" --measured record.json --fit collectives.csv exchanges.csv \
  --out report.html >/dev/null
if ! grep -q 'id="block-charts"' report.html; then
  skip "this program was built without npm, so its reports hold no chart library"
fi
node "$source/tests/browser/report_test.mjs" "$chromium" .
