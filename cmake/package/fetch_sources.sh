#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: fetch_sources.sh FOLDER PACKAGE[=VERSION]...: unpacks sources of the distribution into FOLDER with apt, from
# the archive of the installed packages, whether or not the machine's apt lists sources. Does nothing if FOLDER already
# has the sources of these packages; otherwise deletes what FOLDER has.
set -euo pipefail
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
wanted="$*"
[[ ! -e $folder/.ready || $(<"$folder/.ready") != "$wanted" ]] || exit 0
command -v dpkg-source >/dev/null || {
  printf 'no dpkg-source: this is neither Debian nor Ubuntu, or dpkg-dev is missing\n' >&2
  exit 1
}
printf 'fetching the sources of %s\n' "$wanted" >&2
rm -rf "$folder"
mkdir -p "$folder/lists/partial"
os_release() { sed -n "s/^$1=//p" /etc/os-release | tr -d '"'; }
distribution=$(os_release ID)
suite=$(os_release VERSION_CODENAME)
components='main universe'
default_mirror=http://archive.ubuntu.com/ubuntu
if [[ $distribution == debian ]]; then
  components=main
  default_mirror=http://deb.debian.org/debian
fi
# The machine's apt may list archives of other origins first.
# shellcheck disable=SC2016 # apt expands it
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Origin: ${distribution^}" \
  "Codename: $suite" | sed -n 1p)
for pocket in "$suite" "$suite-updates"; do
  printf 'deb-src %s %s %s\n' "${mirror:-$default_mirror}" "$pocket" "$components"
done >"$folder/sources.list"
apt=(-o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o "Dir::State::lists=$folder/lists" -o APT::Sandbox::User=root)
apt-get "${apt[@]}" update -q >/dev/null
cd "$folder"
apt-get "${apt[@]}" source -qq --download-only "$@" >/dev/null
for description in *.dsc; do
  dpkg-source --no-check -x "$description" >/dev/null
done
printf '%s\n' "$wanted" >"$folder/.ready"
