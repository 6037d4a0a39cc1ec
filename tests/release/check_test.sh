#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: check_test.sh SOURCE: runs the release checklist on an invented tree that is ready, then with one thing wrong
# at a time. The checklist must name that thing and exit with 4.
set -euo pipefail
source=$1
command -v git >/dev/null || { printf 'skipped: git not found\n' && exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/commfuse-release-XXXXXX")
trap 'rm -rf "$work"' EXIT
tree=$work/tree

fail() {
  printf 'failed: %s\n' "$*" >&2
  exit 1
}

git_in_tree() { git -C "$tree" -c user.name=a -c user.email=a@localhost -c init.defaultBranch=main "$@"; }

commit() { git_in_tree add -A . && git_in_tree commit -qm "A change" --allow-empty; }

# Makes a tree of version 0.3.1 in which everything is done.
# shellcheck disable=SC2016 # names between backquotes
make_tree() {
  rm -rf "$tree"
  mkdir -p "$tree"/{model/config,model/record,docs,build/release/bin,build/packages,tests/upgrade/0.{2.0,3.1}/answers}
  cat >"$tree/CMakeLists.txt" <<<'project(commfuse VERSION 0.3.1 LANGUAGES CXX)'
  printf '%s\n' '# Changes' '' '## 0.3.1, 2027-02-01' '' '### Changed' '' '- Model version 17: a price.' '' \
    '### Deprecated' '' '- `tokens` is `seq`.' '' '## 0.2.0, 2026-12-01' '' '### Added' '' '- All.' >"$tree/CHANGELOG.md"
  printf 'constexpr std::array table{Rename{"tokens", "seq", 0, 3}};\n' >"$tree/model/config/renames.cpp"
  printf 'inline constexpr int model_version = 17;\n' >"$tree/model/record/model_version.h"
  printf '{"schemas": ["commfuse.sweep/1"], "git_revision": "0123"}\n' |
    tee "$tree"/tests/upgrade/0.{2.0,3.1}/answers/version.json >/dev/null
  printf 'wrote\n' | tee "$tree"/tests/upgrade/0.{2.0,3.1}/commands.tsv >/dev/null
  cat >"$tree/build/release/bin/commfuse-sim" <<'SH'
#!/bin/sh
[ "$2" = -o ] && echo '{"schemas": ["commfuse.sweep/1"]}' || echo 'commfuse-sim 0.3.1 (0123), model version 17'
SH
  chmod +x "$tree/build/release/bin/commfuse-sim"
  touch "$tree"/build/packages/{commfuse,commfuse-mpi}_0.3.1_amd64.deb \
    "$tree/build/packages/commfuse-0.3.1-linux-x86_64.tar.gz"
  printf '%s\n' bookworm jammy noble >"$tree/build/packages/tried"
  cp "$source/docs/releasing.md" "$tree/docs/"
  printf 'build\n' >"$tree/.gitignore"
  git_in_tree init -q
  commit
}

# refuses NAME: expects that this line of the checklist fails, and no other.
refuses() {
  local code=0
  "$source/tests/release/check.sh" "$tree" >"$work/output" || code=$?
  [[ $code == 4 ]] || fail "exit code $code when this must fail: $1"
  [[ $(grep '^FAILED' "$work/output" | sed -E 's/^FAILED +//; s/: .*//') == "$1" ]] ||
    fail "failed items differ from '$1': $(cat "$work/output")"
  make_tree
}

make_tree
"$source/tests/release/check.sh" "$tree" >"$work/output" || fail "a tree that is ready: $(cat "$work/output")"
grep -q '^0.3.1 can be released: git tag v0.3.1$' "$work/output" ||
  fail "no line says that 0.3.1 can be released: $(cat "$work/output")"
[[ $("$source/tests/release/notes.sh" 0.2.0 "$tree") == $'\n### Added\n\n- All.' ]] ||
  fail "the notes are of another version"
! "$source/tests/release/notes.sh" 0.2 "$tree" || fail "0.2 has notes"

sed -i 's/2027-02-01/not released/' "$tree/CHANGELOG.md" && commit
refuses 'the changelog has this version and its date'
sed -i 's/### Changed/### News/' "$tree/CHANGELOG.md" && commit
refuses 'the changelog has the usual headings'
sed -i 's/version 17: a price/version 16: a price/' "$tree/CHANGELOG.md" && commit
refuses 'the changelog states the model version'
sed -i 's/0, 3}/0, 2}/' "$tree/model/config/renames.cpp" && commit
refuses 'no former name has outlived its release'
sed -i 's/.tokens. is/it is/' "$tree/CHANGELOG.md" && commit
refuses 'former names are listed as deprecated'
rm "$tree/tests/upgrade/0.3.1/commands.tsv" && commit
refuses 'files of this release are recorded'
sed -i 's/0123/0123-dirty/' "$tree/tests/upgrade/0.3.1/answers/version.json" && commit
refuses 'files of this release are recorded'
sed -i 's#sweep/1#sweep/2#' "$tree/build/release/bin/commfuse-sim"
refuses 'removed schemas are listed'
sed -i 's/0\.3\.1 (/0.3.0 (/' "$tree/build/release/bin/commfuse-sim"
refuses 'the program has this version'
mkdir "$tree/python" && printf 'version = "0.3.0"\n' >"$tree/python/pyproject.toml" && commit
refuses 'the Python module has this version'
rm "$tree"/build/packages/*.tar.gz
refuses 'packages are made and tried'
rm "$tree/build/packages/tried"
refuses 'packages are made and tried'
sed -i /jammy/d "$tree/build/packages/tried"
refuses 'packages are made and tried'
printf 'more\n' >"$tree/notes.txt"
refuses 'the tree is clean'
git_in_tree tag v0.3.1 && commit
refuses 'the tag is free'
sed -i '/| the tree is clean |/d' "$tree/docs/releasing.md" && commit
refuses 'docs/releasing.md names these checks'
rm -rf "$tree/build"
"$source/tests/release/check.sh" "$tree" >"$work/output" || fail "without a build: $(cat "$work/output")"
[[ $(grep -c '^not checked' "$work/output") == 3 ]] || fail "three need a build: $(cat "$work/output")"
printf 'ok: every line of the checklist can fail\n'
