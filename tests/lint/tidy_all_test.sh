#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests tidy_all.sh on a small tree, with a fake clang-tidy that warns about every file that contains the word "remark".
#   usage: tidy_all_test.sh
set -euo pipefail
tidy_all=$(realpath "$(dirname "${BASH_SOURCE[0]}")/tidy_all.sh")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

mkdir -p fakes model build
cat >fakes/clang-tidy-14 <<'FAKE'
#!/bin/sh
[ "$1" != --version ] || exec echo 14
for file; do :; done
echo "$file" >>looked
echo '2 warnings generated.' >&2
! grep -n remark "$file"
FAKE
chmod +x fakes/clang-tidy-14
export PATH=$folder/fakes:$PATH
echo 'int deep();' >model/deep.h
echo '#include "model/deep.h"' >model/shallow.h
echo '#include "model/shallow.h"' >model/a.cpp
echo 'int b();' >model/b.cpp
commands() {
  printf '[{"command": "c++ %s %s/model/a.cpp",\n"file": "%s/model/a.cpp"},\n' "$1" "$PWD" "$PWD"
  printf '{"command": "c++ %s/model/b.cpp",\n"file": "%s/model/b.cpp"}]\n' "$PWD" "$PWD"
}
commands -O1 >build/compile_commands.json

# expect CODE WHAT FILE...: the expected exit status, the situation, and the files that must be checked.
expect() {
  local code=0 looked
  rm -f looked
  touch looked
  "$tidy_all" build >said 2>&1 || code=$?
  looked=$(sort looked | xargs)
  [[ $code == "$1" && $looked == "${*:3}" ]] || {
    printf '%s: exit %s, looked at: %s\n' "$2" "$code" "$looked"
    cat said
    exit 1
  }
}

expect 0 "at first all are looked at" model/a.cpp model/b.cpp
expect 0 "then none is"
echo 'int deeper();' >>model/deep.h
expect 0 "those above a header that changed are" model/a.cpp
commands -O2 >build/compile_commands.json
expect 0 "one compiled otherwise is" model/a.cpp
echo '// remark' >>model/b.cpp
expect 1 "a remark is a failure" model/b.cpp
grep -q '// remark' said
expect 1 "and stays one" model/b.cpp
echo 'int b();' >model/b.cpp
expect 0 "until it is mended, as it was before"
echo 'Checks: all' >.clang-tidy
expect 0 "other rules concern all" model/a.cpp model/b.cpp
echo '[]' >build/compile_commands.json
expect 2 "a build that knows no source is not clean"
