// SPDX-License-Identifier: Apache-2.0
#include "sim/score/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace commfuse::score {

namespace {

constexpr std::size_t max_faults = 100;
/// Ratio beyond which a time is probably in another unit. Units (ns, us, ms) differ by factors of 1000, while model
/// errors stay below a factor of 300.
constexpr double other_unit = 300.0;

bool is_in_other_unit(double measured, double predicted) {
  const double ratio = predicted / measured;
  return !(ratio < other_unit && ratio > 1.0 / other_unit);
}

}  // namespace

void Tally::skip(std::string_view reason) {
  ++into_.rows;
  const auto known = std::find_if(into_.skipped.begin(), into_.skipped.end(),
                                  [&](const Skipped& skipped) { return skipped.reason == reason; });
  if (known == into_.skipped.end()) {
    into_.skipped.push_back({std::string(reason), 1});
  } else {
    ++known->rows;
  }
}

void Tally::fault(const Row& row, std::string_view reason) {
  ++into_.rows;
  ++into_.fault_count;
  if (into_.faults.size() < max_faults) {
    into_.faults.push_back({row.line(), std::string(reason)});
  }
}

bool Tally::takes(const Row& row, bool held_out) {
  if (!row.is_sound()) {
    fault(row, row.fault());
    return false;
  }
  if (held_out_only_ && !held_out) {
    skip("a fit may have used it, and only held-out rows are scored");
    return false;
  }
  return true;
}

ScoredPart& Tally::part(std::string_view machine, std::string_view name) {
  const auto known = std::find_if(into_.parts.begin(), into_.parts.end(), [&](const ScoredPart& scored) {
    return scored.machine == machine && scored.name == name;
  });
  return known == into_.parts.end()
             ? into_.parts.emplace_back(ScoredPart{std::string(machine), std::string(name), {}, {}})
             : *known;
}

std::size_t Tally::place_of(const Machine& machine) {
  const auto known = std::find(into_.machines.begin(), into_.machines.end(), machine.name);
  const auto machine_index = static_cast<std::size_t>(known - into_.machines.begin());
  if (known == into_.machines.end()) {
    into_.machines.push_back(machine.name);
  }
  return machine_index;
}

bool Tally::score(const Row& row, const Machine& machine, bool held_out, std::span<const Compared> times) {
  for (const Compared& time : times) {
    if (is_in_other_unit(time.measured_us, time.predicted_us)) {
      const std::string_view unit = time.is_factor ? "" : " us";
      fault(row, fmt::format("{}{:.6g}{} was measured and {:.6g}{} predicted; is it in another unit?",
                             time.is_factor ? "a factor of " : "", time.measured_us, unit, time.predicted_us, unit));
      return false;
    }
  }
  ++into_.rows;
  ++into_.scored;
  const std::size_t machine_index = place_of(machine);
  for (const Compared& time : times) {
    into_.times.push_back({row.line(), machine_index,
                           std::string(time.parts.empty() ? std::string_view{} : time.parts.front()), time.measured_us,
                           time.predicted_us, time.is_factor});
    const double error = std::abs(time.predicted_us / time.measured_us - 1.0);
    into_.errors.push_back(error);
    if (held_out) {
      into_.held_out.push_back(error);
    }
    for (const std::string_view name : time.parts) {
      ScoredPart& scored = part(machine.name, name);
      scored.errors.push_back(error);
      if (held_out) {
        scored.held_out.push_back(error);
      }
    }
  }
  return true;
}

void Tally::ratio(double measured, double predicted) {
  VariantScore& variants = into_.variants ? *into_.variants : into_.variants.emplace();
  variants.ratio_errors.push_back(std::abs(predicted / measured - 1.0));
}

void Tally::ratio(const Machine& machine, std::string_view name, double measured, double predicted) {
  ScoredPart& scored = part(machine.name, name);
  scored.errors.push_back(std::abs(predicted / measured - 1.0));
  scored.held_out.push_back(scored.errors.back());
}

void Tally::winner(bool agreed) {
  VariantScore& variants = into_.variants ? *into_.variants : into_.variants.emplace();
  ++variants.compared;
  variants.agreed += agreed ? 1 : 0;
}

void Tally::pays(const Pays& pair) {
  if (std::abs(pair.measured - 1.0) <= PayScore::least_difference) {
    return;
  }
  PayScore& pays = into_.pays ? *into_.pays : into_.pays.emplace();
  const bool wins = pair.measured < 1.0;
  const bool agrees = (pair.predicted < 1.0) == wins;
  (wins ? pays.wins : pays.losses) += 1;
  (wins ? pays.wins_predicted : pays.losses_predicted) += agrees ? 1 : 0;
  if (pair.sure >= PayScore::is_sure) {
    pays.sure += 1;
    pays.sure_predicted += agrees ? 1 : 0;
  }
}

void Tally::check_interval(const Machine& machine, std::string_view kind, bool fitted, const CheckedTime& time) {
  std::vector<CheckedKind>& kinds = into_.checked;
  auto known = std::find_if(kinds.begin(), kinds.end(), [&](const CheckedKind& checked) {
    return checked.machine == machine.name && checked.kind == kind && checked.fitted == fitted;
  });
  if (known == kinds.end()) {
    known = kinds.insert(kinds.end(), {std::string(kind), machine.name, fitted, {}});
  }
  known->times.push_back(time);
}

void Tally::calibrate(const Machine& machine, std::string_view key, const FitScope& fit, const FitRow& row) {
  std::vector<FitRows>& fits = into_.fits;
  auto known = std::find_if(fits.begin(), fits.end(),
                            [&](const FitRows& rows) { return rows.machine == machine.name && rows.key == key; });
  if (known == fits.end()) {
    known = fits.insert(fits.end(), {machine.name, std::string(key), fit.residual, {}, fit.by_limit});
  }
  known->rows.push_back(row);
}

void Tally::judge(const Machine& machine, std::string_view ways, const JudgedPair& pair) {
  std::vector<JudgedPairs>& judged = into_.judged;
  auto known = std::find_if(judged.begin(), judged.end(), [&](const JudgedPairs& pairs) {
    return pairs.machine == machine.name && pairs.ways == ways;
  });
  if (known == judged.end()) {
    known = judged.insert(judged.end(), {std::string(ways), machine.name, {}});
  }
  known->pairs.push_back(pair);
}

bool Tally::observe(const Row& row, const Machine& machine, std::span<const Observation> figures) {
  std::vector<Compared> factors;
  for (const Observation& figure : figures) {
    factors.push_back(
        {.measured_us = figure.measured, .predicted_us = figure.predicted, .parts = {}, .is_factor = true});
  }
  if (!score(row, machine, true, factors)) {
    return false;
  }
  into_.observations.insert(into_.observations.end(), figures.begin(), figures.end());
  return true;
}

void Tally::memory_fact(const Machine& machine, bool agrees) {
  ++into_.rows;
  ++into_.scored;
  place_of(machine);
  also_memory_fact(agrees);
}

void Tally::also_memory_fact(bool agrees) {
  if (!into_.memory) {
    into_.memory.emplace();
  }
  ++into_.memory->facts;
  into_.memory->agreed += agrees ? 1 : 0;
}

void Tally::compare(double measured_ratio, double predicted_ratio) {
  ratio(measured_ratio, predicted_ratio);
  winner((predicted_ratio < 1.0) == (measured_ratio < 1.0));
}

}  // namespace commfuse::score
