#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: sources_test.sh SOURCE: tests with a fake apt that fetch_sources.sh uses the archive of the distribution, even
# if an archive of another origin is listed first, and the usual archive if apt knows none. Exits with 77 on systems
# other than Debian and Ubuntu.
set -euo pipefail
source=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/commfuse-sources-XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() {
  printf 'failed: %s\n' "$*" >&2
  exit 1
}

grep -qE '^ID="?(debian|ubuntu)"?$' /etc/os-release || { printf 'skipped: neither Debian nor Ubuntu\n' && exit 77; }
mkdir "$work/bin"
cat >"$work/bin/apt-get" <<'FAKE'
#!/bin/sh
case "$*" in
*indextargets*Origin:*Codename:*) [ -z "$FAKE_MIRROR" ] || printf '%s\nhttp://security.example/\n' "$FAKE_MIRROR" ;;
*indextargets*) printf 'http://other.example/\n' ;;
*--download-only*) touch fake.dsc ;;
esac
FAKE
printf '#!/bin/sh\n' >"$work/bin/dpkg-source"
chmod +x "$work/bin/apt-get" "$work/bin/dpkg-source"

# archives MIRROR: prints the archives that fetch_sources.sh uses if apt knows this mirror.
archives() {
  PATH=$work/bin:$PATH FAKE_MIRROR=$1 "$source/cmake/package/fetch_sources.sh" "$work/fetched" "package=$RANDOM" 2>/dev/null
  awk '$1 == "deb-src" { print $2 }' "$work/fetched/sources.list" | sort -u
}

known=$(archives http://mirror.example/)
[[ $known == http://mirror.example/ ]] || fail "the archives are '$known', not the distribution's"
usual=$(archives '')
[[ $usual =~ ^http://(deb\.debian\.org/debian|archive\.ubuntu\.com/ubuntu)$ ]] || fail "the archives are '$usual'"
printf 'ok: sources of the distribution\n'
