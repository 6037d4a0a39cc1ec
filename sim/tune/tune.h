// SPDX-License-Identifier: Apache-2.0
// Finds the best way to train a model on a number of GPUs: the layout, and the schedule of every GEMM that meets a
// collective.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/analysis/verdict.h"
#include "sim/step/measured_step.h"
#include "sim/step/step.h"
#include "sim/tune/fastest_plans.h"
#include "sim/tune/overlap_choices.h"
#include "sim/tune/plan_space.h"
#include "sim/tune/step_tail.h"

namespace commfuse {

/// Calculon's formulas for tensor parallelism (Isaev et al., "Calculon", SC 2023; calculon/llm/layers.py,
/// LinearOverlapped), with the compute c and the communication t of this model, n tiles, one per rank, and 0.15 of the
/// chip busy with communication; split GEMMs are as efficient as whole ones:
///
///   none  c + t
///   ring  c / n + (n - 1) / n x t where t exceeds c / 0.85, otherwise c + (n - 1) / n x 0.15 t
///   pipe  ring + t / n
struct CalculonForms {
  Duration none{};
  Duration pipe{};
  Duration ring{};
};
struct CalculonSite {
  Duration compute{};
  Duration communication{};
  std::int64_t ranks = 1;
};
CalculonForms calculon_forms(const CalculonSite& site);

/// The objective: the mean of a site's time, or the p99 of the whole step's time.
enum class Minimize : std::uint8_t { mean, p99 };
inline constexpr std::array minimize_choices{std::pair<std::string_view, Minimize>{"mean", Minimize::mean},
                                             std::pair<std::string_view, Minimize>{"p99", Minimize::p99}};

/// Schedules of a site under common draws, on a new random machine for every run.
struct SampledChoice {
  SampledSite serial;
  SampledSite by_mean;  ///< The schedule with the smallest mean.
  SampledSite by_p99;   ///< The schedule with which the p99 of the whole step is smallest.
};

/// A GEMM of the layer with its collective, forward or backward.
struct TunedSite {
  std::string name;
  Scope scope = Scope::qkv;  ///< Scope of its simulation, with the model `shape`.
  Transformer shape;
  SiteTime serial;
  SiteTime best;  ///< Best for the objective where samples were requested, otherwise the fastest without jitter.
  std::optional<SampledChoice> sampled;  ///< Set if samples were requested.
  /// Factor on the link rate at which the best strategy comes within 1% of its own time with free communication,
  /// accurate to 5%; nothing if a factor of 16 is not enough, because latencies remain.
  std::optional<double> rate_to_hide;
  CalculonForms calculon;
};

/// Returns whether sites of the plan's tensor ranks have collectives, which Tuning::bound makes free.
bool frees_collectives(const TrainingPlan& plan);

/// Returns the exchange that the plan does not use.
ContextExchange other_exchange_of(const TrainingPlan& plan);

struct StrategyWithoutSchedule {
  const Strategy* strategy = nullptr;
  std::string reason;  ///< A sentence, for example that there are too few tokens to split.
};

struct Tuning {
  std::size_t plans = 0;    ///< Number of possible plans.
  std::size_t fitting = 0;  ///< Number of plans that fit in memory.
  Bytes least_memory{};     ///< Memory per GPU of the plan that needs the least.
  double memory_limit = 0;  ///< Bytes per GPU that a plan may use.
  /// The plan to use, then the other plans, fastest first, with the best schedule at every site. Empty if no plan fits.
  std::vector<TunedPlan> best;
  std::size_t ties = 0;      ///< Number of plans considered that tie with the fastest, itself included; 1 if it wins.
  double ties_within = 0.0;  ///< Relative difference between the slowest of these plans and the fastest.
  std::string tie_rule;  ///< Why the first plan is chosen: "less memory among the 4 within 2%"; empty without a tie.
  /// Relative excess of the first plan's objective over the fastest plan's.
  double excess_over_fastest = 0.0;
  StepPrediction serial;  ///< The first plan with serial at every site.
  /// The first plan as the framework of the space runs it; nothing if no framework was named, or if its strategy has no
  /// schedule for this plan.
  std::optional<StepPrediction> baseline;
  /// The fastest plan as the framework runs it, or without a framework the fastest plan with serial at every site;
  /// nothing if the framework's strategy has no schedule for any plan.
  std::optional<TunedPlan> fastest_baseline;
  const Strategy* single = nullptr;  ///< The best strategy for the first plan if all sites use one strategy.
  StepPrediction with_single;        ///< The first plan with `single` at every site.
  /// Strategies that lack a schedule for some site of the first plan.
  std::vector<StrategyWithoutSchedule> without_schedule;
  /// The first plan with sites that take only their compute time, which no schedule beats. Other communication
  /// (context ranks, gradients, stages) takes its usual time, so another exchange of keys may beat the bound. The bound
  /// says nothing where frees_collectives() of the plan is false.
  StepPrediction bound;
  /// The first plan with the other exchange of keys and values (ContextExchange); nothing without context ranks, where
  /// the exchange was fixed, where the other one is impossible or out of memory, or where it takes the same time.
  std::optional<StepPrediction> other_exchange;
  std::vector<TunedSite> sites;  ///< Sites of the first plan; none without sequence parallelism.
  OverlapChoices overlap;        ///< TransformerEngine's methods for the first plan.
  /// Percentiles of the step with the chosen schedules, and with the schedules of the other objective. Set if samples
  /// were requested and the plan has sites.
  std::optional<std::pair<StepTail, StepTail>> tails;
  /// Factor on the time of the first plan; nothing if no step was measured. Steps with other schedules, layouts or
  /// exchanges have factors of their own.
  std::optional<double> correction;
};

struct TuneOptions {
  std::size_t keep = 5;       ///< Number of plans to return.
  double memory_share = 0.9;  ///< Share of a GPU's memory for a plan; the rest is reserved.
  double rank_sigma = 0.0;    ///< Same as in StepPoint.
  double communication_sigma = 0.0;
  Minimize minimize = Minimize::mean;
  VerdictRule rule{};          ///< Decides which plans tie with the fastest one.
  bool other_exchange = true;  ///< Also price the first plan with the other exchange of context ranks.
  bool errors = true;          ///< Also price plans with each parameter raised, so that probabilities decide ties.
  /// A measured step of the machine, which corrects all times. Requires `errors`.
  std::optional<StepEvidence> evidence{};
  /// Its jitter, if any, is used to choose the schedules of sites by samples of single runs.
  MonteCarloOptions monte_carlo{};
  /// The jitter without the speeds of GPUs, which stay the same from run to run of a step.
  std::shared_ptr<const JitterTables> kernel_jitter{};
};

/// Ranks the plans by their time with the fastest schedule at every site; where the p99 is minimized, the fastest dozen
/// plans (or `keep`, if that is more) are ranked by their time on machines whose slowest GPU is at its p99. With a
/// jitter, the schedules at the sites of the best plan are then chosen by samples, and its step uses them. Throws
/// ConfigError where no plan is possible, and as require_possible(StepPoint) does.
Tuning tune(const PlanSpace& space, const TuneOptions& options);

/// Returns only the sites, for one micro-batch of the plan, without samples. Requires point.plan.sequence_parallel.
std::vector<TunedSite> tune_sites(const StepPoint& point, SiteTimes& times, StructureCache& structures);

}  // namespace commfuse
