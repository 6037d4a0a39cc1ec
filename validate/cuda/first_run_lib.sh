# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by first_run.sh: programs and their libraries, the GPU and its hardware file, budgets, the bundle, the kit.
# shellcheck disable=SC2154 # first_run.sh sets the tables and limits.

say() { printf 'first_run: %s\n' "$*" >&2; }

# Prints its arguments and exits with code 69: some hardware or program that is needed is missing.
unavailable() {
  say "$*"
  exit 69
}

# --- programs and libraries

# Prints the folders with NVIDIA's libraries among the packages of one Python, as that Python reports them.
libraries_of_python() {
  timeout 20 "$1" - 2>/dev/null <<'PYTHON' || true
import glob, site, sys, sysconfig
folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages(), *sys.path]
if site.ENABLE_USER_SITE:
    folders.append(site.getusersitepackages())
for folder in dict.fromkeys(filter(None, folders)):
    for pattern in ("/nvidia/*/lib", "/nvidia/*/lib64"):
        for match in sorted(glob.glob(glob.escape(folder) + pattern)):
            print(match)
PYTHON
}

# Prints the folders of NVIDIA's libraries: in the toolkit, in the Pythons on this machine, and in virtual environments
# below /opt.
cuda_library_folders() {
  local folder python
  for folder in /usr/local/cuda/lib64 /usr/local/cuda/extras/CUPTI/lib64; do
    [[ -d $folder ]] && printf '%s\n' "$folder"
  done
  for python in python3 /opt/*/.venv/bin/python3 /opt/*/bin/python3 /opt/.venv/bin/python3; do
    command -v "$python" >/dev/null && libraries_of_python "$python"
  done
  for folder in /opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib /opt/*/lib/python3*/site-packages/nvidia/*/lib \
    /usr/lib/python3*/site-packages/nvidia/*/lib /usr/local/lib/python3*/*-packages/nvidia/*/lib; do
    [[ -d $folder ]] && printf '%s\n' "$folder"
  done
  true
}

# Prints the files of NVIDIA's libraries in the folders of `libraries`, one line per library.
list_nvidia_libraries() {
  local name folder file folders
  IFS=: read -r -a folders <<<"$libraries"
  for name in libcublasLt.so libcudnn.so libcupti.so libnccl.so; do
    file=
    for folder in "${folders[@]}"; do
      file=$(compgen -G "$folder/$name.*" | head -n 1) && break
    done
    printf '%s: %s\n' "$name" "${file:-not found}"
  done
}

# Sets `programs` and `libraries`. The programs are those in FIRST_RUN_PROGRAMS if it is set, else the packed ones if
# there is a kit, else those of this tree, which are built now.
find_programs() {
  programs=${FIRST_RUN_PROGRAMS:-}
  if [[ -z $programs && -x $kit/bin/commfuse-validate ]]; then
    programs=$PWD/$kit/bin
  elif [[ -z $programs ]]; then
    say "no kit in $kit: building here"
    # The machine's compilers may give warnings that ours do not give.
    cmake --preset release -DCOMMFUSE_WERROR=OFF >&2
    cmake --build build/release --target commfuse-sim commfuse-validate commfuse-test-validate >&2
    programs=$PWD/build/release/bin
  fi
  # The child process of a stage inherits the folders that its parent has found.
  if [[ -z ${FIRST_RUN_LIBRARIES+set} ]]; then
    libraries=$(cuda_library_folders | awk '!seen[$0]++' | paste -sd:)
    [[ ! -d $programs/../lib/system ]] || libraries=$programs/../lib/system${libraries:+:$libraries}
    libraries+=${LD_LIBRARY_PATH:+${libraries:+:}$LD_LIBRARY_PATH}
    # The packed C++ library is only a fallback: it is used if the program does not start with the machine's own, for
    # example because that one is older.
    if [[ -d $programs/../lib/fallback ]] && ! ours commfuse-sim version >/dev/null 2>&1; then
      libraries=$programs/../lib/fallback${libraries:+:$libraries}
    fi
    export FIRST_RUN_LIBRARIES=$libraries
  fi
  libraries=$FIRST_RUN_LIBRARIES
  export FIRST_RUN_PROGRAMS=$programs
  budgets_file=${FIRST_RUN_BUDGETS:-$programs/../first_run_budgets.txt}
}

# ours PROGRAM ARGUMENTS...: only our programs use the library folders; all others use the machine's libraries.
ours() { LD_LIBRARY_PATH=$libraries "$programs/$1" "${@:2}"; }

sim() { ours commfuse-sim "$@"; }

# on_first_gpu ARGUMENTS...: runs the validator on the first of several GPUs. The others stay hidden, because CUDA
# initializes all visible GPUs.
on_first_gpu() {
  local visible=${CUDA_VISIBLE_DEVICES:-0}
  if ((gpus > 1)); then
    CUDA_VISIBLE_DEVICES=${visible%%,*} ours commfuse-validate "$@"
  else
    ours commfuse-validate "$@"
  fi
}

# on_gpus COUNT ARGUMENTS...: runs the validator in COUNT processes. Each of them uses the GPU with its own number. If
# one process fails, the others give up by themselves. Returns 0, or the exit code of the failed process with the
# highest rank.
on_gpus() {
  local count=$1 port=$((20000 + RANDOM % 10000)) rank process code=0 processes=()
  for ((rank = 0; rank < count; rank++)); do
    RANK=$rank WORLD_SIZE=$count LOCAL_RANK=$rank MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
      ours commfuse-validate "${@:2}" &
    processes+=($!)
  done
  for process in "${processes[@]}"; do
    wait "$process" || code=$?
  done
  return "$code"
}

# A dry run calls only the commands that use the GPU, and keeps only their last line.
validate() {
  if [[ -z $dry_run ]]; then
    on_first_gpu "$@"
    return
  fi
  case $1 in
    probe | check | bench | run) ours commfuse-validate "$@" --dry-run | tail -n 1 >>"$dry_run" ;;
  esac
}

# --- the GPU

# Sets `gpu`, `multiprocessors` and `gpus`, the number of GPUs, from doctor's line. Exits with 69 if the plugin cannot
# load or there is no GPU.
require_gpu() {
  local line answer code=0
  answer=$(ours_in 60 commfuse-validate doctor 2>&1) || code=$?
  # A line that begins with blanks continues the line above.
  line=$(sed -e ':join' -e 'N' -e '$!bjoin' -e 's/\n  */ /g' <<<"$answer" | grep -E '^cuda +(yes|no): ' |
    sed -E 's/^cuda +//') ||
    unavailable "no usable GPU: doctor exited with code $code: $(tail -n 1 <<<"$answer")"
  [[ $line == yes:* ]] || unavailable "no usable GPU: ${line#no: }"
  line=${line#yes: }
  gpu=${line%% (*}
  gpus=$(grep -oE '\([0-9]+ multiprocessors' <<<"$line" | wc -l) ||
    unavailable "doctor does not give the number of multiprocessors: $line"
  multiprocessors=${line%% multiprocessors*}
  multiprocessors=${multiprocessors##*(}
  export FIRST_RUN_GPU=$gpu FIRST_RUN_MULTIPROCESSORS=$multiprocessors FIRST_RUN_GPUS=$gpus
}

# Logs clocks, power and temperatures every five seconds, until end_watch. The running nvidia-smi also keeps the GPUs
# initialized. Without persistence mode, every command would otherwise spend 1 to 3 s per GPU on initializing them.
watch_process=
watch_gpus() {
  command -v nvidia-smi >/dev/null || return 0
  mkdir -p "$out/records"
  nvidia-smi --query-gpu=timestamp,index,clocks.sm,clocks.mem,power.draw,temperature.gpu --format=csv,nounits \
    --loop=5 >>"$out/records/clocks.csv" 2>/dev/null </dev/null &
  watch_process=$!
}
end_watch() {
  [[ -n $watch_process ]] || return 0
  kill "$watch_process" 2>/dev/null || true
  wait "$watch_process" 2>/dev/null || true
  watch_process=
}

# ours_in SECONDS PROGRAM ARGUMENTS...: like `ours`, with a time limit.
ours_in() { LD_LIBRARY_PATH=$libraries timeout -k 5 "$1" "$programs/$2" "${@:3}"; }

# hardware_of NAME: prints our hardware file for a GPU, given the name from its driver; nothing for an unknown GPU.
hardware_of() {
  case $1 in
    *MIG*) ;;  # a slice of a GPU
    *GH200*) echo gh200 ;;
    *H200*NVL*) ;;
    *H200*) echo h200-sxm ;;
    *H100*NVL*) echo h100-nvl ;;
    *H100*PCIe*) echo h100-pcie ;;
    *H100*HBM3* | *H100*SXM*) echo h100-sxm ;;
    *H800*PCIe* | *H800*NVL*) ;;
    *H800*) echo h800-sxm ;;
    *"H20" | *"H20 "*) echo h20-sxm ;;
    *A100*SXM*80*) echo a100-sxm-80 ;;
    *A100*SXM*40*) echo a100-sxm-40 ;;
    *A100*PCI*) echo a100-pcie ;;
    *GB200*) echo gb200 ;;
    *GB300*) echo gb300 ;;
    *B200*) echo b200-sxm ;;
    *B300*) echo b300-sxm ;;
  esac
}

# Sets `hardware`: FIRST_RUN_HARDWARE, else the file for the GPU that doctor or, failing that, nvidia-smi reports.
recognize_hardware() {
  hardware=${FIRST_RUN_HARDWARE:-$(hardware_of "$gpu")}
  if [[ -z $hardware && $gpu != *MIG* ]]; then  # for a slice, nvidia-smi names the whole GPU
    hardware=$(hardware_of "$(timeout 20 nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)")
  fi
  if [[ -z $hardware ]]; then
    say "unknown GPU '$gpu'; name the hardware file to start from, as in FIRST_RUN_HARDWARE=h100-sxm"
    exit 2
  fi
  export FIRST_RUN_HARDWARE=$hardware
}

# Prints the name of `hardware`, which may be a path, in lower case and with "-" for every character that a machine's
# name may not have.
machine_name() {
  local name
  name=$(basename "$hardware" .yaml)
  name=${name,,}
  printf '%s\n' "${name//[^a-z0-9.-]/-}"
}

# --- budgets

# field_of_stage NAME FIELD: prints a field of a stage in the table `stages`: seconds, kind or description.
# Fails if there is no such stage.
field_of_stage() {
  local entry name seconds kind description
  for entry in "${stages[@]}"; do
    read -r name seconds kind description <<<"$entry"
    [[ $name == "$1" ]] || continue
    case $2 in
      seconds) printf '%s\n' "$seconds" ;;
      kind) printf '%s\n' "$kind" ;;
      description) printf '%s\n' "$description" ;;
    esac
    return
  done
  return 1
}

# Runs a stage against a device that only counts. Prints NAME LAUNCHES DEVICE_SECONDS HOST_SECONDS COMMANDS, or fails.
# Counts every size even with FIRST_RUN_QUICK, because later calls without it use the same counts.
count_stage() {
  local name=$1 folder code=0
  folder=$(mktemp -d)
  FIRST_RUN_QUICK='' FIRST_RUN_HARDWARE=$hardware FIRST_RUN_MULTIPROCESSORS=132 FIRST_RUN_DRY=$folder/dry_run.txt \
    timeout -k 5 "$max_seconds_to_count" "$script" --stage "$name" "$folder" >/dev/null 2>&1 || code=$?
  [[ $code != 0 || -s $folder/dry_run.txt ]] || code=1
  [[ $code != 0 ]] || awk -v name="$name" '
    /^dry run: / { gsub(",", ""); launches += $3; device += $5; host += $10; lines++; next }
    { bad = 1 }
    END { if (!lines || bad) exit 1; printf "%s %d %.3f %.3f %d\n", name, launches, device, host, lines }' \
    "$folder/dry_run.txt" || code=$?
  rm -rf "$folder"
  return "$code"
}

# Adds the missing stages to the budgets file.
count_stages() {
  local entry name kind line
  for entry in "${stages[@]}"; do
    read -r name _ kind _ <<<"$entry"
    [[ $kind != fixed ]] || continue
    ! grep -q "^$name " "$budgets_file" 2>/dev/null || continue
    if line=$(count_stage "$name"); then
      printf '%s\n' "$line" >>"$budgets_file"
    else
      say "$name: the dry run failed; its budget stays $(field_of_stage "$name" seconds) s"
    fi
  done
}

# Prints the budget of a stage in seconds: twice the count of the dry run plus the start of its commands, at least 5;
# without a count, the seconds of the table.
budget_of() {
  awk -v name="$1" -v start="$seconds_to_start" -v default="$(field_of_stage "$1" seconds)" '
    $1 == name { wanted = 2 * ($3 + $4) + start * $5; has_count = 1 }
    END {
      if (!has_count) wanted = default
      else if (wanted < 5) wanted = 5
      print int(wanted) + (wanted > int(wanted))
    }' "$([[ -f $budgets_file ]] && printf '%s' "$budgets_file" || printf /dev/null)"
}

# --- the bundle

# fit FILE: compresses a file that is too large to carry. A log that is still too large loses its middle. A data file is
# never cut: if it is still too large, it is omitted and named, and 1 is returned.
fit() {
  local file=$1 max_bytes=$((max_mib_of_file * 1024 * 1024)) half
  (($(stat -c %s "$file") > max_bytes)) || return 0
  gzip -9 -f "$file"
  (($(stat -c %s "$file.gz") > max_bytes)) || return 0
  if [[ $(basename "$file") != log.txt ]]; then
    say "omitted from the bundle: $(basename "$file"), $(stat -c %s "$file.gz") bytes when compressed; it is in $out"
    rm "$file.gz"
    return 1
  fi
  gunzip "$file.gz"
  half=$((max_bytes / 2 - 100))
  {
    head -c "$half" "$file"
    printf '\n[the middle is omitted]\n'
    tail -c "$half" "$file"
  } >"$file.cut"
  mv "$file.cut" "$file"
}

# Copies all present files to the bundle. It runs after every stage, so the bundle has all measurements however this run
# ends. Fails if a file is too large or cannot be copied, as on a full disk. The bundle then has no copy of a file that
# is too large, and keeps the older copy of a file that cannot be copied.
publish() {
  local file name copy=$out/copy code=0
  rm -rf "$copy"
  mkdir -p "$bundle" "$copy"
  if [[ -d $out/records ]] && ! tar -czf "$out/records.tgz" -C "$out" records; then
    say "the records cannot be packed; they are in $out/records"
    rm -f "$out/records.tgz"
    code=1
  fi
  for name in "${bundle_files[@]}"; do
    name=${name/HARDWARE/$(machine_name)}
    [[ -s $out/$name ]] || continue
    if ! cp "$out/$name" "$copy/$name"; then
      say "$name cannot be copied to the bundle; it is in $out"
      rm -f "$copy/$name"
      code=1
      continue
    fi
    fit "$copy/$name" || code=1
    file=$(compgen -G "$copy/$name*") || file=
    if [[ -n $file ]] && ! mv -f "$file" "$bundle/.new"; then
      say "$name cannot be copied to the bundle; it is in $out"
      rm -f "$bundle/.new"
      code=1
      continue
    fi
    rm -f "$bundle/$name" "$bundle/$name.gz"
    [[ -z $file ]] || mv -f "$bundle/.new" "$bundle/$(basename "$file")"
  done
  rm -rf "$copy"
  return "$code"
}

# take_over FOLDER: continues from the files of an earlier run, which may be read-only.
take_over() {
  local file
  mkdir -p "$out"
  for file in "$1"/*; do
    [[ -f $file ]] || continue
    cp "$file" "$out/"
    chmod u+w "$out/$(basename "$file")"
    [[ $file != *.gz ]] || gunzip -f "$out/$(basename "$file")"
  done
  [[ ! -f $out/records.tgz ]] || tar -xzf "$out/records.tgz" -C "$out"
  say "continuing from $1"
}

# gpu_in FOLDER: prints the GPU whose results a folder has; nothing if it has none.
gpu_in() {
  [[ -n $1 ]] || return 0
  local log=$1/log.txt
  [[ -f $log ]] || log=$log.gz
  [[ -f $log ]] || return 0
  gunzip -cf "$log" | awk '/^gpu: / && !printed { sub("gpu: ", ""); print; printed = 1 }'
}

# --- the kit

is_of_nvidia() { [[ $1 =~ /lib(cublas|cublasLt|cudart|cudnn|cufft|cupti|nccl|nvrtc|nvJitLink|cuda)[._] ]]; }
is_of_the_c_library() { [[ $1 =~ /(lib(c|m|pthread|dl|rt|util|resolv)\.so|ld-linux) ]]; }
is_of_the_compiler() { [[ $1 =~ /lib(stdc\+\+|gcc_s)\.so ]]; }

# 90: code for sm_90, and PTX, which the driver compiles for later GPUs.
build_programs() {
  cmake -S . -B "$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCOMMFUSE_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=90 >&2
  cmake --build "$1" --target commfuse-sim commfuse-validate commfuse-test-validate commfuse_cuda >&2
}

# Packs all libraries except NVIDIA's and the C library, which come from the machine. The compiler's libraries are used
# only if the programs do not start with the machine's own. Exits with 1 if another library is missing, because the kit
# would not start.
pack_libraries() {
  local into=$1 needed library
  needed=$(ldd "$into"/bin/* "$into"/lib/commfuse/* || true)
  while IFS= read -r library; do
    if ! is_of_nvidia "/$library" && ! is_of_the_c_library "/$library"; then
      say "$library is not found; install it, or name its folder in LD_LIBRARY_PATH"
      exit 1
    fi
  done < <(sed -nE 's/^[[:blank:]]*(.*) => not found$/\1/p' <<<"$needed" | sort -u)
  while IFS= read -r library; do
    if is_of_nvidia "$library" || is_of_the_c_library "$library"; then
      continue
    elif is_of_the_compiler "$library"; then
      cp -L "$library" "$into/lib/fallback/"
    else
      cp -L "$library" "$into/lib/system/"
    fi
  done < <(sed -nE 's/^.* => (\/.*) \(0x[0-9a-f]+\)$/\1/p' <<<"$needed" | sort -u)
}

pack() {
  local into=${1:-$kit} build=${FIRST_RUN_BUILD:-build/first_run} size
  # The folder is emptied, so it must not hold anything else.
  if [[ $into != "$kit" && ! -x $into/bin/commfuse-validate && -e $into && -n $(ls -A "$into") ]]; then
    say "$into is not empty and holds no kit; give another folder"
    exit 2
  fi
  [[ -n ${FIRST_RUN_BUILD:-} ]] || build_programs "$build"
  rm -rf "$into"
  mkdir -p "$into/bin" "$into/lib/commfuse" "$into/lib/system" "$into/lib/fallback" "$into/share/commfuse"
  cp "$build/bin/"commfuse-{sim,validate,test-validate} "$into/bin/"
  cp "$build/lib/commfuse/libcommfuse_cuda.so" "$into/lib/commfuse/"
  cp -r configs "$into/share/commfuse/configs"
  pack_libraries "$into"
  strip --strip-unneeded "$into"/bin/* "$into"/lib/*/*
  hardware=${FIRST_RUN_HARDWARE:-h100-sxm}
  FIRST_RUN_PROGRAMS=$(cd "$into/bin" && pwd)
  find_programs
  count_stages
  size=$(du -sm "$into" | cut -f1)
  say "$into: $size MiB"
  if ((size >= max_mib_of_kit)); then
    say "too large to carry; a kit must be smaller than $max_mib_of_kit MiB"
    exit 1
  fi
}
