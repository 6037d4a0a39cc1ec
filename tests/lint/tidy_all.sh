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
  local there=() file
  for file in "$@"; do
    [[ ! -f $file ]] || there+=("$file")
  done
  {
    printf '%s\n' "$rules"
    grep -F "$PWD/$1\"" "$build/compile_commands.json" || true
    sha256sum "${there[@]}"
  } | sha256sum | cut -d ' ' -f 1
}

# Prints clang-tidy's warnings about a source, or stores the checksum if there are none.
look_at() {
  local source=$1 sum=$2 said code=0
  said=$(clang-tidy-14 --quiet -p "$build" "$source" 2>&1) || code=$?
  said=$(grep -Ev '^[0-9]+ warnings? generated\.$' <<<"$said" | grep -v '^$') || true
  printf 'lint: %s\n' "$source" >&2
  if [[ $code != 0 || -n $said ]]; then
    printf '%s\n' "$said"
    return 1
  fi
  mkdir -p "$linted/$(dirname "$source")"
  printf '%s\n' "$sum" >"$linted/$source"
}

if [[ ${2:-} == --one ]]; then
  look_at "$3" "$4"
  exit
fi

rules=$(clang-tidy-14 --version && find . -maxdepth 3 -name .clang-tidy -not -path './build/*' | sort | xargs -r sha256sum)
left=() all=0
while read -ra files; do
  all=$((all + 1))
  sum=$(sum_of "${files[@]}")
  [[ $(cat "$linted/${files[0]}" 2>/dev/null) == "$sum" ]] || left+=("${files[0]}" "$sum")
done < <(sources_and_headers)
((all)) || { printf 'lint: %s names no source below %s\n' "$build/compile_commands.json" "$PWD" >&2; exit 2; }
printf 'lint: %d of %d sources to look at, the others are as they were\n' $((${#left[@]} / 2)) "$all" >&2
((${#left[@]})) || exit 0
printf '%s\n' "${left[@]}" | xargs -P "$(nproc)" -n 2 "${BASH_SOURCE[0]}" "$build" --one || exit 1
