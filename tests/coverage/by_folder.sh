#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Reports how many lines of each folder the tests executed. gcovr reads the counters of a coverage build.
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

gcovr --root . --object-directory "$build" --filter 'model/' --filter 'sim/' --filter 'validate/' --filter 'reports/' \
  --gcov-ignore-parse-errors -j "$(nproc)" --csv "$build/lines.csv" "$build"

# filename,line_total,line_covered,line_percent,...
awk -F, '
  NR > 1 {
    split($1, part, "/")
    name = part[1]
    count(name)
    if (name == "validate") count(name "/" part[2])
  }
  function count(name) { total[name] += $2; run[name] += $3 }
  END { for (name in total) printf "%-20s %6d of %6d lines  %5.1f%%\n", name, run[name], total[name], 100 * run[name] / total[name] }
' "$build/lines.csv" | sort
