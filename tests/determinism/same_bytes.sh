#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds commfuse-sim with g++ and clang, at -O0 and -O3, runs the commands of commands.txt on one thread and on four,
# and compares the answers with those of the release build, byte for byte. Also compares them with the answers of the
# release build on a processor without FMA and AVX2.
#   usage: same_bytes.sh BUILD_FOLDER
set -euo pipefail
builds=$(realpath "$1")
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
cd "$here/../.."

say() { printf 'same_bytes: %s\n' "$*" >&2; }

# build NAME COMPILER LEVEL: builds without warnings, because g++ 12 at -O3 reports a false overflow in fmt 9. The
# builds of the presets have warnings.
build() {
  local folder=$builds/$1
  {
    cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$2" \
      -DCMAKE_CXX_FLAGS_RELEASE="$3" -DCMAKE_CXX_FLAGS=-w -DCOMMFUSE_CUDA=OFF
    cmake --build "$folder" -j "$(nproc)" --target commfuse-sim
  } >"$folder.log" 2>&1
}

# answers PROGRAM THREADS FOLDER: writes one file for each command, with its output and then the CSV and YAML files that
# it wrote into OUT.
answers() {
  local program=$1 threads=$2 folder=$3 scratch=$builds/scratch line number=0 words
  rm -rf "$folder"
  mkdir -p "$folder"
  while read -r line; do
    number=$((number + 1))
    rm -rf "$scratch"
    mkdir "$scratch"
    read -ra words <<<"${line//OUT/$scratch}"
    case ${words[0]} in
      run | sweep) words+=(-j "$threads") ;;
    esac
    COMMFUSE_CONFIG_DIR=configs "$program" "${words[@]}" >"$folder/$number" 2>/dev/null ||
      { say "exit $? from: $program ${words[*]}"; exit 1; }
    find "$scratch" -type f \( -name '*.csv' -o -name '*.yaml' \) | sort | xargs -r cat >>"$folder/$number"
  done <"$here/commands.txt"
  rm -r "$scratch"
}

mkdir -p "$builds"
release=build/release/bin/commfuse-sim
[[ -x $release ]] || { say "$release is missing; run ./dev build"; exit 2; }
answers "$release" 1 "$builds/expected"
answers "$release" 4 "$builds/answers"
diff -rq "$builds/expected" "$builds/answers" >&2 || { say "the answers on four threads differ from those on one"; exit 1; }
GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-AVX2 answers "$release" 1 "$builds/answers"
diff -rq "$builds/expected" "$builds/answers" >&2 || { say "the answers of the release build change without FMA and AVX2"; exit 1; }

for variant in g++:-O0 g++:-O3 clang++-14:-O0 clang++-14:-O3; do
  compiler=${variant%:*} level=${variant#*:}
  build "$compiler$level" "$compiler" "$level" || {
    tail -n 20 "$builds/$compiler$level.log" >&2
    say "$compiler $level does not build; the full log is $builds/$compiler$level.log"
    exit 1
  }
  for threads in 1 4; do
    answers "$builds/$compiler$level/bin/commfuse-sim" "$threads" "$builds/answers"
    diff -rq "$builds/expected" "$builds/answers" >&2 ||
      { say "$compiler $level answers differ from the release build on $threads threads; the numbers are lines of commands.txt"; exit 1; }
  done
  say "$compiler $level: the same bytes, $(wc -l <"$here/commands.txt") commands on 1 and on 4 threads"
done
