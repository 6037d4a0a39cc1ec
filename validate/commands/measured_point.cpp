// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/measured_point.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>

#include "model/build_info.h"
#include "model/config/catalogue.h"
#include "model/config/choices.h"
#include "model/config/meant.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/stderr_text.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "reports/atomic_file.h"
#include "sim/point/unused_variables.h"
#include "validate/commands/executor_names.h"
#include "validate/commands/output_files.h"
#include "validate/commands/real_variant.h"
#include "validate/cpu/cpu_executor.h"
#include "validate/measure/op_samples.h"
#include "validate/mpi/crew.h"
#include "validate/mpi/launch.h"
#include "validate/reference/check_file.h"
#include "validate/reference/check_point.h"
#include "validate/reference/rounding.h"

namespace commfuse::validate {

namespace {

constexpr std::array<std::string_view, 2> computes{"emulated", "real"};
/// An emulated op should last long enough to make the delay of waking up negligible.
constexpr Duration shortest_step = std::chrono::milliseconds(2);
/// A point that two cores run for real in a minute. Its scope computes only a GEMM, because the model does not price
/// the arithmetic of elementwise functions.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> real_point{
    {{"model", "gpt-2-xl"}, {"ranks", "2"}, {"seq", "256"}, {"scope", "gate_up"}}};
constexpr std::int64_t max_bytes = std::int64_t{4} << 30U;

/// Returns true for settings that become flags. Bandwidths of machines do not: --link-bandwidth slows real links here
/// (pace_flags.h), and machines with other links are for predictions only.
bool has_flag(const Field& field) { return field.uses.has(Use::measure) && field.type != FieldType::bandwidth; }

int count_of(std::string_view flag, const std::string& text, int least) {
  constexpr int largest = 1'000'000;
  const std::optional<std::int64_t> count = parse_integer(text);
  if (!count || *count < least || *count > largest) {
    throw ConfigError(fmt::format("{}: {} is not a whole number from {} to {}; write one, as in {} 25", flag,
                                  in_quotes(text), least, largest, flag));
  }
  return static_cast<int>(*count);
}

Costs costs_of(const Point& point, const Prediction& prediction) {
  return price(prediction.structure->program(), prediction.structure->meetings, prediction.sizes, point.machine,
               point.price);
}

/// Returns the price of the shortest op, not counting local ops such as adds; nothing if there are only local ops.
std::optional<Duration> shortest_op(const Program& program, const Costs& costs) {
  std::optional<Duration> shortest;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const Duration price = costs.of(0, op);
    if (program.ops[op].purpose != Purpose::local && price > Duration{}) {
      shortest = std::min(shortest.value_or(price), price);
    }
  }
  return shortest;
}

/// Returns the dilation with which the shortest op of all schedules lasts long enough.
double automatic_dilation(std::span<const Prediction> predictions, std::span<const Costs> costs) {
  double dilation = 1.0;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (const auto shortest = shortest_op(predictions[i].structure->program(), costs[i])) {
      dilation = std::max(dilation, std::ceil(to_seconds(shortest_step) / to_seconds(*shortest)));
    }
  }
  return dilation;
}

double dilation_of(const MeasureArguments& arguments, std::span<const Prediction> predictions,
                   std::span<const Costs> costs) {
  if (arguments.dilation == "auto") {
    return automatic_dilation(predictions, costs);
  }
  const std::optional<double> dilation = parse_number(arguments.dilation);
  if (!dilation || !(*dilation >= 1.0 && *dilation <= 1e6)) {
    throw ConfigError(fmt::format("--dilation: {} is not a number from 1 to 1000000; write one, or auto",
                                  in_quotes(arguments.dilation)));
  }
  return *dilation;
}

MeasuredRun run_of(const PredictedPoint& predicted, const Prediction& prediction) {
  if (const HandWritten* const file = predicted.file_of(prediction); file != nullptr) {
    return {.strategy = file->program().name, .parameters = file->file, .schedule_sha256 = file->structure.digest};
  }
  const Point& point = predicted.point();
  MeasuredRun run{.strategy = std::string(prediction.strategy->name),
                  .parameters = parameters_of(*prediction.strategy, kinds_of(point.scope), prediction.options),
                  .schedule_sha256 = prediction.structure->digest};
  const OptionSet relevant = relevant_options(*prediction.strategy, kinds_of(point.scope), prediction.options);
  for (const Option option : all_options()) {
    if (relevant.has(option)) {
      run.options.emplace_back(name_of(option), text_of(option, prediction.options));
    }
  }
  return run;
}

void require_memory(const Point& point, const Prediction& prediction) {
  std::int64_t bytes = point.ranks * prediction.buffers.count;
  for (const Tensor& tensor : prediction.structure->program().tensors) {
    bytes += 4 * prediction.sizes.elements(tensor.rows) * prediction.sizes.elements(tensor.columns);
  }
  if (bytes > max_bytes) {
    throw ConfigError(
        fmt::format("--compute real: the matrices need {:.1f} GiB, but the limit is {} GiB; choose a smaller seq or "
                    "model, or --compute emulated",
                    static_cast<double>(bytes) / static_cast<double>(1 << 30), max_bytes >> 30U));
  }
}

/// Returns twice the delay with which sleeping threads wake up on this machine, at most 500 us.
std::chrono::nanoseconds watch_of(const NoiseFloor& noise) {
  constexpr Duration longest = std::chrono::microseconds(500);
  const Duration late = summary_of(noise.samples).median.value - noise.stated;
  return stretched(std::clamp(2 * late, Duration{}, longest), 1.0);
}

Variant emulated(const PredictedPoint& point, const Prediction& prediction, const Costs& costs,
                 const RunRecord& record) {
  const auto longest = std::ranges::max_element(costs.duration);
  const double seconds = longest == costs.duration.end() ? 0.0 : to_seconds(*longest) * record.dilation;
  CpuOptions options{
      .costs = std::make_shared<const Costs>(costs), .dilation = record.dilation, .watch = watch_of(record.noise)};
  options.patience += std::chrono::seconds(static_cast<std::int64_t>(2.0 * seconds));
  return {.executor = std::make_unique<CpuExecutor>(prediction.structure->plan.lowered, prediction.sizes, options),
          .run = run_of(point, prediction)};
}

/// Returns the sizes with which a real run is checked. Throws ConfigError for a schedule from a file that executors do
/// not run.
SmallCheck small_check_of(const PredictedPoint& point, const Prediction& prediction) {
  SmallCheck small;
  if (const HandWritten* const schedule = point.file_of(prediction); schedule != nullptr) {
    const ScheduleFile file{schedule->file, schedule->program()};
    require_runnable(file);
    small.sizes = sizes_for(file, small.seed).front();
  } else {
    small.sizes = checked_sizes(prediction.structure->program()).front();
  }
  return small;
}

Words words_of(const Settings& settings) {
  Words words;
  for (const Field& field : run_fields()) {
    if (field.uses.has(Use::measure) && !field.key.starts_with("strategy.") && !settings.at(field).text.empty()) {
      words.emplace_back(field.key, settings.at(field).text);
    }
  }
  return words;
}

void read_defaults(const Words& defaults, Resolver& resolver) {
  for (const auto& [key, value] : defaults) {
    resolver.read_set(fmt::format("{}={}", key, value));
  }
}

/// Reads the settings of the record at `path`. Throws ConfigError for a setting that this program does not have, or
/// whose value it does not accept.
void read_recorded(const RunRecord& record, const std::string& path, Resolver& resolver) {
  for (const auto& [key, value] : record.settings) {
    const std::string place = fmt::format("{}: settings.{}", path, key);
    std::string refused;
    const Field* field = resolver.field_of_key(key, place, refused);
    if (field == nullptr) {
      throw ConfigError(fmt::format("{}: {}; measure again", place, refused.empty() ? "unknown setting" : refused));
    }
    if (const std::optional<std::string> mistake = mistake_in(*field, meant(*field, value))) {
      throw ConfigError(fmt::format("{}: {}", place, *mistake));
    }
    resolver.read_set(fmt::format("{}={}", field->key, value));
  }
}

/// Resolves the settings. Files and flags take precedence over the defaults that `resolver` has read.
Settings resolved(const MeasureArguments& arguments, Resolver& resolver) {
  sim::read_files(arguments.settings, resolver);
  sim::read_above_files(arguments.settings, resolver);
  return resolver.finish();
}

/// Ignores the environment variables that the run cannot use, and prints a note about each on stderr.
Settings without_unused_variables(Settings settings) {
  fmt::print(stderr, "{}", for_stderr(ignore_unused_variables(settings)));
  return settings;
}

/// Returns true for settings that change prices, and thus the prediction of a real run, but not the run itself.
bool is_of_prices(const Field& field) {
  return field.uses.has(Use::price) && field.key != "seq" && field.key != "batch";
}

bool same_value(const Field& field, const std::string& a, const std::string& b) {
  return a == b || (field.type == FieldType::count && parse_count(a) == parse_count(b));
}

/// Throws ConfigError if `settings` describe a different run from `recorded`, or if the command line chooses schedules,
/// which the record already determines.
void require_same_run(const Settings& recorded, const Settings& settings, const std::string& path) {
  for (const Field& field : run_fields()) {
    const Setting& before = recorded.at(field);
    const Setting& now = settings.at(field);
    if (!field.uses.has(Use::measure) || is_of_prices(field) || now.origin.where == before.origin.where) {
      continue;
    }
    if (field.key.starts_with("strategy.")) {
      if (now.origin.source >= Source::set) {  // The measured run may have used the same file or variable.
        throw ConfigError(
            fmt::format("{} chooses what to measure, but a record was given; remove one of them", now.origin.where));
      }
    } else if (!same_value(field, now.text, before.text)) {
      throw ConfigError(
          fmt::format("{}: {} contradicts {}, which was measured with {} {}; remove this setting, or measure again",
                      now.origin.where, in_quotes(now.text), path, field.key, before.text));
    }
  }
}

/// Overwrites one line with the progress, on a terminal only.
void show_rounds(int done, int rounds) {
  if (::isatty(STDERR_FILENO) != 0) {
    fmt::print(stderr, "\rround {} of {}{}", done, rounds, done == rounds ? "\n" : "");
  }
}

}  // namespace

void add_measure_flags(CLI::App& command, MeasureArguments& arguments) {
  sim::add_setting_flags(command, arguments.settings, has_flag);
  sim::add_schedule_flags(command, arguments.schedules);
  const std::string group = "Measurement";
  offers_words(
      usual(
          command
              .add_option("--executor", arguments.executor,
                          "Executor of the schedules: cpu (ranks and lanes are threads) or cuda-virtual (virtual ranks "
                          "on one GPU); run also supports mpi (ranks are processes, the default under mpirun), nccl "
                          "(a GPU per process) and cuda-peer (copies into peers' memory)")
              ->group(group)
              ->default_str("cpu")),
      {"cpu", "cuda-virtual", "cuda-peer", "mpi", "nccl"});
  offers_words(
      command
          .add_option("--compute", arguments.compute,
                      "emulated (default): ops sleep for their predicted time; real: GEMMs and copies run, the default "
                      "with mpi and on hardware that commfuse-validate calibrate wrote")
          ->group(group),
      {"emulated", "real"});
  add_pace_flags(command, arguments.pace, group);
  add_gpu_flags(command, arguments.gpu, "On a GPU");
  command
      .add_option("--dilation", arguments.dilation, "Slowdown factor of emulated ops, to make wake-up times negligible")
      ->group(group)
      ->capture_default_str();
  usual(
      command
          .add_option("--iterations", arguments.iterations, "Iterations of every schedule, interleaved in random order")
          ->group(group)
          ->capture_default_str());
  command.add_option("--warm-up", arguments.warm_up, "Warm-up iterations, not counted")
      ->group(group)
      ->capture_default_str();
  command.add_flag("--spans", arguments.traced, "Record the spans of all ops in one more iteration")->group(group);
  usual(command.add_option("--out", arguments.out, "Write the record here, as JSON")->group(group)->type_name("FILE"));
}

void refuse_measurement_flags(const CLI::App& command) {
  std::vector<const char*> flags{"--executor",   "--compute", "--link-bandwidth", "--link-latency", "--dilation",
                                 "--iterations", "--warm-up", "--spans",          "--out"};
  flags.insert(flags.end(), gpu_flags().begin(), gpu_flags().end());
  for (const char* flag : flags) {
    if (command.count(flag) > 0) {
      throw ConfigError(fmt::format("{} applies to a measurement, but a record was given; remove one of them", flag));
    }
  }
}

PredictedPoint::PredictedPoint(const Settings& settings, std::vector<HandWritten> schedules)
    : settings_(settings), schedules_(std::move(schedules)), predictor_(structures_) {
  library_.load(settings);
  point_ = point_of(settings, library_);
  if (schedules_.empty() || names_strategies(settings_)) {
    require_runnable(point_);
  } else {
    require_simulatable(point_);
  }
  if (point_.monte_carlo.jitter || point_.needs_engine()) {
    throw ConfigError(
        "measured times vary by themselves: set jitter and faults to none, and interference to static or none");
  }
  if (point_.price.experts.count > 0) {
    throw ConfigError(
        fmt::format("{} has experts, but executors run GEMMs with a single weight; choose a model without "
                    "experts, such as 8192x28672",
                    point_.model.name));
  }
  const std::int64_t window = point_.price.window.keys;
  const bool has_own_attention = std::ranges::any_of(schedules_, [](const HandWritten& schedule) {
    return std::ranges::any_of(schedule.program().shapes,
                               [](const Shape& shape) { return std::holds_alternative<AttentionShape>(shape); });
  });
  if ((has_attention(point_.scope) || has_own_attention) && window > 0 && window < point_.seq) {
    throw ConfigError(fmt::format(
        "{} attends to {} keys in some layers, but executors attend to all {}; choose a scope without attention, "
        "such as mlp, or seq up to {}",
        point_.model.name, window, point_.seq, window));
  }
}

const HandWritten* PredictedPoint::file_of(const Prediction& prediction) const {
  const auto schedule = std::ranges::find_if(
      schedules_, [&](const HandWritten& each) { return &each.structure == prediction.structure; });
  return schedule == schedules_.end() ? nullptr : &*schedule;
}

std::vector<Prediction> PredictedPoint::requested() {
  std::vector<Prediction> predictions;
  const bool runs_generated = schedules_.empty() || names_strategies(settings_);
  const std::vector<Candidates> candidates = runs_generated ? candidates_of(settings_) : std::vector<Candidates>{};
  for (const Candidates& entry : candidates) {
    if (entry.strategy->bound && candidates.size() > 1) {
      continue;  // A bound is not a schedule that can run.
    }
    try {
      predictions.push_back(predictor_.predict_best(point_, *entry.strategy, entry.options));
    } catch (const ConfigError& error) {
      if (names_strategies(settings_) || entry.strategy == &serial_strategy) {
        throw;
      }
      fmt::print(stderr, "{}",
                 for_stderr(fmt::format("note: {} is not compared: {}\n", entry.strategy->name, error.what())));
    }
  }
  for (const HandWritten& schedule : schedules_) {
    predictions.push_back(predictor_.predict(point_, schedule));
  }
  return predictions;
}

Prediction PredictedPoint::recorded(const MeasuredRun& run, const std::string& path) {
  const auto file = std::ranges::find_if(schedules_, [&](const HandWritten& schedule) {
    return schedule.structure.digest == run.schedule_sha256 && schedule.program().name == run.strategy;
  });
  if (file != schedules_.end()) {
    return predictor_.predict(point_, *file);
  }
  const Strategy* strategy = find_strategy(run.strategy);
  if (strategy == nullptr) {
    const bool is_of_file = run.options.empty() && !run.parameters.empty();
    throw ConfigError(
        fmt::format("{}: unknown strategy {}; {}measure again", path, in_quotes(run.strategy),
                    is_of_file ? fmt::format("add --schedule with its file, {}, or ", run.parameters) : std::string{}));
  }
  StrategyOptions options{.dtype = point_.dtype};
  for (const auto& [name, value] : run.options) {
    const std::optional<Option> option = option_named(name);
    const Field* field = find_field("strategy." + name);
    if (!option || field == nullptr || mistake_in(*field, value)) {
      throw ConfigError(fmt::format("{}: {} has no option {} of {}; measure again", path, run.strategy, in_quotes(name),
                                    in_quotes(value)));
    }
    put(*option, value, options);
  }
  Prediction prediction = predictor_.predict(point_, *strategy, options);
  if (prediction.structure->digest != run.schedule_sha256) {
    throw ConfigError(
        fmt::format("{}: the schedule of {} has changed since it was measured; measure again", path, run.strategy));
  }
  return prediction;
}

Settings settings_of(const MeasureArguments& arguments) {
  Resolver given;
  Settings settings = resolved(arguments, given);
  if (load_machine(settings.text("hardware")).executor.empty()) {
    return without_unused_variables(std::move(settings));
  }
  Words chosen;
  std::string text;
  const bool has_files = !arguments.schedules.files.empty();
  for (const auto& [key, value] : real_point) {
    if (has_files && (key == "ranks" || key == "scope")) {
      continue;  // sim::fitted takes them from the files
    }
    if (settings.at(*find_field(key)).origin.source == Source::preset) {
      chosen.emplace_back(key, value);
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, value);
    }
  }
  if (!chosen.empty()) {
    fmt::print(stderr, "{} runs in real time; settings not given: {}\n", settings.text("hardware"), text);
  }
  Resolver completed;
  read_defaults(chosen, completed);
  return without_unused_variables(resolved(arguments, completed));
}

Settings settings_of(const RunRecord& record, const MeasureArguments& arguments, const std::string& path) {
  Resolver resolver;
  read_recorded(record, path, resolver);
  const Settings recorded = resolver.settings();
  Settings settings = resolved(arguments, resolver);
  require_same_run(recorded, settings, path);
  return without_unused_variables(std::move(settings));
}

Words given_strategies(const Settings& settings) {
  Words given;
  for (const Field& field : run_fields()) {
    const Setting& setting = settings.at(field);
    if (field.key.starts_with("strategy.") && setting.origin.source != Source::preset && !setting.text.empty()) {
      given.emplace_back(field.key, setting.text);
    }
  }
  return given;
}

Words changed_settings(const RunRecord& record, const std::string& path, const Settings& settings) {
  Resolver resolver;
  read_recorded(record, path, resolver);
  Words changed;
  for (const Field& field : run_fields()) {
    const std::string& text = settings.at(field).text;
    if (is_of_prices(field) && field.key != "hardware" && !field.key.starts_with("strategy.") &&
        field.uses.has(Use::measure) && text != resolver.settings().at(field).text) {
      changed.emplace_back(field.key, text);
    }
  }
  return changed;
}

namespace {

/// The way of running that the flags request, with defaults filled in.
struct RunMode {
  std::string executor;
  std::string compute;
  std::optional<Pace> pace;

  [[nodiscard]] bool is_real() const { return compute == "real"; }
};

/// Fills in the defaults. Throws ConfigError for flags that cannot be combined.
RunMode run_mode_of(const PredictedPoint& point, const MeasureArguments& arguments, bool runs_on_processes) {
  RunMode mode{.executor = arguments.executor.empty() ? (runs_on_processes ? "mpi" : "cpu") : arguments.executor,
               .compute = arguments.compute,
               .pace = pace_of(arguments.pace)};
  if (mode.compute.empty()) {
    const bool is_real_by_default =
        runs_on_processes || mode.executor == "cuda-virtual" || point.point().machine.executor == mode.executor;
    mode.compute = is_real_by_default ? "real" : "emulated";
  }
  sim::require_word("--executor", mode.executor, timed_executors, "executor");
  sim::require_word("--compute", mode.compute, computes, "choice");
  if ((mode.executor == "mpi" || crew_links_of(mode.executor)) != runs_on_processes) {
    throw ConfigError(fmt::format(
        "--executor {} is measured by run; write a record with run --out, and give it to compare", mode.executor));
  }
  if (runs_on_processes && (!mode.is_real() || mode.pace)) {
    throw ConfigError("processes compute and send for real; remove --compute, --link-bandwidth and --link-latency");
  }
  if (mode.executor == "cuda-virtual" && !mode.is_real()) {
    throw ConfigError("GPU executors always compute; remove --compute emulated, or choose --executor cpu");
  }
  if (mode.is_real() && arguments.dilation != MeasureArguments{}.dilation) {
    throw ConfigError("--dilation slows emulated ops only, but these ops run for real; remove --dilation");
  }
  if (mode.pace && !mode.is_real()) {
    throw ConfigError("--link-bandwidth and --link-latency require --compute real; add it, or remove them");
  }
  return mode;
}

/// Throws ConfigError if ops run for real and a schedule of a strategy would store its tensors in a dtype that
/// executors do not store. Schedules from files have dtypes of their own (require_runnable).
void require_storable(const PredictedPoint& point, std::span<const Prediction> predictions, const RunMode& mode) {
  const bool has_generated = std::ranges::any_of(
      predictions, [&](const Prediction& prediction) { return point.file_of(prediction) == nullptr; });
  const DType dtype = point.point().dtype;
  if (mode.is_real() && has_generated && !can_store(dtype)) {
    throw ConfigError(fmt::format("{}: executors do not store {}; choose bf16, fp16 or fp32{}",
                                  point.settings().at(*find_field("dtype")).origin.where, name_of(dtype),
                                  mode.executor == "cpu" ? ", or --compute emulated" : ""));
  }
}

/// The runner of real schedules, and the GPUs that it uses.
struct Backend {
  std::unique_ptr<Gpu> gpu{};
  std::unique_ptr<GpuCrew> gpus{};
  Runner runner{};
  std::string links{};

  [[nodiscard]] bool on_gpus() const { return gpu || gpus; }
  [[nodiscard]] std::string gpu_in_words() const {
    return gpu ? gpu->in_words() : gpus ? gpus->in_words() : std::string();
  }
  /// Returns the libraries that computed attention. Requires that the schedules have run.
  [[nodiscard]] std::string attention_by() const {
    return gpu ? gpu->attention_by() : gpus ? gpus->attention_by() : std::string();
  }
  void note_attention() const {
    if (on_gpus()) {
      gpu ? gpu->note_attention() : gpus->note_attention();
    }
  }
  /// Adds clocks, power and temperature of all GPUs. All ranks must call it.
  void read_devices(const std::string& when, Environment& environment) const {
    if (on_gpus()) {
      for (DeviceReading& reading : gpu ? std::vector{gpu->reading(when)} : gpus->readings(when)) {
        environment.devices.push_back(std::move(reading));
      }
    }
  }
};

/// Opens the requested GPUs. Throws HardwareAbsent.
Backend backend_of(const RunMode& mode, const GpuArguments& arguments, Crew* crew, int ranks) {
  Backend backend;
  if (const std::optional<CrewLinks> links = crew_links_of(mode.executor); crew != nullptr && links) {
    backend.gpus = std::make_unique<GpuCrew>(arguments, *crew, ranks, *links);
    backend.runner = on_gpus(*backend.gpus, *crew, ranks);
    backend.links = backend.gpus->links();
  } else if (crew != nullptr) {
    backend.runner = on_processes(*crew, ranks);
    backend.links = "mpi";
  } else if (mode.executor == "cuda-virtual") {
    backend.gpu = std::make_unique<Gpu>(arguments, mode.pace);
    backend.runner = on_gpu(*backend.gpu);
    backend.links = backend.gpu->links();
  } else {
    backend.runner = on_threads(mode.pace);
    backend.links = mode.pace ? "paced" : "copied";
  }
  return backend;
}

}  // namespace

Measured measured(PredictedPoint& point, std::span<const Prediction> predictions, const MeasureArguments& arguments,
                  Crew* crew) {
  reports::require_no_input(arguments.out, sim::files_named(arguments.settings));
  const RunMode mode = run_mode_of(point, arguments, crew != nullptr);
  require_storable(point, predictions, mode);
  const bool speaks = crew == nullptr || crew->leads();
  if (speaks && !arguments.gpu.dry_run) {
    require_outputs({{"--out", arguments.out}});
  }
  const int ranks = point.point().ranks;
  const Backend backend = backend_of(mode, arguments.gpu, crew, ranks);
  RunRecord record{.executor = mode.executor,
                   .compute = mode.compute,
                   .links = mode.is_real() ? backend.links : "emulated",
                   .version = std::string(build_info().version),
                   .git_revision = std::string(build_info().git_revision),
                   .environment = this_environment(),
                   .settings = words_of(point.settings()),
                   .seed = choices_of(point.settings()).seed,
                   .warm_up = count_of("--warm-up", arguments.warm_up, 0)};
  const MeasureOptions options{.warm_up = static_cast<int>(record.warm_up),
                               .iterations = count_of("--iterations", arguments.iterations, 1),
                               .seed = record.seed,
                               .traced = arguments.traced,
                               .run = {.sum_order = SumOrder::blocked},
                               .alone = crew == nullptr};
  std::vector<Costs> costs;
  for (const Prediction& prediction : predictions) {
    costs.push_back(costs_of(point.point(), prediction));
  }
  record.dilation = mode.is_real() ? 1.0 : dilation_of(arguments, predictions, costs);
  record.noise = noise_floor(crew == nullptr ? ranks : 1);
  if (crew != nullptr) {
    record_hosts(*crew, ranks, record.environment);
  }
  std::vector<Variant> variants;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (!mode.is_real()) {
      variants.push_back(emulated(point, predictions[i], costs[i], record));
      continue;
    }
    if (!backend.on_gpus()) {
      require_memory(point.point(), predictions[i]);
    }
    variants.push_back(real_variant(predictions[i], run_of(point, predictions[i]), backend.runner,
                                    small_check_of(point, predictions[i])));
  }
  backend.read_devices("before", record.environment);
  measure(variants, options, speaks ? show_rounds : nullptr);
  backend.read_devices("after", record.environment);
  record.environment.gpu = backend.gpu_in_words();
  record.environment.attention = backend.attention_by();
  record.environment.variables = backend.on_gpus() ? gpu_variables() : Words{};
  if (speaks) {
    backend.note_attention();
  }
  for (Variant& variant : variants) {
    if (mode.is_real()) {
      add_op_samples(variant.executor->program(), variant.executor->sizes(), variant.run.spans,
                     record.micro_benchmarks);
    }
    record.runs.push_back(std::move(variant.run));
  }
  const bool is_dry = backend.gpu && backend.gpu->is_dry();
  std::exception_ptr unwritten =
      exception_of_writing(speaks && !is_dry ? arguments.out : "", [&] { return to_json(record); });
  return {std::move(record), is_dry ? backend.gpu->dry_run_in_words() : std::string(), std::move(unwritten)};
}

}  // namespace commfuse::validate
