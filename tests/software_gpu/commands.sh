#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs whole commands on the software GPU, small enough for a build under a sanitizer. Each must exit with code 0; after
# a sanitizer's report it exits with another code. Usage: commands.sh BUILD, for example commands.sh build/asan.
set -euo pipefail
build=$(realpath "$1")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export COMMFUSE_CONFIG_DIR=$root/configs
export COMMFUSE_CUDA_PLUGIN=$build/lib/software_gpu/libcommfuse_cuda.so
# A sanitizer opens libraries in place of the plugin, so the plugin's run path does not find the doubles.
export LD_LIBRARY_PATH=$build/lib/software_gpu:${LD_LIBRARY_PATH:-}
export SOFTWARE_GPU_MULTIPROCESSORS=8 SOFTWARE_GPU_MOST_WORK=10000000 SOFTWARE_GPU_PATIENCE_MS=20000
# Up to GCC 13, LeakSanitizer reads a header in front of the thread-local variables of a library that a program opens.
# The C library has written no such header since 2.25, so that LeakSanitizer crashes at some addresses.
export ASAN_OPTIONS=${ASAN_OPTIONS:-intercept_tls_get_addr=0}
export TSAN_OPTIONS=${TSAN_OPTIONS:-suppressions=$root/tests/tsan.supp}
point=(--hardware h100-sxm --model 64x128 --seq 64 --scope gate_up --iterations 2 --warm-up 1)

say() { printf '%s: exit code %d after %d s\n' "$1" "$2" "$3"; }

# validate ARGUMENT...: one process with virtual ranks.
validate() {
  local start=$SECONDS code=0
  "$build/bin/commfuse-validate" "$@" >out 2>err || code=$?
  say "$*" "$code" $((SECONDS - start))
  if ((code != 0)); then
    cat out err >&2
    exit 1
  fi
}

# ranks COUNT ARGUMENT...: processes with one GPU each, which connect over TCP.
ranks() {
  local count=$1 start=$SECONDS code=0 rank port
  shift
  port=$((20000 + RANDOM % 20000))
  local -a processes=()
  for ((rank = 0; rank < count; ++rank)); do
    RANK=$rank WORLD_SIZE=$count LOCAL_RANK=$rank MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
      SOFTWARE_GPU_DEVICES=$count CUDA_VISIBLE_DEVICES=$rank "$build/bin/commfuse-validate" "$@" >"out.$rank" 2>"err.$rank" &
    processes+=($!)
  done
  for process in "${processes[@]}"; do
    wait "$process" || code=$?
  done
  say "$count processes, $*" "$code" $((SECONDS - start))
  if ((code != 0)); then
    cat out.* err.* >&2
    exit 1
  fi
}

validate check --executor cuda-virtual --scope gemm_rs --ranks 2 --strategy serial,sliced
for args in '--issue gated' '--issue stream --view all-ranks' '--issue graph --spans' '--link bounce' '--partition 8'; do
  # shellcheck disable=SC2086  # words
  validate run --executor cuda-virtual --ranks 2 --strategy serial,commfuse --out run.json $args "${point[@]}"
done
validate compare --executor cuda-virtual --ranks 2 --strategy serial "${point[@]}"
validate probe --quick --stage launch --out probes.csv
validate bench --quick --executor cuda-virtual --only gaps,messages --out bench.json
validate links --executor cuda-virtual --ranks 2 --bytes '8 KiB' --collectives '8 KiB' --tolerance 1000000
SOFTWARE_GPU_DEVICES=3 validate links --copies all --both-ways --bytes '8 KiB' --iterations 3 --tolerance 1000000
ranks 2 check --executor nccl --scope gemm_rs --strategy serial
ranks 2 run --executor nccl --ranks 2 --strategy serial,commfuse --nccl-register on --out run.json "${point[@]}"
ranks 2 run --executor nccl --ranks 2 --strategy commfuse,async_tp --nccl-exchange put --out run.json "${point[@]}"
ranks 3 check --executor nccl --scope ag_gemm --strategy async_tp --ranks 3 --nccl-exchange put --wire fp8
SOFTWARE_GPU_NCCL=2.29.2 ranks 2 check --executor nccl --scope ag_gemm --strategy commfuse --nccl-exchange put
SOFTWARE_GPU_NCCL=2.27.0 ranks 2 check --executor nccl --scope ag_gemm --strategy serial --nccl-register windows
ranks 3 links --executor nccl --ranks 2 --bytes '8 KiB' --tolerance 1000000
ranks 2 check --executor cuda-peer --scope gemm_rs --strategy serial
ranks 2 run --executor cuda-peer --ranks 2 --strategy serial,commfuse --spans --out run.json "${point[@]}"
