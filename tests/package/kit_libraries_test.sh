#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: kit_libraries_test.sh SOURCE: tests with a fake ldd that the kit of validate/cuda/first_run.sh contains every
# library that the programs need, even from a folder with a blank in its name, and that a missing library is an error.
set -euo pipefail
source=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/commfuse-kit-XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() {
  printf 'failed: %s\n' "$*" >&2
  exit 1
}

mkdir -p "$work/bin" "$work/my libraries" "$work/kit/bin" "$work/kit/lib/"{commfuse,system,fallback}
touch "$work/my libraries/"{libtbb.so.12,libstdc++.so.6,libcudart.so.13,libc.so.6} "$work/kit/bin/commfuse-sim" \
  "$work/kit/lib/commfuse/libcommfuse_cuda.so"
cat >"$work/bin/ldd" <<'FAKE'
#!/bin/sh
printf '%s:\n\tlinux-vdso.so.1 (0x00007ffd3a5f2000)\n' "$1"
for name in libtbb.so.12 libstdc++.so.6 libcudart.so.13 libc.so.6; do
  printf '\t%s => %s/%s (0x00007f1c5a000000)\n' "$name" "$FAKE_FOLDER" "$name"
done
printf '\tlibcuda.so.1 => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f1c5b000000)\n%b' "$FAKE_LAST"
FAKE
chmod +x "$work/bin/ldd"

# pack LAST: packs the libraries that the fake ldd prints, and LAST.
pack() {
  # shellcheck disable=SC2016 # The inner shell expands the text.
  PATH=$work/bin:$PATH FAKE_FOLDER="$work/my libraries" FAKE_LAST=$1 \
    bash -euo pipefail -c '. "$1"; pack_libraries "$2"' pack "$source/validate/cuda/first_run_lib.sh" "$work/kit"
}

pack '' || fail "the libraries are not packed"
packed=$(cd "$work/kit/lib" && find . -type f | sort | paste -sd ' ')
[[ $packed == "./commfuse/libcommfuse_cuda.so ./fallback/libstdc++.so.6 ./system/libtbb.so.12" ]] || fail "packed: $packed"
code=0
message=$(pack '\tlibfmt.so.9 => not found\n' 2>&1) || code=$?
[[ $code == 1 ]] || fail "exit code $code with a missing library"
[[ $message == "first_run: libfmt.so.9 is not found; "* ]] || fail "the message is: $message"
printf 'ok: the kit has every library\n'
