// SPDX-License-Identifier: Apache-2.0
// Finds the fastest layout of a training step over a number of GPUs of one kind that fits in their memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/step/step.h"
#include "sim/tune/plan_space.h"

namespace commfuse {

struct LayoutTerms {
  TrainingPlan base;  ///< Batch, sequence, dtype, optimizer.
  PlanWish wish;
  double memory_share = 1.0;
  double rank_sigma = 0.0;  ///< Same as in StepPoint, like the next.
  double communication_sigma = 0.0;
  Framework framework{};  ///< Framework whose hosts and kernels all layouts have.

  /// Returns the candidates at every site, of which the fastest is taken; for a named framework, its own strategy.
  [[nodiscard]] std::vector<const Strategy*> strategies() const {
    return framework.name.empty() ? strategies_for_steps() : strategies_by_default(framework);
  }
};

struct FoundLayout {
  TrainingPlan plan;
  StepPrediction step;
  StepPercentiles tail;
};

/// Counts of a search so far.
struct SearchTally {
  std::size_t layouts = 0;       ///< Possible layouts.
  std::size_t fitting = 0;       ///< Layouts that fit in memory.
  std::size_t priced = 0;        ///< Layouts that were simulated; the others that fit are slower even without bubbles.
  bool too_slow = false;         ///< A step would take more than a million seconds at the dense peak.
  std::optional<Bytes> leanest;  ///< Memory of the fullest GPU of the leanest layout.
};

/// Searches the layouts of one kind of GPUs. Keeps what it has simulated. For one thread.
class LayoutSearch {
 public:
  /// The machine has the largest number of GPUs that will be asked for. The machine, the model and the structures
  /// outlive the search.
  LayoutSearch(const Transformer& model, const Machine& machine, StructureCache& structures, const LayoutTerms& terms);

  /// Returns the possible GPU counts of a layout: whole nodes, or an even part of one; ascending, at most `limit`.
  [[nodiscard]] std::vector<std::int64_t> counts(std::int64_t limit) const;

  /// Returns the fastest layout, with the fastest strategy at every site. Layouts are priced in the order of their
  /// lower bounds until no other can be the fastest. Returns nothing if no layout is possible, or none fits. Throws
  /// ConfigError for what the machine cannot do, such as a dtype.
  std::optional<FoundLayout> fastest(std::int64_t gpus, const std::vector<const Strategy*>& strategies);

  /// Evaluates one layout on this machine. Requires a possible layout.
  FoundLayout at(const TrainingPlan& plan, const std::vector<const Strategy*>& strategies);

  /// Returns the point with the terms' framework and strategies.
  [[nodiscard]] StepPoint point_of(const TrainingPlan& plan) const;
  SiteTimes& times() { return times_; }
  [[nodiscard]] const SearchTally& tally() const { return tally_; }
  [[nodiscard]] const LayoutTerms& terms() const { return terms_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] const Transformer& model() const { return model_; }

 private:
  std::vector<TrainingPlan> fitting(std::int64_t gpus);

  const Transformer& model_;
  const Machine& machine_;
  LayoutTerms terms_;
  SiteTimes times_;
  SearchTally tally_;
};

}  // namespace commfuse
