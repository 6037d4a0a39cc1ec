// SPDX-License-Identifier: Apache-2.0
// Chooses the run of a plan, and finds the runs that tie with it.
#include <algorithm>
#include <cmath>

#include "model/analysis/error_tail.h"
#include "model/math/functions.h"
#include "sim/plan/kind_planner.h"
#include "sim/point/request.h"

namespace commfuse {

namespace {

class RunChooser {
 public:
  RunChooser(const PlanFile& file, std::span<const CapacityKind> kinds) : file_(file), kinds_(kinds) {
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      for (std::size_t run = 0; run < kinds[kind].runs.size(); ++run) {
        if (kinds[kind].runs[run].misses.empty()) {
          feasible_.push_back({kind, run});
        }
      }
    }
  }

  [[nodiscard]] std::optional<RunChoice> choose() const {
    if (feasible_.empty()) {
      return std::nullopt;
    }
    const std::vector<PlanContender> plans = contenders();
    const PlanChoice plan = choose_plan(plans, verdict_rule_of(file_.settings));
    RunChoice choice{.chosen = feasible_[plan.chosen], .ties = {}, .rule = plan.rule};
    std::size_t eligible = 0;
    for (const std::size_t tied : plan.verdict.front) {
      eligible += plans[tied].is_eligible ? 1 : 0;
      if (tied != plan.chosen) {
        choice.ties.push_back(feasible_[tied]);
      }
    }
    if (!choice.ties.empty() && eligible == 1) {
      choice.rule = "fewer days at lower cost";
    }
    return choice;
  }

 private:
  [[nodiscard]] const CapacityRun& run_at(const RunPlace& place) const { return kinds_[place.kind].runs[place.run]; }
  [[nodiscard]] const Interval& objective(const RunPlace& place) const {
    return file_.deadline ? run_at(place).cost : run_at(place).days;
  }

  /// Returns the runs with the objective that decides: cost with a deadline, days without. A run that another run beats
  /// in both days and cost cannot be chosen; the best run never is.
  [[nodiscard]] std::vector<PlanContender> contenders() const {
    const RunPlace best = *std::ranges::min_element(
        feasible_, [&](const RunPlace& a, const RunPlace& b) { return objective(a).value < objective(b).value; });
    std::vector<PlanContender> contenders;
    for (const RunPlace& place : feasible_) {
      const CapacityRun& run = run_at(place);
      const bool is_best = place.kind == best.kind && place.run == best.run;
      contenders.push_back(
          {.objective = is_best || kinds_[place.kind].hardware != kinds_[best.kind].hardware
                            ? Contender{.time = objective(place).value, .error = error_of(objective(place))}
                            : on_the_same_hardware(place, best),
           .plan = {run.gpus, run.memory_gb, run.layout.kinds_of_parallelism()},
           .is_eligible = !is_beaten(place)});
    }
    return contenders;
  }

  /// Returns the contender of a run that shares the errors of its hardware with the best run. Their difference has only
  /// the errors of two prices.
  [[nodiscard]] Contender on_the_same_hardware(const RunPlace& place, const RunPlace& best) const {
    Contender contender{.time = objective(place).value};
    const double price_error = price_error_of(kinds_[place.kind]);
    const double best_price_error = price_error_of(kinds_[best.kind]);
    const bool is_certain = place.kind == best.kind || !file_.deadline;
    const double error = is_certain ? 0.0 : std::sqrt(price_error * price_error + best_price_error * best_price_error);
    if (error > 0.0 && objective(best).value > 0.0) {
      contender.win_probability = 1.0 - share_below(math::log(contender.time / objective(best).value) / error);
    }
    return contender;
  }

  [[nodiscard]] double price_error_of(const CapacityKind& kind) const {
    const auto offer = std::ranges::find(file_.gpus, kind.name, &GpuOffer::name);
    return offer == file_.gpus.end() ? 0.0 : offer->price_error;
  }

  /// Returns one standard error of the logarithm; the interval contains 90% of the draws.
  static std::optional<double> error_of(const Interval& interval) {
    constexpr double normal_95 = 1.6448536269514722;
    return interval.low > 0.0 ? std::optional(math::log(interval.high / interval.low) / (2.0 * normal_95))
                              : std::nullopt;
  }

  [[nodiscard]] bool is_beaten(const RunPlace& place) const {
    const CapacityRun& run = run_at(place);
    return std::ranges::any_of(feasible_, [&](const RunPlace& other) {
      return run_at(other).days.value < run.days.value && run_at(other).cost.value < run.cost.value;
    });
  }

  const PlanFile& file_;
  std::span<const CapacityKind> kinds_;
  std::vector<RunPlace> feasible_;
};

}  // namespace

std::optional<RunChoice> choose_run(const PlanFile& file, std::span<const CapacityKind> kinds) {
  return RunChooser(file, kinds).choose();
}

}  // namespace commfuse
