#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: try_in_clean_root.sh FOLDER [SUITE...]: installs the packages in FOLDER in minimal roots of these suites
# (default bookworm, jammy and noble: Debian 12, Ubuntu 22.04 and 24.04) without a compiler, and uses them. The packages
# and the tarball must give the same answers to the README's three questions as this machine's build, byte for byte.
# With MPI, a sweep with threads in several processes must write the same bytes as one thread. Adds the name of each
# suite that was tried to FOLDER/tried. Exits with 77 if no root can be made.
# Environment:
#   TRY_ROOTS  folder with a root for each suite (bookworm, jammy, noble), which is copied instead of being made
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(cd "$here/../.." && pwd)
packages=$(cd "$1" && pwd)
suites=("${@:2}")
((${#suites[@]})) || suites=(bookworm jammy noble)
# shellcheck source=tests/package/clean_root.sh
. "$here/clean_root.sh"

questions=(
  "run --scope down --seq 32K --as all -o verdict"
  "run --scope step --model llama-2-7b --hardware dgx-h100-x16 --ranks 1 --data-parallel 128 --batch 256 \
--micro-batch 2 --framework fsdp --jitter default --measured-step 853ms"
  "plan train-70b -o verdict"
)
answers=("Overlap pays" "Measured 853.0 ms" "Train on")

require_debootstrap
work=$(mktemp -d "${TMPDIR:-/var/tmp}/commfuse-root-XXXXXX")
finish() {
  local suite
  for suite in "${suites[@]}"; do
    leave_root "$work/$suite"
  done
  rm -rf --one-file-system "$work"
}
trap finish EXIT

fail() {
  printf 'failed: %s\n' "$*" >&2
  exit 1
}

sweep_file() {
  cat <<'YAML'
schema: commfuse.sweep/1
set: {model: llama-3.1-8b, strategy: {name: [serial, commfuse]}, jitter: default, samples: 16}
axes:
  - ranks: [2, 4, 8]
  - seq: 1K..16K+1K
outputs: [csv, json]
YAML
}

# Answers of this machine's build, from which the packages were made.
mkdir "$work/expected"
sweep_file >"$work/sweep.yaml"
for i in "${!questions[@]}"; do
  read -r -a words <<<"${questions[$i]}"
  (cd "$work" && "$tree/build/release/bin/commfuse-sim" "${words[@]}") >"$work/expected/$i.txt"
  grep -q "^${answers[$i]}" "$work/expected/$i.txt" || fail "unexpected answer to: ${questions[$i]}"
done
(cd "$work" &&
  "$tree/build/release/bin/commfuse-sim" sweep sweep.yaml --out expected/sweep -j 1 --progress none >/dev/null)

# answers_in SUITE FOLDER: compares the answers of the programs in a folder of the root with those of this build.
answers_in() {
  local root=$work/$1 i
  for i in "${!questions[@]}"; do
    # shellcheck disable=SC2086 # words
    inside "$root" "$2/commfuse-sim" ${questions[$i]} >"$work/answer.txt"
    cmp "$work/expected/$i.txt" "$work/answer.txt" || fail "$1: different answer to: ${questions[$i]}"
  done
  inside "$root" "$2/commfuse-validate" check --ranks 2 --scope mlp >/dev/null
  # Tests an exception that passes through the program and the C library.
  ! inside "$root" "$2/commfuse-sim" run --dtype fp64 2>"$work/answer.txt" || fail "$1: fp64 is accepted"
  grep -q "unknown dtype 'fp64'" "$work/answer.txt" || fail "$1: no message about fp64"
}

sweep_under_mpi() {
  local root=$work/$1 name
  mkdir "$root/sweep"
  cp "$work/sweep.yaml" "$root/sweep/"
  inside "$root" env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 HWLOC_HIDE_ERRORS=2 \
    OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_plm=isolated OMPI_MCA_btl=self,vader bash -c \
    "cd /sweep && mpirun -q -n 2 --bind-to none $2/commfuse-sim sweep sweep.yaml --out out -j 3 --progress none" >/dev/null
  for name in results.csv results.json settings.yaml; do
    cmp "$work/expected/sweep/$name" "$root/sweep/out/$name" || fail "$1: $name of $2 under MPI differs"
  done
  rm -rf "$root/sweep"
}

try_packages() {
  local root=$work/$1
  inside "$root" bash -c 'apt-get -q install -y --no-install-recommends /packages/commfuse_*.deb'
  inside "$root" bash -c '! command -v cc && ! command -v g++' >/dev/null || fail "$1: a compiler is installed"
  inside "$root" commfuse-sim version
  answers_in "$1" /usr/bin
  inside "$root" test -e /usr/share/doc/commfuse/LICENSE -a -e /usr/share/bash-completion/completions/commfuse-sim
  if compgen -G "$packages/commfuse-mpi_*.deb" >/dev/null; then
    inside "$root" bash -c 'apt-get -q install -y --no-install-recommends /packages/commfuse-mpi_*.deb'
    sweep_under_mpi "$1" /usr/bin
  fi
  inside "$root" bash -c 'apt-get -q purge -y commfuse && ! command -v commfuse-sim'
}

try_tarball() {
  local root=$work/$1 folder
  tar -C "$root/opt" -xzf "$packages"/commfuse-*.tar.gz
  folder=$(cd "$root" && echo opt/commfuse-*)
  answers_in "$1" "/$folder/bin"
  [[ ! -e $root/$folder/lib/commfuse/commfuse-mpi.so ]] || sweep_under_mpi "$1" "/$folder/bin"
}

# Exits with 77 if the root cannot be made.
try_suite() {
  local root=$work/$1 components=main
  ! is_of_ubuntu "$1" || components=main,universe
  if [[ -n ${TRY_ROOTS:-} && -d $TRY_ROOTS/$1 ]]; then
    cp -a --one-file-system "$TRY_ROOTS/$1" "$root"
  else
    make_root "$root" "$1" "$components"
  fi
  mkdir -p "$root/packages"
  cp "$packages"/* "$root/packages/"
  enter_root "$root"
  inside "$root" apt-get -q update
  try_packages "$1"
  try_tarball "$1"
  printf 'installed, used and removed in a clean root: %s, %s\n' "$1" "$(inside "$root" ldd --version | head -n 1)"
  leave_root "$root"
  rm -rf --one-file-system "$root"
}

tried=0
for suite in "${suites[@]}"; do
  code=0
  try_suite "$suite" & # a separate process, which stops at its first failure; left of || it would continue
  wait "$!" || code=$?
  case $code in
    0)
      tried=$((tried + 1))
      printf '%s\n' "$suite" >>"$packages/tried"
      ;;
    77) printf 'not tried: %s\n' "$suite" >&2 ;;
    *) exit "$code" ;;
  esac
done
((tried)) || exit 77
printf '%d of %d suites tried\n' "$tried" "${#suites[@]}"
