// SPDX-License-Identifier: Apache-2.0
#include "reports/figure/heatmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "model/text/quantity.h"
#include "reports/commas.h"
#include "reports/figure/spread.h"
#include "reports/figure/wording.h"
#include "reports/point_rows.h"
#include "reports/savings.h"

namespace commfuse::reports {

namespace {

/// The fastest row of one strategy at one point, and the fastest row of other strategies that can win; nullptr without
/// a result.
struct Cell {
  const ResultRow* chosen = nullptr;
  const ResultRow* other = nullptr;
};

using Point = std::pair<std::int64_t, std::int64_t>;  // ranks and sequence length

struct Map {
  std::vector<std::int64_t> sequences;  // the shown ones, ascending
  std::vector<std::int64_t> ranks;      // the shown ones, ascending
  std::map<Point, Cell> points;         // all points, shown or not

  [[nodiscard]] Cell at(std::size_t rank, std::size_t sequence) const {
    const auto point = points.find({ranks[rank], sequences[sequence]});
    return point == points.end() ? Cell{} : point->second;
  }
};

void keep_faster(const ResultRow*& kept, const ResultRow& row) {
  if (has_result(row) && (kept == nullptr || makespan_of(row) < makespan_of(*kept))) {
    kept = &row;
  }
}

std::vector<std::int64_t> values_of(std::span<const ResultRow> rows, std::int64_t ResultRow::*field) {
  std::vector<std::int64_t> values;
  for (const ResultRow& row : rows) {
    values.push_back(row.*field);
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/// Limits columns and rows to a number that readers can distinguish.
std::vector<std::int64_t> thinned(const std::vector<std::int64_t>& values) {
  std::vector<std::int64_t> kept;
  for (const std::size_t index : spread({.count = values.size(), .kept = max_map_values})) {
    kept.push_back(values[index]);
  }
  return kept;
}

Map axes_of(std::span<const ResultRow> rows) {
  return {thinned(values_of(rows, &ResultRow::seq)), thinned(values_of(rows, &ResultRow::ranks)), {}};
}

Map map_of(std::span<const ResultRow> rows, std::string_view strategy) {
  Map map = axes_of(rows);
  for (const ResultRow& row : rows) {
    Cell& cell = map.points[{row.ranks, row.seq}];
    if (row.strategy == strategy) {
      keep_faster(cell.chosen, row);
    } else if (!row.bound) {
      keep_faster(cell.other, row);
    }
  }
  return map;
}

/// Returns a figure with the axes and the size of a map, but no cells.
Figure frame_of(const Map& map, std::string id) {
  constexpr double cell_height = 32.0;
  Figure figure;
  figure.id = std::move(id);
  const auto columns = static_cast<double>(map.sequences.size());
  const auto rows = static_cast<double>(map.ranks.size());
  figure.plot_width = map_width(map.sequences.size());
  figure.width = std::max(440.0, figure.plot_width + 64.0);
  figure.height = std::min(700.0, cell_height * rows);
  figure.x = {.label = "sequence length", .unit = "tokens", .low = -0.5, .high = columns - 0.5};
  figure.y = {.label = "ranks", .low = -0.5, .high = rows - 0.5};
  // Labels every column or, if space is short, every second, third, ...
  const auto column_stride = static_cast<std::size_t>(std::max(1.0, std::ceil(44.0 * columns / figure.plot_width)));
  for (std::size_t i = 0; i < map.sequences.size(); i += column_stride) {
    figure.x.ticks.push_back({static_cast<double>(i), format_count(map.sequences[i])});
  }
  const auto row_stride = static_cast<std::size_t>(std::max(1.0, std::ceil(14.0 * rows / figure.height)));
  for (std::size_t i = 0; i < map.ranks.size(); i += row_stride) {
    figure.y.ticks.push_back({static_cast<double>(i), fmt::format("{}", map.ranks[i])});
  }
  return figure;
}

/// Adds one cell mark for each point, starting with the lowest ranks and shortest sequence. The description of a large
/// map omits the cells.
void add_cells(const Map& map, Figure& figure, const std::function<CellMark(const Cell&)>& draw,
               const std::function<std::string(const Cell&)>& value) {
  constexpr std::size_t max_described = 100;
  for (std::size_t rank = 0; rank < map.ranks.size(); ++rank) {
    for (std::size_t sequence = 0; sequence < map.sequences.size(); ++sequence) {
      CellMark mark = draw(map.at(rank, sequence));
      mark.at = {static_cast<double>(sequence), static_cast<double>(rank)};
      mark.tip = fmt::format("ranks {}, seq {}: {}", map.ranks[rank], format_count(map.sequences[sequence]), mark.tip);
      if (map.ranks.size() * map.sequences.size() <= max_described) {
        figure.description += mark.tip + ". ";
      }
      figure.data.rows.push_back({fmt::format("{}", map.ranks[rank]), fmt::format("{}", map.sequences[sequence]),
                                  value(map.at(rank, sequence))});
      figure.marks.emplace_back(std::move(mark));
    }
  }
}

constexpr double rounding = 1e-9;  // treats 28.999999999999996% as 29%

/// The range of the rows' MFU, rounded outwards to whole percents; low > high if no row has a result.
struct Range {
  double low = 1.0;
  double high = 0.0;
};

Range range_of(std::span<const ResultRow> rows) {
  Range range;
  for (const ResultRow& row : rows) {
    if (has_result(row)) {
      range.low = std::min(range.low, std::floor(100.0 * row.mfu + rounding) / 100.0);
      range.high = std::max(range.high, std::ceil(100.0 * row.mfu - rounding) / 100.0);
    }
  }
  return range;
}

bool less_mfu(const ResultRow* a, const ResultRow* b) { return a->mfu < b->mfu; }

std::string heatmap_title(const Map& map, std::string_view strategy) {
  std::vector<const ResultRow*> ranked;
  for (const auto& [point, cell] : map.points) {
    if (cell.chosen != nullptr) {
      ranked.push_back(cell.chosen);
    }
  }
  if (ranked.empty()) {
    return fmt::format("{}: no point of this map has a result", strategy);
  }
  const auto [least, highest] = std::minmax_element(ranked.begin(), ranked.end(), less_mfu);
  const std::string name = fmt::format("{}{}", strategy, (*highest)->bound ? ", a bound" : "");
  return *least == *highest ? fmt::format("{}: {} MFU at {}", name, percent((*highest)->mfu), point_of(**highest))
                            : fmt::format("{}: MFU from {} ({}) to {} ({})", name, percent((*least)->mfu),
                                          point_of(**least), percent((*highest)->mfu), point_of(**highest));
}

/// Returns the lead of the chosen row over the other row, in percentage points of MFU.
double gain(const Cell& cell) { return 100.0 * (cell.chosen->mfu - cell.other->mfu); }
bool comparable(const Cell& cell) { return cell.chosen != nullptr && cell.other != nullptr; }

bool is_tie(const Cell& cell, const VerdictRule& rule) {
  return !verdict_of(std::array{contender_of(*cell.chosen), contender_of(*cell.other)}, rule).wins();
}

std::string signed_points(double points) {
  return std::abs(points) < 0.05 ? "0.0"
         : points < 0            ? fmt::format("\u2212{:.1f}", -points)
                                 : fmt::format("+{:.1f}", points);
}

std::string difference_title(const Map& map, std::string_view strategy, const VerdictRule& rule) {
  int ahead = 0;
  int behind = 0;
  int ties = 0;
  const Cell* widest = nullptr;
  for (const auto& [point, cell] : map.points) {
    if (comparable(cell)) {
      (is_tie(cell, rule) ? ties : gain(cell) > 0.0 ? ahead : behind) += 1;
      widest = widest == nullptr || gain(cell) > gain(*widest) ? &cell : widest;
    }
  }
  if (widest == nullptr) {
    return fmt::format("No other strategy to compare {} with", strategy);
  }
  return fmt::format("{} against the next best: ahead at {}, behind at {}, a tie at {}; at most {} points ({})",
                     strategy, ahead, behind, ties, signed_points(gain(*widest)), point_of(*widest->chosen));
}

/// The recommended schedule and serial in each cell of a map; `chosen` is null if a point lacks either.
struct SavingCells {
  Map map;
  std::map<Point, PayVerdict> verdicts;  ///< Verdicts of all points, shown or not.
  [[nodiscard]] const PayVerdict& verdict(const Cell& cell) const {
    return verdicts.at({cell.chosen->ranks, cell.chosen->seq});
  }
};

SavingCells saving_cells(std::span<const ResultRow> rows, const VerdictRule& rule) {
  SavingCells cells{axes_of(rows), {}};
  for (const Rows rows_of_point : rows_by_point(rows)) {
    if (const auto verdict = pay_verdict(point_verdict(rows_of_point, rule).ranking, rule)) {
      const Point point{rows_of_point.front().ranks, rows_of_point.front().seq};
      cells.verdicts.try_emplace(point, *verdict);
      cells.map.points.try_emplace(point, Cell{verdict->overlap, verdict->serial});
    }
  }
  return cells;
}

std::string saving_title(const SavingCells& cells) {
  SavingTally tally;
  const PayVerdict* best = nullptr;
  for (const auto& [point, verdict] : cells.verdicts) {
    tally.add(verdict.saved, verdict.pays);
    const bool is_larger = best == nullptr || verdict.saved > best->saved;
    best = verdict.pays == Pays::yes && is_larger ? &verdict : best;
  }
  const SavingCount count = tally.count();
  if (count.points == 0) {
    return "No point has both serial and a schedule that overlaps";
  }
  const std::string counts = count.pays == count.points    ? "pays at every point"
                             : count.loses == count.points ? "loses at every point"
                             : count.close == count.points ? "is too close to call at every point"
                                                           : fmt::format("{} of {} points", counts_in_words(count),
                                                                         size_with_commas(count.points));
  return best == nullptr ? "Overlap " + counts
                         : fmt::format("Overlap saves up to {} of serial's time ({}); it {}", percent(best->saved),
                                       point_of(*best->overlap), counts);
}

/// Returns "commfuse (ring) takes 21.3% less time than serial (91% sure); too close to call".
std::string saving_tip(const PayVerdict& verdict) {
  return fmt::format("{} takes {} {} time than serial{}{}", label_of(*verdict.overlap),
                     percent(std::abs(verdict.saved)), verdict.saved < 0.0 ? "more" : "less",
                     verdict.probability ? sure_in_words(verdict.probability) : std::string{},
                     verdict.pays == Pays::close ? "; too close to call" : "");
}

}  // namespace

void SavingScale::add(double saved, Pays pays) {
  if (pays != Pays::close) {
    largest_ = std::max(largest_, std::ceil(100.0 * std::abs(saved) - rounding) / 100.0);
    loses_ = loses_ || saved < 0.0;
    is_used_ = true;
  }
}

double SavingScale::level(double saved) const {
  const double level = loses_ ? 0.5 + saved / (2.0 * largest_) : saved / largest_;
  return std::clamp(level, 0.0, 1.0);
}

std::optional<LevelScale> SavingScale::scale() const {
  if (!is_used_) {
    return std::nullopt;
  }
  return LevelScale{.label = fmt::format("share of {}'s time that overlap saves", baseline_),
                    .low = loses_ ? signed_share(-largest_) : "0%",
                    .middle = loses_ ? "0%" : "",
                    .high = signed_share(largest_),
                    .diverging = loses_};
}

std::string signed_share(double share) {
  const std::string digits = fmt::format("{:.0f}", std::abs(100.0 * share));
  return digits == "0" ? "0%" : fmt::format("{}{}%", share < 0.0 ? "\u2212" : "+", digits);
}

std::string too_close_in_words(const std::optional<LevelScale>& scale, std::string_view baseline) {
  return scale ? "grey: too close to call"
               : fmt::format("grey: too close to call; share of {}'s time that overlap saves", baseline);
}

double map_width(std::size_t columns) {
  constexpr double column = 64.0;
  constexpr double narrowest = 128.0;
  constexpr double widest = 860.0;
  return std::clamp(column * static_cast<double>(columns), narrowest, widest);
}

Figure saving_map(std::span<const ResultRow> rows, std::string id, const VerdictRule& rule) {
  const SavingCells cells = saving_cells(rows, rule);
  SavingScale scale;
  bool any_close = false;
  for (const auto& [point, verdict] : cells.verdicts) {
    scale.add(verdict.saved, verdict.pays);
    any_close = any_close || verdict.pays == Pays::close;
  }
  Figure figure = frame_of(cells.map, std::move(id));
  figure.title = saving_title(cells);
  figure.data.columns = {"ranks", "seq", "saved_share_of_serial"};
  figure.scale = scale.scale();
  if (any_close) {
    figure.legend.push_back({too_close_in_words(figure.scale, "serial"), Role::tie});
  }
  add_cells(
      cells.map, figure,
      [&](const Cell& cell) -> CellMark {
        if (cell.chosen == nullptr) {
          return {.tip = "no result"};
        }
        const PayVerdict& verdict = cells.verdict(cell);
        CellMark mark{
            .level = scale.level(verdict.saved), .text = signed_share(verdict.saved), .tip = saving_tip(verdict)};
        mark.role = verdict.pays == Pays::close ? std::optional(Role::tie) : std::nullopt;
        return mark;
      },
      [&](const Cell& cell) { return cell.chosen == nullptr ? "" : fmt::format("{}", cells.verdict(cell).saved); });
  return figure;
}

Figure mfu_heatmap(std::span<const ResultRow> rows, std::string_view strategy, std::string id) {
  const Map map = map_of(rows, strategy);
  const Range range = range_of(rows);
  Figure figure = frame_of(map, std::move(id));
  figure.title = heatmap_title(map, strategy);
  figure.data.columns = {"ranks", "seq", "mfu"};
  if (range.low <= range.high) {
    figure.scale = LevelScale{.label = "MFU", .low = percent(range.low), .high = percent(range.high)};
  }
  add_cells(
      map, figure,
      [&](const Cell& cell) -> CellMark {
        if (cell.chosen == nullptr) {
          return {.tip = "no result"};
        }
        const double level = range.high > range.low ? (cell.chosen->mfu - range.low) / (range.high - range.low) : 0.5;
        return {.level = level,
                .text = percent(cell.chosen->mfu),
                .tip = fmt::format("{}, MFU {}", label_of(*cell.chosen), percent(cell.chosen->mfu))};
      },
      [](const Cell& cell) { return cell.chosen == nullptr ? "" : fmt::format("{}", cell.chosen->mfu); });
  return figure;
}

Figure mfu_difference(std::span<const ResultRow> rows, std::string_view strategy, std::string id,
                      const VerdictRule& rule) {
  const Map map = map_of(rows, strategy);
  double largest = 1.0;
  for (const auto& [point, cell] : map.points) {
    largest = comparable(cell) ? std::max(largest, std::ceil(std::abs(gain(cell)) - rounding)) : largest;
  }
  Figure figure = frame_of(map, std::move(id));
  figure.title = difference_title(map, strategy, rule);
  figure.data.columns = {"ranks", "seq", "mfu_points_over_best_other"};
  figure.scale = LevelScale{.label = fmt::format("MFU points, {} minus the next best; dashed: a tie", strategy),
                            .low = signed_points(-largest),
                            .middle = "0",
                            .high = signed_points(largest),
                            .diverging = true};
  add_cells(
      map, figure,
      [&](const Cell& cell) -> CellMark {
        if (!comparable(cell)) {
          return {.tip = "no result"};
        }
        const std::string points = signed_points(gain(cell));
        return {.level = 0.5 + gain(cell) / (2.0 * largest),
                .text = points,
                .tip = fmt::format("{} points against {}{}", points, label_of(*cell.other),
                                   is_tie(cell, rule) ? ", a tie" : ""),
                .framed = is_tie(cell, rule)};
      },
      [](const Cell& cell) { return comparable(cell) ? fmt::format("{}", gain(cell)) : ""; });
  return figure;
}

}  // namespace commfuse::reports
