#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: check.sh [TREE]: prints one line for each item of the checklist in docs/releasing.md: ok, FAILED with what to
# do, or "not checked" if the item needs a build that does not exist. Exits with 0 if this version can be released, 4
# if something remains to be done.
set -euo pipefail
tree=$(cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$tree"
version=$(sed -n 's/^project(commfuse VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || { printf 'CMakeLists.txt has no version such as 0.1.0\n' >&2 && exit 2; }
minor=${version%.*}
program=build/release/bin/commfuse-sim
notes=$("$here/notes.sh" "$version" "$tree") || notes=
failures=0

# item NAME COMMAND...: prints one line of the checklist. A command that fails prints on stdout what to do; exit code 77
# means that it could not check.
item() {
  local name=$1 message code=0
  message=$("${@:2}") || code=$?
  case $code in
    0) printf 'ok             %s\n' "$name" ;;
    77) printf 'not checked    %s: %s\n' "$name" "$message" ;;
    *)
      printf 'FAILED         %s: %s\n' "$name" "$message"
      failures=$((failures + 1))
      ;;
  esac
}

print_and_fail() {
  printf '%s' "$*"
  return 1
}

needs_build() {
  [[ -x $program ]] || { printf 'run ./dev build' && return 77; }
}

# The heading of the first section has this version and its date.
changelog_is_dated() {
  local heading
  heading=$(grep -m 1 '^## ' CHANGELOG.md)
  [[ $heading =~ ^"## $version, "[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] ||
    print_and_fail "CHANGELOG.md begins with '$heading'; write '## $version, $(date +%F)'"
}

changelog_has_its_headings() {
  local others
  others=$(grep '^### ' CHANGELOG.md | grep -vxE '### (Added|Changed|Deprecated|Removed|Fixed)' | paste -sd, || true)
  [[ -z $others ]] || print_and_fail "CHANGELOG.md has $others; use Added, Changed, Deprecated, Removed, Fixed" ||
    return 1
  grep -q '^### ' <<<"$notes" || print_and_fail "CHANGELOG.md has no ### Added or the like for $version"
}

model_version_is_stated() {
  local now
  now=$(sed -n 's/^inline constexpr int model_version = \([0-9]*\);/\1/p' model/record/model_version.h)
  grep -qiE "model version $now([^0-9]|$)" <<<"$notes" ||
    print_and_fail "CHANGELOG.md does not state model version $now"
}

# Rename{"before", "now", MAJOR, MINOR}: releases up to MAJOR.MINOR accept the name "before". The entry must be removed
# before the next release.
no_alias_is_too_old() {
  local before major_minor old=()
  while IFS=' ' read -r before major_minor; do
    [[ $(printf '%s\n' "$major_minor" "$minor" | sort -V | tail -n 1) == "$major_minor" ]] || old+=("$before")
  done < <(renames)
  ((${#old[@]} == 0)) || print_and_fail "remove from model/config/renames.cpp: ${old[*]}"
}

renames() {
  tr '\n' ' ' <model/config/renames.cpp | grep -oE 'Rename\{"[^}]*\}' |
    sed -E 's/Rename\{"([^"]*)", *"[^"]*", *([0-9]+), *([0-9]+)\}/\1 \2.\3/' || true
}

aliases_are_listed() {
  local before major_minor unlisted=()
  while IFS=' ' read -r before major_minor; do
    grep -qF -- "\`$before\`" <<<"$notes" || unlisted+=("$before")
  done < <(renames)
  ((${#unlisted[@]} == 0)) || print_and_fail "name under Deprecated in CHANGELOG.md: ${unlisted[*]}"
}

files_are_recorded() {
  local folder=tests/upgrade/$version
  [[ -s $folder/commands.tsv ]] ||
    print_and_fail "record this release's files: tests/upgrade/record.sh build/release/bin $folder" || return 1
  ! grep -q -- '-dirty"' "$folder/answers/version.json" ||
    print_and_fail "$folder was recorded from a changed tree; record it again"
}

# A removed schema, such as result/1 when result/2 is added, must be named in the changelog. Removing one also needs a
# new major version, or a new minor version before 1.0; this is not checked.
schemas_are_kept() {
  needs_build || return
  local last schema now gone=()
  now=$("$program" version -o json)
  last=$(find tests/upgrade -mindepth 2 -maxdepth 2 -name commands.tsv -path '*/[0-9]*.[0-9]*.[0-9]*/*' -printf '%h\n' |
    grep -v "/$version$" | sort -V | tail -n 1)
  [[ -n $last ]] || return 0
  while IFS= read -r schema; do
    grep -qF "\"$schema\"" <<<"$now" || grep -qF "$schema" <<<"$notes" || gone+=("$schema")
  done < <(grep -oE 'commfuse\.[a-z_]+/[0-9]+' "$last/answers/version.json" | sort -u)
  ((${#gone[@]} == 0)) || print_and_fail "name under Changed or Removed in CHANGELOG.md: ${gone[*]}"
}

program_is_of_this_version() {
  needs_build || return
  [[ $("$program" version) == "commfuse-sim $version ("* ]] ||
    print_and_fail "$program is of another version; run ./dev build"
}

python_has_the_version() {
  local file
  file=$(find python -maxdepth 2 -name pyproject.toml 2>/dev/null | head -n 1)
  [[ -n $file ]] || return 0
  ! grep -qE '^version *=' "$file" || grep -qE "^version *= *\"$version\"" "$file" ||
    print_and_fail "$file has another version; write $version"
}

packages_are_tried() {
  local kind suite
  [[ -d build/packages ]] || { printf 'run ./dev package --try' && return 77; }
  for kind in "commfuse_${version}_*.deb" "commfuse-mpi_${version}_*.deb" "commfuse-$version-linux-*.tar.gz"; do
    compgen -G "build/packages/$kind" >/dev/null ||
      print_and_fail "build/packages has no $kind; run ./dev package --try" || return 1
  done
  # ./dev package makes the folder anew, so the file lists where these packages were tried.
  for suite in bookworm jammy noble; do
    grep -qsx "$suite" build/packages/tried ||
      print_and_fail "the packages were not tried on $suite; run ./dev package --try" || return 1
  done
}

tree_is_clean() {
  [[ -z $(git status --porcelain) ]] || print_and_fail "commit or remove what git status shows"
}

tag_is_free() {
  local tagged
  tagged=$(git rev-parse -q --verify "refs/tags/v$version^{commit}" || true)
  [[ -z $tagged || $tagged == $(git rev-parse HEAD) ]] ||
    print_and_fail "v$version is another commit; raise VERSION in CMakeLists.txt"
}

page_names_the_checks() {
  local name missing=()
  while IFS= read -r name; do
    grep -qF "| $name |" docs/releasing.md || missing+=("$name")
  done < <(sed -n 's/^item "\([^"]*\)".*/\1/p' "$here/check.sh")
  ((${#missing[@]} == 0)) || print_and_fail "docs/releasing.md does not name: ${missing[*]}"
}

item "the changelog has this version and its date" changelog_is_dated
item "the changelog has the usual headings" changelog_has_its_headings
item "the changelog states the model version" model_version_is_stated
item "no former name has outlived its release" no_alias_is_too_old
item "former names are listed as deprecated" aliases_are_listed
item "files of this release are recorded" files_are_recorded
item "removed schemas are listed" schemas_are_kept
item "the program has this version" program_is_of_this_version
item "the Python module has this version" python_has_the_version
item "packages are made and tried" packages_are_tried
item "the tree is clean" tree_is_clean
item "the tag is free" tag_is_free
item "docs/releasing.md names these checks" page_names_the_checks
((failures == 0)) || { printf '%d items remain before %s\n' "$failures" "$version" && exit 4; }
printf '%s can be released: git tag v%s\n' "$version" "$version"
