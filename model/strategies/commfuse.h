// SPDX-License-Identifier: Apache-2.0
// What the list of strategies says about commfuse: which generator a set of options means, which of them matter, which
// schedules are tried and proved.
#pragma once

#include <string>
#include <vector>

#include "model/strategies/options.h"
#include "model/strategies/stage.h"
#include "model/workload/sites.h"

namespace commfuse::fused {

/// A lane a peer, where the ranks are not known yet; more than any schedule takes.
inline constexpr std::int32_t all_lanes = 1024;
/// Lanes are numbered up to 255 in the schedule text.
inline constexpr std::int32_t most_lanes = 256;

inline constexpr OptionSet uses{Option::sub_slices, Option::form,       Option::add_lane, Option::sum,
                                Option::lanes,      Option::directions, Option::group,    Option::inner};

Done ag_gemm(const Stage& stage, const StrategyOptions& options);
Done gemm_rs(const Stage& stage, const StrategyOptions& options);

/// Blocks of a shard: its sub-slices, of either half where halves go both ways.
std::int32_t cuts(const StrategyOptions& options);
OptionSet relevant(SiteKind kind, const StrategyOptions& options);
std::vector<StrategyOptions> tried(const StrategyOptions& base, OptionSet fixed);
std::vector<StrategyOptions> proved(const StrategyOptions& base);
/// "ring both ways, halves, m=2, 4 lanes, add on aux".
std::string describe(const StrategyOptions& options);
/// Nested rings need nodes of equal size.
std::string refusal(const StrategyOptions& options, std::int32_t ranks);
/// Lanes up to the transfers of one step, or one a peer; groups up to ranks - 1; an inner ring of all ranks is flat.
StrategyOptions capped(StrategyOptions options, std::int32_t ranks);

}  // namespace commfuse::fused
