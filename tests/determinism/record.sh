#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the answers of commfuse-sim, one file per command, so that builds before and after a change can be compared:
# the answers to commands.txt, the digests of all schedules on 2, 4 and 8 ranks, a store as rows, and the answers for
# shipped files.
#   usage: record.sh PROGRAM FOLDER     then: diff -r FOLDER_BEFORE FOLDER_AFTER
set -euo pipefail
program=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
cd "$here/../.."
export COMMFUSE_CONFIG_DIR=configs
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# record NAME WORD...: records the answer and the exit status, with OUT in place of the scratch folder's name.
record() {
  local name=$1 status=0
  shift
  "$program" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
  { cat "$scratch/out"; echo "exit $status"; } | sed "s|$scratch|OUT|g" >"$folder/$name"
}

number=0
while read -r line; do
  number=$((number + 1))
  read -ra words <<<"${line//OUT/$scratch/out.d}"
  rm -rf "$scratch/out.d"
  mkdir "$scratch/out.d"
  record "command-$(printf %02d "$number")" "${words[@]}"
  find "$scratch/out.d" -type f \( -name '*.csv' -o -name '*.yaml' \) | sort | xargs -r cat >>"$folder/command-$(printf %02d "$number")"
done <"$here/commands.txt"

for scope in qkv out_proj gate_up down attention mlp layer qkv_backward out_proj_backward gate_up_backward \
  down_backward mlp_ar ulysses fsdp_gate_up data_parallel; do
  record "digests-$scope" run --scope "$scope" --hardware dgx-h100-x2 --axis ranks=2,4,8 --seq 8K --strategy all \
    --variants all --uncertainty off -o csv
done

record store-made sweep configs/sweeps/crossover.yaml --out "$scratch/store"
record store-rows results "$scratch/store" -o csv
record store-best best "$scratch/store" -o csv
record store-report report "$scratch/store" --out "$scratch/report.html"
cat "$scratch/report.html" >>"$folder/store-report"

for file in configs/hardware/*.yaml configs/clusters/*.yaml; do
  name=$(basename "$file" .yaml)
  record "show-$name" config show --hardware "$file"
  record "machine-$name" run --hardware "$file" --ranks 2 --seq 4K --strategy all -o json
done
for file in configs/models/*.yaml; do
  name=$(basename "$file" .yaml)
  record "show-$name" config show --model "$file"
  record "model-$name" run --scope prefill --ranks 1 --model "$file" --seq 2K -o json
done
for file in configs/jitter/*.yaml configs/faults/*.yaml; do
  kind=$(basename "$(dirname "$file")")
  record "show-$kind-$(basename "$file" .yaml)" config show "--$kind" "$file"
done
for file in configs/sweeps/paper*.yaml configs/sweeps/training-plans.yaml; do
  name=$(basename "$file" .yaml)
  record "sweep-$name" sweep "$file" --out "$scratch/$name" -o csv
done
for file in configs/plans/*.yaml; do
  record "plan-$(basename "$file" .yaml)" plan "$file" -o json
done
for file in configs/schedules/*.yaml; do
  record "schedule-$(basename "$file" .yaml)" schedule show "$file" -o yaml
done
record schema schema
record settings config explain
