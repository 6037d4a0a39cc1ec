// SPDX-License-Identifier: Apache-2.0
// commfuse-validate check: proves generated schedules, or schedules from files, and runs them on real matrices.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/strategies/scope.h"
#include "model/text/quantity.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"
#include "sim/parallel/parallel.h"
#include "validate/commands/commands.h"
#include "validate/commands/executor_names.h"
#include "validate/commands/gpu.h"
#include "validate/cpu/cpu_executor.h"
#include "validate/mpi/launch.h"
#include "validate/mpi/mpi_executor.h"
#include "validate/reference/check_rows.h"
#include "validate/reference/references.h"
#include "validate/reference/rounding.h"

namespace commfuse::validate {

namespace {

/// The flags as written on the command line.
struct CheckRequest {
  std::vector<std::string> files;
  std::string strategy = "all";
  std::string ranks;
  std::string scope = "all";
  std::string dtype = "bf16";
  std::string wire = "dtype";
  std::string seed = "1";
  std::string format = "table";
  std::string executor;
  std::string chaos = "1";
  std::string patience = "60 s";
  std::string limit;
  GpuArguments gpu;
  bool thorough = false;
};

constexpr int seeds_of_chaos = 20;
constexpr int many_seeds_of_chaos = 200;

using Render = std::string (*)(std::span<const CheckResult>);
constexpr std::array renderers{std::pair<std::string_view, Render>{"table", to_table},
                               std::pair<std::string_view, Render>{"json", to_json},
                               std::pair<std::string_view, Render>{"csv", to_csv}};

/// Returns the index in `names` of the value of a flag. Throws ConfigError for an unknown word.
std::size_t index_of_word(std::string_view flag, std::string_view word, std::span<const std::string_view> names,
                          std::string_view what) {
  const auto match = std::ranges::find(names, word);
  if (match == names.end()) {
    throw ConfigError(fmt::format("{}: unknown value {}; {}", flag, in_quotes(word), remedy_for(word, names, what)));
  }
  return static_cast<std::size_t>(match - names.begin());
}

/// Returns the indices in `names` of the words of a list; the single word "all" means every name.
std::vector<std::size_t> indices_of_words(std::string_view flag, std::string_view list,
                                          std::span<const std::string_view> names, std::string_view what) {
  std::vector<std::size_t> indices;
  if (list == "all") {
    for (std::size_t i = 0; i < names.size(); ++i) {
      indices.push_back(i);
    }
    return indices;
  }
  std::vector<std::string_view> known{names.begin(), names.end()};
  known.emplace_back("all");
  for (const std::string_view word : split_list(list)) {
    const std::size_t index = index_of_word(flag, word, known, what);
    if (index == names.size()) {
      throw ConfigError(fmt::format("{}: 'all' cannot be combined with other values; write {} all", flag, flag));
    }
    if (std::ranges::find(indices, index) == indices.end()) {
      indices.push_back(index);
    }
  }
  return indices;
}

std::vector<const Strategy*> strategies_of(const std::string& list) {
  std::vector<std::string_view> names;
  for (const Strategy& strategy : strategies()) {
    names.push_back(strategy.name);
  }
  std::vector<const Strategy*> result;
  for (const std::size_t index : indices_of_words("--strategy", list, names, "strategies")) {
    result.push_back(all_strategies[index]);
  }
  return result;
}

std::vector<std::string_view> checked_scopes() {
  std::vector<std::string_view> scopes;
  for (const CheckedOperation& operation : checked_operations()) {
    if (std::ranges::find(scopes, operation.scope) == scopes.end()) {
      scopes.push_back(operation.scope);
    }
  }
  return scopes;
}

/// Throws ConfigError for a scope of `run` that has another name here: one word stands for all scopes of one kind.
void require_no_scope_of_run(std::string_view list, std::span<const std::string_view> scopes) {
  for (const std::string_view word : split_list(list)) {
    const std::optional<Scope> scope = scope_named(word);
    if (!scope || std::ranges::find(scopes, word) != scopes.end()) {
      continue;
    }
    for (const CheckedOperation& operation : checked_operations()) {
      if (kinds_of(operation.operation) == kinds_of(*scope)) {
        throw ConfigError(fmt::format("--scope: check has no scope {}, but its schedules are those of {}; write {}",
                                      in_quotes(word), operation.scope, operation.scope));
      }
    }
  }
}

std::vector<const CheckedOperation*> operations_of(const std::string& list) {
  const std::vector<std::string_view> scopes = checked_scopes();
  require_no_scope_of_run(list, scopes);
  std::vector<const CheckedOperation*> result;
  for (const std::size_t index : indices_of_words("--scope", list, scopes, "scopes")) {
    for (const CheckedOperation& operation : checked_operations()) {
      if (operation.scope == scopes[index]) {
        result.push_back(&operation);
      }
    }
  }
  return result;
}

DType dtype_of(const std::string& name) {
  std::vector<DType> dtypes;
  std::vector<std::string_view> names;
  for (const DType dtype : all_dtypes) {
    if (can_store(dtype)) {
      dtypes.push_back(dtype);
      names.push_back(name_of(dtype));
    }
  }
  return dtypes[index_of_word("--dtype", name, names, "dtypes")];
}

/// Returns the dtype of --wire; nothing if transfers have the dtype of the tensors.
std::optional<DType> wire_of(const std::string& name) {
  constexpr std::array<std::string_view, 4> names{"dtype", "bf16", "fp16", "fp8"};
  const std::size_t index = index_of_word("--wire", name, names, "dtypes");
  const auto* dtype = std::ranges::find(all_dtypes, names[index], [](DType known) { return name_of(known); });
  return index == 0 ? std::nullopt : std::optional(*dtype);
}

std::uint64_t seed_of(std::string_view flag, const std::string& text, std::int64_t least) {
  const std::optional<std::int64_t> seed = parse_integer(text);
  if (!seed || *seed < least) {
    throw ConfigError(fmt::format("{}: {} is not a whole number of at least {}; write one, as in {} 1", flag,
                                  in_quotes(text), least, flag));
  }
  return static_cast<std::uint64_t>(*seed);
}

std::chrono::nanoseconds patience_of(const CheckRequest& request) {
  const std::optional<Duration> patience = parse_duration(request.patience);
  if (!patience || *patience <= Duration{}) {
    throw ConfigError(fmt::format("--patience: {} is not a time to wait; write a number and a unit, as in '60 s'",
                                  in_quotes(request.patience)));
  }
  return stretched(*patience, 1.0);
}

/// Executors on processes need `crew`, those with a GPU per process also `gpus`; cuda-virtual needs `gpu`.
CheckHow how_of(const CheckRequest& request, Crew* crew, GpuCrew* gpus, Gpu* gpu) {
  CheckHow how{.name = request.executor,
               .orders = request.thorough ? many_seeds_of_chaos : seeds_of_chaos,
               .chaos = seed_of("--chaos", request.chaos, 1)};
  if (gpus != nullptr) {
    how.oracle = gpus->oracle();
    how.library_sums = gpus->library_sums();
  }
  if (crew != nullptr) {
    const MakeExecutor processes = [crew](Lowered lowered, Sizes sizes) {
      return std::make_unique<MpiExecutor>(std::move(lowered), std::move(sizes), *crew);
    };
    how.executor = gpus != nullptr ? gpus->checked() : processes;
    how.together = [crew](int ranks, const Verdict& mine) { return of_all_ranks(*crew, ranks, mine); };
  } else if (gpu != nullptr) {
    how.executor = gpu->all_ranks(false, patience_of(request));
    how.oracle = gpu->all_ranks(true, patience_of(request));
  } else if (request.executor == "cpu") {
    how.executor = [patience = patience_of(request)](Lowered lowered, Sizes sizes) {
      return std::make_unique<CpuExecutor>(std::move(lowered), std::move(sizes), CpuOptions{.patience = patience});
    };
  } else {
    return {};
  }
  return how;
}

Render renderer_of(const std::string& format) {
  std::array<std::string_view, renderers.size()> names;
  std::ranges::transform(renderers, names.begin(), [](const auto& renderer) { return renderer.first; });
  return renderers[index_of_word("--output", format, names, "formats")].second;
}

std::vector<CheckPoint> points_of(const CheckRequest& request) {
  const std::vector<std::int32_t> all_ranks =
      parse_whole_numbers(request.ranks, {.flag = "--ranks", .lowest = 1, .highest = max_ranks});
  const std::vector<const Strategy*> all_strategies = strategies_of(request.strategy);
  const StrategyOptions fixed{.dtype = dtype_of(request.dtype)};
  const std::uint64_t seed = seed_of("--seed", request.seed, 0);
  const std::optional<DType> wire = wire_of(request.wire);
  std::vector<CheckPoint> points;
  for (const CheckedOperation* operation : operations_of(request.scope)) {
    for (const std::int32_t ranks : all_ranks) {
      for (const Strategy* strategy : all_strategies) {
        for (const StrategyOptions& options :
             schedules_to_prove(*strategy, kinds_of(operation->operation), ranks, fixed)) {
          points.push_back({operation, strategy, options, ranks, seed, {}, wire});
        }
      }
    }
  }
  if (points.empty()) {
    throw ConfigError(
        fmt::format("--strategy {}: no schedule for --scope {} and --ranks {}; choose other strategies or scopes",
                    request.strategy, request.scope, request.ranks));
  }
  return points;
}

/// Reads the schedules of files. Throws ConfigError with the mistakes in every file.
std::vector<CheckPoint> points_of_files(const CheckRequest& request) {
  const std::uint64_t seed = seed_of("--seed", request.seed, 0);
  std::vector<CheckPoint> points;
  std::string mistakes;
  for (const std::string& file : request.files) {
    try {
      points.push_back(point_of(load_schedule(file), seed));
    } catch (const ConfigError& error) {
      mistakes += fmt::format("{}{}", mistakes.empty() ? "" : "\n", error.what());
    }
  }
  if (!mistakes.empty()) {
    throw ConfigError(mistakes);
  }
  return points;
}

std::vector<CheckPoint> all_points_of(const CheckRequest& request) {
  return request.files.empty() ? points_of(request) : points_of_files(request);
}

bool is_streamed(const CheckRequest& request) { return request.format == "csv"; }

/// Prints a row of CSV as soon as it is known; other formats need all rows first.
void print_now(const CheckRequest& request, const CheckResult& result) {
  if (is_streamed(request)) {
    fmt::print("{}", csv_row(result));
    std::fflush(stdout);
  }
}

int report(const CheckRequest& request, std::span<const CheckResult> results) {
  if (!is_streamed(request)) {
    fmt::print("{}", renderer_of(request.format)(results));
  }
  fmt::print(stderr, "{}", findings_in_words(results));
  return std::ranges::all_of(results, &CheckResult::ok) ? exit_code::done : exit_code::gate_missed;
}

/// Returns the time limit; nothing if there is none.
std::optional<Duration> limit_of(const CheckRequest& request) {
  if (request.limit.empty()) {
    return std::nullopt;
  }
  const std::optional<Duration> limit = parse_duration(request.limit);
  if (!limit || *limit <= Duration{}) {
    throw ConfigError(
        fmt::format("--limit: {} is not a time; write a number and a unit, as in '30 s'", in_quotes(request.limit)));
  }
  return limit;
}

/// Checks points and prints each result in the order of the points. The reference checks on all cores, and its results
/// do not depend on the number of threads; executors have threads of their own.
class CheckedPoints {
 public:
  CheckedPoints(const CheckRequest& request, const std::vector<CheckPoint>& points, bool prints)
      : request_(request), points_(points), prints_(prints), results_(points.size()), limit_(limit_of(request)) {}

  void check_all(const CheckHow& how) {
    if (how.executor) {
      check_part(how, points_.size());
    } else {
      for_each_index(threads_at_most(), [&](std::size_t /*worker*/) { check_part(how, points_per_batch); });
    }
    print_rows_behind_skipped_points();
  }

  /// Returns the results of the checked points, in the order of the points.
  [[nodiscard]] std::vector<CheckResult> results() && {
    std::vector<CheckResult> checked;
    for (std::optional<CheckResult>& result : results_) {
      if (result) {
        checked.push_back(*std::move(result));
      }
    }
    return checked;
  }

 private:
  static constexpr std::size_t points_per_batch = 16;  // Adjacent points share their reference results.

  [[nodiscard]] bool is_late() const { return limit_ && std::chrono::steady_clock::now() - start_ > *limit_; }

  /// Checks `batch` points at a time until none is left.
  void check_part(const CheckHow& how, std::size_t batch) {
    References references;
    for (std::size_t first = next_.fetch_add(batch); first < points_.size(); first = next_.fetch_add(batch)) {
      for (std::size_t i = first; i < std::min(first + batch, points_.size()) && !is_late(); ++i) {
        finish(i, check_point(points_[i], how, &references));
      }
    }
  }

  void finish(std::size_t index, CheckResult result) {
    const std::lock_guard lock(mutex_);
    results_[index] = std::move(result);
    while (prints_ && printed_ < results_.size() && results_[printed_]) {
      print_now(request_, *results_[printed_++]);
    }
  }

  /// At the limit, a thread may have skipped points while another thread has checked later ones.
  void print_rows_behind_skipped_points() {
    for (; prints_ && printed_ < results_.size(); ++printed_) {
      if (results_[printed_]) {
        print_now(request_, *results_[printed_]);
      }
    }
  }

  const CheckRequest& request_;
  const std::vector<CheckPoint>& points_;
  bool prints_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::vector<std::optional<CheckResult>> results_;
  std::size_t printed_ = 0;  // Number of points whose rows are printed, always the first ones.
  std::optional<Duration> limit_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

int run(const CheckRequest& request) {
  const std::unique_ptr<Gpu> gpu =
      request.executor == "cuda-virtual" ? std::make_unique<Gpu>(request.gpu) : std::unique_ptr<Gpu>();
  const CheckHow how = how_of(request, nullptr, nullptr, gpu.get());
  const bool is_dry = gpu && gpu->is_dry();
  const std::vector<CheckPoint> points = all_points_of(request);
  CheckedPoints checked(request, points, !is_dry);
  if (is_streamed(request) && !is_dry) {
    fmt::print("{}", csv_header());
  }
  checked.check_all(how);
  const std::vector<CheckResult> results = std::move(checked).results();
  if (is_dry) {
    fmt::print("{}\n", gpu->dry_run_in_words());
    return exit_code::done;
  }
  const int code = report(request, results);
  if (results.size() < points.size()) {
    const std::size_t skipped = points.size() - results.size();
    fmt::print(stderr, "--limit {}: {} of {} {} {} not checked\n", request.limit, skipped, points.size(),
               points.size() == 1 ? "schedule" : "schedules", skipped == 1 ? "was" : "were");
    return std::max(code, static_cast<int>(exit_code::failed_points));
  }
  return code;
}

/// Runs on every process. A process skips schedules that have no rank for it.
int run_on_processes(const CheckRequest& request, Crew& crew) {
  if (!request.limit.empty()) {
    throw ConfigError("--limit is not available if ranks are processes; remove --limit, or choose another --executor");
  }
  const std::vector<CheckPoint> points = all_points_of(request);
  const int ranks = std::ranges::max(points, {}, &CheckPoint::ranks).ranks;
  require_processes(ranks, crew);
  const std::optional<CrewLinks> links = crew_links_of(request.executor);
  if (links && std::ranges::any_of(points, [&](const CheckPoint& point) { return point.ranks != ranks; })) {
    throw ConfigError(fmt::format("--executor {} checks a single number of ranks; give one, as in --ranks {}",
                                  request.executor, ranks));
  }
  if (links && crew.process() >= ranks) {
    return exit_code::done;
  }
  const std::unique_ptr<GpuCrew> gpus = links ? std::make_unique<GpuCrew>(request.gpu, crew, ranks, *links) : nullptr;
  const CheckHow how = how_of(request, &crew, gpus.get(), nullptr);
  References references;
  std::vector<CheckResult> results;
  if (is_streamed(request) && crew.leads()) {
    fmt::print("{}", csv_header());
  }
  for (const CheckPoint& point : points) {
    if (crew.process() < point.ranks) {
      results.push_back(check_point(point, how, &references));
      if (crew.leads()) {
        print_now(request, results.back());
      }
    }
  }
  return crew.leads() ? report(request, results) : exit_code::done;
}

/// Fills in the defaults, which depend on whether MPI started this process, and runs.
int run_here(CheckRequest request, Launch& launch) {
  if (request.executor.empty()) {
    request.executor = launch.under_mpi() ? "mpi" : "reference";
  }
  index_of_word("--executor", request.executor, checked_executors, "executors");
  renderer_of(request.format);
  const std::chrono::nanoseconds patience = patience_of(request);
  if (crew_links_of(request.executor)) {
    Crew& crew = launch.crew_anyhow(patience);
    request.ranks = request.ranks.empty() ? fmt::format("{}", crew.processes()) : request.ranks;
    return run_on_processes(request, crew);
  }
  if (request.ranks.empty()) {
    request.ranks = request.executor == "mpi" ? fmt::format("{}", launch.processes()) : "1..8";
  }
  if (request.executor == "mpi") {
    return run_on_processes(request, launch.crew(patience));
  }
  return launch.works_alone() ? run(request) : exit_code::done;
}

/// Throws ConfigError for flags that choose among generated schedules, because they do not apply to a file.
void require_no_choice(const CLI::App& command, const CheckRequest& request) {
  for (const char* flag : {"--strategy", "--ranks", "--scope", "--dtype", "--wire"}) {
    if (!request.files.empty() && command.count(flag) > 0) {
      throw ConfigError(fmt::format("{} chooses among generated schedules; remove it, or the file", flag));
    }
  }
}

/// Throws ConfigError for flags of executors if the sequential interpreter checks alone, because it ignores them.
void require_executor(const CLI::App& command, const Launch& launch, const CheckRequest& request) {
  if (request.executor.empty() ? launch.under_mpi() : request.executor != "reference") {
    return;
  }
  for (const char* flag : {"--chaos", "--patience", "--long"}) {
    if (command.count(flag) > 0) {
      throw ConfigError(fmt::format("{} needs an executor; add --executor cpu, or remove {}", flag, flag));
    }
  }
}

/// Adds the flags that choose schedules and data.
void add_schedule_flags(CLI::App& command, CheckRequest& request) {
  offers_names(command.add_option("FILE", request.files, "Schedules in YAML instead of generated ones: names or paths"),
               Catalogue::schedules);
  const std::vector<std::string_view> names = find_field("strategy.name")->choices();
  usual(offers_words(command
                         .add_option("--strategy", request.strategy,
                                     fmt::format("Strategies to check, with all variants: {}", fmt::join(names, ", ")))
                         ->capture_default_str(),
                     names));
  usual(command
            .add_option("--ranks", request.ranks,
                        "Ranks, for example 4, 2,4,8 or 1..8; at most 64; with mpi, the number of processes")
            ->default_str("1..8"));
  std::vector<std::string_view> scopes = checked_scopes();
  scopes.insert(scopes.begin(), "all");
  usual(
      offers_words(command
                       .add_option("--scope", request.scope,
                                   "ag_gemm, gemm_rs, attention, mlp, layer, and more; also gemm_ar, mlp_ar, ulysses, "
                                   "ag_gemm_backward, gemm_rs_backward, weight_ag_gemm, data_parallel; ag_gemm is "
                                   "qkv and gate_up of run, gemm_rs is out_proj and down, gemm_ar is out_proj_ar "
                                   "and down_ar")
                       ->capture_default_str(),
                   scopes));
  usual(offers_words(command.add_option("--dtype", request.dtype, "bf16, fp16, fp32")->capture_default_str(),
                     {"bf16", "fp16", "fp32"}));
  usual(offers_words(command
                         .add_option("--wire", request.wire,
                                     "Dtype of exchanges, all-gathers and all-to-alls if narrower: dtype (as --dtype), "
                                     "bf16, fp16 or fp8 (E4M3, saturating at 448)")
                         ->capture_default_str(),
                     {"dtype", "bf16", "fp16", "fp8"}));
}

/// Adds the flags for executor, time limit and output.
void add_run_flags(CLI::App& command, CheckRequest& request) {
  usual(command.add_option("--seed", request.seed, "Seed of the random data")->capture_default_str());
  usual(offers_words(command
                         .add_option("--executor", request.executor,
                                     "reference; cpu: ranks and lanes are threads; cuda-virtual: virtual ranks on one "
                                     "GPU; mpi: ranks are processes, the default under mpirun; nccl: processes with a "
                                     "GPU each; cuda-peer: as nccl, on one machine, by copies into peers' memory")
                         ->default_str("reference"),
                     {"reference", "cpu", "cuda-virtual", "cuda-peer", "mpi", "nccl"}));
  command
      .add_option("--chaos", request.chaos,
                  "First of 20 seeds of random delays (yields, waits up to 20 us); needs an executor")
      ->capture_default_str();
  command.add_option("--patience", request.patience, "Give up if no op completes for this long; needs an executor")
      ->capture_default_str()
      ->type_name("TIME");
  usual(command
            .add_option("--limit", request.limit,
                        "Start no schedule after this time; earlier rows are kept, and the exit code is 3")
            ->type_name("TIME"));
  add_device_flag(command, request.gpu, "Options");
  add_nccl_buffer_flags(command, request.gpu, "Options");
  usual(command.add_flag("--long", request.thorough, "200 seeds of chaos instead of 20; needs an executor"));
  usual(offers_words(command.add_option("-o,--output", request.format, "table, json, csv")->capture_default_str(),
                     {"table", "json", "csv"}));
}

constexpr const char* about =

    "A row passes if the program is proved, if integer data reproduces the unfused\n"
    "result bit for bit in several orders of its ops, and if random data stays within\n"
    "the error bound (bound: largest error over the bound) and, where no sum is cut,\n"
    "reproduces the result bit for bit. With an executor the columns are levels; all\n"
    "but T0 check computed values. T0: equal bytes are moved. T1: all memory is bit\n"
    "for bit the sequential interpreter's, under every seed of chaos. T-int: integers\n"
    "are exact. T2: where no sum is cut, the result is the unfused one bit\n"
    "for bit. T3: errors are within the bound. With nccl, T1 is not required where\n"
    "NCCL sums more than two ranks: NCCL has its own order and rounds at every hop,\n"
    "which T3 allows for. CSV is printed row by row.\n"
    "\n"
    "Examples:\n"
    "  commfuse-validate check --strategy all --ranks 1..8\n"
    "  commfuse-validate check --strategy commfuse --scope mlp --ranks 8 --dtype fp32\n"
    "  commfuse-validate check --strategy sliced,serial --ranks 2,4,8 -o csv\n"
    "  commfuse-validate check configs/schedules/doubling.yaml\n"
    "  commfuse-validate check --executor cpu --scope ag_gemm,gemm_rs --ranks 4\n"
    "  mpirun -np 4 commfuse-validate check --scope mlp\n"
    "  commfuse-validate check --executor cuda-virtual --ranks 2,4,8\n"
    "\n"
    "Exit codes: 0 all schedules passed; 3 --limit skipped schedules; 4 a schedule\n"
    "failed; 2 the input is wrong; 1 failed; 69 no GPU is available.";

}  // namespace

void add_check(CLI::App& app, Launch& launch, int& status) {
  add_verb(app, "check", "Prove every schedule and run it on real matrices: exact integers, bounded sums",
           [&launch, &status](CLI::App& command) {
             const auto request = std::make_shared<CheckRequest>();
             add_schedule_flags(command, *request);
             add_run_flags(command, *request);
             command.footer(about);
             command.callback([request, &command, &launch, &status] {
               require_no_choice(command, *request);
               require_executor(command, launch, *request);
               require_fitting_gpu_flags(command, request->executor);
               status = run_here(*request, launch);
             });
           });
}

}  // namespace commfuse::validate
