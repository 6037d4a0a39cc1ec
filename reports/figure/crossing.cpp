// SPDX-License-Identifier: Apache-2.0
#include "reports/figure/crossing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "model/math/functions.h"
#include "model/text/counted.h"
#include "model/text/quantity.h"
#include "reports/commas.h"
#include "reports/comparison.h"
#include "reports/crossover.h"
#include "reports/figure/heatmap.h"
#include "reports/figure/line_styles.h"
#include "reports/figure/spread.h"
#include "reports/figure/ticks.h"
#include "reports/figure/wording.h"
#include "reports/point_rows.h"
#include "reports/savings.h"

namespace commfuse::reports {

namespace {

std::size_t index_of(MapAxis axis) { return static_cast<std::size_t>(axis); }

/// The shown values of an axis, and their indices.
class ShownAxis {
 public:
  explicit ShownAxis(const std::vector<MapValue>& values)
      : values_(values), indices_(spread({.count = values.size(), .kept = max_map_values})) {}

  [[nodiscard]] std::size_t count() const { return indices_.size(); }
  [[nodiscard]] double size() const { return static_cast<double>(count()); }
  [[nodiscard]] std::optional<double> at(std::size_t index) const {
    const auto shown = std::lower_bound(indices_.begin(), indices_.end(), index);
    return shown != indices_.end() && *shown == index ? std::optional(static_cast<double>(shown - indices_.begin()))
                                                      : std::nullopt;
  }
  [[nodiscard]] const std::string& text(std::size_t index) const { return values_[index].text; }
  /// Returns all digits, for data.
  [[nodiscard]] std::string digits(std::size_t index) const { return fmt::format("{:.0f}", values_[index].value); }
  /// Returns as many labels as fit.
  [[nodiscard]] std::vector<Tick> ticks(double label_size, double length) const {
    const auto stride = static_cast<std::size_t>(std::max(1.0, std::ceil(label_size * size() / length)));
    std::vector<Tick> ticks;
    for (std::size_t i = 0; i < indices_.size(); i += stride) {
      ticks.push_back({static_cast<double>(i), values_[indices_[i]].text});
    }
    return ticks;
  }

 private:
  const std::vector<MapValue>& values_;
  std::vector<std::size_t> indices_;
};

Figure frame_of(const ShownAxis& seq, const ShownAxis& ranks, std::string id) {
  const double columns = seq.size();
  const double rows = ranks.size();
  Figure figure;
  figure.id = std::move(id);
  figure.plot_width = map_width(seq.count());
  figure.width = std::max(440.0, figure.plot_width + 64.0);
  figure.height = std::min(700.0, 32.0 * rows);
  figure.x = {.label = "sequence length", .unit = "tokens", .low = -0.5, .high = columns - 0.5};
  figure.y = {.label = "ranks", .low = -0.5, .high = rows - 0.5};
  figure.x.ticks = seq.ticks(44.0, figure.plot_width);
  figure.y.ticks = ranks.ticks(16.0, figure.height);
  figure.data.columns = {"ranks", "seq", "winner", "second", "saved", "close"};
  return figure;
}

/// The bandwidths of a figure: the lowest link rate that has a cell, with the lowest network rate beside it. The map
/// may have lower network rates at other link rates, for example if one axis varies both.
class ShownBandwidths {
 public:
  explicit ShownBandwidths(const CrossoverMap& map) : map_(map) {
    const auto lowest = std::ranges::min_element(map.cells, {}, rates_of);
    shown_ = lowest == map.cells.end() ? Rates{} : rates_of(*lowest);
  }

  [[nodiscard]] bool include(const MapCell& cell) const { return rates_of(cell) == shown_; }

  /// Names the bandwidths if the map has several: "links x0.25 (the lowest of 5 rates): ".
  [[nodiscard]] std::string in_words() const {
    std::string text;
    for (const auto& [axis, index] : {std::pair(MapAxis::link, shown_.first), {MapAxis::network, shown_.second}}) {
      const std::size_t rates = map_.values(axis).size();
      text += rates < 2 ? std::string{}
                        : fmt::format("{}{} ({} of {} rates)", text.empty() ? "" : ", ",
                                      value_in_words(map_, axis, index), index == 0 ? "the lowest" : "one", rates);
    }
    return text.empty() ? text : text + ": ";
  }

 private:
  using Rates = std::pair<std::size_t, std::size_t>;  // indices of link and network
  static Rates rates_of(const MapCell& cell) {
    return {cell.place[index_of(MapAxis::link)], cell.place[index_of(MapAxis::network)]};
  }

  const CrossoverMap& map_;
  Rates shown_;
};

Pays pays_of(const MapSaving& saving) {
  return saving.is_close ? Pays::close : saving.saved > 0.0 ? Pays::yes : Pays::no;
}

/// Returns "commfuse wins 12 of 15 points, serial 1, 2 tie", or "commfuse wins the only point".
std::string winners_title(const CrossoverMap& map, const ShownBandwidths& bandwidths) {
  std::vector<std::pair<std::size_t, std::string>> wins;
  std::size_t points = 0;
  std::size_t ties = 0;
  for (const MapCell& cell : map.cells) {
    points += bandwidths.include(cell) ? 1 : 0;
    ties += bandwidths.include(cell) && !cell.wins() ? 1 : 0;
  }
  for (const std::string& strategy : map.strategies) {
    const auto is_won = [&](const MapCell& cell) {
      return bandwidths.include(cell) && cell.wins() && cell.winner == strategy;
    };
    wins.emplace_back(std::ranges::count_if(map.cells, is_won), strategy);
  }
  std::stable_sort(wins.begin(), wins.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [count, strategy] : wins) {
    if (count > 0) {
      text += points == 1    ? fmt::format("{} wins the only point", strategy)
              : text.empty() ? fmt::format("{} wins {} of {} points", strategy, count, points)
                             : fmt::format(", {} {}", strategy, count);
    }
  }
  if (text.empty()) {
    return points == 1 ? "The strategies tie at the only point" : fmt::format("All {} points tie", points);
  }
  const std::string tied = ties == 0 ? std::string{} : fmt::format(", {} {}", ties, ties == 1 ? "ties" : "tie");
  return text + tied;
}

/// Returns "Overlap saves a median 1.0% of serial's time over 3 points: it pays at 2 and loses at 1".
std::string savings_title(const SavingCount& count, std::string_view baseline) {
  const std::string share = (count.points == 1 ? "" : "a median ") + percent(std::abs(count.median));
  const std::string saving = count.median < 0.0 ? fmt::format("Overlap takes {} more time than {}", share, baseline)
                                                : fmt::format("Overlap saves {} of {}'s time", share, baseline);
  return count.points == 1
             ? fmt::format("{} at the only point{}", saving, count.close > 0 ? ": too close to call" : "")
             : fmt::format("{} over {} points: it {}", saving, size_with_commas(count.points), counts_in_words(count));
}

/// Time of the best other strategy divided by the time of the strategy, and whether the strategy wins.
struct Ahead {
  double ratio = 1.0;
  bool wins = false;
};
/// Lead by sequence length.
using Lead = std::map<std::int64_t, Ahead>;

struct Best {
  const ResultRow* chosen = nullptr;
  const ResultRow* other = nullptr;
};

std::map<std::int64_t, Lead> leads_of(std::span<const ResultRow> rows, std::string_view strategy,
                                      const VerdictRule& rule) {
  std::map<std::pair<std::int64_t, std::int64_t>, Best> best;
  for (const ResultRow& row : rows) {
    const ResultRow*& kept =
        row.strategy == strategy ? best[{row.ranks, row.seq}].chosen : best[{row.ranks, row.seq}].other;
    if (has_result(row) && !row.bound && (kept == nullptr || makespan_of(row) < makespan_of(*kept))) {
      kept = &row;
    }
  }
  std::map<std::int64_t, Lead> leads;
  for (const auto& [point, fastest] : best) {
    if (fastest.chosen != nullptr && fastest.other != nullptr) {
      const Verdict verdict = verdict_of(std::array{contender_of(*fastest.chosen), contender_of(*fastest.other)}, rule);
      leads[point.first][point.second] = {times_slower(*fastest.other, *fastest.chosen),
                                          verdict.wins() && verdict.front.front() == 0};
    }
  }
  std::erase_if(leads, [](const auto& lead) { return lead.second.size() < 2; });
  return leads;
}

template <class Map>
void thin(Map& lines, std::size_t max_kept) {
  const std::vector<std::size_t> kept = spread({.count = lines.size(), .kept = max_kept});
  std::size_t index = 0;
  auto next = kept.begin();
  std::erase_if(lines, [&](const auto&) {
    const bool keep = next != kept.end() && index++ == *next;
    next += keep ? 1 : 0;
    return !keep;
  });
}

/// Returns the first sequence length at which a lead crosses 1, by interpolation in logarithms.
std::optional<double> crossing_of(const Lead& lead) {
  for (auto before = lead.begin(), next = std::next(before); next != lead.end(); before = next++) {
    const double a = math::log(before->second.ratio);
    const double b = math::log(next->second.ratio);
    if ((a < 0.0) != (b < 0.0)) {
      const double x = math::log(static_cast<double>(before->first));
      const double y = math::log(static_cast<double>(next->first));
      return math::exp(x + (y - x) * a / (a - b));
    }
  }
  return std::nullopt;
}

void add_lead(std::int64_t ranks, const Lead& lead, std::string_view strategy, Figure& figure) {
  const LineStyle style = style_of(figure.legend.size());
  LineMark line{.role = style.role, .name = counted(ranks, "rank"), .dashes = std::string{style.dashes}};
  for (const auto& [seq, ahead] : lead) {
    const double ratio = ahead.ratio;
    line.points.push_back({static_cast<double>(seq), ratio});
    line.tips.push_back(fmt::format("ranks {}, seq {}: {} is {:.3f}x as fast as the next best", ranks,
                                    format_count(seq), strategy, ratio));
    figure.data.rows.push_back({fmt::format("{}", ranks), fmt::format("{}", seq), fmt::format("{}", ratio)});
  }
  figure.legend.push_back({.text = line.name, .role = style.role, .line = true, .dashes = line.dashes});
  figure.marks.emplace_back(std::move(line));
  if (const std::optional<double> at = crossing_of(lead)) {
    figure.marks.emplace_back(
        PointsMark{.points = {{*at, 1.0}},
                   .role = style.role,
                   .symbol = Symbol::diamond,
                   .size = 6.0,
                   .name = "crossover",
                   .tips = {fmt::format("ranks {}: equal near seq {}", ranks, format_count(std::llround(*at)))}});
  }
}

std::string lead_title(const std::map<std::int64_t, Lead>& leads, std::string_view strategy) {
  double farthest = 0.0;
  std::pair<std::int64_t, std::int64_t> where;
  std::size_t ahead = 0;
  std::size_t points = 0;
  for (const auto& [ranks, lead] : leads) {
    for (const auto& [seq, point] : lead) {
      ++points;
      ahead += point.wins ? 1 : 0;
      if (point.ratio > farthest) {
        farthest = point.ratio;
        where = {ranks, seq};
      }
    }
  }
  return fmt::format("{} is clearly ahead at {} of {} points, at best {:.2f}x (ranks {}, seq {})", strategy, ahead,
                     points, farthest, where.first, format_count(where.second));
}

void set_lead_axes(const std::map<std::int64_t, Lead>& leads, double difference, Figure& figure) {
  double least = 1.0 - 2.0 * difference;
  double highest = 1.0 + 2.0 * difference;
  std::map<std::int64_t, bool> sequences;
  for (const auto& [ranks, lead] : leads) {
    for (const auto& [seq, ahead] : lead) {
      least = std::min(least, ahead.ratio - 0.01);
      highest = std::max(highest, ahead.ratio + 0.01);
      sequences[seq] = true;
    }
  }
  const auto first = static_cast<double>(sequences.begin()->first);
  const auto last = static_cast<double>(sequences.rbegin()->first);
  figure.x = {.label = "sequence length",
              .unit = "tokens",
              .low = first / 1.08,
              .high = last * 1.08,
              .logarithmic = true,
              .grid = true};
  thin(sequences, 10);
  for (const auto& [seq, ignored] : sequences) {
    figure.x.ticks.push_back({static_cast<double>(seq), format_count(seq)});
  }
  figure.y = {.label = "time of the next best strategy / own time", .low = least, .high = highest, .grid = true};
  figure.y.ticks = round_ticks(least, highest, 6);
  figure.marks.emplace_back(BandMark{.low = {{figure.x.low, 1.0 - difference}, {figure.x.high, 1.0 - difference}},
                                     .high = {{figure.x.low, 1.0 + difference}, {figure.x.high, 1.0 + difference}},
                                     .role = Role::muted});
  figure.marks.emplace_back(
      LineMark{.points = {{figure.x.low, 1.0}, {figure.x.high, 1.0}}, .role = Role::muted, .dashed = true});
}

}  // namespace

Figure winner_figure(const CrossoverMap& map, std::string id) {
  const ShownBandwidths bandwidths(map);
  const ShownAxis sequences(map.values(MapAxis::seq));
  const ShownAxis rank_counts(map.values(MapAxis::ranks));
  Figure figure = frame_of(sequences, rank_counts, std::move(id));
  figure.title = bandwidths.in_words() + winners_title(map, bandwidths);
  const std::vector<std::string> names = short_names(map);
  std::string_view about_percentages = "; %: time saved against the second";  // once, at the first winner
  for (std::size_t i = 0; i < map.strategies.size(); ++i) {
    const bool wins = std::ranges::any_of(map.cells, [&](const MapCell& cell) {
      return bandwidths.include(cell) && cell.wins() && cell.winner == map.strategies[i];
    });
    figure.legend.push_back({fmt::format("{}{}: {}{}", wins ? "" : "\u2248 ", names[i], map.strategies[i],
                                         wins ? std::exchange(about_percentages, "") : ""),
                             wins ? style_of(i).role : Role::tie});
  }
  if (std::ranges::any_of(map.cells, [&](const MapCell& cell) { return bandwidths.include(cell) && !cell.wins(); })) {
    figure.legend.push_back({"\u2248 a tie; the cell names the fastest of the tied strategies", Role::tie});
  }
  for (const MapCell& cell : map.cells) {
    const auto x = sequences.at(cell.place[index_of(MapAxis::seq)]);
    const auto y = rank_counts.at(cell.place[index_of(MapAxis::ranks)]);
    if (!bandwidths.include(cell) || !x || !y) {
      continue;
    }
    const auto strategy = static_cast<std::size_t>(
        std::find(map.strategies.begin(), map.strategies.end(), cell.winner) - map.strategies.begin());
    const std::size_t rank_index = cell.place[index_of(MapAxis::ranks)];
    const std::size_t seq_index = cell.place[index_of(MapAxis::seq)];
    const std::string& ranks = rank_counts.text(rank_index);
    const std::string& seq = sequences.text(seq_index);
    const std::string share = cell.saved ? percent(*cell.saved) : "";
    const std::string saving = cell.saved ? fmt::format(" saves {} of the time of {}", share, cell.second) : "";
    figure.marks.emplace_back(
        CellMark{.at = {*x, *y},
                 .level = std::nullopt,
                 .text = cell.wins() ? fmt::format("{} {}", names[strategy], share) : "\u2248 " + names[strategy],
                 .tip = fmt::format("ranks {}, seq {}: {}{}{}", ranks, seq, cell.winner, saving,
                                    cell.wins() ? "" : ", ties with " + names_in_words(cell.tied)),
                 .role = cell.wins() ? style_of(strategy).role : Role::tie});
    figure.data.rows.push_back({rank_counts.digits(rank_index), sequences.digits(seq_index), cell.winner, cell.second,
                                cell.saved ? fmt::format("{}", *cell.saved) : "", cell.wins() ? "0" : "1"});
  }
  figure.description = figure.title + "; the data list every cell.";
  return figure;
}

std::optional<Figure> saving_figure(const CrossoverMap& map, std::string id) {
  const ShownBandwidths bandwidths(map);
  const ShownAxis sequences(map.values(MapAxis::seq));
  const ShownAxis rank_counts(map.values(MapAxis::ranks));
  Figure figure = frame_of(sequences, rank_counts, std::move(id));
  const std::string baseline = baseline_in_words(map);
  figure.data.columns = {"ranks", "seq", "strategy",
                         baseline == "serial" ? "saved_share_of_serial" : "saved_share_of_baseline"};
  SavingTally tally;
  SavingScale scale(baseline);
  for (const MapCell& cell : map.cells) {
    if (cell.saving && bandwidths.include(cell)) {
      tally.add(cell.saving->saved, pays_of(*cell.saving));
      scale.add(cell.saving->saved, pays_of(*cell.saving));
    }
  }
  const SavingCount count = tally.count();
  if (count.points == 0) {
    return std::nullopt;
  }
  for (const MapCell& cell : map.cells) {
    const auto x = sequences.at(cell.place[index_of(MapAxis::seq)]);
    const auto y = rank_counts.at(cell.place[index_of(MapAxis::ranks)]);
    const std::optional<MapSaving>& saving = cell.saving;
    if (!saving || !bandwidths.include(cell) || !x || !y) {
      continue;
    }
    const std::size_t rank_index = cell.place[index_of(MapAxis::ranks)];
    const std::size_t seq_index = cell.place[index_of(MapAxis::seq)];
    const std::string& ranks = rank_counts.text(rank_index);
    const std::string& seq = sequences.text(seq_index);
    CellMark mark{.at = {*x, *y},
                  .level = scale.level(saving->saved),
                  .text = signed_share(saving->saved),
                  .tip = fmt::format("ranks {}, seq {}: {} takes {} {} time than {}{}", ranks, seq, saving->overlap,
                                     percent(std::abs(saving->saved)), saving->saved < 0.0 ? "more" : "less",
                                     saving->baseline, saving->is_close ? "; too close to call" : "")};
    mark.role = saving->is_close ? std::optional(Role::tie) : std::nullopt;
    figure.data.rows.push_back({rank_counts.digits(rank_index), sequences.digits(seq_index), saving->overlap,
                                fmt::format("{}", saving->saved)});
    figure.marks.emplace_back(std::move(mark));
  }
  figure.title = bandwidths.in_words() + savings_title(count, baseline);
  figure.description = figure.title + "; the data list every cell.";
  figure.scale = scale.scale();
  if (count.close > 0) {
    figure.legend.push_back({too_close_in_words(figure.scale, baseline), Role::tie});
  }
  return figure;
}

std::optional<Figure> lead_figure(std::span<const ResultRow> rows, std::string_view strategy, std::string id,
                                  const VerdictRule& rule) {
  std::map<std::int64_t, Lead> leads = leads_of(rows, strategy, rule);
  if (leads.empty()) {
    return std::nullopt;
  }
  Figure figure;
  figure.id = std::move(id);
  figure.height = 280.0;
  figure.title = lead_title(leads, strategy);
  figure.data.columns = {"ranks", "seq", "times_as_fast"};
  constexpr std::size_t max_points = 200;
  thin(leads, series_roles.size());
  set_lead_axes(leads, rule.difference, figure);
  for (auto& [ranks, lead] : leads) {
    thin(lead, max_points);
    add_lead(ranks, lead, strategy, figure);
  }
  figure.legend.push_back({fmt::format("within {:.3g}%: a tie", 100.0 * rule.difference), Role::muted});
  figure.description = figure.title + ".";
  return figure;
}

}  // namespace commfuse::reports
