// SPDX-License-Identifier: Apache-2.0
// The settings of a run as typed values (RunChoices), and the words of some. A new setting is a member of RunChoices,
// or of a struct in it, and an entry in field.cpp, which fills that member.
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
#include "model/config/choice_words.h"
#include "model/config/evaluator.h"
#include "model/config/field.h"
#include "model/config/price_settings.h"
#include "model/cost/price.h"
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
/// Dtypes of gradients; sums need at least 16 bits.
inline constexpr std::array gradient_dtypes{DType::fp32, DType::bf16, DType::fp16};
inline constexpr std::array switch_choices{Choice<bool>{"on", true}, Choice<bool>{"off", false}};
/// best: one row per strategy; all: one row per schedule.
inline constexpr std::array variants_choices{Choice<bool>{"best", false}, Choice<bool>{"all", true}};

/// Scopes of whole models, which sim/step composes of several programs; all_scopes has the others.
inline constexpr std::array whole_model_scopes{Choice<Use>{"step", Use::step}, Choice<Use>{"prefill", Use::prefill},
                                               Choice<Use>{"decode", Use::decode}};

/// A site of a layer, a chain of sites, or a whole model.
struct ScopeChoice {
  Use work = Use::layer;     ///< layer, or one of whole_model_scopes
  Scope layer = Scope::mlp;  ///< The scope where work is `layer`.

  [[nodiscard]] bool is_whole_model() const { return work != Use::layer; }
  /// Returns true for a pass without gradients.
  [[nodiscard]] bool is_inference() const { return work == Use::prefill || work == Use::decode; }
};
inline std::string_view name_of(const ScopeChoice& scope) {
  return scope.is_whole_model() ? word_of(whole_model_scopes, scope.work) : name_of(scope.layer);
}

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
  StrategyOptions options;             ///< Holds the values of `fixed`; the others keep their defaults.
  OptionSet fixed;
  std::string implementations;  ///< "none", "all", or names between commas
};

/// Options of the simulation of a layer; prices have options of their own.
struct SimulationOptions {
  Evaluator evaluator = Evaluator::automatic;
  bool symmetry = true;  ///< Simulate one rank per class of equal ranks; changes no result.
};

/// Options of the simulation of a whole model, in addition to its TrainingPlan.
struct StepOptions {
  LatentDecode latent_decode = LatentDecode::absorb;
};

/// The settings of a run, which choices_of (settings.h) fills; their defaults are the presets of field.cpp. Evaluators
/// take whole structs of it, so a new member of one reaches them without further code.
struct RunChoices {
  std::string model;  ///< a name or a path
  MachineChoice machine;
  std::int32_t ranks = 1;
  std::int64_t seq = 1;    ///< tokens
  std::int64_t batch = 1;  ///< sequences
  DType dtype = DType::bf16;
  ScopeChoice scope;
  TrainingPlan plan;  ///< Settings of whole models alone; training_plan_of (sim/step) adds ranks, batch, seq and dtype.
  StepOptions step;
  std::string framework;  ///< a name or a path; "none"
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

/// Returns the number of runs to sample: 1000 by default, 1 without jitter.
std::int64_t samples_of(const RunChoices& run);

}  // namespace commfuse
