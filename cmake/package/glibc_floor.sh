#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: glibc_floor.sh VERSION [--also LIBRARY]... FILE...: fails if a program or library needs a symbol of a glibc
# that is newer than VERSION, or a library other than the C library, libgcc_s and those named with --also.
set -euo pipefail
floor=$1
shift
allowed=(libc.so.6 libm.so.6 ld-linux- libgcc_s.so.1)
bad=0
while (($#)); do
  if [[ $1 == --also ]]; then
    allowed+=("$2")
    shift 2
    continue
  fi
  file=$1
  shift
  symbols=$(objdump -T "$file") # fails if the file is neither a program nor a library
  newest=$(grep -oE 'GLIBC_[0-9.]+' <<<"$symbols" | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
  if [[ $(printf '%s\n' "$newest" "$floor" | sort -V | tail -n 1) != "$floor" ]]; then
    printf '%s needs glibc %s, which is newer than %s; build on an older system, or set COMMFUSE_GLIBC_FLOOR:\n' \
      "$file" "$newest" "$floor" >&2
    grep -F "GLIBC_$newest)" <<<"$symbols" | awk '{ print "  " $NF }' >&2
    bad=1
  fi
  while read -r library; do
    known=0
    for name in "${allowed[@]}"; do
      [[ $library != "$name"* ]] || known=1
    done
    ((known)) || { printf '%s needs %s\n' "$file" "$library" >&2 && bad=1; }
  done < <(objdump -p "$file" | awk '$1 == "NEEDED" { print $2 }')
  ((bad)) || printf '%s: needs glibc %s\n' "$file" "$newest"
done
exit "$bad"
