// SPDX-License-Identifier: Apache-2.0
// The best way to train a model on so many GPUs: how to spread it, and which schedule at every product that meets a
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
#include "sim/tune/plan_space.h"
#include "sim/tune/step_tail.h"

namespace commfuse {

/// Of the forms that Calculon gives tensor parallelism (Isaev et al., "Calculon", SC 2023; calculon/llm/layers.py,
/// LinearOverlapped), with the compute c and the communication t of this model, n tiles, one a rank, and 0.15 of the
/// chip busy with communication; cut products are as efficient as whole ones there:
///
///   none  c + t
///   ring  c / n + (n - 1) / n x max(c / 0.85, t), or c + (n - 1) / n x 0.15 t where t is below c / 0.85
///   pipe  ring + t / n
struct CalculonForms {
  Duration none{};
  Duration pipe{};
  Duration ring{};
};
CalculonForms calculon_forms(Duration compute, Duration communication, std::int64_t ranks);

/// What is made small: of a site's time the mean, or of the whole step's time the p99.
enum class Minimize : std::uint8_t { mean, p99 };
inline constexpr std::array minimize_choices{std::pair<std::string_view, Minimize>{"mean", Minimize::mean},
                                             std::pair<std::string_view, Minimize>{"p99", Minimize::p99}};

/// Schedules of a site under the same draws, on machines drawn anew for every run.
struct SampledChoice {
  SampledSite serial;
  SampledSite by_mean;  ///< The one of the least mean.
  SampledSite by_p99;   ///< The one with which the p99 of the whole step is least.
};

/// A product of the layer with its collective, forward or backward.
struct TunedSite {
  std::string name;
  Scope scope = Scope::qkv;  ///< With what is played for it: of the model `shape`.
  Transformer shape;
  SiteTime serial;
  SiteTime best;                         ///< Where somebody asked for samples: of what is minimised.
  std::optional<SampledChoice> sampled;  ///< Then.
  /// How many times as fast as it is the link has to be for the best strategy to come within 1 % of its own time with
  /// free communication, to 5 %; nothing where 16 times is not enough, as latencies stay.
  std::optional<double> rate_to_hide;
  CalculonForms calculon;
};

struct LeftOut {
  const Strategy* strategy = nullptr;
  std::string reason;  ///< A sentence: too few tokens to cut, for one.
};

struct Tuning {
  std::size_t plans = 0;    ///< Possible ones.
  std::size_t fitting = 0;  ///< Of these: the memory holds them.
  /// With the best schedule at every site: the one to take, then the others, fastest first. Empty where none fits.
  std::vector<TunedPlan> best;
  std::size_t ties = 0;      ///< How many of the plans looked at tie with the fastest, itself included; 1: it wins.
  double ties_within = 0.0;  ///< By how much the slowest of these is slower, as a share.
  std::string tie_rule;      ///< Why the first is taken: "less memory among the 4 within 2%"; empty where none ties.
  /// The first of them otherwise: serial at every site, the best strategy that is the same at all, and with sites that
  /// take compute alone, which no schedule beats.
  StepPrediction serial;
  /// As the framework of the space runs that plan; nothing where none was named.
  std::optional<StepPrediction> baseline;
  const Strategy* single = nullptr;
  StepPrediction with_single;
  std::vector<LeftOut> left_out;  ///< Strategies that cannot be the same at all sites of that plan.
  StepPrediction bound;
  std::vector<TunedSite> sites;  ///< Of that plan; none without sequence parallelism.
  /// Of the step with the schedules chosen, and with those that the other choice would take; where somebody asked for
  /// samples and there are sites.
  std::optional<std::pair<StepTail, StepTail>> tails;
  /// What the first plan's time was multiplied by, and all of these with it; nothing where nobody measured a step.
  std::optional<double> correction;
};

struct TuneOptions {
  std::size_t keep = 5;       ///< Plans to tell of.
  double memory_share = 0.9;  ///< Of a GPU that a plan may need: the rest is the framework's and the allocator's.
  double rank_sigma = 0.0;    ///< StepPoint's.
  double communication_sigma = 0.0;
  Minimize minimize = Minimize::mean;
  VerdictRule rule{};  ///< Which plans tie with the fastest one.
  bool errors = true;  ///< Price plans with each parameter raised, so that ties look at probabilities.
  /// A step that was measured on the machine: all times are corrected by it. Requires errors.
  std::optional<StepEvidence> evidence{};
  /// With its jitter, sites are chosen by samples of a single run of each; without, as if nothing strayed.
  MonteCarloOptions monte_carlo{};
  /// The same without the speeds of GPUs, which stay what they are from run to run of a step.
  std::shared_ptr<const JitterTables> kernel_jitter{};
};

/// Where p99 is minimised, or there is a jitter, the sites of the best plan are then chosen by samples, and the step is
/// that of the schedules chosen; plans are ranked by their time with the fastest schedule at every site, or where the
/// p99 is minimised the fastest dozen by that on machines whose slowest GPU is at its p99. Throws ConfigError where no
/// plan is possible, and what require_possible(StepPoint) throws.
Tuning tune(const PlanSpace& space, const TuneOptions& options);

/// The sites alone, of one micro-batch of the plan, without samples. Requires sequence parallelism.
std::vector<TunedSite> tune_sites(const StepPoint& point, SiteTimes& times, StructureCache& structures);

}  // namespace commfuse
