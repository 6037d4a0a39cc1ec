#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests, under a Slurm of one node that this script starts and stops:
# - the example of docs/sweeps.md as written there: an array of shards, then a merge that waits for it. The result
#   equals that of one process, byte for byte.
# - a task of a longer sweep, killed while it works and requeued: it continues from its stored points, and the merge
#   writes the bytes of one process.
# - docs/examples/nodes: its script is the Prolog of every job and accepts jobs; its batch script checks the node;
#   and when a port of the node's planted /sys goes down, the Prolog drains the node and names the bad check.
#   slurm_test.sh BIN_FOLDER SOURCE_FOLDER
# Exits with 77, and prints why, if there is no Slurm or it does not start.
set -euo pipefail

bin=$1
source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/commfuse-slurm-XXXXXX")
daemons=()

finish() {
  local code=$? daemon
  for daemon in "${daemons[@]}"; do
    kill "$daemon" 2>/dev/null || true
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

# wait_for SECONDS COMMAND...: waits until the command succeeds.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

# Prints a port without a listener, outside the ports of the machine's daemons.
free_port() {
  local port
  for ((port = 20000 + RANDOM % 10000; ; port++)); do
    if ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      printf '%s\n' "$port"
      return
    fi
  done
}

# One node that claims 16 cores, so that two tasks of eight run at a time; no cgroups, no systemd, no accounting.
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
Prolog=$work/slurm/slurm-node-check.sh
PrologFlags=Alloc
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=1000,sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
}

# A node with one RDMA port, and the script of the examples with settings that point it to this node.
plant_node() {
  local port=$work/node/sys/class/infiniband/mlx5_0/ports/1
  mkdir -p "$port" "$work/node/proc" "$work/slurm"
  printf '400 Gb/sec (4X NDR)\n' >"$port/rate"
  set_port '4: ACTIVE' '5: LinkUp'
  cp "$source/docs/examples/nodes/slurm-node-check.sh" "$work/slurm/"
  cat >"$work/slurm/node-check.conf" <<CONF
PATH=$bin:\$PATH
root=$work/node
log_folder=$work/health
export SLURM_CONF=$work/slurm.conf
CONF
}

# set_port STATE PHYSICAL_STATE: sets the state of the node's RDMA port.
set_port() {
  local port=$work/node/sys/class/infiniband/mlx5_0/ports/1
  printf '%s\n' "$1" >"$port/state"
  printf '%s\n' "$2" >"$port/phys_state"
}

start_slurm() {
  local program
  PATH=$PATH:/usr/sbin:/sbin
  for program in munged slurmctld slurmd sbatch squeue sinfo; do
    command -v "$program" >/dev/null || skip "$program not found; Debian has slurmctld, slurmd, slurm-client, munge"
  done
  mkdir "$work/state" "$work/spool"
  head -c 1024 /dev/urandom >"$work/munge.key"
  chmod 600 "$work/munge.key"
  plant_node
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

is_drained() { sinfo --noheader --format=%T | grep -q drain; }
is_idle() { sinfo --noheader --format=%T | grep -qx idle; }
is_done() { [[ -z $(squeue --noheader) ]]; }

# example START: prints the code block of docs/sweeps.md, section Slurm, that begins with START, without the "$ " of
# commands.
example() {
  awk -v wanted="$1" '
    /^### / { inside = $2 == "Slurm" }
    /^```/ { if (inside && index(block, wanted) == 1) printf "%s", block; block = ""; next }
    { sub(/^[$] /, ""); block = block $0 "\n" }' "$source/docs/sweeps.md"
}

# sweep_file SAMPLES: prints a sweep file with this number of samples.
sweep_file() {
  cat <<YAML
schema: commfuse.sweep/1
title: under Slurm
set: {model: llama-3.1-8b, strategy: {name: [serial, commfuse]}, jitter: default, samples: $1}
axes:
  - ranks: [2, 4, 8]
  - seq: 1K..32K+1K
outputs: [csv, json, map]
YAML
}

expect_same_bytes() {
  local name
  for name in results.csv results.json map.csv crossovers.csv map.json settings.yaml; do
    [[ -s $1/$name ]] || fail "one process wrote no $name"
    cmp "$1/$name" "$2/$name" || fail "$name differs from the file of one process"
  done
}

# Prints the number of points in a shard's store: 0 if there is no store yet.
points_in() {
  commfuse-sim results "$1" --columns point -o csv 2>/dev/null | tail -n +2 | sort -u | wc -l
}

# A store with only its tables has 32 KiB. No other process may open it while the task uses it.
has_stored_points() { (($(stat -c %s "$1") > 40000)); }
has_failed() { scontrol show job "$1" | grep -q 'JobState=FAILED'; }

start_slurm
mkdir "$work/run"
cd "$work/run"
export PATH=$bin:$PATH COMMFUSE_CONFIG_DIR=$source/configs
sweep_file 16 >mine.yaml
example '#!/bin/bash' >sweep.sbatch
# shellcheck disable=SC2016  # as on the page
example 'jobid=$(sbatch' >submit.sh
[[ -s sweep.sbatch && -s submit.sh ]] || fail "docs/sweeps.md has no example for Slurm any more"
grep -q -- '--shard auto' sweep.sbatch || fail "the example does not choose its shard automatically"

bash -e submit.sh
wait_for 120 is_done || fail "the jobs did not finish: $(squeue)"
commfuse-sim sweep mine.yaml --out out/one --progress none >/dev/null

[[ $(find out/big -name 'shard-*-of-8.sqlite' | wc -l) == 8 ]] || fail "there are not eight shards: $(ls out/big)"
expect_same_bytes out/one out/big
printf 'ok: eight tasks of an array and a merge wrote the same bytes as one process\n'

# Kills a task while it works, as if its node were lost, and requeues it. Each point takes a tenth of a second.
sweep_file 100000 >long.yaml
sed 's/mine\.yaml/long.yaml/; s#out/big#out/killed#; s/--array=1-8/--array=1-3/' sweep.sbatch >killed.sbatch
shard=out/killed/shard-1-of-3.sqlite
job=$(sbatch --parsable killed.sbatch)
wait_for 60 has_stored_points "$shard" || fail "the first task stored nothing: $(squeue)"
task=$(scontrol show job "${job}_1" | sed -n 's/^JobId=\([0-9]*\).*/\1/p') # the job id of the task, which scancel requires
scancel --signal=KILL --batch "$task"
wait_for 60 has_failed "$task" || fail "the killed task did not fail: $(scontrol show job "$task")"
stored=$(points_in "$shard")
((stored >= 1 && stored < 32)) || fail "$stored of 32 points were stored before the task was killed"
scontrol requeue "$task"
scontrol update job "$task" StartTime=now # Slurm would wait two minutes
wait_for 240 is_done || fail "the requeued task did not finish: $(squeue)"
[[ $(points_in "$shard") == 32 ]] || fail "the requeued task stored $(points_in "$shard") of 32 points"
remaining=$((32 - stored))
grep -q "^$remaining of $remaining points" "slurm-${job}_1.out" ||
  fail "the number of remaining points is not $remaining: $(cat "slurm-${job}_1.out")"
sbatch --wrap "commfuse-sim merge out/killed" >/dev/null
wait_for 60 is_done || fail "the merge did not finish: $(squeue)"
commfuse-sim sweep long.yaml --out out/whole --progress none >/dev/null
expect_same_bytes out/whole out/killed
printf 'ok: a task killed after %d of 32 points continued when it was requeued, and wrote the same bytes\n' "$stored"

# The Prolog has checked the node before each of these jobs.
grep -q '^rdma       ok       active: 1 port at 400 Gb/sec' "$work/health/node-check.txt" ||
  fail "the Prolog did not check the node"

sbatch --nodes=1 --output=check-nodes.txt "$source/docs/examples/nodes/check-nodes.sbatch" >/dev/null
wait_for 60 is_done || fail "the check did not finish: $(squeue)"
grep -q '^check      status   found$' check-nodes.txt || fail "the check printed no table: $(cat check-nodes.txt)"

set_port '1: DOWN' '2: Polling'
sbatch --output=never.txt --wrap 'echo this job must not run' >/dev/null
wait_for 60 is_drained || fail "the Prolog did not drain the node: $(cat "$work/health/node-check.txt")"
[[ $(sinfo --noheader --list-reasons --format=%E) == 'commfuse: rdma' ]] || fail "the reason is $(sinfo --list-reasons)"
[[ ! -e never.txt ]] || fail "the job ran on a bad node"
printf 'ok: the Prolog accepted jobs on a healthy node and drained a bad one\n'
