// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/run_spread.h"

#include <algorithm>

#include "model/check.h"
#include "model/random/philox.h"

namespace commfuse {

namespace {

constexpr std::uint64_t all_words = std::uint64_t{1} << 32;  // number of possible 32-bit words
constexpr std::uint32_t purpose = 0x706c616e;                // "plan" in ASCII; no draw for ops has this purpose

/// Returns the value with the interval of the draws from 5% to 95%.
Interval interval_of(double value, std::vector<double> draws) {
  std::sort(draws.begin(), draws.end());
  const std::size_t tail = draws.size() / 20;
  return {value, draws[tail], draws[draws.size() - 1 - tail]};
}

}  // namespace

RunDraws::RunDraws(const RunErrors& errors, const Sampling& sampling)
    : seed_(sampling.seed),
      draws_(sampling.draws),
      step_(lognormal(errors.step), all_words),
      price_(lognormal(errors.price), all_words),
      failures_(lognormal(errors.failures), all_words) {
  check(draws_ > 0, "an interval needs at least one draw");
}

RunSpread RunDraws::spread_of(const RunTerms& terms) const {
  RunSpread spread;
  std::vector<double> goodput, rate, hours, per_mtok, energy, slowdowns;
  for (std::size_t i = 0; i < draws_; ++i) {
    const PhiloxWords words = philox({static_cast<std::uint32_t>(i), 0, 0, purpose}, seed_);
    RunTerms drawn = terms;
    slowdowns.push_back(step_.at(words[0]));
    drawn.tokens_per_second /= slowdowns.back();
    drawn.price *= price_.at(words[1]);
    drawn.per_gpu_hour *= failures_.at(words[2]);
    const RunTotals totals = totals_of(drawn);
    goodput.push_back(totals.goodput);
    rate.push_back(drawn.tokens_per_second);
    hours.push_back(totals.gpu_hours);
    per_mtok.push_back(totals.cost_per_mtok);
    energy.push_back(totals.energy_kwh);
    spread.all_days.push_back(totals.days);
    spread.all_costs.push_back(totals.cost);
  }
  const RunTotals totals = totals_of(terms);
  spread.goodput = interval_of(totals.goodput, std::move(goodput));
  spread.tokens_per_second = interval_of(terms.tokens_per_second, std::move(rate));
  spread.days = interval_of(totals.days, spread.all_days);
  spread.gpu_hours = interval_of(totals.gpu_hours, std::move(hours));
  spread.cost = interval_of(totals.cost, spread.all_costs);
  spread.cost_per_mtok = interval_of(totals.cost_per_mtok, std::move(per_mtok));
  spread.energy_kwh = interval_of(totals.energy_kwh, std::move(energy));
  const Interval step = interval_of(1.0, std::move(slowdowns));
  spread.step_low = step.low;
  spread.step_high = step.high;
  return spread;
}

double share_within(const RunSpread& spread, const RunLimits& limits) {
  std::size_t within = 0;
  for (std::size_t i = 0; i < spread.all_days.size(); ++i) {
    within += spread.all_days[i] <= limits.days && spread.all_costs[i] <= limits.cost ? 1 : 0;
  }
  return static_cast<double>(within) / static_cast<double>(spread.all_days.size());
}

}  // namespace commfuse
