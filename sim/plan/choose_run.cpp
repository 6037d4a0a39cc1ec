// SPDX-License-Identifier: Apache-2.0
// Chooses the run of a plan, and finds the runs that tie with it.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

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
    const VerdictRule rule = verdict_rule_of(file_.settings);
    const Verdict verdict = verdict_of(contenders(), rule);
    std::vector<RunPlace> tied;
    for (const std::size_t index : verdict.front) {
      tied.push_back(feasible_[index]);
    }
    RunChoice choice{.chosen = preferred(tied, rule.difference), .ties = {}, .reason = {}};
    std::ranges::copy_if(tied, std::back_inserter(choice.ties), [&](const RunPlace& place) {
      return place.kind != choice.chosen.kind || place.run != choice.chosen.run;
    });
    if (!choice.ties.empty()) {
      choice.reason = reason_between(choice.chosen, choice.ties.front(), rule.difference);
    }
    return choice;
  }

 private:
  [[nodiscard]] const CapacityRun& run_at(const RunPlace& place) const { return kinds_[place.kind].runs[place.run]; }
  [[nodiscard]] const Interval& objective(const RunPlace& place) const {
    return file_.deadline ? run_at(place).cost : run_at(place).days;
  }
  /// Returns the quantity that is compared among runs that tie in the objective: days with a deadline, cost without.
  [[nodiscard]] double second(const RunPlace& place) const {
    return file_.deadline ? run_at(place).days.value : run_at(place).cost.value;
  }
  [[nodiscard]] TiedPlan needs(const RunPlace& place) const {
    const CapacityRun& run = run_at(place);
    return {run.gpus, run.memory_gb, run.layout.kinds_of_parallelism()};
  }

  /// Keeps the runs whose value is within `difference` of the least.
  template <typename Value>
  static void keep_least(std::vector<RunPlace>& places, double difference, const Value& value) {
    double least = std::numeric_limits<double>::infinity();
    for (const RunPlace& place : places) {
      least = std::min(least, value(place));
    }
    std::erase_if(places, [&](const RunPlace& place) { return value(place) > least * (1.0 + difference); });
  }

  /// Returns the run to choose among runs that tie in the objective, given in the order of the objective. A run that
  /// ties only because the difference is uncertain must save a larger share of the second quantity than it adds to the
  /// objective.
  [[nodiscard]] RunPlace preferred(std::vector<RunPlace> places, double difference) const {
    std::erase_if(places, [&](const RunPlace& place) { return is_beaten(place); });
    const RunPlace best = places.front();
    const double close = objective(best).value * (1.0 + difference);
    const double product = objective(best).value * second(best);
    std::erase_if(places, [&](const RunPlace& place) {
      return objective(place).value > close && objective(place).value * second(place) > product;
    });
    keep_least(places, difference, [&](const RunPlace& place) { return second(place); });
    keep_least(places, difference, [&](const RunPlace& place) { return objective(place).value; });
    std::vector<TiedPlan> plans;
    for (const RunPlace& place : places) {
      plans.push_back(needs(place));
    }
    return places[break_tie(plans).chosen];
  }

  /// Returns why `chosen` is preferred to a run that ties with it.
  [[nodiscard]] std::string reason_between(const RunPlace& chosen, const RunPlace& other, double difference) const {
    const bool is_longer = run_at(other).days.value > run_at(chosen).days.value;
    if (is_longer && run_at(other).cost.value > run_at(chosen).cost.value) {
      return "fewer days at lower cost";
    }
    if (second(other) > second(chosen) * (1.0 + difference)) {
      return file_.deadline ? "fewer days" : "lower cost";
    }
    const TieBreak broken = break_tie(std::vector{needs(other), needs(chosen)});
    const bool is_needed = broken.chosen == 1 && objective(other).value <= objective(chosen).value * (1.0 + difference);
    if (is_needed) {
      return broken.reason;
    }
    return second(other) > second(chosen) ? (file_.deadline ? "fewer days" : "lower cost") : "a better prediction";
  }

  /// Returns the objective of every run that meets the limits.
  [[nodiscard]] std::vector<Contender> contenders() const {
    const RunPlace best = *std::ranges::min_element(
        feasible_, [&](const RunPlace& a, const RunPlace& b) { return objective(a).value < objective(b).value; });
    std::vector<Contender> contenders;
    for (const RunPlace& place : feasible_) {
      const bool is_best = place.kind == best.kind && place.run == best.run;
      contenders.push_back(is_best || kinds_[place.kind].hardware != kinds_[best.kind].hardware
                               ? Contender{.time = objective(place).value, .error = error_of(objective(place))}
                               : on_the_same_hardware(place, best));
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

  /// Returns whether another run takes fewer days or costs less, and is no worse in the other quantity.
  [[nodiscard]] bool is_beaten(const RunPlace& place) const {
    const CapacityRun& run = run_at(place);
    return std::ranges::any_of(feasible_, [&](const RunPlace& other) {
      const double days = run_at(other).days.value;
      const double cost = run_at(other).cost.value;
      return days <= run.days.value && cost <= run.cost.value && (days < run.days.value || cost < run.cost.value);
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
