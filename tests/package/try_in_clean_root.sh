#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: try_in_clean_root.sh FOLDER: installs the packages in it in a minimal Debian root and uses them there. Exits with 77
# where no such root can be made.
set -euo pipefail
packages=$(cd "$1" && pwd)

skip() {
  echo "not tried: $*" >&2
  exit 77
}
((EUID == 0)) || skip "a root needs root"
command -v debootstrap >/dev/null || skip "debootstrap is missing; apt-get install debootstrap"

root=$(mktemp -d "${TMPDIR:-/var/tmp}/commfuse-root-XXXXXX")
finish() {
  mountpoint -q "$root/proc" && umount "$root/proc"
  rm -rf --one-file-system "$root"
}
trap finish EXIT
# This machine's own mirror where it is a Debian, its proxies and certificates.
mirror=$(awk '/^URIs:/ {print $2; exit} $1 == "deb" {print $2; exit}' /etc/apt/sources.list.d/debian.sources \
  /etc/apt/sources.list 2>/dev/null || true)
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "${mirror:-http://deb.debian.org/debian}" \
  >"$root.log" 2>&1 ||
  { tail -n 3 "$root.log" >&2 && skip "debootstrap failed"; }
rm -f "$root.log"
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
cp -a /etc/ssl/certs/. "$root/etc/ssl/certs/" 2>/dev/null || true
mapfile -t proxies < <(env | grep -iE '^(https?|no)_proxy=' || true)
mkdir "$root/packages"
cp "$packages"/*.deb "$root/packages/"
mount -t proc proc "$root/proc"

inside() { env -i "${proxies[@]}" HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
  DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }
inside apt-get -q update
inside bash -c 'apt-get -q install -y --no-install-recommends /packages/commfuse_*.deb'
inside commfuse-sim version
inside commfuse-sim run --model llama-3.1-70b --hardware h100-sxm --seq 8K
inside commfuse-validate check --ranks 2 --scope mlp
inside bash -c 'test -s /usr/share/man/man1/commfuse-sim.1.gz -o -s /usr/share/man/man1/commfuse-sim.1'
inside bash -c 'apt-get -q purge -y commfuse && ! command -v commfuse-sim'
echo "installed, used and removed in a clean root"
