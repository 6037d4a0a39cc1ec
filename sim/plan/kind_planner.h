// SPDX-License-Identifier: Apache-2.0
// One kind of GPUs of a plan: its best layout at every count, and the count that keeps the limits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/analysis/run_totals.h"
#include "model/config/plan_file.h"
#include "model/record/capacity_plan.h"
#include "sim/plan/layout_search.h"
#include "sim/plan/run_spread.h"
#include "sim/tune/tune.h"

namespace commfuse {

/// Behind every interval.
inline constexpr std::size_t interval_draws = 2000;

/// One strategy, by its name, at all sites.
std::vector<const Strategy*> only(std::string_view name);

/// What a plan's terms make of so many GPUs at such a rate.
RunTerms terms_of(const PlanFile& file, const GpuOffer& offer, std::int64_t gpus, double tokens_per_second);

class KindPlanner {
 public:
  /// All outlive it. Throws ConfigError where the machine has fewer GPUs than are said to be available.
  KindPlanner(const PlanFile& file, const GpuOffer& offer, const Transformer& model, const LayoutTerms& terms,
              StructureCache& structures);

  /// Without what compares it with other kinds.
  CapacityKind plan();

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

/// The least count of GPUs that keeps all limits; where there is a budget and no deadline, the shortest run of those.
std::optional<std::size_t> choose_run(const PlanFile& file, const std::vector<CapacityRun>& runs);

/// One sentence: which limit binds, and by how much. Requires that no run keeps all.
std::string binding_limit(const PlanFile& file, const CapacityKind& kind, const LayoutSearch& search,
                          std::int64_t most);

}  // namespace commfuse
