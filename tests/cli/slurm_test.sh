#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Slurm example of docs/sweeps.md, as it stands there, under a Slurm of one node that this starts and stops itself:
# an array of shards, then a merge that waits for it. What comes out is what one process leaves, byte for byte.
#   slurm_test.sh BIN_FOLDER SOURCE_FOLDER
# Exits with 77, and says why, where there is no Slurm or it does not start.
set -euo pipefail

bin=$1
source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/commfuse-slurm-XXXXXX")
daemons=()

finish() {
  local code=$? one
  for one in "${daemons[@]}"; do
    kill "$one" 2>/dev/null || true
  done
  wait
  [[ $code == 0 || $code == 77 ]] || tail -n 20 "$work"/*.log "$work"/run/*.log "$work"/run/slurm-*.out >&2 || true
  rm -rf "$work"
}
trap finish EXIT

skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}

fail() {
  printf 'failed: %s\n' "$*" >&2
  exit 1
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

# A port that nobody listens on, from where no daemon of the machine has its own.
free_port() {
  local port
  for ((port = 20000 + RANDOM % 10000; ; port++)); do
    if ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      printf '%s\n' "$port"
      return
    fi
  done
}

# One node that says it has 16 cores, so that two tasks of eight run at a time; no cgroups, no systemd, no accounting.
write_configuration() {
  local host
  host=$(hostname -s)
  cat >"$work/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=1000,sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
}

start_slurm() {
  local program
  PATH=$PATH:/usr/sbin:/sbin
  for program in munged slurmctld slurmd sbatch squeue sinfo; do
    command -v "$program" >/dev/null || skip "there is no $program; Debian has slurmctld, slurmd, slurm-client, munge"
  done
  mkdir "$work/state" "$work/spool"
  head -c 1024 /dev/urandom >"$work/munge.key"
  chmod 600 "$work/munge.key"
  write_configuration
  export SLURM_CONF=$work/slurm.conf
  munged --foreground --force --key-file="$work/munge.key" --socket="$work/munge.socket" --log-file="$work/munged.log" \
    --pid-file="$work/munged.pid" --seed-file="$work/munged.seed" >"$work/munged.out.log" 2>&1 &
  daemons+=("$!")
  wait_for 10 munge --no-input --socket="$work/munge.socket" || skip "munged does not start: $(tail -n 1 "$work/munged.out.log")"
  slurmctld -D >"$work/slurmctld.out.log" 2>&1 &
  daemons+=("$!")
  slurmd -D >"$work/slurmd.out.log" 2>&1 &
  daemons+=("$!")
  wait_for 30 is_idle || skip "Slurm does not start: $(tail -n 1 "$work/slurmctld.log" "$work/slurmd.log" | tr '\n' ' ')"
}

is_idle() { sinfo --noheader --format=%T | grep -qx idle; }
is_done() { [[ -z $(squeue --noheader) ]]; }

# The block of the page's section on Slurm that begins with the words, without the "$ " of commands.
example() {
  awk -v wanted="$1" '
    /^### / { inside = $2 == "Slurm" }
    /^```/ { if (inside && index(block, wanted) == 1) printf "%s", block; block = ""; next }
    { sub(/^[$] /, ""); block = block $0 "\n" }' "$source/docs/sweeps.md"
}

sweep_file() {
  cat <<'YAML'
schema: commfuse.sweep/1
title: under Slurm
set: {model: llama-3.1-8b, strategy: {name: [serial, commfuse]}, jitter: default, samples: 16}
axes:
  - ranks: [2, 4, 8]
  - seq: 1K..32K+1K
outputs: [csv, json, map]
YAML
}

start_slurm
mkdir "$work/run"
cd "$work/run"
export PATH=$bin:$PATH COMMFUSE_CONFIG_DIR=$source/configs
sweep_file >mine.yaml
example '#!/bin/bash' >sweep.sbatch
# shellcheck disable=SC2016  # as it stands on the page
example 'jobid=$(sbatch' >submit.sh
[[ -s sweep.sbatch && -s submit.sh ]] || fail "docs/sweeps.md has no example for Slurm any more"
grep -q -- '--shard auto' sweep.sbatch || fail "the example leaves it to the user which shard it is"

bash -e submit.sh
wait_for 120 is_done || fail "the jobs did not end: $(squeue)"
commfuse-sim sweep mine.yaml --out out/one --progress none >/dev/null

[[ $(find out/big -name 'shard-*-of-8.sqlite' | wc -l) == 8 ]] || fail "there are not eight shards: $(ls out/big)"
for name in results.csv results.json map.csv crossovers.csv map.json settings.yaml; do
  [[ -s out/one/$name ]] || fail "one process left no $name"
  cmp "out/one/$name" "out/big/$name" || fail "$name is not what one process leaves"
done
printf 'ok: eight tasks of an array and a merge left the bytes of one process\n'
