#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One call on a machine with a GPU: builds if it has to, seals what is predicted, checks, measures, calibrates, compares,
# and leaves a bundle of at most eight files. Needs no network. What is done already is not done again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'TEXT'
usage: validate/cuda/first_run.sh [VERB] [FOLDER]

  run [FOLDER]       all stages, into out/first_run or FOLDER; again: goes on where it stopped (default)
                       validate/cuda/first_run.sh run out/first_run
  sanitize [FOLDER]  the checks once more under compute-sanitizer, where there is one
                       validate/cuda/first_run.sh sanitize
  pack [FOLDER]      programs, plugin for sm_90 and the libraries they need, into out/first_run_kit or FOLDER, for a
                     machine without a compiler; run finds it there
                       validate/cuda/first_run.sh pack
  plan               the stages and their seconds, and whether each could run here
                       validate/cuda/first_run.sh plan

Environment: FIRST_RUN_PROGRAMS, a folder of programs that are built already; FIRST_RUN_HARDWARE (h200-sxm), the
hardware file to start from; FIRST_RUN_STAGES (all), some of them between spaces; FIRST_RUN_QUICK=1, a few sizes of
everything; FIRST_RUN_LIMIT (570), seconds that a call may take: a stage that no longer fits is left to the next call;
FIRST_RUN_PATIENCE (2), how many times its seconds a stage may take before it is stopped.
TEXT
}

hardware=${FIRST_RUN_HARDWARE:-h200-sxm}
model=llama-3.1-70b
ranks=8
strategies=serial,sliced,looped_einsum,async_tp,commfuse
# Sites and lengths: a product of every kind of step, one of them small.
shapes=("gate_up 8K" "down 8K" "gate_up 2K")
# How long a step's transfer is beside its product.
ratios=(0.25 0.5 0.9 1.1 2)
latency_us=5
kit=out/first_run_kit
limit=${FIRST_RUN_LIMIT:-570}
patience=${FIRST_RUN_PATIENCE:-2}
most_mib_of_kit=64
most_mib_of_file=16

# Name, seconds that it may take, what it does.
stages=(
  "environment 15 what is here: GPU, driver, versions, variables"
  "predictions 15 what is predicted for every shape and pace, before anything is measured"
  "checks 60 T0, T1, T-int, T2, T3 of all generators on 2, 4 and 8 virtual ranks"
  "launch 20 launches, gaps, events, graph nodes, the clock"
  "products 60 products of slices on all and on fewer multiprocessors"
  "attention 20 attention of slices of the queries"
  "fused 30 attention by cuDNN where it is found, within 2^-7 of ours"
  "links 30 copies by size and blocks, at a pace, through the host"
  "interference 30 a product and copies beside each other"
  "engines 10 who copies: kernels, the runtime, copy engines through the host"
  "partitions 10 a product on multiprocessors set apart by green contexts"
  "nccl 10 what a group of NCCL's costs, and a message to oneself"
  "pinned 30 the bits of whole products by the kernels of their shards"
  "calibration 40 single ops, and the hardware file fitted to them"
  "middle 150 one rank with the GPU for itself: shapes, strategies and paces, against what is predicted"
)

say() { printf 'first_run: %s\n' "$*" >&2; }

# The libraries of CUDA, where the toolkit or Python's packages have put them.
cuda_libraries() {
  local folder
  for folder in /usr/local/cuda/lib64 /usr/local/cuda/extras/CUPTI/lib64 \
    /usr/lib/python3*/site-packages/nvidia/*/lib /usr/local/lib/python3*/dist-packages/nvidia/*/lib \
    /usr/local/lib/python3*/site-packages/nvidia/*/lib /opt/*/lib/python3*/site-packages/nvidia/*/lib; do
    [[ -d $folder ]] && printf '%s:' "$folder"
  done
  true
}

# Where the programs are: those that were packed, else those built here, which are built now.
find_programs() {
  if [[ -z ${FIRST_RUN_PROGRAMS:-} && -x $kit/bin/commfuse-validate ]]; then
    FIRST_RUN_PROGRAMS=$PWD/$kit/bin
    LD_LIBRARY_PATH=$PWD/$kit/lib/system:$(cuda_libraries)${LD_LIBRARY_PATH:-}
  elif [[ -z ${FIRST_RUN_PROGRAMS:-} ]]; then
    say "no kit in $kit: building here"
    cmake --preset release >&2
    cmake --build build/release --target commfuse-sim commfuse-validate >&2
    FIRST_RUN_PROGRAMS=$PWD/build/release/bin
    LD_LIBRARY_PATH=$(cuda_libraries)${LD_LIBRARY_PATH:-}
  fi
  export LD_LIBRARY_PATH FIRST_RUN_PROGRAMS
  sim=$FIRST_RUN_PROGRAMS/commfuse-sim
  validate=$FIRST_RUN_PROGRAMS/commfuse-validate
}

pack() {
  local into=${1:-$kit} library
  cmake -S . -B build/first_run -G Ninja -DCMAKE_BUILD_TYPE=Release -DCOMMFUSE_CUDA=ON \
    -DCMAKE_CUDA_ARCHITECTURES=90-real >&2
  cmake --build build/first_run --target commfuse-sim commfuse-validate commfuse_cuda >&2
  rm -rf "$into"
  mkdir -p "$into/bin" "$into/lib/commfuse" "$into/lib/system" "$into/share/commfuse"
  cp build/first_run/bin/commfuse-sim build/first_run/bin/commfuse-validate "$into/bin/"
  cp build/first_run/lib/commfuse/libcommfuse_cuda.so "$into/lib/commfuse/"
  cp -r configs "$into/share/commfuse/configs"
  # All but the C library, which is the machine's own, and CUDA's, which are large and there.
  for library in $(ldd "$into"/bin/* "$into/lib/commfuse/libcommfuse_cuda.so" | awk '/=> \// { print $3 }' | sort -u); do
    case $library in
      */libc.so* | */libm.so* | */ld-linux* | */libpthread* | */libdl* | */librt* | */libutil*) ;;
      *libcublas* | *libnccl* | *libcupti* | *libcudart*) ;;
      *) cp -L "$library" "$into/lib/system/" ;;
    esac
  done
  strip "$into"/bin/* "$into/lib/commfuse/"* "$into/lib/system/"*
  local size
  size=$(du -sm "$into" | cut -f1)
  say "$into: $size MiB"
  if ((size >= most_mib_of_kit)); then
    say "that is too large to carry: $most_mib_of_kit MiB at most"
    exit 1
  fi
}

seconds_of() {
  local one
  for one in "${stages[@]}"; do
    read -r name seconds _ <<<"$one"
    [[ $name == "$1" ]] && printf '%s\n' "$seconds"
  done
  true
}

# Runs a stage unless it is done, or no longer fits into this call; whatever it says goes to the log, and a failure does not keep the others from running.
stage() {
  local name=$1 begun=$SECONDS code=0 seconds left
  if grep -qx "done $name" "$out/log.txt" 2>/dev/null; then
    say "$name: done before"
    return
  fi
  [[ ${FIRST_RUN_STAGES:-all} == all || " $FIRST_RUN_STAGES " == *" $name "* ]] || return 0
  seconds=$(seconds_of "$name")
  left=$((limit - SECONDS))
  if ((left < seconds)); then
    say "$name: left to the next call, as it may take $seconds s and $((left > 0 ? left : 0)) are left of this one"
    return
  fi
  say "$name"
  printf '== %s\n' "$name" >>"$out/log.txt"
  timeout "$((patience * seconds < left ? patience * seconds : left))" "${BASH_SOURCE[0]}" --stage "$name" "$out" >>"$out/log.txt" 2>&1 || code=$?
  if [[ $code == 0 ]]; then
    printf 'done %s\n' "$name" >>"$out/log.txt"
  fi
  printf '%s: exit %s after %s s\n' "$name" "$code" "$((SECONDS - begun))" | tee -a "$out/log.txt" >&2
}

quick=()
[[ -n ${FIRST_RUN_QUICK:-} ]] && quick=(--quick)

# The column of a CSV on stdin that has this name, of the first row whose strategy is this.
field() {
  awk -F, -v name="$1" -v strategy="$2" '
    NR == 1 { for (i = 1; i <= NF; i++) { if ($i == name) want = i; if ($i == "strategy") by = i } next }
    $by == strategy { print $want; exit }'
}

# What a transfer of a step is to take, and so the bandwidth that makes it so: compute of a step by the prediction, times
# the ratio, less the latency. A step carries the tokens of one rank.
bandwidth_of() {
  local scope=$1 seq=$2 ratio=$3 compute
  compute=$("$sim" run --model "$model" --hardware "$hardware" --scope "$scope" --ranks "$ranks" --seq "$seq" \
    --strategy serial -o csv | field compute_us serial)
  awk -v compute="$compute" -v ratio="$ratio" -v latency="$latency_us" -v ranks="$ranks" -v tokens="${seq%K}" '
    BEGIN {
      bytes = tokens * 1024 / ranks * 8192 * 2
      time = compute / ranks * ratio - latency
      if (time < 1) time = 1
      printf "%.1f\n", bytes / time / 1000
    }'
}

each_pace() {
  local shape ratio scope seq bandwidth
  for shape in "${shapes[@]}"; do
    read -r scope seq <<<"$shape"
    for ratio in "${ratios[@]}"; do
      bandwidth=$(bandwidth_of "$scope" "$seq" "$ratio")
      "$@" "$scope" "$seq" "$ratio" "$bandwidth"
    done
  done
}

run_environment() {
  {
    date -u +%FT%TZ
    "$validate" version
    "$validate" doctor
    nvidia-smi -q 2>/dev/null || echo "no nvidia-smi"
    nvidia-smi topo -m 2>/dev/null || true
    env | grep -E '^(NCCL|CUDA|NVIDIA)_' || true
    uname -a
    lscpu 2>/dev/null | head -25 || echo "no lscpu"
  } >"$out/environment.txt"
  cat "$out/environment.txt"
}

predict_one() {
  printf '{"scope":"%s","seq":"%s","ratio":%s,"bandwidth_gb_s":%s,"rows":' "$1" "$2" "$3" "$4"
  "$sim" run --model "$model" --hardware "$hardware" --scope "$1" --ranks "$ranks" --seq "$2" \
    --strategy "$strategies" --set link_bandwidth="$4GB/s" -o json | tr -d '\n'
  printf '}\n'
}

run_predictions() {
  each_pace predict_one >"$out/predictions.jsonl"
  sha256sum "$out/predictions.jsonl"
}

run_checks() {
  "$validate" check --executor cuda-virtual --ranks 2,4,8 -o csv >"$out/checks.csv"
}

probe() {
  "$validate" probe --stage "$1" "${quick[@]}" --out "$out/probes.csv"
}

run_launch() { probe launch; }
run_products() { probe products; }
run_attention() { probe attention; }
# Both round weights and results to bf16: three parts in a thousand of a row. A key too many or too few is more than eight.
run_fused() {
  probe fused
  awk -F, '$2 == "fused_difference" && $6 > 0.0078125 { print "cuDNN is too far from ours: " $0; bad = 1 }
    END { exit bad }' "$out/probes.csv"
}
run_links() { probe links; }
run_interference() { probe interference; }
run_engines() { probe engines; }
run_partitions() { probe partitions; }
run_nccl() { probe nccl; }
run_pinned() { probe pinned; }

run_calibration() {
  "$validate" bench --executor cuda-virtual --only products,kernels,gaps "${quick[@]}" --out "$out/bench.json"
  "$sim" calibrate --base "$hardware" --name "$hardware-measured" "$out/bench.json" --out "$out/$hardware-measured.yaml"
}

# The link at this pace is measured by itself, and fitted beside the ops; then schedules, and the two against each other.
compare_one() {
  local scope=$1 seq=$2 ratio=$3 bandwidth=$4 work=$out/.work/$1-$2-$3
  mkdir -p "$work"
  printf -- '-- %s, %s tokens, a transfer takes %s of a product: %s GB/s\n' "$scope" "$seq" "$ratio" "$bandwidth"
  "$validate" bench --executor cuda-virtual --only messages --ranks "$ranks" --quick --link-latency "${latency_us}us" \
    --link-bandwidth "$bandwidth GB/s" --out "$work/link.json" >/dev/null
  "$sim" calibrate --base "$hardware" --name paced "$out/bench.json" "$work/link.json" --out "$work/paced.yaml" >/dev/null
  "$validate" run --executor cuda-virtual --model "$model" --hardware "$hardware" --scope "$scope" --seq "$seq" \
    --ranks "$ranks" --strategy "$strategies" --link-latency "${latency_us}us" --link-bandwidth "$bandwidth GB/s" \
    --iterations 20 --out "$work/record.json" >/dev/null
  "$validate" compare "$work/record.json" --hardware "$work/paced.yaml"
  {
    printf '{"scope":"%s","seq":"%s","ratio":%s,"bandwidth_gb_s":%s,"comparison":' "$scope" "$seq" "$ratio" "$bandwidth"
    "$validate" compare "$work/record.json" --hardware "$work/paced.yaml" -o json | tr -d '\n'
    printf '}\n'
  } >>"$out/comparisons.jsonl"
}

run_middle() {
  rm -f "$out/comparisons.jsonl"
  each_pace compare_one
}

run_all() {
  local one name
  mkdir -p "$out"
  find_programs
  touch "$out/log.txt"
  for one in "${stages[@]}"; do
    read -r name _ <<<"$one"
    stage "$name"
  done
  rm -rf "$out/.work"
  find "$out" -type f -size "+${most_mib_of_file}M" -exec gzip -9 {} +
  say "the bundle is in $out: $(find "$out" -type f | wc -l) files, $(du -sh "$out" | cut -f1)"
}

plan() {
  local one name seconds what total=0
  for one in "${stages[@]}"; do
    read -r name seconds what <<<"$one"
    printf '%-13s %4s s  %s\n' "$name" "$seconds" "$what"
    total=$((total + seconds))
  done
  printf '%-13s %4s s\n' together "$total"
  ((total <= limit)) || say "more than one call of $limit s takes"
  find_programs
  local sentence
  if sentence=$("$validate" probe --stage launch --quick 2>&1 >/dev/null); then
    say "it can run here"
  else
    say "it cannot run here: $sentence"
  fi
}

sanitize() {
  find_programs
  local tool
  tool=$(command -v compute-sanitizer || true)
  if [[ -z $tool ]]; then
    say "there is no compute-sanitizer here; it comes with the CUDA Toolkit"
    exit 69
  fi
  mkdir -p "$out"
  for kind in memcheck racecheck synccheck; do
    "$tool" --tool "$kind" --error-exitcode 1 "$validate" check --executor cuda-virtual --ranks 2 --scope ag_gemm,gemm_rs \
      2>&1 | tail -20 | tee -a "$out/log.txt"
  done
}

verb=${1:-run}
case $verb in
  run | sanitize)
    out=${2:-${OUT:-out/first_run}}
    if [[ $verb == run ]]; then run_all; else sanitize; fi
    ;;
  pack) pack "${2:-$kit}" ;;
  plan) plan ;;
  --stage)
    out=$3
    find_programs
    "run_$2"
    ;;
  -h | --help | help) usage ;;
  *)
    usage >&2
    exit 2
    ;;
esac
