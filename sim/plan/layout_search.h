// SPDX-License-Identifier: Apache-2.0
// Finds the fastest layout of a training step that fits in the memory of a given number of GPUs of one kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/analysis/verdict.h"
#include "sim/step/step.h"
#include "sim/tune/fastest_plans.h"
#include "sim/tune/plan_space.h"

namespace commfuse {

struct LayoutTerms {
  TrainingPlan base;  ///< Batch, sequence, dtype, optimizer.
  PlanWish wish;
  double memory_share = 1.0;
  double rank_sigma = 0.0;           ///< Same as StepPoint::rank_sigma.
  double communication_sigma = 0.0;  ///< Same as StepPoint::communication_sigma.
  Framework framework{};             ///< Framework whose host costs and kernels apply to all layouts.
  VerdictRule rule{};                ///< Decides which layouts tie with the fastest.

  /// Returns the candidates for every site, of which the fastest wins; for a named framework, only its own strategy.
  [[nodiscard]] std::vector<const Strategy*> strategies() const {
    return framework.name.empty() ? strategies_for_steps() : strategies_by_default(framework);
  }
};

struct FoundLayout {
  TrainingPlan plan;
  StepPrediction step;
  StepPercentiles tail;
  double excess_over_fastest = 0.0;  ///< Relative excess of its step time over that of the fastest layout.
  std::string reason{};  ///< Why it is preferred to layouts that tie with it: "less memory"; empty without a tie.
};

/// Statistics of a search so far.
struct SearchTally {
  std::size_t layouts = 0;            ///< Number of possible layouts.
  std::size_t fitting = 0;            ///< Number of layouts that fit in memory.
  std::size_t priced = 0;             ///< Number simulated; the other fitting layouts lack a schedule or are slower
                                      ///< even without bubbles.
  bool too_slow = false;              ///< A step would take more than a million seconds at the dense peak.
  std::optional<Bytes> least_memory;  ///< Least memory that a layout needs on its fullest GPU.
  /// Why a layout that fits has no schedule. Set if, on some count of GPUs, the strategies have no schedule for any
  /// layout that fits.
  std::string refusal;
};

/// Searches the layouts of one kind of GPU and caches the times that it has simulated. Not thread-safe.
class LayoutSearch {
 public:
  /// `machine` must have as many GPUs as the largest layout. The machine, the model and the structures must outlive the
  /// search.
  LayoutSearch(const Transformer& model, const Machine& machine, StructureCache& structures, const LayoutTerms& terms);

  /// Returns the possible GPU counts of a layout, ascending, up to `limit`: whole nodes, or a number that divides the
  /// GPUs of a node.
  [[nodiscard]] std::vector<std::int64_t> counts(std::int64_t limit) const;

  /// Returns whether the GPUs fill whole nodes, or divide the GPUs of one node evenly, as counts() requires.
  [[nodiscard]] bool fills_nodes(std::int64_t gpus) const;

  /// Returns the fastest layout, with the fastest strategy at every site. Layouts are priced in the order of their
  /// lower bounds until no remaining layout can be faster. Skips layouts for which the strategies have no schedule.
  /// Returns nothing if no layout is possible, fits in memory and has schedules, or if every step is too slow. Throws
  /// ConfigError for work that the machine does not support, such as a dtype.
  std::optional<FoundLayout> fastest(std::int64_t gpus, const std::vector<const Strategy*>& strategies);

  /// Returns the layout that `tune` puts first on this number of GPUs: the fastest or, among layouts that tie with it,
  /// the one that the tie rule prefers (choose_plan). Returns nothing and throws as fastest() does.
  std::optional<FoundLayout> preferred(std::int64_t gpus);

  /// Returns whether some layout on this number of GPUs fits in memory. Throws ConfigError as fastest() does.
  bool has_fitting(std::int64_t gpus) { return !fitting(gpus).empty(); }

  /// Predicts the step of one layout on this machine. Requires `plan` to be possible.
  FoundLayout at(const TrainingPlan& plan, const std::vector<const Strategy*>& strategies);

  /// Returns the point of a plan with the framework, strategies and jitter of the terms.
  [[nodiscard]] StepPoint point_of(const TrainingPlan& plan) const;
  SiteTimes& times() { return times_; }
  [[nodiscard]] const SearchTally& tally() const { return tally_; }
  [[nodiscard]] const LayoutTerms& terms() const { return terms_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] const Transformer& model() const { return model_; }

 private:
  std::vector<TrainingPlan> fitting(std::int64_t gpus);
  /// Removes the plans for which the point's strategies have no schedule.
  void keep_scheduled(StepPoint point, std::vector<TrainingPlan>& plans);
  std::vector<TunedPlan> fastest_few(std::int64_t gpus, const std::vector<const Strategy*>& strategies,
                                     std::size_t limit);

  const Transformer& model_;
  const Machine& machine_;
  LayoutTerms terms_;
  SiteTimes times_;
  SearchTally tally_;
};

}  // namespace commfuse
