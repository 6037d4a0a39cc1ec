// SPDX-License-Identifier: Apache-2.0
// Functions that several strategies use as members of Strategy.
#pragma once

#include <string>
#include <vector>

#include "model/strategies/options.h"
#include "model/workload/sites.h"

namespace commfuse::parts {

inline std::int32_t one_cut(const StrategyOptions&) { return 1; }
inline OptionSet no_options(SiteKind, const StrategyOptions&) { return {}; }
inline std::string nothing(const StrategyOptions&) { return {}; }

/// Adds Option::regather to the other options of a column-parallel backward pass, which needs its input gathered,
/// whatever the strategy.
template <OptionSet (*other_options)(SiteKind, const StrategyOptions&)>
OptionSet with_regather(SiteKind kind, const StrategyOptions& options) {
  OptionSet set = other_options(kind, options);
  if (kind == SiteKind::ag_gemm_backward) {
    set.add(Option::regather);
  }
  return set;
}

/// Returns each of these schedules with x gathered again and with x saved.
template <std::vector<StrategyOptions> (*schedules)(const StrategyOptions&)>
std::vector<StrategyOptions> both_regathers(const StrategyOptions& base) {
  return expanded(schedules(base), {}, Option::regather, &StrategyOptions::regather,
                  {Regather::again, Regather::saved});
}

inline std::vector<StrategyOptions> only(const StrategyOptions& base, OptionSet) { return {base}; }
inline std::vector<StrategyOptions> only_this(const StrategyOptions& base) { return {base}; }

/// Returns every candidate with its attention core cut in each way.
inline std::vector<StrategyOptions> in_all_cuts(const std::vector<StrategyOptions>& candidates, OptionSet fixed) {
  return expanded(candidates, fixed, Option::attention, &StrategyOptions::attention,
                  {AttentionCut::whole, AttentionCut::by_query, AttentionCut::zigzag});
}

}  // namespace commfuse::parts
