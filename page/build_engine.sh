#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The page from a checkout: `build_engine.sh SOURCE BUILD` fetches what Debian has only compiled for its own machines,
# compiles the engine to WebAssembly and joins the page, BUILD/commfuse.html. Takes minutes the first time.
set -euo pipefail
source=$(cd "$1" && pwd)
mkdir -p "$2"
build=$(cd "$2" && pwd)
export NODE_PATH=/usr/share/nodejs # where Debian keeps what Emscripten's scripts need

# Sources by apt, from the archive that packages come from, whether or not the machine lists its sources.
fetch_sources() {
  local sources=$1 mirror suite
  mkdir -p "$sources/lists/partial"
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
  suite=$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")
  printf 'deb-src %s %s main universe\n' "${mirror:-http://deb.debian.org/debian}" "$suite" >"$sources/sources.list"
  [[ $(. /etc/os-release && printf '%s' "$ID") != debian ]] || sed -i 's/ universe$//' "$sources/sources.list"
  local apt=(-o "Dir::Etc::sourcelist=$sources/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$sources/lists" -o APT::Sandbox::User=root)
  apt-get "${apt[@]}" update -q >/dev/null
  (cd "$sources" && apt-get "${apt[@]}" source -qq --download-only yaml-cpp pugixml libmd >/dev/null &&
    for description in *.dsc; do dpkg-source --no-check -x "$description" >/dev/null; done)
}

if [[ ! -e $build/sources/.ready ]]; then
  rm -rf "$build/sources"
  printf 'page: fetching the sources of yaml-cpp, pugixml and libmd\n' >&2
  fetch_sources "$build/sources"
  touch "$build/sources/.ready"
fi
emcmake cmake -S "$source" -B "$build" -G Ninja -D CMAKE_BUILD_TYPE=Release >"$build/configure.log" 2>&1 || {
  cat "$build/configure.log" >&2
  exit 1
}
cmake --build "$build" -j "$(nproc)" --target commfuse-page-engine >&2
node "$source/page/build.mjs" "$build/bin/engine.wasm" "$build/bin/engine.js" "$build/commfuse.html"
printf 'page: the page is %s (%s KB)\n' "$build/commfuse.html" "$(($(wc -c <"$build/commfuse.html") / 1000))" >&2
