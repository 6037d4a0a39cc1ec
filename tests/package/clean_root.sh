# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by scripts that test something in a separate minimal Debian or Ubuntu root. These scripts exit with 77 if no
# root can be made.

skip() {
  echo "not tried: $*" >&2
  exit 77
}

require_debootstrap() {
  ((EUID == 0)) || skip "making a root needs root privileges"
  command -v debootstrap >/dev/null || skip "debootstrap is missing; apt-get install debootstrap"
}

is_of_ubuntu() { [[ $1 == jammy || $1 == noble ]]; }

# mirror SUITE: prints this machine's mirror if it has the distribution; otherwise prints nothing, and debootstrap uses
# its default.
mirror() {
  local known distribution=debian
  ! is_of_ubuntu "$1" || distribution=ubuntu
  known=$(awk '/^URIs:/ {print $2; exit} $1 == "deb" {print $2; exit}' /etc/apt/sources.list.d/debian.sources \
    /etc/apt/sources.list.d/ubuntu.sources /etc/apt/sources.list 2>/dev/null || true)
  [[ $known != *"$distribution"* ]] || printf '%s\n' "$known"
}

# make_root FOLDER SUITE COMPONENTS: makes a minimal root with this machine's certificates and apt settings. If Ubuntu's
# keys are not installed, signatures of an Ubuntu root are not checked. Debian's debootstrap lacks scripts for the
# newest Ubuntu suites, so these use the script of jammy.
make_root() {
  local root=$1 suite=$2 components=$3 options=() from keys=/usr/share/keyrings/ubuntu-archive-keyring.gpg
  export DEBOOTSTRAP_DIR=/usr/share/debootstrap
  if is_of_ubuntu "$suite"; then
    [[ -e $keys ]] && options=("--keyring=$keys") || options=(--no-check-gpg)
  fi
  if [[ ! -e $DEBOOTSTRAP_DIR/scripts/$suite ]]; then
    cp -a "$DEBOOTSTRAP_DIR" "$root.scripts"
    export DEBOOTSTRAP_DIR=$root.scripts
    ln -s jammy "$DEBOOTSTRAP_DIR/scripts/$suite"
  fi
  mapfile -t from < <(mirror "$suite")
  debootstrap "${options[@]}" --variant=minbase --include=ca-certificates --components="$components" "$suite" "$root" \
    "${from[@]}" >"$root.log" 2>&1 || { tail -n 3 "$root.log" >&2 && skip "debootstrap failed"; }
  rm -rf "$root.scripts"
  rm -f "$root.log"
  cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
  cp -a /etc/ssl/certs/. "$root/etc/ssl/certs/" 2>/dev/null || true
}

# Provides what programs in the root expect of a running system: name servers, and /proc until leave_root.
enter_root() {
  cp -L /etc/resolv.conf "$1/etc/resolv.conf" 2>/dev/null || true
  mount -t proc proc "$1/proc"
}

leave_root() {
  mountpoint -q "$1/proc" && umount "$1/proc"
  true
}

# inside ROOT COMMAND...: runs a command in the root with an empty environment, except for proxies.
inside() {
  local proxies
  mapfile -t proxies < <(env | grep -iE '^(https?|no)_proxy=' || true)
  env -i "${proxies[@]}" HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    chroot "$1" "${@:2}"
}
