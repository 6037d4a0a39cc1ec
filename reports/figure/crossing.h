// SPDX-License-Identifier: Apache-2.0
// Figures of winners: a map, and a strategy's lead along the sequence length.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/analysis/crossover.h"
#include "model/record/result.h"
#include "reports/figure/figure.h"

namespace commfuse::reports {

/// Draws the winners by sequence length and ranks, at the lowest bandwidths that have a result, which the title names
/// if there are several; ties are grey. Requires a map of several points.
Figure winner_figure(const CrossoverMap& map, std::string id = "winners-map");

/// Draws the map of the time that the fastest schedule with overlap saves against the baseline (MapSaving), at the
/// bandwidths of winner_figure(); ties are grey. Returns nothing if no point at these bandwidths has both schedules.
std::optional<Figure> saving_figure(const CrossoverMap& map, std::string id = "saving");

/// Draws the time of the best other strategy divided by the time of `strategy`, a line for each number of ranks (at
/// most seven, evenly spread): above 1 the strategy wins. Marks the first sequence length at which a line crosses 1, by
/// interpolation in logarithms. Returns nothing unless `strategy` and another strategy both have results at the same
/// two sequence lengths with the same ranks. Requires rows that differ in seq, ranks and strategy only.
std::optional<Figure> lead_figure(std::span<const ResultRow> rows, std::string_view strategy, std::string id = "lead",
                                  const VerdictRule& rule = {});

}  // namespace commfuse::reports
