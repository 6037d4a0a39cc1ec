// SPDX-License-Identifier: Apache-2.0
// Money and energy of a training run at the predicted step: sums, and changes that raise the cost.
#include <algorithm>
#include <array>
#include <cmath>

#include "model/analysis/run_totals.h"
#include "tests/laws/law.h"

namespace commfuse::laws {

namespace {

/// Returns the terms of a run over a trillion tokens, on GPUs that cost 2.5 per hour and fail at times. Empty if the
/// result is not a training step.
std::optional<RunTerms> terms_of(const Outcome& outcome) {
  if (!outcome.whole_model || outcome.step.text("scope") != "step") {
    return std::nullopt;
  }
  return RunTerms{.tokens = 1e12,
                  .tokens_per_second = outcome.cell("tokens_per_second"),
                  .gpus = static_cast<double>(outcome.step.count("gpus")),
                  .price = 2.5,
                  .per_gpu_hour = 1e-5,
                  .checkpoint = Seconds{30.0},
                  .restart = Seconds{600.0},
                  .power = Watts{1000.0},
                  .pue = 1.2,
                  .energy_price = 0.1};
}

bool same_to_rounding(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b)); }

std::optional<double> costs_add_up(const Outcome& outcome, const Outcome&) {
  const std::optional<RunTerms> terms = terms_of(outcome);
  if (!terms) {
    return std::nullopt;
  }
  const RunTotals run = totals_of(*terms);
  const double seconds = terms->tokens / terms->tokens_per_second / run.goodput;
  const double energy = terms->gpus * terms->power.value / 1e3 * terms->pue * run.days * 24.0;
  const bool holds = same_to_rounding(run.days * 86400.0, seconds) &&
                     same_to_rounding(run.gpu_hours, terms->gpus * run.days * 24.0) &&
                     same_to_rounding(run.energy_kwh, energy) &&
                     same_to_rounding(run.cost, run.gpu_hours * terms->price + run.energy_kwh * terms->energy_price) &&
                     same_to_rounding(run.cost_per_mtok * terms->tokens / 1e6, run.cost);
  return holds && run.goodput > 0.0 && run.goodput <= 1.0 ? 1.0 : 1e9;
}

/// Returns the cost with one changed term over the original cost.
double grows_by(const RunTerms& terms, void (*change)(RunTerms&)) {
  RunTerms other = terms;
  change(other);
  return totals_of(other).cost / totals_of(terms).cost;
}

std::optional<double> rises_with_each_term(const Outcome& outcome, const Outcome&) {
  const std::optional<RunTerms> terms = terms_of(outcome);
  if (!terms) {
    return std::nullopt;
  }
  constexpr std::array<void (*)(RunTerms&), 7> changes{
      [](RunTerms& run) { run.price *= 2.0; },        [](RunTerms& run) { run.energy_price *= 2.0; },
      [](RunTerms& run) { run.per_gpu_hour *= 2.0; }, [](RunTerms& run) { run.tokens *= 2.0; },
      [](RunTerms& run) { run.checkpoint *= 2.0; },   [](RunTerms& run) { run.restart *= 2.0; },
      [](RunTerms& run) { run.pue *= 2.0; }};
  double smallest = 1.0;
  for (const auto change : changes) {
    smallest = std::min(smallest, grows_by(*terms, change));
  }
  return 1.0 / smallest;
}

std::optional<double> doubles_with_prices(const Outcome& outcome, const Outcome&) {
  const std::optional<RunTerms> terms = terms_of(outcome);
  if (!terms) {
    return std::nullopt;
  }
  const double cost_growth = grows_by(*terms, [](RunTerms& run) {
    run.price *= 2.0;
    run.energy_price *= 2.0;
  });
  return same_to_rounding(cost_growth, 2.0) &&
                 same_to_rounding(grows_by(*terms, [](RunTerms& run) { run.tokens *= 2.0; }), 2.0)
             ? 1.0
             : 1e9;
}

constexpr std::array cost_laws{
    Law{"costs-add-up", "Days, GPU-hours, energy and cost of a run follow from its step", nullptr, costs_add_up},
    Law{"dearer-terms", "No higher term makes a run cheaper", nullptr, rises_with_each_term},
    Law{"doubled-prices", "Doubled prices, or tokens, double the cost", nullptr, doubles_with_prices},
};

}  // namespace

std::span<const Law> laws_of_costs() { return cost_laws; }

}  // namespace commfuse::laws
