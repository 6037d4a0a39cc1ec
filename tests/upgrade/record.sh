#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: record.sh BIN_FOLDER FOLDER: the programs in BIN_FOLDER write one file of each format into FOLDER, which must
# not exist. commands.tsv there lists how each file was written, and the commands that read it.
# tests/cli/upgrade_releases_test.cpp tests later builds with these files. A release adds a folder for its version
# (docs/releasing.md):
#   tests/upgrade/record.sh build/release/bin tests/upgrade/0.2.0
set -euo pipefail
(($# == 2)) || { sed -n 's/^# //p' "$0" | sed -n '2,5p' >&2 && exit 2; }
bin=$(cd "$1" && pwd)
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
[[ ! -e $2 ]] || { printf '%s exists; a release is recorded once\n' "$2" >&2 && exit 2; }
mkdir -p "$2"
cd "$2"
export PATH=$bin:$PATH COMMFUSE_CONFIG_DIR=$source/configs COLUMNS=80

note() { printf '%s\t%s\t%s\t%s\n' "$@" >>commands.tsv; }

# wrote CODE FILE COMMAND: writes the output of the command to FILE.
wrote() {
  local code=0
  mkdir -p "$(dirname "$2")"
  bash -c "$3" >"$2" || code=$?
  [[ $code == "$1" ]] || { printf 'exit code %s, not %s: %s\n' "$code" "$1" "$3" >&2 && exit 1; }
  note wrote "$1" "$2" "$3"
}

# left CODE FILE COMMAND: runs a command that creates FILE in the folder.
left() {
  local code=0
  mkdir -p "$(dirname "$2")"
  bash -c "$3" >/dev/null 2>.errors || code=$?
  [[ $code == "$1" && -s $2 ]] ||
    { cat .errors >&2 && printf 'exit code %s, not %s: %s\n' "$code" "$1" "$3" >&2 && exit 1; }
  rm -f .errors
  note left "$1" "$2" "$3"
}

# is_read CODE COMMAND: later builds run the command with the files of this folder, and must exit with CODE.
is_read() {
  local code=0
  (cp -r . "$work/copy" && cd "$work/copy" && bash -c "$2" >/dev/null) || code=$?
  rm -rf "$work/copy"
  [[ $code == "$1" ]] || { printf 'exit code %s, not %s: %s\n' "$code" "$1" "$2" >&2 && exit 1; }
  note read "$1" - "$2"
}

work=$(mktemp -d "${TMPDIR:-/tmp}/commfuse-record-XXXXXX")
trap 'rm -rf "$work"' EXIT

layer='commfuse-sim run --model llama-3.1-8b --ranks 4 --seq 8K --strategy serial,sliced,commfuse'
step='commfuse-sim run --scope step --model llama-3.1-8b --ranks 4 --batch 8 --seq 4K'
wrote 0 rows/layers.json "$layer -o json"
wrote 0 rows/layers.jsonl "$layer --jitter default --samples 32 -o jsonl"
wrote 0 rows/layers.csv "$layer -o csv"
wrote 0 rows/implementations.json 'commfuse-sim run --scope down --seq 8K --as all -o json'
wrote 0 rows/step.json "$step --strategy serial,commfuse -o json"
wrote 0 rows/framework.jsonl "$step --framework torchtitan -o jsonl"
wrote 0 rows/decode.json \
  'commfuse-sim run --scope decode --model llama-3.1-8b --ranks 2 --batch 8 --seq 4K --strategy serial,commfuse -o json'
mkdir lab
cp "$source/configs/lab/faj.yaml" lab/
wrote 0 rows/lab.json 'commfuse-sim run lab/faj.yaml --set ranks=16 -o json'
for file in rows/{layers.json,layers.jsonl,implementations.json,step.json,framework.jsonl,decode.json}; do
  is_read 0 "commfuse-sim results $file -o json"
  is_read 0 "commfuse-sim best $file -o csv"
  is_read 0 "commfuse-sim report $file --out page.html"
done

mkdir sweeps
cat >sweeps/layers.yaml <<'YAML'
schema: commfuse.sweep/1
title: MLPs under jitter
set: {model: llama-3.1-8b, jitter: default, samples: 32, strategy: {name: [serial, commfuse]}}
axes:
  - ranks: [4, 16] # 16 do not fit a node: rows with a reason
  - seq: [1K, 8K]
outputs: [csv, json, map]
YAML
cat >sweeps/steps.yaml <<'YAML'
schema: commfuse.sweep/1
set: {model: llama-3.1-8b, scope: step, ranks: 4, strategy: {name: [serial, commfuse]}}
axes:
  - batch: [8, 16]
  - seq: 4K
outputs: [json]
YAML
for name in layers steps; do
  code=0
  [[ $name == steps ]] || code=3
  for file in results.json settings.yaml results.sqlite; do
    rm -rf "$name"
    left "$code" "$name/$file" "commfuse-sim sweep sweeps/$name.yaml --out $name --progress none"
  done
  is_read 0 "commfuse-sim results $name -o json"
  is_read 0 "commfuse-sim best $name -o json"
  is_read 0 "commfuse-sim report $name --out page.html"
  is_read 0 "commfuse-sim sweep sweeps/$name.yaml --out new --dry-run"
  is_read 0 "commfuse-sim sweep $name/settings.yaml --out new --dry-run"
done
for shard in 1 2; do
  left 3 "shards/shard-$shard-of-2.sqlite" \
    "commfuse-sim sweep sweeps/layers.yaml --out shards --progress none --shard $shard/2"
done
is_read 3 'commfuse-sim merge shards'

wrote 0 settings/layer.yaml 'commfuse-sim config show --seq 8K --strategy sliced,commfuse --slices 4 --jitter default'
wrote 0 settings/step.yaml 'commfuse-sim config show --scope step --model llama-3.1-8b --batch 8 --seq 8K --zero 1'
left 0 settings/tuned/plan.yaml \
  'commfuse-sim tune --model llama-3.1-8b --hardware h100-sxm --ranks 4 --seq 8K --batch 64 --out settings/tuned'
for file in settings/layer.yaml settings/step.yaml settings/tuned/plan.yaml; do
  is_read 0 "commfuse-sim run $file -o json"
done

mkdir -p plans
cp "$source/tests/upgrade/26eb1d7/plans/train-8b.yaml" plans/
wrote 0 answers/plan.json 'commfuse-sim plan plans/train-8b.yaml -o json'
wrote 0 answers/plan.csv 'commfuse-sim plan plans/train-8b.yaml -o csv'
wrote 0 answers/tune.json \
  'commfuse-sim tune --model llama-3.1-8b --hardware h100-sxm --ranks 4 --seq 8K --batch 64 -o json'
wrote 0 answers/why.json 'commfuse-sim why --model llama-3.1-8b --seq 8K -o json'
wrote 0 answers/expect.json 'commfuse-sim expect --hardware h100-sxm --collective all_reduce -o json'
wrote 0 answers/version.json 'commfuse-sim version -o json'
wrote 0 answers/mutations.json 'commfuse-sim schedule mutate --scope mlp --strategy serial --ranks 2 -o json'

for form in serial:mlp commfuse:qkv_backward sliced:attention tokenweave:mlp_ar; do
  options= # the fastest number of slices depends on the model
  [[ $form != sliced:* ]] || options='--slices 4 '
  wrote 0 "schedules/${form%:*}_${form#*:}.yaml" \
    "commfuse-sim schedule export --strategy ${form%:*} $options--scope ${form#*:} --ranks 4"
  is_read 0 "commfuse-sim schedule check schedules/${form%:*}_${form#*:}.yaml"
done
left 0 records/run.json "commfuse-validate run --spans --ranks 2 --seq 1K --scope gate_up --strategy serial,commfuse \
--iterations 2 --warm-up 1 --dilation 1 --out records/run.json"
left 0 records/links.json "commfuse-validate links --ranks 2 --bytes '8 KiB' --tolerance 1000 --out records/links.json"
left 0 records/bench.json 'commfuse-validate bench --only kernels --dtype fp32 --out records/bench.json'
wrote 0 records/check.json 'commfuse-validate check --ranks 2 --scope mlp --strategy serial,commfuse -o json'
mkdir -p node/proc/sys/kernel
printf 'node-1\n' >node/proc/sys/kernel/hostname
wrote 0 records/doctor.json 'commfuse-validate doctor --root node -o json'
left 0 hardware/my-cpu.yaml \
  'commfuse-sim calibrate --base cpu --name my-cpu --out hardware/my-cpu.yaml records/bench.json'
cp "$source"/configs/hardware/h100-sxm.yaml "$source"/configs/clusters/dgx-h100-x2.yaml hardware/
is_read 0 'commfuse-validate compare records/run.json -o json'
is_read 0 'commfuse-validate links records/links.json --tolerance 1000'
is_read 0 'commfuse-sim calibrate --base cpu --name again records/bench.json'
is_read 0 'commfuse-sim run --hardware ./hardware/h100-sxm.yaml --strategy serial,commfuse'
is_read 0 'commfuse-sim run --hardware ./hardware/dgx-h100-x2.yaml --ranks 16 --strategy serial,commfuse'
is_read 0 "commfuse-sim run --hardware ./hardware/my-cpu.yaml --model gpt-2-xl --ranks 2 --seq 256 --scope gate_up \
--strategy serial,commfuse"

mkdir -p implementations frameworks
cp "$source/configs/implementations/flux.yaml" implementations/
cp "$source/configs/frameworks/torchtitan.yaml" frameworks/
is_read 0 'commfuse-sim run --scope down --seq 8K --as ./implementations/flux.yaml -o json'
is_read 0 "$step --framework ./frameworks/torchtitan.yaml -o json"

cat >README.md <<TEXT
# tests/upgrade/$(basename "$PWD")

Files that users of this version have on disk, written by \`tests/upgrade/record.sh\`:

    $(commfuse-sim version | head -n 1)

\`commands.tsv\` lists how each file was written and which commands read it. \`tests/cli/upgrade_releases_test.cpp\` checks
that every later build reads them, that JSON keeps its keys and CSV its columns, and that schedules keep their bytes. Never
edit these files.
TEXT
printf '%s: %s files, %s KiB\n' "$2" "$(find . -type f | wc -l)" "$(du -sk . | cut -f1)"
