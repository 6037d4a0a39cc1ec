// SPDX-License-Identifier: Apache-2.0
// Properties of commfuse for the list of strategies: the generator for a set of options, the options that have an
// effect, and the schedules to try and to prove.
#pragma once

#include <string>
#include <vector>

#include "model/strategies/options.h"
#include "model/strategies/stage.h"
#include "model/workload/sites.h"

namespace commfuse::fused {

/// One lane per peer, when the number of ranks is unknown; larger than any schedule needs.
inline constexpr std::int32_t all_lanes = 1024;
/// Largest number of lanes: the schedule text numbers them from 0 to 255.
inline constexpr std::int32_t max_lanes = 256;

inline constexpr OptionSet uses{Option::sub_slices, Option::form,       Option::add_lane, Option::sum,
                                Option::lanes,      Option::directions, Option::group,    Option::inner};

Done ag_gemm(const Stage& stage, const StrategyOptions& options);
Done gemm_rs(const Stage& stage, const StrategyOptions& options);
/// Adds the schedule of gemm_rs, then an all-gather of the sums. Nested rings have two all-gathers: inside each inner
/// ring, then between the rings.
Done gemm_ar(const Stage& stage, const StrategyOptions& options);

/// Returns the number of blocks of a shard: its sub-slices, counted in both halves if the halves move in opposite
/// directions.
std::int32_t cuts(const StrategyOptions& options);
OptionSet relevant(SiteKind kind, const StrategyOptions& options);
std::vector<StrategyOptions> tried(const StrategyOptions& base, OptionSet fixed);
std::vector<StrategyOptions> proved(const StrategyOptions& base);
/// Returns the schedule in words, for example "ring both ways, halves, m=2, 4 lanes, add on aux".
std::string describe(const StrategyOptions& options);
/// Returns why the options are refused on `ranks` ranks: an inner ring does not divide the ranks. Returns an empty
/// string for options that are not refused.
std::string refusal(const StrategyOptions& options, std::int32_t ranks);
/// Limits lanes to max_lanes and to the transfers of one step (ring) or to one per peer (direct), and the size of a
/// group to the number of peers. An inner ring of all ranks becomes a flat ring.
StrategyOptions capped(StrategyOptions options, std::int32_t ranks);

}  // namespace commfuse::fused
