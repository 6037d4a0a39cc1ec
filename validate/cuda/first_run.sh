#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks and measures a machine with GPUs, in calls of less than ten minutes, and leaves a bundle of at most eight
# files. One stage uses all GPUs, if there are several; the others use the first. The script recognizes the
# GPU, writes the predictions before it measures, and keeps the files of every finished stage. It needs no network. A
# later call continues where this one stopped.
set -euo pipefail
# In many locales awk and printf write 0.5 as 0,5, which our programs do not read.
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
script=$PWD/validate/cuda/first_run.sh
# shellcheck source=validate/cuda/first_run_lib.sh
. validate/cuda/first_run_lib.sh

usage() {
  cat <<'TEXT'
usage: validate/cuda/first_run.sh [VERB] [FOLDER]

  run [FOLDER [EARLIER]]
                     run all stages; the bundle goes to FOLDER (default $OUT, else out/first_run). Stages that are done
                     in FOLDER, in EARLIER or, with $OUT, in out/first_run are not run again (default verb)
                       validate/cuda/first_run.sh run out/first_run
  sanitize [FOLDER]  check under compute-sanitizer: memcheck, racecheck and synccheck
                       validate/cuda/first_run.sh sanitize
  pack [FOLDER]      pack programs, tests, the plugin for Hopper and later GPUs, and their libraries, for a machine
                     without our packages (default out/first_run_kit, where run looks for it)
                       validate/cuda/first_run.sh pack
  plan               print the stages with their budgets, and whether they can run here
                       validate/cuda/first_run.sh plan

Environment:
  FIRST_RUN_HARDWARE  hardware file to start from (default: the file of the GPU that is found)
  FIRST_RUN_STAGES    stages to run, separated by spaces (default all); plan lists them
  FIRST_RUN_QUICK     1: a few sizes of everything
  FIRST_RUN_LIMIT     seconds per call (default 570); a stage that does not fit is left for the next call
  FIRST_RUN_PATIENCE  a stage is stopped after this many times its budget (default 2)
  FIRST_RUN_PROGRAMS  folder of the programs (default: the kit's, else those that are built here)
  FIRST_RUN_BUILD     build folder that pack copies from (default: build/first_run, which it builds)
  FIRST_RUN_WORK      folder that keeps the state between calls when $OUT is emptied (default /tmp/commfuse_first_run)

Exit codes: 0 all stages that can run here are done or left for the next call; 1 a stage failed; 2 the input is wrong;
69 no GPU is available.
TEXT
}

model=llama-3.1-70b
ranks=8
strategies=serial,sliced,looped_einsum,async_tp,commfuse
# Scope and sequence length: the largest shapes of both kinds of step, and a small shape.
shapes=("gate_up 8K" "down 8K" "gate_up 2K")
# Ratio of the time of a step's transfer to the time of its GEMM.
ratios=(0.25 0.5 0.9 1.1 2)
latency_us=5
# Largest rate planned for one CTA of a copying kernel, and largest number of CTAs of such a kernel.
gb_s_per_cta=15
max_link_ctas=32
kit=out/first_run_kit
limit=${FIRST_RUN_LIMIT:-570}
patience=${FIRST_RUN_PATIENCE:-2}
max_mib_of_kit=64
max_mib_of_file=16
max_seconds_to_count=120
# Assumed seconds in which a command creates a context and loads cuBLASLt, which a dry run does not do.
seconds_to_start=3
# File that collects the last lines of dry runs; empty: the stages run for real.
dry_run=${FIRST_RUN_DRY:-}
quick=()
[[ -z ${FIRST_RUN_QUICK:-} ]] || quick=(--quick)

# At most eight files; HARDWARE is replaced by the name of the hardware file.
bundle_files=(log.txt predictions.jsonl probes.csv checks.csv comparisons.jsonl bench.json HARDWARE-measured.yaml
  records.tgz)

# Name, seconds, kind, description. Kinds: "fixed" stages have these seconds as their budget. "counted" stages have them
# only until a dry run has counted their launches and work. "divisible" stages are counted and keep what they have done,
# so they may start with less time left. Stages that nothing else can replace come first. Stage middle compares one rank
# against the prior hardware file with the measured link, so it does not wait for the calibration, which adds the
# comparison against the fitted file.
stages=(
  "environment 15 fixed GPU, driver, versions, variables"
  "predictions 30 fixed predicted times of all shapes and link speeds, before anything is measured"
  "tests 60 fixed the Cuda* tests of kernels, streams, gates, graphs, traces and NCCL"
  "nccl 30 fixed NCCL on one rank: start, groups, graphs, windows, spans"
  "gpus 180 fixed all GPUs, if there are several: copies, links, checks and schedules by NCCL and by copies to peers"
  "launch 20 counted launches, gaps, events, graph nodes, the clock"
  "engines 10 counted copies by a kernel, the runtime and the host, and whether a copy engine ran them"
  "products 60 counted GEMMs of slices on all and on fewer multiprocessors"
  "attention 20 counted attention of slices of the queries"
  "fused 30 counted attention by cuDNN where it is found, within 2^-7 of ours"
  "links 30 counted copies by size and CTAs, at a given pace, and through host memory"
  "interference 30 counted a GEMM and copies, alone and at the same time"
  "partitions 10 counted a GEMM on multiprocessors reserved by green contexts"
  "middle 150 divisible one rank with the whole GPU, against its prediction"
  "checks 120 fixed correctness levels T0, T1, T-int, T2, T3 of generated schedules on 2, 4 and 8 virtual ranks"
  "pinned 30 counted bits of whole GEMMs that run the kernels chosen for their shards"
  "calibration 40 counted single ops, the hardware file fitted to them, and the comparison against it"
  "sanitize 60 fixed two scopes under compute-sanitizer"
)
least_seconds_of_divisible=20

# --- stages

# Prints column `$1` of the CSV on stdin, from the first row whose strategy is `$2`.
field() {
  awk -F, -v name="$1" -v strategy="$2" '
    NR == 1 { for (i = 1; i <= NF; i++) { if ($i == name) want = i; if ($i == "strategy") by = i } next }
    $by == strategy { print $want; exit }'
}

# Prints the bandwidth, in GB/s, at which a step's transfer, including its latency, takes `ratio` times the predicted
# time of the step's GEMM. A step transfers the tokens of one rank.
bandwidth_of() {
  local scope=$1 seq=$2 ratio=$3 compute
  compute=$(sim run --model "$model" --hardware "$hardware" --scope "$scope" --ranks "$ranks" --seq "$seq" \
    --strategy serial -o csv | field compute_us serial) || return
  awk -v compute="$compute" -v ratio="$ratio" -v latency="$latency_us" -v ranks="$ranks" -v tokens="${seq%K}" '
    BEGIN {
      bytes = tokens * 1024 / ranks * 8192 * 2
      time = compute / ranks * ratio - latency
      if (time < 1) time = 1
      printf "%.1f\n", bytes / time / 1000
    }'
}

# Calls a function with scope, length, ratio and bandwidth of every pace. A call that fails does not stop the others.
each_pace() {
  local shape ratio scope seq bandwidth code=0
  for shape in "${shapes[@]}"; do
    read -r scope seq <<<"$shape"
    for ratio in "${ratios[@]}"; do
      bandwidth=$(bandwidth_of "$scope" "$seq" "$ratio") || return
      "$@" "$scope" "$seq" "$ratio" "$bandwidth" || code=$?
    done
  done
  return "$code"
}

run_environment() {
  date -u +%FT%TZ
  ours commfuse-validate version
  ours commfuse-validate doctor
  env | grep -E '^(NCCL|CUDA|NVIDIA)_' || echo "no variables of NCCL or CUDA are set"
  printf 'libraries: %s\n' "$libraries"
  list_nvidia_libraries
  timeout 20 nvidia-smi -q 2>/dev/null || echo "nvidia-smi does not run here"
  timeout 20 nvidia-smi topo -m 2>/dev/null || true
  uname -a
  lscpu 2>/dev/null | awk 'NR <= 25' || echo "lscpu does not run here"
}

predict_pace() {
  local rows
  rows=$(sim run --model "$model" --hardware "$hardware" --scope "$1" --ranks "$ranks" --seq "$2" \
    --strategy "$strategies" --set link_bandwidth="$4GB/s" -o json | tr -d '\n') || return
  printf '{"scope":"%s","seq":"%s","ratio":%s,"bandwidth_gb_s":%s,"rows":%s}\n' "$1" "$2" "$3" "$4" "$rows"
}

run_predictions() {
  each_pace predict_pace >"$out/predictions.jsonl"
  sha256sum "$out/predictions.jsonl"
}

# An error of CUDA can make all later tests of its process fail, so tests that failed run once more, each in its own
# process.
run_tests() {
  local code=0 name failed
  [[ -x $programs/commfuse-test-validate ]] || unavailable "no commfuse-test-validate next to the programs; pack it"
  SOFTWARE_GPU=off ours commfuse-test-validate --gtest_filter='Cuda*' | tee "$out/tests.txt" || code=$?
  ! grep -q '^\[  PASSED  \] 0 tests' "$out/tests.txt" || [[ $code != 0 ]] || unavailable "every test was skipped"
  failed=$(grep -cE '^\[  FAILED  \] .* \(' "$out/tests.txt") || true
  while read -r name; do
    if SOFTWARE_GPU=off ours commfuse-test-validate --gtest_filter="$name" >"$out/test.txt" 2>&1; then
      echo "$name passes on its own"
    else
      cat "$out/test.txt"
    fi
  done < <(sed -nE 's/^\[  FAILED  \] ([A-Za-z0-9_.\/]+) \(.*/\1/p' "$out/tests.txt")
  if ((code != 0 && failed == 0)); then
    echo "the tests ended with exit $code in $(sed -n 's/^\[ RUN      \] //p' "$out/tests.txt" | tail -n 1)"
  elif ((code != 0)); then
    echo "$failed tests failed"
  fi
  return "$code"
}

probe() { validate probe --stage "$1" "${quick[@]}" --out "$out/probes.csv"; }

run_nccl() { probe nccl; }
# part NAME CODE COMMAND...: runs a part of a stage, whose other parts run even if this one fails. Its exit codes 0, 3
# (incomplete) and CODE (a finding) do not count as failures.
part() {
  local code=0
  printf -- '-- %s\n' "$1"
  "${@:3}" || code=$?
  [[ $code == 0 || $code == 3 || $code == "$2" ]] || { printf '%s: exit %s\n' "$1" "$code" && failed_parts+=("$1"); }
}

# Schedules need a number of ranks that divides the model, so they run on a power of two of the GPUs.
run_gpus() {
  local folder=$out/records/gpus count=2 by scope failed_parts=()
  ((gpus > 1)) || unavailable "there is one GPU, and this stage needs several"
  while ((2 * count <= gpus)); do count=$((2 * count)); done
  mkdir -p "$folder"
  for scope in gate_up down; do
    sim run --model "$model" --hardware "$hardware" --scope "$scope" --ranks "$count" --seq 8K \
      --strategy "$strategies" -o json >"$folder/predictions-$scope.json"
  done
  part copies 4 ours commfuse-validate links --copies all --both-ways --out "$folder/copies.json"
  for by in nccl cuda-peer; do
    part "check with $by" 3 check_gpus
    part "links with $by" 4 on_gpus "$gpus" links --executor "$by" --ranks "$gpus" --both-ways \
      --collectives '8 KiB,1 MiB,64 MiB' --out "$folder/links-$by.json"
    for scope in gate_up down; do
      part "$scope with $by" 3 measure_gpus
    done
  done
  ((${#failed_parts[@]} == 0)) || { printf 'failed: %s\n' "$(IFS=,; printf '%s' "${failed_parts[*]}")" && return 1; }
}

check_gpus() {
  on_gpus "$count" check --executor "$by" --ranks "$count" --scope ag_gemm,gemm_rs --strategy serial,sliced,commfuse \
    -o csv >"$folder/checks-$by.csv"
}

measure_gpus() {
  local record=$folder/$scope-$by.json
  on_gpus "$count" run --executor "$by" --model "$model" --hardware "$hardware" --scope "$scope" --seq 8K \
    --ranks "$count" --strategy "$strategies" --iterations 20 --out "$record" >/dev/null &&
    ours commfuse-validate compare "$record" --hardware "$hardware"
}

run_launch() { probe launch; }
run_engines() { probe engines; }
run_products() { probe products; }
run_attention() { probe attention; }
# Both implementations round weights and results to bf16, so rows differ by about 2^-8. Attending to a wrong key
# causes a difference above 2^-7.
run_fused() {
  probe fused
  [[ -z $dry_run ]] || return 0
  awk -F, '$2 == "fused_difference" && $6 > 0.0078125 { print "cuDNN is too far from ours: " $0; bad = 1 }
    END { exit bad }' "$out/probes.csv"
}
run_links() { probe links; }
run_interference() { probe interference; }
run_partitions() { probe partitions; }
run_pinned() { probe pinned; }

# Prints the largest number of CTAs for a copying kernel. It leaves at least half of the multiprocessors to GEMMs.
link_ctas_limit() {
  local half=$((multiprocessors / 2))
  printf '%s\n' "$((half < max_link_ctas ? half : max_link_ctas))"
}

# Prints the number of CTAs with which a copying kernel reaches a bandwidth in GB/s: a power of two. Fails if that is
# too many.
link_ctas_of() {
  awk -v bandwidth="$1" -v each="$gb_s_per_cta" -v max_ctas="$(link_ctas_limit)" '
    BEGIN {
      for (ctas = 1; ctas * each < bandwidth; ) ctas *= 2
      if (ctas > max_ctas) exit 1
      print ctas
    }'
}

# Exit code 3 means that some ops could not be measured; the record has the others.
bench() {
  local code=0
  validate bench --executor cuda-virtual "$@" || code=$?
  [[ $code == 3 ]] || return "$code"
}

# Measures the link by itself at this pace, then the schedules over it. The link is measured at all sizes, because
# calibrate refuses the few sizes of --quick.
measure_pace() {
  local scope=$1 seq=$2 bandwidth=$4 ctas=$5 folder=$6
  local link=(--link-latency "${latency_us}us" --link-bandwidth "$bandwidth GB/s" --link-ctas "$ctas")
  mkdir -p "$folder"
  bench --only messages --ranks "$ranks" "${link[@]}" \
    --out "$folder/link.json" >/dev/null &&
    validate run --executor cuda-virtual --model "$model" --hardware "$hardware" --scope "$scope" --seq "$seq" \
      --ranks "$ranks" --strategy "$strategies" "${link[@]}" --multiprocessors "$((multiprocessors - ctas))" \
      --iterations 20 --out "$folder/record.json" >/dev/null
}

# compare_pace FITTED SCOPE SEQ RATIO BANDWIDTH: appends the comparison of a record, if there is one, with the
# prediction for the measured link and either the prior or the fitted hardware file.
compare_pace() {
  local fitted=$1 scope=$2 seq=$3 ratio=$4 bandwidth=$5 folder=$out/records/$2-$3-$4 measured=() comparison
  [[ -s $folder/record.json ]] || return 0
  local machine=$folder/fitted-$fitted.yaml
  [[ $fitted == false ]] || measured=("$out/bench.json")
  printf -- '-- %s, %s tokens, transfer %s of a GEMM: %s GB/s, fitted: %s\n' "$scope" "$seq" "$ratio" "$bandwidth" \
    "$fitted"
  rm -f "$machine"
  sim calibrate --base "$hardware" --name paced "${measured[@]}" "$folder/link.json" --out "$machine" >/dev/null &&
    validate compare "$folder/record.json" --hardware "$machine" &&
    comparison=$(validate compare "$folder/record.json" --hardware "$machine" -o json | tr -d '\n') || return
  printf '{"scope":"%s","seq":"%s","ratio":%s,"bandwidth_gb_s":%s,"fitted":%s,"comparison":%s}\n' "$scope" "$seq" \
    "$ratio" "$bandwidth" "$fitted" "$comparison" >>"$out/comparisons.jsonl"
}

middle_pace() {
  local scope=$1 seq=$2 ratio=$3 bandwidth=$4 folder=$out/records/$1-$2-$3 ctas
  if ! ctas=$(link_ctas_of "$bandwidth"); then
    printf -- '-- %s, %s tokens, transfer %s of a GEMM: skipped, because %s GB/s needs more than %s CTAs\n' \
      "$scope" "$seq" "$ratio" "$bandwidth" "$(link_ctas_limit)"
    return
  fi
  [[ -s $folder/record.json ]] || measure_pace "$scope" "$seq" "$ratio" "$bandwidth" "$ctas" "$folder" || return
  [[ -z $dry_run ]] || return 0
  compare_pace false "$scope" "$seq" "$ratio" "$bandwidth" || return
  # If an earlier call calibrated after this stage had stopped, the comparisons with the fitted file are written again
  # here.
  [[ ! -s $out/bench.json ]] || compare_pace true "$scope" "$seq" "$ratio" "$bandwidth"
}

run_middle() {
  rm -f "$out/comparisons.jsonl"
  each_pace middle_pace
}

# Half of the budget is for starting schedules, in equal parts for 2, 4 and 8 ranks. The other half is for finishing the
# last ones. A check that runs out of time before it has run all of its schedules exits with 3.
run_checks() {
  local end=$((SECONDS + ${FIRST_RUN_BUDGET:-$(budget_of checks)} / 2)) parts=3 count left code worst=0
  rm -f "$out/checks.csv"
  for count in 2 4 8; do
    code=0
    left=$((end > SECONDS ? end - SECONDS : 0))
    validate check --executor cuda-virtual --ranks "$count" --limit "$((left / parts + 1)) s" -o csv |
      awk -v with_header="$((parts == 3))" 'NR > 1 || with_header { print; fflush() }' >>"$out/checks.csv" || code=$?
    parts=$((parts - 1))
    [[ $code == 0 || $code == 3 ]] || { echo "check --ranks $count: exit $code" && worst=$code; }
  done
  return "$worst"
}

run_calibration() {
  local name code=0
  bench --only products,kernels,gaps "${quick[@]}" --out "$out/bench.json"
  [[ -z $dry_run ]] || return 0
  name=$(machine_name)-measured
  rm -f "$out/$name.yaml" "$out/comparisons.jsonl"
  sim calibrate --base "$hardware" --name "$name" "$out/bench.json" --out "$out/$name.yaml"
  each_pace compare_pace false || code=$?
  each_pace compare_pace true || code=$?
  return "$code"
}

# The toolkit's installer does not add its folder to PATH.
find_sanitizer() { command -v compute-sanitizer || command -v /usr/local/cuda/bin/compute-sanitizer; }

run_sanitize() {
  local tool kind code worst=0 seconds=$((${FIRST_RUN_BUDGET:-60} / 6))
  tool=$(find_sanitizer) ||
    unavailable "no compute-sanitizer here; it comes with the CUDA Toolkit"
  for kind in memcheck racecheck synccheck; do
    code=0
    LD_LIBRARY_PATH=$libraries "$tool" --tool "$kind" --error-exitcode 1 "$programs/commfuse-validate" check \
      --executor cuda-virtual --ranks 2 --scope ag_gemm,gemm_rs --limit "$seconds s" 2>&1 | tail -n 20 || code=$?
    [[ $code == 0 || $code == 3 ]] || worst=1
  done
  return "$worst"
}

# --- one call

is_divisible() { [[ $(field_of_stage "$1" kind) == divisible ]]; }

# `timeout` runs a stage in a process group of its own, which Ctrl-C does not reach, so the stage is stopped here.
stage_process=
stop() {
  trap '' HUP INT TERM
  end_watch
  if [[ -n $stage_process ]] && kill "$stage_process" 2>/dev/null; then
    wait "$stage_process" || true
  fi
  exit "$1"
}

stop_on_signals() {
  trap 'stop 129' HUP
  trap 'stop 130' INT
  trap 'stop 143' TERM
}

# run_stage NAME SECONDS BUDGET: writes the output of a stage to the log. Other stages run even if this one fails.
run_stage() {
  local name=$1 seconds=$2 budget=$3 begun=$SECONDS code=0 reason=""
  say "$name"
  printf '== %s\n' "$name" >>"$out/log.txt"
  FIRST_RUN_BUDGET=$budget timeout -k 5 "$seconds" "$script" --stage "$name" "$out" >>"$out/log.txt" 2>&1 &
  stage_process=$!
  wait "$stage_process" || code=$?
  stage_process=
  case $code in
    0)
      printf 'done %s\n' "$name" >>"$out/log.txt"
      done_count=$((done_count + 1))
      ;;
    69) unavailable_count=$((unavailable_count + 1)) ;;
    124 | 137) if is_divisible "$name"; then left_count=$((left_count + 1)); else failed_count=$((failed_count + 1)); fi ;;
    *) failed_count=$((failed_count + 1)) ;;
  esac
  case $code in
    0) ;;
    124 | 137) reason=": stopped$(! is_divisible "$name" || printf '; the next call continues it')" ;;
    *) reason=": $(tail -n 1 "$out/log.txt" | sed 's/^first_run: //' | cut -c 1-200)" ;;
  esac
  printf '%s: exit %s after %s s, budget %s s%s\n' "$name" "$code" "$((SECONDS - begun))" "$budget" "$reason" |
    tee -a "$out/log.txt" >&2
  publish || left_out=1
}

# Runs a stage if the remaining time of this call suffices.
consider_stage() {
  local name=$1 budget left least seconds
  budget=$(budget_of "$name")
  left=$((limit - SECONDS))
  least=$budget
  if is_divisible "$name"; then
    least=$((budget < least_seconds_of_divisible ? budget : least_seconds_of_divisible))
  fi
  if ((left < least)); then
    say "$name: left for the next call: its budget is $budget s and $((left > 0 ? left : 0)) s remain"
    left_count=$((left_count + 1))
    return
  fi
  seconds=$((patience * budget < left ? patience * budget : left))
  run_stage "$name" "$seconds" "$budget"
}

# Requires that each of these variables, if it is set, is a whole number above 0.
require_whole_numbers() {
  local name
  for name in "$@"; do
    if [[ -n ${!name:-} && ! ${!name} =~ ^[1-9][0-9]{0,8}$ ]]; then
      say "$name is '${!name}'; write a whole number, as in $name=2"
      exit 2
    fi
  done
}

require_known_stages() {
  local name
  [[ ${FIRST_RUN_STAGES:-all} != all ]] || return 0
  for name in $FIRST_RUN_STAGES; do
    if ! field_of_stage "$name" kind >/dev/null; then
      say "unknown stage '$name' in FIRST_RUN_STAGES; stages: all" "${stages[@]%% *}"
      exit 2
    fi
  done
}

# Runs the stages that no call has tried, then those that an earlier call tried without success.
run_stages() {
  local entry name again=()
  for entry in "${stages[@]}"; do
    read -r name _ <<<"$entry"
    [[ ${FIRST_RUN_STAGES:-all} == all || " $FIRST_RUN_STAGES " == *" $name "* ]] || continue
    if grep -qx "done $name" "$out/log.txt"; then
      say "$name: already done"
    elif grep -q "^$name: exit " "$out/log.txt"; then
      again+=("$name")
    else
      consider_stage "$name"
    fi
  done
  for name in "${again[@]}"; do consider_stage "$name"; done
}

# Sets `bundle`, the folder of the bundle, and `out`, the folder of the state. $OUT is emptied before every call, so the
# state is elsewhere.
choose_folders() {
  bundle=${1:-${OUT:-out/first_run}}
  if [[ -n ${FIRST_RUN_WORK:-} ]]; then
    out=$FIRST_RUN_WORK
  elif [[ $bundle == "${OUT:-}" ]]; then
    out=/tmp/commfuse_first_run
  else
    out=$bundle/.work
  fi
}

# Continues from earlier results of this GPU in `out`, in the folder given as EARLIER, in `bundle` or, if the bundle
# goes to $OUT, in out/first_run, where a bundle may have been copied back. Results of another GPU are ignored in
# out/first_run, unless that is the bundle's own folder, and are an error elsewhere.
find_earlier() {
  local earlier=${1:-} folder gpu_there
  [[ -z $earlier || -n $(gpu_in "$earlier") ]] || { say "$earlier holds no bundle of a first run" && exit 2; }
  for folder in "$out" "$earlier" "$bundle" "$([[ $bundle != "${OUT:-}" ]] || printf out/first_run)"; do
    gpu_there=$(gpu_in "$folder")
    if [[ -z $gpu_there ]]; then
      continue
    elif [[ $gpu_there == "$gpu" ]]; then
      [[ $folder == "$out" ]] || take_over "$folder"
      return
    elif [[ $folder == out/first_run && $bundle != out/first_run ]]; then
      say "$folder holds results of $gpu_there, but this is $gpu: starting from the beginning"
      return
    fi
    say "$folder holds results of $gpu_there, but this is $gpu; give another folder"
    exit 2
  done
}

begin_call() {
  choose_folders "${1:-}"
  find_programs
  require_gpu
  recognize_hardware
  find_earlier "${2:-}"
  mkdir -p "$out"
  watch_gpus
  printf 'gpu: %s\nhardware: %s\n' "$gpu" "$hardware" >>"$out/log.txt"
  done_count=0 failed_count=0 unavailable_count=0 left_count=0 left_out=0
}

end_call() {
  end_watch
  publish || left_out=1
  [[ $out != "$bundle/.work" || $left_out == 1 ]] || rm -rf "$out"
  say "$done_count stages done, $failed_count failed, $unavailable_count cannot run here," \
    "$left_count left for the next call"
  say "the bundle is in $bundle: $(find "$bundle" -maxdepth 1 -type f | wc -l) files, $(du -sh "$bundle" | cut -f1)"
}

run() {
  require_known_stages
  begin_call "$@"
  run_stages
  end_call
  ((failed_count == 0))
}

sanitize() {
  find_sanitizer >/dev/null || unavailable "no compute-sanitizer here; it comes with the CUDA Toolkit"
  begin_call "$@"
  run_stage sanitize "$limit" "$limit"
  end_call
  ((failed_count == 0))
}

plan() {
  local entry name seconds kind description budget total=0 launches device host line
  hardware=${FIRST_RUN_HARDWARE:-h100-sxm}
  find_programs
  count_stages
  printf '%-13s %8s %12s %9s %9s  %s\n' stage budget launches device host description
  for entry in "${stages[@]}"; do
    read -r name seconds kind description <<<"$entry"
    budget=$(budget_of "$name")
    total=$((total + budget))
    launches=- device=- host=-
    if line=$(grep "^$name " "$budgets_file" 2>/dev/null); then
      read -r _ launches device host _ <<<"$line"
      device+=" s" host+=" s"
    fi
    printf '%-13s %6s s %12s %9s %9s  %s\n' "$name" "$budget" "$launches" "$device" "$host" "$description"
  done
  printf '%-13s %6s s\n' total "$total"
  ((total <= limit)) || say "the budgets need $(((total + limit - 1) / limit)) calls of $limit s"
  (require_gpu) && say "the stages can run here"
  true
}

require_whole_numbers FIRST_RUN_LIMIT FIRST_RUN_PATIENCE
verb=${1:-run}
case ${2:-} in
  -h | --help) verb=help ;;
  -*) verb=unknown ;;
esac
[[ $verb == --stage ]] || stop_on_signals
case $verb in
  run | sanitize) "$verb" "${@:2}" ;;
  pack) pack "${2:-$kit}" ;;
  plan) plan ;;
  --stage)
    out=$3
    hardware=$FIRST_RUN_HARDWARE
    multiprocessors=$FIRST_RUN_MULTIPROCESSORS
    gpus=${FIRST_RUN_GPUS:-1}
    find_programs
    "run_$2"
    ;;
  -h | --help | help) usage ;;
  *)
    usage >&2
    exit 2
    ;;
esac
