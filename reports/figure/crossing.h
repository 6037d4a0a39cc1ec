// SPDX-License-Identifier: Apache-2.0
// Who wins where, drawn: a map of winners, and how far ahead a strategy is along the sequence.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/analysis/crossover.h"
#include "model/record/result.h"
#include "reports/figure/figure.h"

namespace commfuse::reports {

/// Sequence against ranks, at the first bandwidths of the map; grey where it ties. Requires a map of several points.
Figure winner_figure(const CrossoverMap& map, std::string id = "winners-map");

/// Returns the same map of the time that the fastest other strategy saves against serial, grey where both tie. Returns
/// nothing if no point has serial.
std::optional<Figure> saving_figure(const CrossoverMap& map, std::string id = "saving");

/// Time of the best other strategy over the time of one, a line a count of ranks (at most seven, evenly spread): above
/// 1 it wins. Where it crosses 1 by straight lines in logarithms, the sequence is named. Nothing unless rows of both
/// stand at two sequence lengths. Requires rows that differ in seq, ranks and strategy only.
std::optional<Figure> lead_figure(std::span<const ResultRow> rows, std::string_view strategy, std::string id = "lead",
                                  const VerdictRule& rule = {});

}  // namespace commfuse::reports
