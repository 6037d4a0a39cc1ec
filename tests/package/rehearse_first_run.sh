#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: rehearse_first_run.sh [KIT]: runs validate/cuda/first_run.sh in a root that is laid out like the machine with
# the GPU: Debian trixie, NVIDIA's libraries only in a Python virtual environment, no network, none of our packages
# and no MPI. A test double replaces the GPU. KIT is out/first_run_kit by default:
#   validate/cuda/first_run.sh pack && tests/package/rehearse_first_run.sh
# Makes three calls: without the double, with it, and on a fresh machine that has only the bundle of the second call.
# Environment:
#   REHEARSAL_DOUBLE  double of the plugin, from the same build as the kit (default: in build/first_run/lib)
#   REHEARSAL_FOLDER  folder that keeps the root for the next time (default: none)
#   REHEARSAL_FAKES   1: shell scripts replace the programs, to try the rehearsal itself
# Making the root takes two minutes, and each call at most ten. Exits with 77 if the root cannot be made.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(cd "$here/../.." && pwd)
# shellcheck source=tests/package/clean_root.sh
. "$here/clean_root.sh"

kit=${1:-$tree/out/first_run_kit}
double=${REHEARSAL_DOUBLE:-$tree/build/first_run/lib/libcommfuse_cuda_double.so}
max_mib_of_kit=64
max_files=8
max_bytes_of_file=$((16 * 1024 * 1024))
seconds_of_call=600
# The double computes on this machine's cores, so it exceeds the time budgets for a GPU.
patience=5

stop() {
  echo "rehearsal: $*" >&2
  exit 2
}

# expect MESSAGE COMMAND...: counts failures and continues.
failures=0
expect() {
  if "${@:2}"; then
    echo "ok: $1"
  else
    echo "FAILED: $1" >&2
    failures=$((failures + 1))
  fi
}

# --- fakes of the programs, to try the rehearsal itself

fake() {
  printf '#!/bin/sh\n%s\n' "$2" >"$kit/bin/$1"
  chmod +x "$kit/bin/$1"
}

make_fake_kit() {
  kit=$folder/fake_kit
  double=$folder/fake_double.so
  touch "$double"
  rm -rf "$kit"
  mkdir -p "$kit/bin" "$kit/lib/system"
  # shellcheck disable=SC2016 # the fakes expand these
  fake commfuse-validate 'case $1 in
doctor)
  [ -n "$COMMFUSE_CUDA_PLUGIN" ] || { echo "cuda       no: no NVIDIA driver (libcuda.so.1) is here"; exit; }
  echo "cuda       yes: NVIDIA H100 80GB HBM3 (132 multiprocessors, 85 GB), driver for CUDA 13.0"; exit ;;
esac
for word; do [ "$before" = --out ] && echo "$*" >>"$word"; before=$word; done
echo "ran $*"'
  # shellcheck disable=SC2016 # the fakes expand these
  fake commfuse-sim 'case "$*" in
*csv) printf "strategy,compute_us\nserial,4000\n" ;;
*) for word; do [ "$before" = --out ] && echo "$*" >>"$word"; before=$word; done; echo "[]" ;;
esac'
  # shellcheck disable=SC2016 # the fakes expand these
  fake commfuse-test-validate 'echo "tests $*"'
}

# --- the root

folder=${REHEARSAL_FOLDER:-}
[[ -n $folder ]] || folder=$(mktemp -d "${TMPDIR:-/var/tmp}/commfuse-rehearsal-XXXXXX")
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
root=$folder/root
toolkit_libraries=/usr/local/cuda/lib64

finish() {
  local mounted
  for mounted in "$root/mnt/toolkit" "$root/dev"; do
    ! mountpoint -q "$mounted" || umount "$mounted" || umount --lazy "$mounted"
  done
  leave_root "$root" || umount --lazy "$root/proc"
  [[ -n ${REHEARSAL_FOLDER:-} ]] || rm -rf --one-file-system "$folder"
}

fill_root() {
  [[ -e $root/etc/debian_version ]] || make_root "$root" trixie main
  enter_root "$root"
  mount --bind /dev "$root/dev"
  if [[ ! -x $root/usr/bin/python3 ]]; then
    inside "$root" apt-get -q update >"$folder/install.log"
    inside "$root" apt-get -q install -y --no-install-recommends python3-minimal >>"$folder/install.log" 2>&1 ||
      { tail -n 20 "$folder/install.log" >&2 && exit 1; }
  fi
}

# The toolkit's libraries replace those of pip's packages, which have the same names.
lay_out_python() {
  local venv=$root/opt/torch/.venv version packages entry
  version=$(inside "$root" /usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  rm -rf "$venv"
  packages=$venv/lib/python$version/site-packages/nvidia
  mkdir -p "$venv/bin"
  ln -s /usr/bin/python3 "$venv/bin/python3"
  printf 'home = /usr/bin\ninclude-system-site-packages = false\nversion = %s\n' "$version" >"$venv/pyvenv.cfg"
  for entry in nccl:libnccl cublas:libcublas cuda_cupti:libcupti cudnn:libcudnn cuda_nvrtc:libnvrtc; do
    mkdir -p "$packages/${entry%:*}/lib"
    link_libraries "${entry#*:}" "$packages/${entry%:*}/lib"
  done
}

# link_libraries PREFIX FOLDER: links the toolkit's libraries with a version in their name, as pip's packages have them.
link_libraries() {
  local library
  for library in "$toolkit_libraries/$1"*.so.*; do
    [[ ! -e $library ]] || ln -s "/mnt/toolkit/$(basename "$library")" "$2/"
  done
}

lay_out_machine() {
  mkdir -p "$root/mnt/toolkit" "$root/usr/local/cuda/bin"
  if [[ -d $toolkit_libraries ]]; then
    mount --bind "$(readlink -f "$toolkit_libraries")" "$root/mnt/toolkit"
    mount -o remount,bind,ro "$root/mnt/toolkit"
  fi
  touch "$root/usr/local/cuda/bin/nvcc"
  printf '#!/bin/sh\necho "NVIDIA H100 80GB HBM3"\n' >"$root/usr/local/bin/nvidia-smi"
  chmod +x "$root/usr/local/cuda/bin/nvcc" "$root/usr/local/bin/nvidia-smi"
  lay_out_python
}

# Copies the tree as it is sent: files that git tracks or does not ignore, and the kit. Nothing of an earlier machine
# remains.
fresh_machine() {
  rm -rf "$root/machine" "$root"/tmp/*
  mkdir -p "$root/machine/tree/out" "$root/machine/out"
  (cd "$tree" && git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do [[ ! -e $file ]] || printf '%s\0' "$file"; done |
    tar -c --null -T -) | tar -x -C "$root/machine/tree"
  cp -r "$kit" "$root/machine/tree/out/first_run_kit"
  cp -L "$double" "$root/machine/double.so"
}

# call NAME [VARIABLES...]: one call with an empty $OUT and no network. Stores its exit code in `code`, its seconds in
# `took`, and its output in $folder/NAME.txt.
call() {
  local name=$1 begun=$SECONDS
  code=0
  find "$root/machine/out" -mindepth 1 -delete
  env -i PATH=/opt/torch/.venv/bin:/usr/local/bin:/usr/local/cuda/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    LANG=C.UTF-8 OUT=/machine/out FIRST_RUN_PATIENCE="$patience" "${@:2}" \
    unshare -n timeout "$seconds_of_call" chroot "$root" \
    bash -c 'cd /machine/tree && exec validate/cuda/first_run.sh run' >"$folder/$name.txt" 2>&1 || code=$?
  took=$((SECONDS - begun))
  sed "s/^/  /" "$folder/$name.txt"
}

# --- requirements

says() { grep -qE "$2" "$folder/$1.txt"; }

bundle_is_small() {
  local file count=0
  while IFS= read -r file; do
    count=$((count + 1))
    (($(stat -c %s "$file") <= max_bytes_of_file)) || return 1
  done < <(find "$root/machine/out" -type f)
  ((count >= 1 && count <= max_files))
}

# Prints the names of the stages that failed, from the lines on stdin.
failed_stages() {
  grep -E '^[a-z]+: exit [0-9]+ after ' | grep -vE ': exit (0|69) |; the next call continues it$' |
    cut -d: -f1 || true
}

# Succeeds if every stage of the script finished or was left for the next call, and only the tests of the device itself,
# which need a GPU, failed.
stages_are_reported() {
  local name line bad=0
  while read -r name; do
    line=$(grep -E "^$name: exit [0-9]+ after [0-9]+ s, budget [0-9]+ s|^first_run: $name: (left|already done)" \
      "$folder/$1.txt") || { echo "no line of stage $name" && bad=1 && continue; }
    [[ $line == first_run:* || -z $(failed_stages <<<"$line") || $line == "tests: exit 1 "* ]] ||
      { echo "$line" && bad=1; }
  done < <(sed -n '/^stages=(/,/^)/s/^  "\([a-z]*\) .*/\1/p' "$tree/validate/cuda/first_run.sh")
  return "$bad"
}

no_stage_runs_twice() {
  local name
  while read -r name; do
    grep -qx "first_run: $name: already done" "$folder/resumed.txt" || return 1
  done < <(sed -n 's/^\([a-z]*\): exit 0 .*/\1/p' "$folder/first.txt")
}

# The script must use the folders that it found; libcuda comes with the driver.
libraries_are_found() {
  local libraries file bad=0
  libraries=$(gunzip -cf "$root"/machine/out/log.txt* | sed -n 's/^libraries: //p' | tail -n 1)
  while IFS= read -r file; do
    inside "$root" env LD_LIBRARY_PATH="$libraries" ldd "$file" | awk -v file="$file" '
      /not found/ || /libmpi/ { print file ": " $0; bad = 1 }
      END { exit bad }' || bad=1
  done < <(cd "$root" && find machine/tree/out/first_run_kit/bin machine/tree/out/first_run_kit/lib -type f \
    ! -path '*/fallback/*' -printf '/%p\n')
  return "$bad"
}

# Only libraries that this machine's toolkit has are checked.
libraries_of_python_are_found() {
  local name log bad=0
  log=$(gunzip -cf "$root"/machine/out/log.txt*)
  for name in libcublasLt.so libcudnn.so libcupti.so libnccl.so; do
    if [[ -z $(compgen -G "$toolkit_libraries/$name.*") ]]; then
      echo "not checked, because this machine has no $name"
    elif ! grep -q "^$name: /opt/torch/.venv/" <<<"$log"; then
      echo "not found: $name"
      bad=1
    fi
  done
  return "$bad"
}

# Permits exit code 1 only if nothing but the tests of the device failed.
exit_code_is_right() {
  local failed
  failed=$(failed_stages <"$folder/$1.txt")
  [[ $code == 0 && -z $failed || $code == 1 && $failed == tests ]]
}

kit_is_small() { (($(du -sm "$kit" | cut -f1) < max_mib_of_kit)); }
kit_contains_no_nvidia_library() { ! find "$kit" -name 'lib*.so*' | grep -E '/lib(cu|nv|nccl)'; }

rehearse() {
  fresh_machine
  expect "the kit is smaller than $max_mib_of_kit MiB" kit_is_small
  expect "the kit contains no NVIDIA library" kit_contains_no_nvidia_library

  call without
  expect "without a GPU: exit code 69" test "$code" == 69
  expect "without a GPU: one sentence" says without '^first_run: no usable GPU: '
  expect "without a GPU: nothing else" test "$(wc -l <"$folder/without.txt")" == 1
  expect "without a GPU: immediately ($took s)" test "$took" -lt 60

  call first COMMFUSE_CUDA_PLUGIN=/machine/double.so
  expect "first call: exit code 0, or 1 for the tests of the device only" exit_code_is_right first
  expect "first call: each stage has its exit code, time and budget" stages_are_reported first
  expect "first call: at most $max_files files of 16 MiB" bundle_is_small
  expect "first call: NVIDIA's libraries are found in Python's packages" libraries_of_python_are_found
  [[ -n ${REHEARSAL_FAKES:-} ]] || expect "all libraries are found, and none is MPI's" libraries_are_found

  rm -rf "$folder/returned_bundle"
  cp -r "$root/machine/out" "$folder/returned_bundle"
  fresh_machine
  cp -r "$folder/returned_bundle" "$root/machine/tree/out/first_run"
  call resumed COMMFUSE_CUDA_PLUGIN=/machine/double.so
  expect "resumed: exit code 0, or 1 for the tests of the device only" exit_code_is_right resumed
  expect "resumed: no finished stage runs again" no_stage_runs_twice
  expect "resumed: at most $max_files files of 16 MiB" bundle_is_small
}

require_debootstrap
trap finish EXIT
[[ -z ${REHEARSAL_FAKES:-} ]] || make_fake_kit
[[ -x $kit/bin/commfuse-validate ]] || stop "no kit in $kit; run validate/cuda/first_run.sh pack"
[[ -f $double ]] ||
  stop "no double of the GPU in $double; run cmake --build build/release --target commfuse_cuda_double"
fill_root
lay_out_machine
rehearse
((failures == 0)) || { echo "rehearsal: $failures expectations failed" >&2 && exit 1; }
echo "rehearsed: the first run on a machine with a GPU"
