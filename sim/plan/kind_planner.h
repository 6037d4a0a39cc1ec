// SPDX-License-Identifier: Apache-2.0
// One kind of GPUs of a plan: its best layout at every count, and the count that keeps the limits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/analysis/run_totals.h"
#include "model/analysis/verdict.h"
#include "model/config/plan_file.h"
#include "model/record/capacity_plan.h"
#include "sim/plan/layout_search.h"
#include "sim/plan/run_spread.h"
#include "sim/tune/tune.h"

namespace commfuse {

/// Behind every interval.
inline constexpr std::size_t interval_draws = 2000;

/// What a plan's terms make of so many GPUs at such a rate.
RunTerms terms_of(const PlanFile& file, const GpuOffer& offer, std::int64_t gpus, double tokens_per_second);

class KindPlanner {
 public:
  /// All outlive it. Throws ConfigError where the machine has fewer GPUs than are said to be available.
  KindPlanner(const PlanFile& file, const GpuOffer& offer, const Transformer& model, const LayoutTerms& terms,
              StructureCache& structures);

  /// Without what compares it with other kinds.
  CapacityKind plan();
  /// Another of its runs is the answer.
  void take(CapacityKind& kind, std::size_t run);

  /// The draws behind its intervals.
  [[nodiscard]] RunDraws draws(double step_error) const;
  [[nodiscard]] LayoutSearch& search() { return search_; }
  [[nodiscard]] const PlanFile& file() const { return file_; }
  [[nodiscard]] const GpuOffer& offer() const { return offer_; }
  [[nodiscard]] StructureCache& structures() const { return structures_; }
  [[nodiscard]] std::int64_t most() const { return most_; }

 private:
  [[nodiscard]] CapacityKind offered() const;
  void look_at_counts();
  void add_runs(CapacityKind& kind, double step_error) const;
  void add_sites(CapacityKind& kind, const FoundLayout& layout);

  const PlanFile& file_;
  const GpuOffer& offer_;
  StructureCache& structures_;
  std::int64_t most_;  ///< GPUs that are available and may have power.
  Machine machine_;
  LayoutSearch search_;
  std::vector<FoundLayout> found_;  ///< Ascending in GPUs.
  std::vector<TunedSite> sites_;    ///< Of the layout asked for last.
};

/// The run to take among those that keep all limits: the cheapest, or the shortest where there is a budget and no
/// deadline; of those that tie the one with fewer GPUs, then less memory, then fewer kinds of parallelism. No run that
/// keeps the limits is both shorter and cheaper.
struct RunChoice {
  RunPlace chosen;
  std::vector<RunPlace> ties;  ///< Others that tie.
  std::string rule;            ///< That broke the tie; empty without one.
};
/// Runs of one kind share their errors, so there the difference alone decides. Nothing where no run keeps the limits.
std::optional<RunChoice> choose_run(const PlanFile& file, std::span<const CapacityKind> kinds);

/// One sentence: which limit binds, and by how much. Requires that no run keeps all.
std::string binding_limit(const PlanFile& file, const CapacityKind& kind, const LayoutSearch& search,
                          std::int64_t most);

}  // namespace commfuse
