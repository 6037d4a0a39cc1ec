#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: build_with_cuda12.sh [FOLDER]: builds the CUDA plugin, the programs and the tests of validate/ with the oldest
# supported toolkit, in a separate Debian root: trixie has CUDA 12.4, NCCL 2.22, g++ 14 (13 under nvcc) and fmt 10. Then
# it runs the tests that need no GPU. With FOLDER, the root and the build stay there for the next time. Needs 10 GB,
# half an hour and a network. Exits with 77 if the root cannot be made.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(cd "$here/../.." && pwd)
# shellcheck source=tests/package/clean_root.sh
. "$here/clean_root.sh"

require_debootstrap
# Reads the array build_packages of `dev`, which lists the packages that a build needs.
declare -a build_packages
eval "$(sed -n '/^build_packages=(/,/)$/p' "$tree/dev")"
cuda_packages=(nvidia-cuda-toolkit-gcc libnccl-dev)

folder=${1:-}
[[ -n $folder ]] || folder=$(mktemp -d "${TMPDIR:-/var/tmp}/commfuse-cuda12-XXXXXX")
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
root=$folder/root
finish() {
  mountpoint -q "$root/src" && umount "$root/src"
  leave_root "$root"
  [[ -n ${1:-} ]] || rm -rf --one-file-system "$folder"
}
trap 'finish "'"${1:-}"'"' EXIT

step() {
  local begun=$SECONDS
  printf '=== %s\n' "$1"
  "${@:2}"
  printf '=== %s: %s s\n' "$1" $((SECONDS - begun))
}

fill_root() {
  [[ -e $root/etc/debian_version ]] || make_root "$root" trixie main,contrib,non-free
  enter_root "$root"
  inside "$root" apt-get -q update >"$folder/install.log"
  inside "$root" apt-get -q install -y --no-install-recommends "${build_packages[@]}" "${cuda_packages[@]}" \
    >>"$folder/install.log" 2>&1 || { tail -n 20 "$folder/install.log" >&2 && exit 1; }
}

# Mounts the tree read-only.
mount_tree() {
  mkdir -p "$root/src"
  mount --bind "$tree" "$root/src"
  mount -o remount,bind,ro "$root/src"
}

build() {
  inside "$root" cmake -S /src -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCOMMFUSE_CUDA=ON 2>&1 |
    tee "$folder/build.log"
  inside "$root" cmake --build /build -j "$(nproc)" --target commfuse_cuda commfuse-sim commfuse-validate commfuse-test-validate \
    >>"$folder/build.log" 2>&1 || { tail -n 60 "$folder/build.log" >&2 && exit 1; }
}

# expect MESSAGE COMMAND...: exits if the command fails.
expect() {
  "${@:2}" || { echo "failed: $1" >&2 && exit 1; }
  echo "$1"
}

# none_in FILE WORD: fails if a line of the file contains the word.
none_in() { ! grep -i "$2" "$1"; }

refuses() {
  local code=0
  inside "$root" /build/bin/commfuse-validate check --executor cuda-virtual 2>"$folder/message.txt" || code=$?
  cat "$folder/message.txt"
  [[ $code == 69 && $(wc -l <"$folder/message.txt") == 1 ]]
}

check_build() {
  local plugin=/build/lib/commfuse/libcommfuse_cuda.so
  expect "CUDA 12.4 and NCCL 2.22 were found" grep -qE 'CUDA Toolkit: 12\.4[0-9.]*; NCCL: 2\.22\.' "$folder/build.log"
  expect "no warning" none_in "$folder/build.log" warning
  expect "code for sm_80" inside "$root" bash -c "cuobjdump --list-elf $plugin | grep -q sm_80"
  expect "code for sm_90" inside "$root" bash -c "cuobjdump --list-elf $plugin | grep -q sm_90"
  expect "PTX of sm_90 for later GPUs" inside "$root" bash -c "cuobjdump --list-ptx $plugin | grep -q sm_90"
  expect "linked neither with libcuda nor with NVML" \
    inside "$root" bash -c "! ldd $plugin | grep -E 'libcuda\\.so|libnvidia-ml'"
  expect "without a GPU one sentence and exit code 69" refuses
}

run_tests() {
  inside "$root" env COMMFUSE_CONFIG_DIR=/src/configs /build/bin/commfuse-validate doctor
  inside "$root" ctest --test-dir /build -R '^validate\.' -j "$(nproc)" --output-on-failure --timeout 600 |
    tee "$folder/test.log" | tail -n 25
}

step "a root with CUDA" fill_root
step "the tree" mount_tree
step "the build" build
step "checks of the build" check_build
step "tests without a GPU" run_tests
echo "built with CUDA 12.4 and NCCL 2.22, tested without a GPU"
