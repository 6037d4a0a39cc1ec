#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests which tool `./dev lint FILE` runs on each kind of file, with fake tools.
#   usage: lint_file_test.sh DEV
set -euo pipefail
dev=$(realpath "$1")

# The functions of dev without its last line, which runs the verb.
functions=$(sed '/^main "\$@"$/d' "$dev")

# shellcheck disable=SC2317 # lint_file calls the fake tools.
# lint FILE: prints the tool and its arguments, or the refusal.
lint() (
  eval "$functions"
  tidy() { printf 'tidy %s' "$*"; }
  shellcheck() { printf 'shellcheck %s' "$*"; }
  yamllint() { printf 'yamllint %s' "$*"; }
  say() { printf '%s' "$*"; }
  lint_file "$1"
)

# expect FILE WORDS: linting the file prints these words.
expect() {
  local printed
  printed=$(lint "$1") || true
  [[ $printed == "$2" ]] || {
    printf '%s: %s\n' "$1" "$printed"
    exit 1
  }
}

header() { printf 'tidy --checks=-readability-duplicate-include build/dev/header_check/%s.cpp' "$1"; }
included() { printf '%s: lint checks this header with the sources that include it; name one of them' "$1"; }

expect model/units.cpp 'tidy model/units.cpp'
expect validate/cuda/load.cpp 'tidy validate/cuda/load.cpp'
for file in model/units.h sim/point/request.h validate/verdict/jobs.h reports/a.h; do
  expect "$file" "$(header "$file")"
done
for file in validate/cuda/load.h python/engine/call.h bench/bars.h tests/noise.h; do
  expect "$file" "$(included "$file")"
done
expect validate/cuda/module/clocks.cuh \
  'validate/cuda/module/clocks.cuh: lint does not check CUDA sources; name C++, YAML or a shell script'
expect docs/lint.md 'docs/lint.md: lint does not check such files; name C++, YAML or a shell script'
expect dev 'shellcheck dev'
expect .ci/run 'shellcheck .ci/run'
expect docs/examples/nodes/check-nodes.sbatch 'shellcheck docs/examples/nodes/check-nodes.sbatch'
expect .github/workflows/ci.yml 'yamllint --strict .github/workflows/ci.yml'
printf 'ok: each kind of file has its tool\n'
