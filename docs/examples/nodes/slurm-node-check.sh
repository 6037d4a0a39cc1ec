#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Keeps jobs off bad nodes. In slurm.conf, with this file on every node:
#
#   Prolog=/etc/slurm/slurm-node-check.sh      before a job: a bad node is drained, and the job waits for another
#   PrologFlags=Alloc                          checks when a node is allocated, not when its first step begins
#   Epilog=/etc/slurm/slurm-node-check.sh      after a job: finds what it left behind
#   HealthCheckProgram=/etc/slurm/slurm-node-check.sh
#   HealthCheckInterval=600                    and every ten minutes
#
# Exits with 1 if a check is bad, otherwise with 0: a checker that is missing or does not finish drains nothing.
# node-check.conf next to this file can change the settings below.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin # Slurm sets none

checker=commfuse-validate
root=/
skip=timer,cuda,nccl,mpi,configs # checks that are slow or create a context on a GPU
log_folder=/var/log/commfuse
seconds=60
# shellcheck source=/dev/null
[[ ! -r ${BASH_SOURCE[0]%/*}/node-check.conf ]] || . "${BASH_SOURCE[0]%/*}/node-check.conf"

mkdir -p "$log_folder" || exit 0
log=$log_folder/node-check.txt
timeout "$seconds" "$checker" doctor --fail-on bad --root "$root" --skip "$skip" >"$log.new.$$" 2>&1
code=$?
mv -f "$log.new.$$" "$log"
[[ $code == 4 ]] || exit 0

# The names of bad checks, each once: "gdr rdma". Slurm's own reason would be "Prolog error".
bad=$(awk '$2 == "bad" { print $1 }' "$log" | sort -u | paste -sd ' ')
printf 'commfuse: bad on %s: %s; see %s\n' "$(hostname -s)" "$bad" "$log" >&2
timeout 10 scontrol update NodeName="${SLURMD_NODENAME:-$(hostname -s)}" State=DRAIN Reason="commfuse: $bad" || true
exit 1
