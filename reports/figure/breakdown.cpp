// SPDX-License-Identifier: Apache-2.0
#include "reports/figure/breakdown.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/check.h"
#include "reports/figure/bar_rows.h"
#include "reports/figure/gantt.h"
#include "reports/figure/ticks.h"
#include "reports/figure/wording.h"

namespace commfuse::reports {

namespace {

constexpr double axis_length = 1.14;  // length of the axis, relative to the longest time

/// Returns head, bubble and tail of the timeline; only "exposed" if the timeline and the row are from different runs.
std::vector<TimePart> exposed_parts(const TracedRun& run) {
  const Breakdown& breakdown = run.row.analysis.critical;
  std::vector<TimePart> parts{
      {"head", Role::exposed, true, {}}, {"bubble", Role::exposed, true, {}}, {"tail", Role::exposed, true, {}}};
  Duration sum{};
  for (const ExposedTime& time : exposed_times(run, run.row.analysis.critical_rank)) {
    parts[static_cast<std::size_t>(time.place)].time += time.to - time.from;
    sum += time.to - time.from;
  }
  return sum == breakdown.exposed ? parts : std::vector<TimePart>{{"exposed", Role::exposed, true, breakdown.exposed}};
}

std::string title_of(std::span<const TracedRun> runs) {
  const TracedRun* best = &runs.front();
  const TracedRun* worst = &runs.front();
  const auto exposed = [](const TracedRun& run) {
    const Duration makespan = makespan_of(run.row);  // 0 for a schedule without ops
    return makespan > Duration{} ? to_seconds(run.row.analysis.critical.exposed) / to_seconds(makespan) : 0.0;
  };
  for (const TracedRun& run : runs) {
    best = !run.row.bound && (best->row.bound || makespan_of(run.row) < makespan_of(best->row)) ? &run : best;
    worst = !run.row.bound && (worst->row.bound || exposed(run) > exposed(*worst)) ? &run : worst;
  }
  const std::string first =
      fmt::format("{} leaves {} of its time exposed", label_of(best->row), percent(exposed(*best)));
  return worst == best ? first : fmt::format("{}, {} {}", first, label_of(worst->row), percent(exposed(*worst)));
}

struct Bars {
  Figure& figure;
  const TimeUnit& unit;
  std::vector<TextMark>& totals;  ///< text at the end of each bar, drawn after all bars

  /// Adds the bar of a run. If parts are negative (compute lanes overlap), the bar begins left of the axis, so that the
  /// last part ends at the makespan.
  void add(const TracedRun& run, double y) const {
    Duration start{};
    const std::vector<TimePart> parts = time_parts(run);
    for (const TimePart& part : parts) {
      start += std::min(part.time, Duration{});
    }
    figure.x.low = std::min(figure.x.low, unit.value(start));
    for (const TimePart& part : parts) {
      figure.data.rows.push_back({label_of(run.row), part.name, fmt::format("{}", to_microseconds(part.time))});
      if (part.time > Duration{}) {
        draw(run, part, start, y);
        start += part.time;
      }
    }
    const std::string total = unit.text(makespan_of(run.row));
    totals.push_back({.at = {unit.value(makespan_of(run.row)) * (1.0 + 0.01), y + 0.15}, .strong = total, .text = ""});
    figure.description += fmt::format("{}: {}. ", label_of(run.row), total);
  }

  void draw(const TracedRun& run, const TimePart& part, Duration start, double y) const {
    const std::string length = unit.text(part.time);
    const double share = to_seconds(part.time) / to_seconds(makespan_of(run.row));
    figure.marks.emplace_back(RectMark{.from = {unit.value(start), y - bar_share / 2},
                                       .to = {unit.value(start + part.time), y + bar_share / 2},
                                       .role = part.role,
                                       .hatched = part.hatched,
                                       .labels = {fmt::format("{} {}", part.name, length), part.name},
                                       .tip = fmt::format("{}: {} {}, {} of {}", label_of(run.row), part.name, length,
                                                          percent(share), unit.text(makespan_of(run.row)))});
  }
};

}  // namespace

std::vector<TimePart> time_parts(const TracedRun& run) {
  const Breakdown& breakdown = run.row.analysis.critical;
  std::vector<TimePart> parts{{"compute", Role::essential, false, breakdown.compute},
                              {"slicing", Role::sixth, false, breakdown.slicing},
                              {"stretch", Role::fourth, false, breakdown.stretch},
                              {"local", Role::local, false, breakdown.local}};
  for (TimePart& part : exposed_parts(run)) {
    parts.push_back(std::move(part));
  }
  Duration sum{};
  for (const TimePart& part : parts) {
    sum += part.time;
  }
  check(sum == breakdown.makespan, "the parts of a makespan add up to it");
  return parts;
}

Figure breakdown_figure(std::span<const TracedRun> runs, std::string id) {
  check(!runs.empty(), "a breakdown needs at least one run");
  Duration longest{1};
  for (const TracedRun& run : runs) {
    longest = std::max(longest, makespan_of(run.row));
  }
  const TimeUnit unit(longest);
  Figure figure;
  figure.id = std::move(id);
  figure.title = title_of(runs);
  figure.height = row_height * static_cast<double>(runs.size());
  figure.x = {
      .label = "time", .unit = unit.name(), .low = 0.0, .high = unit.value(longest) * axis_length, .grid = true};
  figure.y = {.low = -0.5, .high = static_cast<double>(runs.size()) - 0.5, .reversed = true};
  figure.data.columns = {"schedule", "part", "time_us"};
  std::vector<TextMark> totals;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto y = static_cast<double>(i);
    figure.y.ticks.push_back({y, label_of(runs[i].row)});
    Bars{figure, unit, totals}.add(runs[i], y);
  }
  figure.marks.insert(figure.marks.end(), totals.begin(), totals.end());
  figure.x.ticks = round_ticks(figure.x.low, figure.x.high, 8);
  figure.legend = {{"compute", Role::essential},
                   {"slicing: cost of cutting work", Role::sixth},
                   {"stretch: interference", Role::fourth},
                   {"local: adds, packs, copies", Role::local},
                   {"exposed: head, bubble, tail", Role::exposed, true}};
  return figure;
}

}  // namespace commfuse::reports
