#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the page's engine with the program: `points_test.sh BINARIES SOURCE ENGINE`. 500 random points must give
# identical bytes. Exits with 77 and a message if the engine or node is missing.
set -euo pipefail
binaries=$1
source=$2
engine=$3

skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}
command -v node >/dev/null || skip "node is missing"
[[ -e $engine/engine.js ]] || skip "the engine of the page is missing; ./dev page builds it"

COMMFUSE_CONFIG_DIR=$source/configs node "$source/tests/page/points.mjs" "$binaries/commfuse-sim" "$engine" 500
