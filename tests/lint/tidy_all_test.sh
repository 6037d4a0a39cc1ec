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
echo "$file" >>checked
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

# expect CODE SITUATION FILE...: runs tidy_all.sh, which must exit with the code and check exactly the files.
expect() {
  local code=0 checked
  rm -f checked
  touch checked
  "$tidy_all" build >output 2>&1 || code=$?
  checked=$(sort checked | xargs)
  [[ $code == "$1" && $checked == "${*:3}" ]] || {
    printf '%s: exit %s, checked: %s\n' "$2" "$code" "$checked"
    cat output
    exit 1
  }
}

expect 0 "the first run checks every source" model/a.cpp model/b.cpp
expect 0 "a second run checks none"
echo 'int deeper();' >>model/deep.h
expect 0 "a changed header: the sources that include it" model/a.cpp
commands -O2 >build/compile_commands.json
expect 0 "a changed command: its source" model/a.cpp
echo '// remark' >>model/b.cpp
expect 1 "a warning fails the run" model/b.cpp
grep -q '// remark' output
expect 1 "an old warning fails the next run too" model/b.cpp
echo 'int b();' >model/b.cpp
expect 0 "the warning is fixed, by the old text of the source"
echo 'Checks: all' >.clang-tidy
expect 0 "changed rules: every source" model/a.cpp model/b.cpp
echo '[]' >build/compile_commands.json
expect 2 "a build without sources is an error"
