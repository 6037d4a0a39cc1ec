#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the page from a checkout. `build_engine.sh SOURCE BUILD` fetches the libraries that Debian has only compiled
# for native machines, compiles the engine to WebAssembly, and joins the page, BUILD/commfuse.html. The first build
# takes minutes.
set -euo pipefail
source=$(cd "$1" && pwd)
mkdir -p "$2"
build=$(cd "$2" && pwd)
export NODE_PATH=/usr/share/nodejs # folder in which Debian keeps what Emscripten's scripts need

"$source/cmake/package/fetch_sources.sh" "$build/sources" yaml-cpp pugixml libmd
emcmake cmake -S "$source" -B "$build" -G Ninja -D CMAKE_BUILD_TYPE=Release \
  -D CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=16 >"$build/configure.log" 2>&1 || {
  cat "$build/configure.log" >&2
  exit 1
}
cmake --build "$build" -j "$(nproc)" --target commfuse-page-engine >&2
node "$source/page/build.mjs" "$build/bin/engine.wasm" "$build/bin/engine.js" "$build/commfuse.html"
printf 'page: the page is %s (%s KB)\n' "$build/commfuse.html" "$(($(wc -c <"$build/commfuse.html") / 1000))" >&2
