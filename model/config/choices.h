// SPDX-License-Identifier: Apache-2.0
// The settings of a run as typed values (RunChoices), and their descriptions. To add a setting, add a member to a
// struct here, and an entry that fills it; TrainingPlan, VerdictRule and PriceOptions have the entries of their
// settings next to them.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/analysis/verdict.h"
#include "model/config/evaluator.h"
#include "model/config/field.h"
#include "model/cost/price.h"
#include "model/cost/price_settings.h"
#include "model/describe/choice_words.h"
#include "model/describe/setting.h"
#include "model/dtype.h"
#include "model/hardware/link.h"
#include "model/strategies/options.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"
#include "model/workload/training_plan.h"
#include "model/workload/transformer.h"

namespace commfuse {

inline constexpr std::array latent_decode_choices{Choice<LatentDecode>{"absorb", LatentDecode::absorb},
                                                  Choice<LatentDecode>{"naive", LatentDecode::naive}};
inline constexpr std::array evaluator_choices{Choice<Evaluator>{"auto", Evaluator::automatic},
                                              Choice<Evaluator>{"replay", Evaluator::replay},
                                              Choice<Evaluator>{"engine", Evaluator::engine}};
/// best: one row per strategy; all: one row per schedule.
inline constexpr std::array variants_choices{Choice<bool>{"best", false}, Choice<bool>{"all", true}};

/// Scopes of whole models, which sim/step composes from several programs; all_scopes lists the scopes of a layer.
inline constexpr std::array whole_model_scopes{Choice<Use>{"step", Use::step}, Choice<Use>{"prefill", Use::prefill},
                                               Choice<Use>{"decode", Use::decode}};

/// A site of a layer, a chain of sites, or a whole model.
struct ScopeChoice {
  Use work = Use::layer;     ///< layer, or one of whole_model_scopes
  Scope layer = Scope::mlp;  ///< The scope if `work` is `layer`.

  [[nodiscard]] bool is_whole_model() const { return work != Use::layer; }
  /// Returns true for prefill and decode, the passes of a whole model without gradients.
  [[nodiscard]] bool is_inference() const { return work == Use::prefill || work == Use::decode; }
};
inline std::string_view name_of(const ScopeChoice& scope) {
  return scope.is_whole_model() ? word_of(whole_model_scopes, scope.work) : name_of(scope.layer);
}

/// Highest price of a GPU for an hour, in any currency.
inline constexpr std::int64_t highest_price = 1'000'000'000;

struct MachineChoice {
  std::string hardware;           ///< a name or a path
  std::string link_bandwidth;     ///< bandwidth inside a node, as the user wrote it (parse_bandwidth_choice)
  std::string network_bandwidth;  ///< bandwidth between nodes, as the user wrote it
  AllReduceKernel all_reduce_kernel = AllReduceKernel::nccl;
  friend auto operator<=>(const MachineChoice&, const MachineChoice&) = default;
};

struct ScheduleChoice {
  std::vector<const Strategy*> named;  ///< in the order given; empty: all strategies
  bool each_variant = false;           ///< one row per schedule instead of one per strategy
  StrategyOptions options;             ///< Holds the values of `fixed`; other options keep their defaults.
  OptionSet fixed;
  std::string implementations;  ///< "none", "all", or names separated by commas
};

/// Options of the simulation of a layer; the options of prices are in PriceOptions.
struct SimulationOptions {
  Evaluator evaluator = Evaluator::automatic;
  bool symmetry = true;  ///< Simulate one rank per class of equal ranks; changes no result.
};

/// Options of the simulation of a whole model, in addition to its TrainingPlan.
struct StepOptions {
  LatentDecode latent_decode = LatentDecode::absorb;
};

/// The settings of a run, which choices_of (settings.h) fills; their defaults are the presets of the entries.
/// Evaluators take whole structs of RunChoices, so a new member of such a struct reaches them without further code.
struct RunChoices {
  std::string model;  ///< a name or a path
  MachineChoice machine;
  std::int32_t ranks = 1;
  std::int64_t seq = 1;    ///< tokens
  std::int64_t batch = 1;  ///< sequences
  DType dtype = DType::bf16;
  ScopeChoice scope;
  TrainingPlan plan;  ///< Settings of whole models only; training_plan_of (sim/step) adds ranks, batch, seq and dtype.
  StepOptions step;
  std::string framework;                 ///< a name or a path; "none"
  std::optional<double> gpu_hour_price;  ///< in the user's currency
  ScheduleChoice schedules;
  PriceOptions price;
  std::string jitter;                   ///< a name or a path
  std::string faults;                   ///< a name or a path
  std::optional<std::int64_t> samples;  ///< runs under jitter; samples_of has the default
  std::uint64_t seed = 1;
  bool uncertainty = true;  ///< Compute standard errors and win probabilities.
  VerdictRule verdict;
  SimulationOptions simulation;
  int threads = 0;  ///< 0: all cores
};

namespace run_settings {

using enum Use;

std::vector<std::string_view> scope_names();
std::vector<std::string_view> strategy_names();
void put_scope(std::string_view text, RunChoices& run);
void put_strategies(std::string_view text, RunChoices& run);

/// Settings that determine what is simulated, in the order that all listings use.
inline constexpr std::array of_subject{
    SettingEntry<RunChoices>{.key = "model",
                             .flag = "model",
                             .group = what,
                             .doc = "Transformer model: a name in configs/models, a path, or HIDDENxFFN[-eE-topK]",
                             .preset = "llama-3.1-70b",
                             .example = "llama-3.1-70b",
                             .uses = {layer, step, prefill, decode, tune, plan, measure, schedule},
                             .catalogue = Catalogue::models,
                             .is_usual = true}
        .fills(name<&RunChoices::model>),
    SettingEntry<RunChoices>{.key = "hardware",
                             .flag = "hardware",
                             .group = what,
                             .doc = "Machine: a name in configs/hardware or configs/clusters, or a path",
                             .preset = "h100-sxm",
                             .example = "h100-sxm",
                             .uses = {layer, step, prefill, decode, tune, measure, price},
                             .catalogue = Catalogue::hardware,
                             .is_usual = true}
        .fills(name<&RunChoices::machine, &MachineChoice::hardware>),
    SettingEntry<RunChoices>{.key = "link_bandwidth",
                             .flag = "link-bandwidth",
                             .group = what,
                             .doc = "Bandwidth inside a node: a factor (x2), or a rate (450GB/s)",
                             .preset = "x1",
                             .example = "x2",
                             .uses = {layer, step, prefill, decode, tune, measure, price}}
        .fills(bandwidth<&RunChoices::machine, &MachineChoice::link_bandwidth>),
    SettingEntry<RunChoices>{.key = "network_bandwidth",
                             .flag = "network-bandwidth",
                             .group = what,
                             .doc = "Bandwidth between nodes per NIC: a factor (x2), or a rate (50GB/s)",
                             .preset = "x1",
                             .example = "x2",
                             .uses = {layer, step, prefill, decode, tune, measure, price}}
        .fills(bandwidth<&RunChoices::machine, &MachineChoice::network_bandwidth>),
    SettingEntry<RunChoices>{.key = "all_reduce_kernel",
                             .flag = "all-reduce-kernel",
                             .group = what,
                             .doc = "All-reduce kernels in a node: NCCL's, or a serving framework's if faster",
                             .preset = "nccl",
                             .example = "vllm",
                             .uses = {layer, step, prefill, decode, tune, plan}}
        .fills(one_of<all_all_reduce_kernels, &RunChoices::machine, &MachineChoice::all_reduce_kernel>),
    SettingEntry<RunChoices>{.key = "ranks",
                             .flag = "ranks",
                             .group = what,
                             .doc = "Tensor-parallel ranks",
                             .preset = "8",
                             .example = "8",
                             .uses = {layer, step, prefill, decode, tune, plan, lab, measure, schedule},
                             .most = kibi * kibi,
                             .unit = "ranks",
                             .growth = Growth::by_one,
                             .is_usual = true}
        .fills(count<&RunChoices::ranks>),
    SettingEntry<RunChoices>{.key = "seq",
                             .flag = "seq",
                             .group = what,
                             .doc = "Sequence length in tokens; 32K is 32768",
                             .preset = "4K",
                             .example = "4K",
                             .uses = {layer, step, prefill, decode, tune, plan, measure, price},
                             .most = kibi * kibi * kibi,
                             .unit = "tokens",
                             .is_usual = true}
        .fills(count<&RunChoices::seq>),
    SettingEntry<RunChoices>{.key = "batch",
                             .flag = "batch",
                             .group = what,
                             .doc = "Batch size in sequences",
                             .preset = "1",
                             .example = "1",
                             .uses = {layer, step, prefill, decode, tune, plan, measure, price},
                             .most = kibi * kibi * kibi,
                             .unit = "sequences",
                             .is_usual = true}
        .fills(count<&RunChoices::batch>),
    SettingEntry<RunChoices>{.key = "dtype",
                             .flag = "dtype",
                             .group = what,
                             .doc = "Element type of tensors and messages",
                             .preset = "bf16",
                             .example = "bf16",
                             .uses = {layer, step, prefill, decode, tune, plan, measure, schedule},
                             .noun = "dtype",
                             .nouns = "dtypes",
                             .is_usual = true}
        .fills(one_of<all_dtypes, &RunChoices::dtype>),
    SettingEntry<RunChoices>{.key = "scope",
                             .flag = "scope",
                             .group = what,
                             .doc = "Site of a layer, chain of sites, or whole model",
                             .preset = "mlp",
                             .example = "mlp",
                             .uses = {layer, step, prefill, decode, tune, measure, schedule},
                             .noun = "scope",
                             .nouns = "scopes",
                             .is_usual = true}
        .fills(SettingValue<RunChoices>{FieldType::choice, scope_names, put_scope})};

/// Settings of whole models in addition to the settings of the plan.
inline constexpr std::array of_models{
    SettingEntry<RunChoices>{.key = "step.latent_decode",
                             .flag = "latent-decode",
                             .group = whole,
                             .doc = "Keys of latent attention in decode: compressed (absorb) or full (naive)",
                             .preset = "absorb",
                             .example = "naive",
                             .uses = {decode, tune},
                             .noun = "method",
                             .nouns = "methods"}
        .fills(word<latent_decode_choices, &RunChoices::step, &StepOptions::latent_decode>),
    SettingEntry<RunChoices>{.key = "framework",
                             .flag = "framework",
                             .group = whole,
                             .doc = "Framework whose step is the baseline, for example torchtitan",
                             .preset = "none",
                             .example = "torchtitan",
                             .uses = {step, tune, plan},
                             .catalogue = Catalogue::frameworks}
        .fills(name<&RunChoices::framework>),
    // In a plan file the price belongs to a kind of GPU, under the same name (plan_field.cpp).
    SettingEntry<RunChoices>{.key = "price",
                             .flag = "price",
                             .group = whole,
                             .doc = "Price of a GPU-hour, for the cost per million tokens",
                             .example = "2.80",
                             .uses = {prefill, decode},
                             .least = 0,
                             .most = highest_price}
        .fills(amount<&RunChoices::gpu_hour_price>)};

/// Settings of the schedules; they come before the options of strategies.
inline constexpr std::array of_schedules{
    SettingEntry<RunChoices>{.key = "as",
                             .flag = "as",
                             .group = which,
                             .doc = "Implementations to compare: flux,te; or all",
                             .preset = "none",
                             .example = "flux,async_tp",
                             .uses = {layer, step, prefill},
                             .catalogue = Catalogue::implementations,
                             .is_usual = true}
        .fills(names_of<&RunChoices::schedules, &ScheduleChoice::implementations>),
    SettingEntry<RunChoices>{.key = "strategy.name",
                             .flag = "strategy",
                             .group = which,
                             .doc = "Strategies to compare, separated by commas",
                             .preset = "all",
                             .example = "sliced,commfuse",
                             .uses = {layer, step, prefill, decode, tune, measure, schedule},
                             .noun = "strategy",
                             .nouns = "strategies",
                             .is_usual = true}
        .fills(SettingValue<RunChoices>{FieldType::choices, strategy_names, put_strategies}),
    SettingEntry<RunChoices>{.key = "strategy.variants",
                             .flag = "variants",
                             .group = which,
                             .doc = "best: one row per strategy; all: one row per schedule",
                             .preset = "best",
                             .example = "all",
                             .uses = {layer, measure, schedule}}
        .fills(word<variants_choices, &RunChoices::schedules, &ScheduleChoice::each_variant>)};

/// Settings of jitter, faults, random draws and uncertainty.
inline constexpr std::array of_draws{
    SettingEntry<RunChoices>{.key = "jitter",
                             .flag = "jitter",
                             .group = how,
                             .doc = "Jitter of op times: a name in configs/jitter, or a path",
                             .preset = "none",
                             .example = "default",
                             .uses = {layer, step, prefill, decode, tune, plan, lab},
                             .catalogue = Catalogue::jitter,
                             .is_usual = true}
        .fills(name<&RunChoices::jitter>),
    SettingEntry<RunChoices>{.key = "faults",
                             .flag = "faults",
                             .group = how,
                             .doc = "Injected faults: a name in configs/faults, or a path",
                             .preset = "none",
                             .example = "slow-rank",
                             .uses = {layer, lab},
                             .catalogue = Catalogue::faults}
        .fills(name<&RunChoices::faults>),
    SettingEntry<RunChoices>{.key = "samples",
                             .flag = "samples",
                             .group = how,
                             .doc = "Runs to sample under jitter; default 1000",
                             .example = "10000",
                             .uses = {layer, step, prefill, decode, tune, lab},
                             .most = 16 * kibi * kibi,
                             .unit = "samples"}
        .fills(count<&RunChoices::samples>),
    SettingEntry<RunChoices>{.key = "seed",
                             .flag = "seed",
                             .group = how,
                             .doc = "Random seed; equal seeds give equal results",
                             .preset = "1",
                             .example = "1",
                             .uses = {layer, step, prefill, decode, tune, plan, lab, measure},
                             .least = 0,
                             .most = kibi * kibi * kibi,
                             .growth = Growth::by_one}
        .fills(count<&RunChoices::seed>),
    SettingEntry<RunChoices>{.key = "uncertainty",
                             .flag = "uncertainty",
                             .group = how,
                             .doc = "on: standard errors and win probabilities; off: faster",
                             .preset = "on",
                             .example = "off",
                             .uses = {layer, step, prefill, decode, tune}}
        .fills(word<switch_choices, &RunChoices::uncertainty>)};

/// Settings of the evaluation of schedules.
inline constexpr std::array of_evaluation{
    SettingEntry<RunChoices>{.key = "evaluator",
                             .flag = "evaluator",
                             .group = how,
                             .doc = "Evaluator of schedules; auto picks the cheapest that is exact",
                             .preset = "auto",
                             .example = "engine",
                             .uses = {layer, lab},
                             .noun = "evaluator",
                             .nouns = "evaluators"}
        .fills(word<evaluator_choices, &RunChoices::simulation, &SimulationOptions::evaluator>),
    SettingEntry<RunChoices>{.key = "symmetry",
                             .flag = "symmetry",
                             .group = how,
                             .doc = "on: simulate one rank per class of equal ranks; off: all",
                             .preset = "on",
                             .example = "off",
                             .uses = {layer, lab},
                             .of_point = false}
        .fills(word<switch_choices, &RunChoices::simulation, &SimulationOptions::symmetry>),
    SettingEntry<RunChoices>{.key = "threads",
                             .flag = "threads",
                             .letter = 'j',
                             .group = how,
                             .doc = "Threads; 0 uses all cores",
                             .preset = "0",
                             .example = "4",
                             .uses = {layer, step, prefill, decode, tune},
                             .least = 0,
                             .most = 4 * kibi,
                             .unit = "threads",
                             .growth = Growth::by_one,
                             .of_point = false}
        .fills(count<&RunChoices::threads>)};

}  // namespace run_settings

/// Returns the number of runs to sample: `samples` if it is set, otherwise 1000 with jitter and 1 without.
std::int64_t samples_of(const RunChoices& run);

}  // namespace commfuse
