// SPDX-License-Identifier: Apache-2.0
#include "sim/step/predict_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/analysis/memory.h"
#include "model/check.h"
#include "model/config/catalogue.h"
#include "model/config/choices.h"
#include "model/config/field.h"
#include "model/config/framework.h"
#include "model/config/implementation.h"
#include "model/config_error.h"
#include "model/cost/group.h"
#include "model/hardware/raised.h"
#include "model/record/model_version.h"
#include "model/record/result.h"
#include "model/text/quantity.h"
#include "sim/step/layer_cost.h"
#include "sim/step/layer_sites.h"
#include "sim/step/step.h"
#include "sim/step/step_uncertainty.h"
#include "sim/step/woven.h"

namespace commfuse {

/// Sites by machine of the library (unchanged or raised), number of nodes and kind of kernel launch, and the objects
/// that must live as long as the sites.
class StepPoints::Sites {
 public:
  /// A machine with as many nodes as a plan needs, and the sites simulated on it.
  struct SizedMachine {
    Machine machine;
    SiteTimes times;
    SizedMachine(Machine of, StructureCache& structures) : machine(std::move(of)), times(structures, machine) {}
  };

  /// Returns each raised machine with the nodes that the plan needs.
  std::vector<RaisedStep> raised(const std::vector<RaisedMachine>& machines, const TrainingPlan& plan, Launch launch) {
    std::vector<RaisedStep> raised;
    for (const RaisedMachine& machine : machines) {
      SizedMachine& sized = of(*machine.machine, plan, launch);
      raised.push_back({machine.parameter, &sized.machine, &sized.times});
    }
    return raised;
  }

  SizedMachine& of(const Machine& machine, const TrainingPlan& plan, Launch launch) {
    Machine sized = resized(machine, plan);
    if (launch == Launch::graph) {  // The kernels of a step are priced one by one, with the gap between graph nodes.
      sized.accelerator.stream_gap = sized.accelerator.graph_node_gap;
    }
    std::unique_ptr<SizedMachine>& site = sites_[{&machine, sized.nodes, launch}];
    if (!site) {
      site = std::make_unique<SizedMachine>(std::move(sized), structures_);
    }
    return *site;
  }

  /// Returns the framework of this name or path. Loads it only once, because the times of sites recognize its
  /// implementation by its address, which another implementation might get.
  const Framework& framework(const std::string& name_or_path) {
    auto known = frameworks_.find(name_or_path);
    if (known == frameworks_.end()) {
      known = frameworks_.emplace(name_or_path, load_framework(name_or_path)).first;
    }
    return known->second;
  }

  /// Returns a copy of the implementation for each cost, with this cost raised. Keeps the copies as long as the times
  /// of sites.
  std::span<const RaisedKernels> raised(const Implementation& kernels, const SizedMachine& site) {
    const auto [known, is_new] = raised_kernels_.try_emplace({&kernels, &site});
    if (is_new) {
      known->second = raised_by_error(kernels, site.machine);
    }
    return known->second;
  }

 private:
  StructureCache structures_;
  std::map<std::string, Framework> frameworks_;
  std::map<std::tuple<const Machine*, int, Launch>, std::unique_ptr<SizedMachine>> sites_;
  std::map<std::pair<const Implementation*, const SizedMachine*>, std::vector<RaisedKernels>> raised_kernels_;
};

namespace {

/// Returns the plan of the settings, including the settings that layers also use.
TrainingPlan plan_of(const RunChoices& run) {
  TrainingPlan plan = run.plan;
  plan.tensor = run.ranks;
  plan.sequence_parallel = plan.sequence_parallel && plan.tensor > 1;
  plan.global_batch = run.batch;
  if (run.scope.is_inference()) {
    plan.micro_batch = plan.global_batch;
  }
  plan.seq = run.scope.work == Use::decode ? 1 : run.seq;
  plan.dtype = run.dtype;
  return plan;
}

/// Returns the settings with the framework's choices, and with its name even if the user gave a path.
Settings as_run_by(const Framework& framework, const Settings& wanted) {
  Settings settings = with_defaults_of(framework, wanted);
  if (!framework.name.empty()) {
    const Field& field = *find_field("framework");
    settings.put(field, {framework.name, settings.at(field).origin});
  }
  return settings;
}

/// Returns the dtype. If the user chose none and the checkpoint is made for narrower GEMMs than the default dtype,
/// inference uses the checkpoint's dtype where the machine supports it.
DType dtype_of(const Settings& settings, const RunChoices& run, const Transformer& model, const Machine& machine) {
  const bool is_chosen = settings.at(*find_field("dtype")).origin.source != Source::preset;
  const bool is_narrow = model.weights && model.weights->narrow_products;
  return run.scope.is_inference() && !is_chosen && is_narrow && machine.accelerator.supports(DType::fp8) ? DType::fp8
                                                                                                         : run.dtype;
}

void require_one_replica(const ScopeChoice& scope, const TrainingPlan& plan) {
  if (scope.is_inference() && plan.pipeline * plan.data != 1) {
    throw ConfigError(
        fmt::format("scope {} runs a single replica without a pipeline; set pipeline and data to 1", name_of(scope)));
  }
  if (scope.work == Use::decode && plan.sequence_ranks() != 1) {
    throw ConfigError(fmt::format("scope decode has one token per sequence, which {} cannot share; set it to 1",
                                  plan.context > 1 ? "context parallelism" : "ulysses"));
  }
}

/// Throws ConfigError if inference reads, or has in its cache, more tokens than a layer may have.
void require_few_tokens(const RunChoices& run) {
  constexpr std::int64_t max_tokens = std::int64_t{1} << 30;
  if (run.scope.is_inference() && run.batch > max_tokens / run.seq) {
    throw ConfigError(fmt::format("batch {} times seq {} is too large; the limit is {} tokens", format_count(run.batch),
                                  format_count(run.seq), format_count(max_tokens)));
  }
}

/// Returns whether attention and its all-to-alls are simulated as one schedule, which requires that only Ulysses ranks
/// share them.
bool has_ulysses_sites(const TrainingPlan& plan) { return plan.ulysses > 1 && plan.tensor == 1 && plan.context == 1; }

/// Returns the named strategies. For "all", returns those of strategies_for_steps(), or only serial where no collective
/// meets a GEMM, because all strategies take the same time there.
std::vector<const Strategy*> strategies_of(const ScheduleChoice& schedules, const TrainingPlan& plan) {
  const bool names_none = schedules.named.empty();
  const std::vector<const Strategy*> wanted = names_none ? strategies_for_steps() : schedules.named;
  std::vector<const Strategy*> chosen;
  for (const Strategy& strategy : strategies()) {
    const bool is_wanted = std::find(wanted.begin(), wanted.end(), &strategy) != wanted.end();
    const bool differs =
        plan.sequence_parallel || has_ulysses_sites(plan) || !names_none || &strategy == &serial_strategy;
    if (is_wanted && differs) {
      chosen.push_back(&strategy);
    }
  }
  return chosen;
}

/// The schedules of a row.
struct RowSchedules {
  std::string_view name;                            ///< A strategy, a framework or an implementation.
  const ImplementedForward* implemented = nullptr;  ///< Null: no implementation of the setting `as`.
  bool bound = false;                               ///< An ideal strategy next to implementations.
  bool refused = false;                             ///< The implementation cannot run, so it has no sites.
};

/// Returns the sites that the implementation runs, separated by commas; empty if it runs none.
std::string sites_in_words(const ImplementedForward& implemented) {
  if (replaces_sums(*implemented.kernels)) {
    return std::string(all_sums);
  }
  std::vector<std::string_view> sites;
  for (const ImplementedGemm& gemm : implemented.gemms) {
    sites.push_back(gemm.site);
  }
  return fmt::format("{}", fmt::join(sites, ", "));
}

/// Returns a row with the settings and without results.
StepRow settings_row(const Settings& settings, const std::string& model, const TrainingPlan& plan,
                     const RowSchedules& schedules) {
  StepRow row;
  row.add("schema", std::string(result_schema));
  row.add("model_version", std::int64_t{model_version});
  row.add("model", model);
  for (const char* name : {"hardware", "link_bandwidth", "network_bandwidth", "all_reduce_kernel", "scope"}) {
    row.add(name, settings.text(name));
  }
  row.add("gpus", plan.gpus());
  row.add("tensor", plan.tensor);
  row.add("sequence_parallel", plan.sequence_parallel);
  row.add("pipeline", plan.pipeline);
  row.add("interleave", plan.interleave);
  row.add("pipeline_schedule", std::string(name_of(plan.schedule)));
  row.add("data", plan.data);
  row.add("context", plan.context);
  if (plan.context > 1) {
    row.add("context_exchange", std::string(word_of(context_exchange_choices, plan.context_exchange)));
  }
  row.add("ulysses", plan.ulysses);
  row.add("experts", plan.expert);
  row.add("zero", static_cast<std::int64_t>(plan.zero));
  row.add("batch", plan.global_batch);
  row.add("micro_batch", plan.micro_batch);
  row.add("seq", settings.count("seq"));
  row.add("dtype", std::string(name_of(plan.dtype)));
  row.add("recompute", std::string(name_of(plan.recompute)));
  row.add("optimizer", std::string(name_of(plan.optimizer)));
  row.add("attention_kernel", std::string(plan.fused_attention ? "fused" : "unfused"));
  row.add("dropout", plan.dropout);
  row.add("gradient_dtype", std::string(name_of(plan.gradient_dtype)));
  row.add("overlap_gradients", plan.overlap_gradients);
  for (const char* name : {"launch", "jitter"}) {
    if (const std::string& word = settings.text(name); word != find_field(name)->preset) {
      row.add(name, word);
    }
  }
  if (const std::string& framework = settings.text("framework"); framework != "none") {
    row.add("framework", framework);
  }
  if (const std::string& price = settings.text("price"); !price.empty()) {
    row.add("price", *parse_amount(price));
  }
  row.add("strategy", std::string(schedules.name));
  if (schedules.implemented != nullptr) {
    row.add("implements", std::string(schedules.implemented->kernels->strategy->name));
    if (const std::string sites = sites_in_words(*schedules.implemented); !schedules.refused && !sites.empty()) {
      row.add("implemented_sites", sites);
    }
  }
  if (schedules.bound) {
    row.add("bound", std::string("yes"));
  }
  return row;
}

void add_links(StepRow& row, const Machine& machine) {
  row.add("link_rate_gb_s", machine.link.nominal_rate.value.value / 1e9);
  if (machine.network) {
    row.add("network_rate_gb_s", machine.network->nominal_rate.value.value / 1e9);
  }
}

double gigabytes(Bytes bytes) { return static_cast<double>(bytes.count) / 1e9; }

/// Adds the time of a step, a prefill or a decoding step, and its rates.
template <typename Prediction>
void add_time(StepRow& row, const Prediction& prediction, const TrainingPlan& plan) {
  row.add("time_ms", 1e3 * to_seconds(prediction.time));
  row.add("tokens_per_second", prediction.tokens_per_second);
  row.add("tokens_per_second_gpu", prediction.tokens_per_second / static_cast<double>(plan.gpus()));
  row.add("mfu", prediction.mfu);
}

void add_percentiles(StepRow& row, const StepPercentiles& percentiles) {
  row.add("time_p50_ms", 1e3 * to_seconds(percentiles.p50));
  row.add("time_p95_ms", 1e3 * to_seconds(percentiles.p95));
  row.add("time_p99_ms", 1e3 * to_seconds(percentiles.p99));
  row.add("time_p99_9_ms", 1e3 * to_seconds(percentiles.p99_9));
}

void add_step(StepRow& row, const StepPrediction& step, const StepPoint& point, SiteTimes& times) {
  add_time(row, step, point.plan);
  row.add("hfu", step.hfu);
  if (point.rank_sigma > 0.0) {
    add_percentiles(row, step_percentiles(point, times));
  }
  row.add("compute_ms", 1e3 * to_seconds(step.parts.compute));
  row.add("waiting_ms", 1e3 * to_seconds(step.parts.waiting));
  row.add("gradients_ms", 1e3 * to_seconds(step.parts.gradients));
  row.add("optimizer_ms", 1e3 * to_seconds(step.parts.optimizer));
  row.add("weights_gb", gigabytes(step.memory.weights));
  row.add("gradients_gb", gigabytes(step.memory.gradients));
  row.add("optimizer_gb", gigabytes(step.memory.optimizer));
  row.add("activations_gb", gigabytes(step.memory.activations));
  row.add("gathered_gb", gigabytes(step.memory.gathered));
  row.add("memory_gb", gigabytes(step.memory.total()));
  row.add("capacity_gb", gigabytes(point.machine->accelerator.hbm_capacity));
  row.add("fits", step.fits);
}

/// Adds the results of a prefill or a decoding step. `gpu_hour_price` is the price of a GPU for an hour, if known.
template <typename Prediction>
void add_inference(StepRow& row, const Prediction& prediction, const StepPoint& point, SiteTimes& times,
                   const std::optional<double>& gpu_hour_price) {
  add_time(row, prediction, point.plan);
  if (point.rank_sigma > 0.0) {
    add_percentiles(row, inference_percentiles(point, times));
  }
  if (prediction.parts) {
    row.add("attention_ms", 1e3 * to_seconds(prediction.parts->mixing));
    row.add("mlp_ms", 1e3 * to_seconds(prediction.parts->mlp));
    row.add("other_ms", 1e3 * to_seconds(prediction.parts->other));
    row.add("waiting_ms", 1e3 * to_seconds(prediction.parts->waiting));
  }
  if (gpu_hour_price) {
    const double cost_per_second = *gpu_hour_price * static_cast<double>(point.plan.gpus()) / 3600.0;
    row.add("cost_per_mtok", 1e6 * cost_per_second / prediction.tokens_per_second);
  }
  row.add("weights_gb", gigabytes(prediction.weights));
  row.add("cache_gb", gigabytes(prediction.cache));
  row.add("capacity_gb", gigabytes(point.machine->accelerator.hbm_capacity));
  row.add("fits", prediction.fits);
}

/// Returns the memory warning of a prefill or a decoding step, with the remedies that are left; empty if it fits in
/// memory. More tensor ranks are no remedy if the cache alone is too large with any number of them.
template <typename Prediction>
std::string memory_warning_of(const Prediction& prediction, const StepPoint& point) {
  if (prediction.fits) {
    return {};
  }
  const Bytes capacity = point.machine->accelerator.hbm_capacity;
  std::vector<std::string_view> remedies;
  if (point.plan.tensor < point.model->heads && prediction.least_cache <= capacity) {
    remedies.emplace_back("more tensor ranks");
  }
  if (point.cached == 0) {
    remedies.emplace_back("fewer tokens");
  } else if (point.plan.micro_batch > 1) {
    remedies.insert(remedies.end(), {"fewer sequences", "shorter ones"});
  } else {
    remedies.emplace_back("a shorter sequence");
  }
  return memory_warning({.needed_gb = gigabytes(prediction.weights + prediction.cache),
                         .capacity_gb = gigabytes(capacity),
                         .hardware = point.machine->name,
                         .remedy = remedy_in_words(remedies)});
}

/// Returns a warning if the framework's implementation runs none of the GEMMs that the framework names; empty if it
/// runs them, or if the framework names none.
std::string why_not_implemented(const StepPoint& point) {
  const Framework& framework = point.framework;
  const bool names_sites = framework.implementation_sites && !framework.implementation_sites->empty();
  if (!names_sites || framework.implementation == nullptr || !point.strategies.empty() ||
      !point.plan.sequence_parallel) {
    return {};
  }
  std::string refusal = refusal_of(*framework.implementation, *point.machine,
                                   static_cast<std::int32_t>(point.plan.tensor), point.plan.dtype);
  refusal.resize(std::min(refusal.find("; "), refusal.size()));  // warnings are separated by semicolons
  return refusal.empty() ? refusal
                         : fmt::format("the collectives that {} would overlap are exposed, because {}",
                                       framework.implementation->name, refusal);
}

/// Returns the implementation that the row is about: its own, or the framework's if it runs some GEMM; otherwise null.
const Implementation* warned_kernels(const StepPoint& point) {
  if (point.implemented.kernels != nullptr || point.used == nullptr) {
    return point.implemented.kernels;
  }
  const auto implemented = std::ranges::find_if(
      *point.used, [](const UsedSchedule& schedule) { return schedule.implementation != nullptr; });
  return implemented == point.used->end() ? nullptr : implemented->implementation;
}

/// Returns a warning if selective recomputation frees no memory, because a fused attention core keeps no scores.
std::string why_recomputation_is_in_vain(const StepPoint& point) {
  const bool fused = point.plan.fused_attention;
  return point.plan.recompute == Recompute::selective && !point.framework.selective.frees_memory(fused)
             ? "selective recomputation of fused attention takes time and frees no memory, so recompute none is better"
             : "";
}

/// Returns a warning if the times of fp8 GEMMs include the conversion of their activations; empty otherwise. Such a
/// step may take longer than one in 16 bits.
std::string what_fp8_includes(const Accelerator& accelerator, DType dtype) {
  const bool converts = dtype == DType::fp8 && accelerator.matrix_unit(dtype).gemm.conversion_passes.value > 0.0;
  return converts ? "fp8 GEMMs include kernels that convert activations, and frameworks that fuse the conversion take "
                    "less time"
                  : "";
}

/// Adds warnings to a row: `memory`, if any, then one about an implementation that does not run here, one about
/// recomputation in vain, one about fp8, one about tensor ranks that cross nodes, and one about an implementation that
/// nobody measured on such GPUs, which a separate column also states.
void warn(StepRow& row, const StepPoint& point, const std::string& memory = {}) {
  const TrainingPlan& plan = point.plan;
  const Machine& machine = *point.machine;
  std::vector<std::string> warnings{memory, why_not_implemented(point), why_recomputation_is_in_vain(point),
                                    what_fp8_includes(machine.accelerator, plan.dtype)};
  if (plan.tensor > machine.gpus_per_node) {
    warnings.push_back(fmt::format("{} tensor ranks spread over several nodes of {}, whose network is slower",
                                   plan.tensor, machine.name));
  } else if (group_of(machine, {.stride = 1, .ranks = plan.tensor, .gpus = plan.gpus()}).nodes > 1) {
    warnings.push_back(fmt::format("some groups of {} tensor ranks span two nodes of {}, and all ranks wait for them",
                                   plan.tensor, machine.name));
  }
  if (const Implementation* const kernels = warned_kernels(point)) {
    warnings.push_back(unmeasured_in_words(*kernels, machine));
    if (!warnings.back().empty()) {
      row.add("unmeasured_on", machine.accelerator.name);
    }
  }
  std::erase_if(warnings, [](const std::string& warning) { return warning.empty(); });
  if (!warnings.empty()) {
    row.add("warnings", fmt::format("{}", fmt::join(warnings, "; ")));
  }
}

/// Adds the schedules of the sites, unless the row's strategy determines them.
void add_schedules(StepRow& row, std::span<const UsedSchedule> used) {
  if (std::string words = in_words(used, row.text("strategy")); !words.empty()) {
    row.add("schedules", std::move(words));
  }
}

constexpr StepTime training{&step_time};
constexpr StepTime prefilling{
    [](const StepPoint& point, SiteTimes& times) { return predict_prefill(point, times).time; }, false};
constexpr StepTime decoding{[](const StepPoint& point, SiteTimes& times) { return predict_decode(point, times).time; },
                            false};

/// Multiplies every time of the row by `factor`, and adapts the rates.
void lengthen(StepRow& row, double factor) {
  constexpr std::array<std::string_view, 4> rates{"tokens_per_second", "tokens_per_second_gpu", "mfu", "hfu"};
  for (auto& [name, value] : row.cells) {
    if (name.ends_with("_ms")) {
      value = std::get<double>(value) * factor;
    } else if (std::ranges::find(rates, name) != rates.end()) {
      value = std::get<double>(value) / factor;
    }
  }
}

/// The uncertainty of the rows of a point: the error of each row, and its comparison with the fastest other row.
class StepDoubts {
 public:
  /// `raised` is empty unless uncertainty is requested.
  StepDoubts(StepTime time, SiteTimes& times, std::vector<RaisedStep> raised)
      : time_(time), times_(times), raised_(std::move(raised)) {}

  [[nodiscard]] bool are_wanted() const { return !raised_.empty(); }

  /// `raised_kernels`: the raised costs of the row's implementation, if it has one.
  void add(const StepPoint& point, std::size_t row,
           std::optional<std::span<const RaisedKernels>> raised_kernels = std::nullopt) {
    if (are_wanted()) {
      doubts_.push_back({.row = row,
                         .time = time_.of(point, times_),
                         .uncertainty = step_uncertainty(point, times_, time_, raised_, raised_kernels),
                         .beside_others = std::nullopt});
    }
  }

  /// Makes comparisons of the last added row with other rows also count the errors of the costs of the row's own
  /// implementation. `point` prices the row with this implementation. Rows with the same kernels then do not differ by
  /// these errors. The row's own error stays unchanged.
  void compare_last_as(const StepPoint& point, std::span<const RaisedKernels> raised_kernels) {
    doubts_.back().beside_others = step_uncertainty(point, times_, time_, raised_, raised_kernels);
  }

  /// Corrects the times in this object and in `rows` by the evidence.
  void correct_by(const StepEvidence& evidence, std::vector<StepRow>& rows) {
    for (Doubted& doubted : doubts_) {
      const double factor =
          limited_to_peak({evidence.correction(doubted.uncertainty), rows[doubted.row].number("mfu")});
      doubted.time = from_seconds(to_seconds(doubted.time) * factor);
      doubted.uncertainty = given(doubted.uncertainty, evidence.evidence);
      if (doubted.beside_others) {
        doubted.beside_others = given(*doubted.beside_others, evidence.evidence);
      }
      lengthen(rows[doubted.row], factor);
      rows[doubted.row].add("correction", factor);
    }
  }

  /// Adds the errors and probabilities to the rows. `baseline` is the row with which implementations are compared.
  void put(std::vector<StepRow>& rows, std::optional<std::size_t> baseline) const {
    for (const Doubted& doubted : doubts_) {
      StepRow& row = rows[doubted.row];
      row.add("time_error", error_of(doubted.uncertainty));
      const Doubted* rival = nullptr;
      const Doubted* compared = nullptr;
      for (const Doubted& other : doubts_) {
        const bool competes = &other != &doubted && !rows[other.row].has("bound");
        rival = competes && (rival == nullptr || other.time < rival->time) ? &other : rival;
        compared = other.row == baseline ? &other : compared;
      }
      if (rival != nullptr && !row.has("bound")) {
        row.add("win_probability",
                probability_shorter(doubted.time, doubted.compared(), rival->time, rival->compared()));
      }
      if (compared != nullptr && row.has("implements")) {
        row.add("beats_serial",
                probability_shorter(doubted.time, doubted.compared(), compared->time, compared->compared()));
        row.add("saving_error", ratio_error(doubted.compared(), compared->compared()));
      }
    }
  }

 private:
  struct Doubted {
    std::size_t row = 0;
    Duration time{};
    Uncertainty uncertainty;
    std::optional<Uncertainty> beside_others;  ///< Uncertainty for comparisons, if it differs.
    [[nodiscard]] const Uncertainty& compared() const { return beside_others ? *beside_others : uncertainty; }
  };
  StepTime time_;
  SiteTimes& times_;
  std::vector<RaisedStep> raised_;
  std::vector<Doubted> doubts_;
};

/// Returns first the row of a usual serving engine, which all-reduces whole outputs, and then the rows of the
/// strategies, whose ranks share the tokens of the batch. A strategy that cannot split so few tokens yields a row with
/// the reason.
std::vector<StepRow> decode_rows(const Settings& settings, StepPoint point, SiteTimes& times, StepDoubts& doubts) {
  const RunChoices run = choices_of(settings);
  point.cached = run.seq;
  const TrainingPlan shared = point.plan;
  point.plan.sequence_parallel = false;
  require_possible(point);
  std::vector<StepRow> rows{settings_row(settings, point.model->name, point.plan, {.name = "all_reduce"})};
  add_links(rows.back(), *point.machine);
  const DecodePrediction usual = predict_decode(point, times);
  add_inference(rows.back(), usual, point, times, run.gpu_hour_price);
  warn(rows.back(), point, memory_warning_of(usual, point));
  doubts.add(point, 0);
  if (!shared.sequence_parallel) {
    return rows;
  }
  point.plan = shared;
  for (const Strategy* strategy : strategies_of(run.schedules, shared)) {
    point.strategies = {strategy};
    std::vector<UsedSchedule> used;
    StepPoint recorded = point;
    recorded.used = &used;
    rows.push_back(settings_row(settings, point.model->name, point.plan, {.name = strategy->name}));
    add_links(rows.back(), *point.machine);
    try {
      if (shared.micro_batch % shared.tensor != 0) {
        throw ConfigError(fmt::format(
            "{} tensor ranks share the tokens of the batch, but it has {}; choose a batch that is a multiple of {}",
            shared.tensor, shared.micro_batch, shared.tensor));
      }
      require_possible(point);
      const DecodePrediction decode = predict_decode(recorded, times);
      add_inference(rows.back(), decode, point, times, run.gpu_hour_price);
      add_schedules(rows.back(), used);
      warn(rows.back(), point, memory_warning_of(decode, point));
      doubts.add(point, rows.size() - 1);
    } catch (const ConfigError& error) {
      rows.back().add("reason", error.what());
    }
  }
  return rows;
}

/// Returns the row of one strategy, of the framework's own schedules, or of an implementation.
StepRow row_of(const Settings& settings, const RunChoices& run, StepPoint point, const RowSchedules& schedules,
               SiteTimes& times) {
  std::vector<UsedSchedule> used;
  point.used = &used;
  StepRow row = settings_row(settings, point.model->name, point.plan, schedules);
  add_links(row, *point.machine);
  std::string warning;
  if (run.scope.work == Use::prefill) {
    const PrefillPrediction prefill = predict_prefill(point, times);
    add_inference(row, prefill, point, times, run.gpu_hour_price);
    warning = memory_warning_of(prefill, point);
  } else {
    add_step(row, predict_step(point, times), point, times);
  }
  add_schedules(row, used);
  warn(row, point, warning);
  return row;
}

/// Returns the row of the point's only strategy. A strategy that the user did not name and that cannot cut so few
/// tokens yields a row with the reason; serial cuts nothing.
StepRow strategy_row(const Settings& settings, const RunChoices& run, const StepPoint& point,
                     const RowSchedules& schedules, SiteTimes& times) {
  try {
    return row_of(settings, run, point, schedules, times);
  } catch (const ConfigError& error) {
    if (!run.schedules.named.empty() || point.strategies.front() == &serial_strategy) {
      throw;
    }
    StepRow row = settings_row(settings, point.model->name, point.plan, schedules);
    add_links(row, *point.machine);
    row.add("reason", error.what());
    return row;
  }
}

/// Returns the reason why the implementation runs nothing of the point, with the remedy; empty if it may run something.
std::string refusal_at(const StepPoint& point, const Implementation& kernels) {
  const TrainingPlan& plan = point.plan;
  if (replaces_sums(kernels)) {
    if (!point.serves) {
      return fmt::format("{} covers prefills only; choose --scope prefill", kernels.name);
    }
    const std::string reason = why_no_sums(point, kernels);
    return reason.empty() ? refusal_of(kernels, *point.machine, static_cast<std::int32_t>(plan.tensor), plan.dtype)
                          : reason;
  }
  const bool sums_everywhere = covers(kernels, SiteKind::gemm_ar);
  if (!plan.sequence_parallel && (plan.tensor == 1 || !sums_everywhere)) {
    return fmt::format("{} runs GEMMs that meet {} of tensor ranks, and this plan has none; choose {}", kernels.name,
                       sums_everywhere ? "an all-reduce" : "an all-gather or a reduce-scatter",
                       plan.tensor == 1 ? "more --ranks" : "--sequence-parallel on");
  }
  const bool only_sums_everywhere = std::ranges::equal(kernels.sites, std::array{SiteKind::gemm_ar});
  if (plan.sequence_parallel && only_sums_everywhere) {
    return fmt::format(
        "{} runs GEMMs that meet an all-reduce of tensor ranks, and this plan has none; choose "
        "--sequence-parallel off",
        kernels.name);
  }
  const std::string refusal = refusal_of(kernels, *point.machine, static_cast<std::int32_t>(plan.tensor), plan.dtype);
  const auto is_covered = [&](const LayerSite& site) {
    const std::optional<Scope> scope = forward_scope(site.projection, plan);
    return !site.backward && scope && covers(kernels, kinds_of(*scope).front());
  };
  return !refusal.empty() || std::ranges::any_of(layer_sites(*point.model, plan), is_covered)
             ? refusal
             : fmt::format("{} covers no GEMM of {}; choose another implementation", kernels.name, point.model->name);
}

/// Returns refusal_at(), or the reason that the framework itself runs these kernels, so that its row already has them.
std::string why_no_row(const StepPoint& point, const Implementation& kernels) {
  const Framework& framework = point.framework;
  const bool is_own = framework.implementation != nullptr && framework.implementation->name == kernels.name &&
                      !framework.implementation_sites;
  return is_own ? fmt::format("{} runs {} itself, so its row has this step; choose another implementation or framework",
                              framework.name, kernels.name)
                : refusal_at(point, kernels);
}

/// Returns the implementations of the setting `as`; for "all", those that may run a GEMM of the point, without
/// stand-ins.
std::vector<std::shared_ptr<const Implementation>> implementations_at(const RunChoices& run, const Library& library,
                                                                      const StepPoint& point) {
  const std::string& names = run.schedules.implementations;
  std::vector<std::shared_ptr<const Implementation>> implementations;
  if (names != "none") {
    const Implementations loaded = library.implementations(names);
    implementations.assign(loaded.begin(), loaded.end());
  }
  if (names == "all") {
    std::erase_if(implementations,
                  [&](const auto& kernels) { return kernels->stands_in || !why_no_row(point, *kernels).empty(); });
  }
  return implementations;
}

/// Returns the point as the framework runs it, or with serial everywhere, except for the GEMMs of forward passes where
/// the implementation saves time, or for the all-reduces that it replaces.
StepPoint with_implementation(StepPoint point, const Implementation& kernels, SiteTimes& times) {
  point.strategies = point.framework.name.empty() ? std::vector<const Strategy*>{&serial_strategy}
                                                  : strategies_by_default(point.framework);
  if (!replaces_sums(kernels) && refusal_at(point, kernels).empty()) {
    point.implemented.gemms = LayerCost(point, times).saved_by(kernels);
  }
  point.implemented.kernels = &kernels;
  return point;
}

/// Returns the point of a framework's own row, with the GEMMs that its implementation runs chosen in advance, as in the
/// rows of other implementations. A framework that names these GEMMs has already chosen them.
StepPoint with_chosen_gemms(const StepPoint& point, SiteTimes& times) {
  return point.framework.implementation_sites ? point
                                              : with_implementation(point, *point.framework.implementation, times);
}

/// Returns the row of a point with an implementation, or a row with the reason why it has no result.
StepRow implementation_row(const Settings& settings, const RunChoices& run, const StepPoint& point, SiteTimes& times) {
  const Implementation& kernels = *point.implemented.kernels;
  const std::string refusal = why_no_row(point, kernels);
  const RowSchedules schedules{.name = kernels.name, .implemented = &point.implemented, .refused = !refusal.empty()};
  if (refusal.empty()) {
    return row_of(settings, run, point, schedules, times);
  }
  StepRow row = settings_row(settings, point.model->name, point.plan, schedules);
  add_links(row, *point.machine);
  row.add("reason", refusal);
  return row;
}

/// Returns the index of the row with which implementations are compared: the framework's own row, otherwise serial's.
std::optional<std::size_t> baseline_among(const std::vector<StepRow>& rows, const Framework& framework) {
  const std::string_view name = framework.name.empty() ? serial_strategy.name : std::string_view(framework.name);
  const auto row = std::ranges::find_if(rows, [&](const StepRow& each) { return each.text("strategy") == name; });
  return row == rows.end() ? std::nullopt : std::optional(static_cast<std::size_t>(row - rows.begin()));
}

/// Throws ConfigError unless the settings can be corrected by a measured step.
void require_correctable(const RunChoices& run) {
  if (run.scope.work != Use::step) {
    throw ConfigError("--measured-step corrects training steps only; choose scope step");
  }
  if (!run.uncertainty) {
    throw ConfigError(
        "--measured-step requires --uncertainty on, which determines how far the measurement applies to other "
        "settings; add it, or remove --measured-step");
  }
}

}  // namespace

StepPoints::StepPoints(const Library& library) : library_(library), sites_(std::make_unique<Sites>()) {}
StepPoints::~StepPoints() = default;

/// The settings of a whole model, with the machine, the model and the framework that they name.
struct StepPoints::Prepared {
  Settings settings;  ///< With the framework's choices.
  RunChoices run;
  Sites::SizedMachine& site;
  StepPoint point;
  std::vector<RaisedStep> raised;
};

StepPoints::Prepared StepPoints::prepared(const Settings& wanted) {
  const Framework& framework = sites_->framework(wanted.text("framework"));
  Settings settings = as_run_by(framework, wanted);
  RunChoices run = choices_of(settings);
  check(run.scope.is_whole_model(), "steps are predicted only for whole models");
  const Transformer& model = library_.model(run.model);
  const Machine& machine = library_.machine(run.machine);
  TrainingPlan plan = plan_of(run);
  plan.dtype = dtype_of(settings, run, model, machine);
  require_one_replica(run.scope, plan);
  require_few_tokens(run);
  require_used_by_scope(settings);
  const Launch launch = run.price.launch;
  Sites::SizedMachine& site = sites_->of(machine, plan, launch);
  StepPoint point{.model = &model, .machine = &site.machine, .plan = plan, .framework = framework};
  point.options = run.step;
  point.serves = run.scope.is_inference();
  if (run.jitter != "none") {
    const Jitter jitter = load_jitter(run.jitter);
    point.rank_sigma = jitter.rank_sigma.value;
    point.communication_sigma = jitter.communication_sigma.value;
  }
  if (launch == Launch::graph) {
    point.framework.issue.value = Duration::zero();
  }
  std::vector<RaisedStep> raised;
  if (run.uncertainty) {
    const bool decodes = run.scope.work == Use::decode;
    raised = sites_->raised(decodes ? *library_.raised_for_decoding(run.machine) : *library_.raised(run.machine), plan,
                            launch);
  }
  return {std::move(settings), std::move(run), site, std::move(point), std::move(raised)};
}

std::vector<StepRow> StepPoints::rows(const Settings& wanted) {
  Prepared prepared = this->prepared(wanted);
  const auto& [settings, run, site, unused_point, unused_raised] = prepared;
  if (evidence_) {
    require_matching_evidence(settings.text("hardware"), *evidence_);
    require_correctable(run);
  }
  StepPoint& point = prepared.point;
  const Use work = run.scope.work;
  StepDoubts doubts(work == Use::decode    ? decoding
                    : work == Use::prefill ? prefilling
                                           : training,
                    site.times, std::move(prepared.raised));
  std::vector<StepRow> rows;
  if (work == Use::decode) {
    rows = decode_rows(settings, point, site.times, doubts);
  } else {
    require_possible(point);
    const auto implementations = implementations_at(run, library_, point);
    const Implementation* framework_kernels = nullptr;  // Comparisons count the errors of its costs.
    if (!point.framework.name.empty()) {
      point.strategies = strategies_by_default(point.framework);
      rows.push_back(row_of(settings, run, point, {.name = point.framework.name}, site.times));
      doubts.add(point, 0);
      const Implementation* const kernels = point.framework.implementation.get();
      const bool is_compared = doubts.are_wanted() && !implementations.empty() && point.strategies.empty();
      if (is_compared && kernels != nullptr && refusal_at(point, *kernels).empty()) {
        doubts.compare_last_as(with_chosen_gemms(point, site.times), sites_->raised(*kernels, site));
        framework_kernels = kernels;
      }
    }
    const StepPoint as_framework = point;
    for (const Strategy* strategy : strategies_of(run.schedules, point.plan)) {
      point.strategies = {strategy};
      const bool is_bound = !implementations.empty() && strategy != &serial_strategy;
      rows.push_back(strategy_row(settings, run, point, {.name = strategy->name, .bound = is_bound}, site.times));
      if (rows.back().feasible()) {
        doubts.add(point, rows.size() - 1);
      }
    }
    for (const auto& kernels : implementations) {
      const StepPoint implemented = with_implementation(point, *kernels, site.times);
      rows.push_back(implementation_row(settings, run, implemented, site.times));
      if (rows.back().feasible() && doubts.are_wanted()) {
        doubts.add(implemented, rows.size() - 1, sites_->raised(*kernels, site));
        if (framework_kernels != nullptr && implemented.implemented.gemms.empty()) {  // the framework's own step
          doubts.compare_last_as(with_chosen_gemms(as_framework, site.times), sites_->raised(*framework_kernels, site));
        }
      }
    }
  }
  if (evidence_) {
    doubts.correct_by(*evidence_, rows);
  }
  doubts.put(rows, baseline_among(rows, point.framework));
  return rows;
}

StepEvidence StepPoints::evidence_of(const MeasuredStep& measured) {
  Prepared prepared = this->prepared(measured.settings);
  StepPoint& point = prepared.point;
  require_correctable(prepared.run);
  require_possible(point);
  const std::vector<const Strategy*>& named = prepared.run.schedules.named;
  if (!point.framework.name.empty()) {
    point.strategies = strategies_by_default(point.framework);
  } else if (named.size() == 1) {
    point.strategies = named;
  } else {
    throw ConfigError(
        "--measured-step: the software that ran the step is unknown; name its --framework, such as megatron-lm, or one "
        "--strategy, such as serial");
  }
  SiteTimes& times = prepared.site.times;
  const StepPrediction predicted = predict_step(point, times);
  require_within_peak(measured.time, predicted);
  return step_evidence(prepared.settings.text("hardware"), measured.time, predicted.time,
                       step_uncertainty(point, times, training, prepared.raised));
}

std::vector<StepRow> StepPoints::rows_or_reason(const Settings& wanted) {
  Settings settings = wanted;
  try {
    settings = as_run_by(sites_->framework(wanted.text("framework")), wanted);
    return rows(wanted);
  } catch (const ConfigError& error) {
    const RunChoices run = choices_of(settings);
    const Transformer& model = library_.model(run.model);
    TrainingPlan plan = plan_of(run);
    plan.dtype = dtype_of(settings, run, model, library_.machine(run.machine));
    StepRow row = settings_row(settings, model.name, plan, {.name = settings.text("strategy.name")});
    row.add("reason", std::string(error.what()));
    return {row};
  }
}

TrainingPlan training_plan_of(const Settings& settings) { return plan_of(choices_of(settings)); }

}  // namespace commfuse
