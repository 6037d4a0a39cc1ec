#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: packed_test.sh COMPILER SOURCE BUILD: tests the foundations of packed programs. The check of glibc's version
# finds symbols that are too new and libraries that are missing; an exception passes from a packed module into a packed
# program; and the programs of `./dev package`, if they are built, need only permitted libraries and symbols.
set -euo pipefail
compiler=$1
source=$2
build=$3
work=$(mktemp -d "${TMPDIR:-/tmp}/commfuse-packed-XXXXXX")
trap 'rm -rf "$work"' EXIT
floor=$source/cmake/package/glibc_floor.sh

fail() {
  printf 'failed: %s\n' "$*" >&2
  exit 1
}

command -v objdump >/dev/null || { printf 'skipped: objdump is missing\n' && exit 77; }
packed=(-std=c++20 -O1 -static-libstdc++ "-Wl,--as-needed")
# The static C++ library needs a function of glibc 2.36. newer_glibc.cpp replaces it, so the program needs only 2.34.
"$compiler" -std=c++20 -O1 -fPIC -c "$source/cmake/package/newer_glibc.cpp" -o "$work/newer_glibc.o"
folder=$source/tests/package/module_exceptions
"$compiler" "${packed[@]}" "$folder/program.cpp" "$work/newer_glibc.o" -o "$work/program" -ldl
"$compiler" "${packed[@]}" -shared -fPIC "$folder/module.cpp" "$work/newer_glibc.o" "-Wl,--exclude-libs,ALL" \
  -o "$work/module.so"
"$work/program" "$work/module.so" || fail "an exception of the module does not reach the program"

# The minimum applies to packages that are built on Debian 12; a newer C library uses its own newer symbols.
machine=$(getconf GNU_LIBC_VERSION | awk '{ print $2 }')
promised=2.34
[[ $(printf '%s\n' "$machine" 2.36 | sort -V | tail -n 1) == 2.36 ]] || promised=$machine
"$floor" "$promised" "$work/program" "$work/module.so" || fail "the test programs need a glibc above the floor"
! "$floor" 2.0 "$work/program" 2>"$work/message.txt" || fail "no error for a floor of 2.0"
grep -q 'needs glibc 2\.[0-9]*, which is newer than 2.0' "$work/message.txt" ||
  fail "no message: $(cat "$work/message.txt")"
"$compiler" -std=c++20 -O1 "$folder/program.cpp" -o "$work/shared" -ldl
! "$floor" 9.9 "$work/shared" 2>"$work/message.txt" || fail "a shared C++ library is not reported"
grep -q 'needs libstdc++.so.6' "$work/message.txt" || fail "no message: $(cat "$work/message.txt")"
"$floor" 9.9 --also libstdc++.so "$work/shared" >/dev/null || fail "--also does not allow a library"
! "$floor" 9.9 "$floor" 2>/dev/null || fail "a script is accepted as a program"

if [[ -x $build/portable/bin/commfuse-sim ]]; then
  "$floor" "$promised" "$build"/portable/bin/commfuse-{sim,validate}
  "$build/portable/bin/commfuse-sim" version | grep -q '^commfuse-sim ' || fail "the packed program does not start"
fi
printf 'ok: packed programs\n'
