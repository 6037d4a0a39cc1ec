// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "tests/laws/law.h"

namespace commfuse::laws {

namespace {

std::vector<Law> joined() {
  std::vector<Law> laws;
  for (const std::span<const Law> part :
       {laws_of_resources(), laws_of_work(), laws_of_bounds(), laws_of_sums(), laws_of_costs()}) {
    laws.insert(laws.end(), part.begin(), part.end());
  }
  return laws;
}

}  // namespace

std::span<const Law> all_laws() {
  static const std::vector<Law> laws = joined();
  return laws;
}

const Law* find_law(std::string_view name) {
  const std::span<const Law> laws = all_laws();
  const auto law_of_name = std::find_if(laws.begin(), laws.end(), [&](const Law& law) { return law.name == name; });
  return law_of_name == laws.end() ? nullptr : &*law_of_name;
}

double tolerance_of(const Outcome& before, const Outcome& after) {
  if (before.rates_change || after.rates_change) {
    return engine_tolerance;
  }
  return before.whole_model ? rounding_tolerance : 1.0;
}

double time_of(const Outcome& outcome) { return outcome.time; }
double memory_of(const Outcome& outcome) { return outcome.memory; }

}  // namespace commfuse::laws
