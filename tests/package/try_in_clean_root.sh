#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: try_in_clean_root.sh FOLDER: installs the packages in it in a minimal Debian root and uses them there. Exits with 77
# where no such root can be made.
set -euo pipefail
packages=$(cd "$1" && pwd)
# shellcheck source=tests/package/clean_root.sh
. "$(dirname "${BASH_SOURCE[0]}")/clean_root.sh"

require_debootstrap
root=$(mktemp -d "${TMPDIR:-/var/tmp}/commfuse-root-XXXXXX")
finish() {
  leave_root "$root"
  rm -rf --one-file-system "$root"
}
trap finish EXIT
make_root "$root" bookworm main
mkdir "$root/packages"
cp "$packages"/*.deb "$root/packages/"
enter_root "$root"

inside "$root" apt-get -q update
inside "$root" bash -c 'apt-get -q install -y --no-install-recommends /packages/commfuse_*.deb'
inside "$root" commfuse-sim version
inside "$root" commfuse-sim run --model llama-3.1-70b --hardware h100-sxm --seq 8K
inside "$root" commfuse-validate check --ranks 2 --scope mlp
inside "$root" bash -c 'test -s /usr/share/man/man1/commfuse-sim.1.gz -o -s /usr/share/man/man1/commfuse-sim.1'
inside "$root" bash -c 'apt-get -q purge -y commfuse && ! command -v commfuse-sim'
echo "installed, used and removed in a clean root"
