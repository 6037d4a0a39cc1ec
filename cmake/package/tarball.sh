#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tarball.sh BUILD SOURCE FOLDER: packs an installation of a build, with packed programs, as
# FOLDER/commfuse-VERSION-linux-MACHINE.tar.gz, which can be unpacked and run anywhere. Equal input yields equal bytes.
set -euo pipefail
build=$(cd "$1" && pwd)
source=$(cd "$2" && pwd)
folder=$(cd "$3" && pwd)
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
name=commfuse-$version-linux-$(uname -m)
stage=$build/portable/stage
rm -rf "$stage"
for component in runtime mpi; do
  cmake --install "$build" --component "$component" --prefix "$stage/$name" >/dev/null
done
for file in bin/commfuse-sim bin/commfuse-validate lib/commfuse/commfuse-mpi.so; do
  [[ ! -e $stage/$name/$file ]] || cp "$build/portable/$file" "$stage/$name/$file"
done
# Licences of the libraries in the programs.
licenses=$stage/$name/share/doc/commfuse/licenses
mkdir -p "$licenses"
for package in libtbb-dev libfmt-dev libyaml-cpp-dev libprotobuf-dev libpugixml-dev libsqlite3-dev libmd-dev \
  zlib1g-dev libcli11-dev libeigen3-dev nlohmann-json3-dev libtomlplusplus-dev libboost-graph-dev libstdc++6; do
  notice=$(readlink -f "/usr/share/doc/$package/copyright") || true
  [[ ! -f $notice ]] || cp "$notice" "$licenses/$package.txt"
done
stamp=$(git -C "$source" log -1 --format=%ct 2>/dev/null || stat -c %Y "$source/CHANGELOG.md")
tar --create --directory="$stage" --sort=name --mtime="@$stamp" --owner=0 --group=0 --numeric-owner \
  --mode='u+rwX,go+rX,go-w' "$name" | gzip -n9 >"$folder/$name.tar.gz"
rm -rf "$stage"
printf '%s\n' "$folder/$name.tar.gz"
