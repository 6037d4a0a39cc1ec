#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts former faults of the GPU code back, one at a time, and checks that the test named in the fault's patch fails.
#
#   tests/software_gpu/faults.sh check             checks that every patch applies to this tree; builds nothing
#   tests/software_gpu/faults.sh run [A03 ...]     runs all or some of them; prints a table. Needs a build of this tree
#
# A patch in faults/ begins with lines "Fault:", "Test: PROGRAM FILTER", and where needed "Plugin: yes" (the software
# GPU's plugin is linked again), "Program: NAME" (so is this program) and "Link: ..." (more arguments for the plugin's
# linker). A test program that contains the patched files is linked again too. The existing build is not changed: a copy
# of the tree in a temporary folder is patched, and only the patched files are compiled, with the commands that Ninja
# would run. BUILD names a build folder other than build/release; sources that differ from those of that build are
# compiled as well, without the patch. `run` exits with 0 if every test fails or hangs, otherwise with 1. `check` exits
# with 2 if a patch does not apply, and with 77 without git.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${BUILD:-$root/build/release}
patience=${PATIENCE:-120}  # seconds for a test; one that hangs has failed
plugin=lib/software_gpu/libcommfuse_cuda.so

names() {
  local patch
  for patch in "$here"/faults/*.patch; do
    basename "$patch" .patch
  done
}
field() { sed -n "s/^$2: //p" "$here/faults/$1.patch"; }
patches() { grep -q '^diff ' "$here/faults/$1.patch"; }
files_of() { sed -n 's|^+++ b/||p' "$here/faults/$1.patch"; }

check() {
  local bad=0
  command -v git >/dev/null || exit 77
  for fault in $(names); do
    if patches "$fault" && ! git -C "$root" apply --check "$here/faults/$fault.patch"; then
      echo "$fault: faults/$fault.patch does not apply; regenerate it for the current code" >&2
      bad=2
    fi
  done
  exit "$bad"
}

# Prints the commands that build a target, to be run in the build folder.
commands_of() {
  if [[ ! -f $work/commands/${1//\//_} ]]; then
    mkdir -p "$work/commands"
    ninja -C "$build" -t commands "$1" | grep -v '^ninja: ' >"$work/commands/${1//\//_}"
  fi
  cat "$work/commands/${1//\//_}"
}

# Prints the file that the compiler reads for a source of the built tree: the source itself, or the unity file of the
# target that includes it.
unit_of() {
  local source=$1 target=$2 unit
  while read -r unit; do
    if [[ $unit == "$home/$source" ]] || { [[ $unit == */Unity/* ]] && grep -qF "\"$home/$source\"" "$unit"; }; then
      echo "$unit"
    fi
  done < <(commands_of "$target" | sed -nE 's/.* -c ([^ ]+).*/\1/p' | sort -u)
}

# compile SOURCE TARGET: compiles a source of the patched tree for the target; prints "OLD NEW" lines of objects. A unity
# file is copied, so that it includes the patched tree.
compile() {
  local source=$1 target=$2 unit
  while read -r unit; do
    compile_unit "$unit" "$source" "$target"
  done < <(unit_of "$source" "$target")
}

compile_unit() {
  local unit=$1 source=$2 target=$3 number=0 line object new archive link
  local compiled=$tree/$source
  if [[ $unit == */Unity/* ]]; then
    compiled=$work/objects/unity_${target//\//_}_${source//\//_}.cxx
    sed "s|\"$home/|\"$tree/|" "$unit" >"$compiled"
  fi
  link=$(commands_of "$target" | tail -1)
  while IFS= read -r line; do
    object=$(sed -E 's/.* -o ([^ ]+) .*/\1/' <<<"$line")
    archive=$(commands_of "$target" | grep -F " $object" | grep -oE '[^ ]+\.a( |$)' | head -1 || true)
    if [[ $link != *" $object "* && ( -z $archive || $link != *" ${archive% } "* ) ]]; then
      continue  # belongs to a target that is only a dependency of this one
    fi
    new=$work/objects/${target//\//_}_${source//\//_}_$((number += 1)).o
    line=${line//"-I$home "/"-I$tree "}
    line=${line//" -c $unit"/" -c $compiled"}
    line=${line//" -o $object "/" -o $new -w "}
    line=$(sed -E 's/ -M(D|MD)//g; s/ -M[TF] [^ ]+//g' <<<"$line")
    (cd "$build" && eval "$line")
    echo "$object $new"
  done < <(commands_of "$target" | grep -F -- " -c $unit")
}

# relink TARGET OUTPUT MORE: links the target with the new objects in place of the old ones.
relink() {
  local target=$1 output=$2 more=$3 line old new
  line=$(commands_of "$target" | tail -1)
  line=$(sed -E 's/^: && //; s/ && :$//' <<<"$line")
  while read -r old new; do
    if [[ $line == *" $old "* ]]; then
      line=${line//" $old "/" $new "}
    else
      more="$new $more"  # before the library that holds the old one
    fi
  done <"$work/objects/list"
  line=${line/" -o $target "/" -o $output $more "}
  (cd "$build" && eval "$line")
}

# make TARGET OUTPUT FILE...: compiles the files and links the target again.
make() {
  local target=$1 output=$2 more=$3 source
  shift 3
  : >"$work/objects/list"
  for source in "$@"; do
    compile "$source" "$target" >>"$work/objects/list"
  done
  sort -u -t ' ' -k 1,1 -o "$work/objects/list" "$work/objects/list"  # two sources may share a unity file
  [[ ! -s $work/objects/list ]] || is_compiled=yes
  relink "$target" "$output" "$more"
}

# run_test LOG PROGRAM FILTER: runs a test with the programs and the plugin in $work; sets outcome.
run_test() {
  local output code=0
  output=$(cd "$work" && COMMFUSE_CUDA_PLUGIN=$work/lib/libcommfuse_cuda.so PROGRAMS_UNDER_TEST=$work/bin \
    timeout --kill-after=5 "$patience" "bin/$2" --gtest_filter="$3" 2>&1) || code=$?
  printf '%s\n' "$output" >"$logs/$1.log"
  if [[ $output != *"[ RUN      ]"* ]]; then
    outcome="no such test"
  elif [[ $code == 124 || $code == 137 ]]; then
    outcome="hangs"
  elif [[ $code != 0 ]]; then
    outcome="fails"
  elif [[ $output == *"[  SKIPPED ]"* ]]; then
    outcome="skipped"
  else
    outcome="passes"
  fi
}

# Runs the test of a fault with the fault and, if the build has the sources of this tree, first without it; sets
# outcome. The patched tree, programs and plugin are in $work.
try() {
  local fault=$1 program filter target other is_compiled=""
  local -a sources
  read -r program filter <<<"$(field "$fault" Test)"
  mapfile -t sources < <({
    printf '%s\n' "${changed[@]}"
    files_of "$fault"
  } | sort -u | sed '/^$/d')
  rm -rf "${work:?}"/{objects,bin,lib}
  mkdir -p "$work/objects" "$work/bin" "$work/lib"
  cp -P "$build"/lib/software_gpu/* "$work/lib/"
  ln -sf "$build"/bin/* "$work/bin/"
  if ((${#changed[@]} == 0)); then
    run_test "$fault.without" "$program" "$filter"
    if [[ $outcome != passes ]]; then
      outcome="$outcome without the fault too"
      return
    fi
  fi
  if patches "$fault"; then
    git -C "$tree" apply "$here/faults/$fault.patch"
  fi
  if [[ $(field "$fault" Plugin) == yes ]]; then
    make $plugin "$work/lib/libcommfuse_cuda.so" "$(field "$fault" Link)" "${sources[@]}"
  fi
  other=$(field "$fault" Program)
  for target in $other $program; do
    rm -f "$work/bin/$target"
    make "bin/$target" "$work/bin/$target" "" "${sources[@]}"
  done
  if patches "$fault"; then
    git -C "$tree" apply --reverse "$here/faults/$fault.patch"
    if [[ -z $is_compiled ]]; then
      outcome="not built"  # no program or plugin contains the patched files
      return
    fi
  fi
  run_test "$fault" "$program" "$filter"
}

run() {
  local bad=0 fault outcome start
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt")
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  logs=${LOGS:-$work/logs}
  mkdir -p "$logs"
  tree=$work/tree
  mkdir "$tree"
  (cd "$root" && git ls-files -z -- model validate sim reports tests | xargs -0 cp --parents -t "$tree" 2>/dev/null) || true
  git -C "$tree" init --quiet
  mkdir -p "$tree/model"
  changed=()
  if [[ $home != "$root" ]]; then
    mapfile -t changed < <(cd "$root" && git ls-files -- '*.cpp' '*.cu' | while read -r file; do
      cmp -s "$file" "$home/$file" || [[ ! -f $home/$file ]] || echo "$file"
    done)
  fi
  printf '%-4s %-88s %-9s %s\n' fault "test that must fail" outcome seconds
  local -a faults=("$@")
  (($# > 0)) || mapfile -t faults < <(names)
  for fault in "${faults[@]}"; do
    start=$SECONDS
    try "$fault"
    printf '%-4s %-88s %-9s %d\n' "$fault" "$(field "$fault" Test | cut -d' ' -f2)" "$outcome" $((SECONDS - start))
    [[ $outcome == fails || $outcome == hangs ]] || bad=1
  done
  exit "$bad"
}

case ${1:-} in
  check) check ;;
  run) shift && run "$@" ;;
  *) sed -n '3,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
esac
