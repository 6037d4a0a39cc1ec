#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy on every source of ours in the current folder, on all cores. A source without warnings is checked
# again only when it, a header of ours that it includes, its command or the rules change, so an interrupted run can be
# resumed.
#   usage: tidy_all.sh BUILD_FOLDER
# Keeps a checksum for each source in BUILD_FOLDER/linted. Exits with 1 if there is a warning, 2 if BUILD_FOLDER lists
# no source.
set -euo pipefail
build=$(realpath "$1")
linted=$build/linted

# Prints lines of "source header header ...": each source and our headers below it, at any depth.
sources_and_headers() {
  {
    grep -o '"file": "[^"]*"' "$build/compile_commands.json" | cut -d '"' -f 4 | sed "s|^$PWD/||" |
      grep -E '^(model|sim|validate|reports|tests|bench)/.*\.cpp$' | sort -u
    grep -rHo --include='*.cpp' --include='*.h' '^#include "[^"]*"' model sim validate reports tests bench 2>/dev/null |
      sed 's/:#include "/ /; s/"$//'
  } | awk '
    NF == 1 { sources[++count] = $1 }
    NF == 2 { includes[$1] = includes[$1] " " $2 }
    function walk(file, parts, n, i) {
      n = split(includes[file], parts, " ")
      for (i = 1; i <= n; ++i) {
        if (parts[i] in seen) continue
        seen[parts[i]] = 1
        line = line " " parts[i]
        walk(parts[i])
      }
    }
    END {
      for (at = 1; at <= count; ++at) {
        split("", seen)
        line = sources[at]
        walk(sources[at])
        print line
      }
    }'
}

# Prints one checksum of everything on which the result for a source depends. Generated headers may not exist yet.
sum_of() {
  local existing=() file
  for file in "$@"; do
    [[ ! -f $file ]] || existing+=("$file")
  done
  {
    printf '%s\n' "$rules"
    grep -F "$PWD/$1\"" "$build/compile_commands.json" || true
    sha256sum "${existing[@]}"
  } | sha256sum | cut -d ' ' -f 1
}

# check_source SOURCE CHECKSUM: prints clang-tidy's warnings about a source, or stores the checksum if there are none.
check_source() {
  local source=$1 sum=$2 warnings code=0
  warnings=$(clang-tidy-14 --quiet -p "$build" "$source" 2>&1) || code=$?
  warnings=$(grep -Ev '^[0-9]+ warnings? generated\.$' <<<"$warnings" | grep -v '^$') || true
  printf 'lint: %s\n' "$source" >&2
  if [[ $code != 0 || -n $warnings ]]; then
    printf '%s\n' "$warnings"
    return 1
  fi
  mkdir -p "$linted/$(dirname "$source")"
  printf '%s\n' "$sum" >"$linted/$source"
}

if [[ ${2:-} == --one ]]; then
  check_source "$3" "$4"
  exit
fi

rules=$(clang-tidy-14 --version && find . -maxdepth 3 -name .clang-tidy -not -path './build/*' | sort | xargs -r sha256sum)
stale=() count=0
while read -ra files; do
  count=$((count + 1))
  sum=$(sum_of "${files[@]}")
  [[ $(cat "$linted/${files[0]}" 2>/dev/null) == "$sum" ]] || stale+=("${files[0]}" "$sum")
done < <(sources_and_headers)
((count)) || { printf 'lint: %s names no source below %s\n' "$build/compile_commands.json" "$PWD" >&2; exit 2; }
printf 'lint: %d of %d sources to check; the others are unchanged\n' $((${#stale[@]} / 2)) "$count" >&2
((${#stale[@]})) || exit 0
printf '%s\n' "${stale[@]}" | xargs -P "$(nproc)" -n 2 "${BASH_SOURCE[0]}" "$build" --one || exit 1
