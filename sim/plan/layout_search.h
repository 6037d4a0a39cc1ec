// SPDX-License-Identifier: Apache-2.0
// The fastest way to spread a training step over so many GPUs of one kind that their memory holds.
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
  double rank_sigma = 0.0;  ///< StepPoint's, as the next.
  double communication_sigma = 0.0;
  Framework framework{};  ///< Whose hosts and kernels all layouts have.

  /// At every site the fastest of these; where a framework was named, what it does there.
  [[nodiscard]] std::vector<const Strategy*> strategies() const {
    return framework.name.empty() ? strategies_for_steps() : strategies_by_default(framework);
  }
};

struct FoundLayout {
  TrainingPlan plan;
  StepPrediction step;
  StepPercentiles tail;
};

/// What a search has looked at so far.
struct SearchTally {
  std::size_t layouts = 0;       ///< Possible ones.
  std::size_t fitting = 0;       ///< Of these: the memory holds them.
  std::size_t priced = 0;        ///< Of these: played; all others are slower whatever their pipeline does.
  bool too_slow = false;         ///< A step would take more than a million seconds at the dense peak.
  std::optional<Bytes> leanest;  ///< Memory of the fullest GPU of the leanest layout.
};

/// On one kind of GPUs. Keeps what it has played. For one thread.
class LayoutSearch {
 public:
  /// The machine has as many GPUs as are ever asked for; it, the model and the structures outlive the search.
  LayoutSearch(const Transformer& model, const Machine& machine, StructureCache& structures, const LayoutTerms& terms);

  /// How many GPUs a layout may have in whole nodes, or an even part of one; ascending, none above `most`.
  [[nodiscard]] std::vector<std::int64_t> counts(std::int64_t most) const;

  /// With the fastest of the strategies at every site. Layouts are priced in order of what their time cannot be below,
  /// until no other can be the fastest. Nothing where no layout is possible, or none fits. Throws ConfigError for what
  /// the machine cannot do, such as a dtype.
  std::optional<FoundLayout> fastest(std::int64_t gpus, const std::vector<const Strategy*>& strategies);

  /// One layout, on this machine. Requires a possible one.
  FoundLayout at(const TrainingPlan& plan, const std::vector<const Strategy*>& strategies);

  /// With the terms' framework and strategies.
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
