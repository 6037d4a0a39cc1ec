#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: notes.sh VERSION [TREE]: prints the section of a version in CHANGELOG.md, without its heading. Fails if the
# section is missing or empty.
set -euo pipefail
tree=${2:-$(dirname "${BASH_SOURCE[0]}")/../..}
awk -v version="$1" '
  /^## / { inside = index($2, version) == 1 && length($2) <= length(version) + 1; next }
  inside { text = text $0 "\n"; lines += NF > 0 }
  END { printf "%s", text; exit lines == 0 }' "$tree/CHANGELOG.md"
