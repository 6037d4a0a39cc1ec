// SPDX-License-Identifier: Apache-2.0
// Plans one kind of GPU: its best layout at every count of GPUs, and the best run that meets the limits.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/analysis/run_totals.h"
#include "model/analysis/verdict.h"
#include "model/config/plan_file.h"
#include "model/record/capacity_plan.h"
#include "sim/plan/layout_search.h"
#include "sim/plan/run_spread.h"
#include "sim/step/measured_step.h"
#include "sim/tune/tune.h"

namespace commfuse {

/// Number of Monte Carlo draws for every interval.
inline constexpr std::size_t interval_draws = 2000;

/// Returns the terms of the plan's run on `gpus` GPUs at `tokens_per_second`.
RunTerms terms_of(const PlanFile& file, const GpuOffer& offer, std::int64_t gpus, double tokens_per_second);

class KindPlanner {
 public:
  /// The arguments must outlive the planner. Throws ConfigError if the offer has more GPUs than the machine, if no
  /// count can have the fixed degrees, and if no layout uses exactly the count of GPUs that the offer states.
  KindPlanner(const PlanFile& file, const GpuOffer& offer, const Transformer& model, const LayoutTerms& terms,
              StructureCache& structures);

  /// Plans the kind, without the comparison with other kinds. A step that was measured on the kind's machine corrects
  /// the times of all layouts and reduces their errors.
  CapacityKind plan(const StepEvidence* evidence = nullptr);
  /// Returns true if the step was measured on this machine, with any number of its nodes.
  [[nodiscard]] bool covers(const StepEvidence& evidence) const;
  /// Returns the factor by which a measured step corrects the time of the layout on `gpus` GPUs, before
  /// limited_to_peak(); 1 without such a step.
  [[nodiscard]] double correction_at(std::int64_t gpus) const;
  /// Returns the relative error of a step without the errors of the machine's parameters.
  [[nodiscard]] double model_error() const { return model_error_; }
  /// Makes `run` the answer of the kind.
  void take(CapacityKind& kind, std::size_t run);

  /// Returns the draws for the intervals of the kind's runs.
  [[nodiscard]] RunDraws draws(double step_error) const;
  [[nodiscard]] LayoutSearch& search() { return search_; }
  [[nodiscard]] const PlanFile& file() const { return file_; }
  [[nodiscard]] const GpuOffer& offer() const { return offer_; }
  [[nodiscard]] StructureCache& structures() const { return structures_; }
  [[nodiscard]] std::int64_t gpu_limit() const { return max_gpus_; }

 private:
  [[nodiscard]] CapacityKind offered() const;
  [[nodiscard]] std::vector<std::int64_t> planned_counts() const;
  [[nodiscard]] std::string advice_for(std::int64_t count, std::string_view remedy) const;
  [[nodiscard]] std::string count_advice(const CapacityKind& kind) const;
  void find_layouts();
  void add_runs(CapacityKind& kind, double step_error) const;
  void add_errors(CapacityKind& kind);
  [[nodiscard]] std::optional<std::int64_t> gpus_for_deadline(const CapacityKind& kind) const;
  [[nodiscard]] std::optional<SmallerCount> smaller_count(const CapacityRun& exact);
  void correct(CapacityKind& kind, const StepEvidence& evidence);
  void add_sites(CapacityKind& kind, const FoundLayout& layout);

  const PlanFile& file_;
  const GpuOffer& offer_;
  StructureCache& structures_;
  double model_error_;     ///< Relative error of a step without the errors of the machine's parameters.
  std::int64_t max_gpus_;  ///< Number of GPUs that are available and within the power limit.
  Machine machine_;
  LayoutSearch search_;
  std::vector<std::int64_t> counts_;            ///< Counts of GPUs that are planned, ascending.
  std::vector<FoundLayout> layouts_;            ///< In ascending order of GPUs.
  std::map<std::int64_t, double> corrections_;  ///< Values of correction_at(); empty without a measured step.
  std::vector<TunedSite> sites_;                ///< Sites of the last layout given to add_sites().
};

/// The best run among those that meet all limits: the cheapest if there is a deadline, otherwise the shortest. Ties in
/// cost go to fewer days, ties in days to lower cost; then to fewer GPUs, less memory, and fewer kinds of parallelism.
/// No run that meets the limits is better than the chosen run in days or cost and at least as good in the other.
struct RunChoice {
  RunPlace chosen;
  std::vector<RunPlace> ties;  ///< Other runs that tie, best objective first.
  std::string reason;          ///< Why `chosen` is preferred to the first of `ties`; empty without a tie.
};
/// Returns the choice among the runs of all kinds; nothing if no run meets the limits. Runs on the same hardware share
/// the errors of its steps and failures, so their values are compared without these errors; the prices of two kinds
/// have independent errors.
std::optional<RunChoice> choose_run(const PlanFile& file, std::span<const CapacityKind> kinds);

/// Returns a sentence that states which limit binds, and by how much. Requires that no run meets all limits. `limit` is
/// KindPlanner::gpu_limit(). `count_advice` says what to do if the exact count has no layout that fits; empty without a
/// count.
std::string binding_limit(const PlanFile& file, const CapacityKind& kind, const LayoutSearch& search,
                          std::int64_t limit, const std::string& count_advice);

}  // namespace commfuse
