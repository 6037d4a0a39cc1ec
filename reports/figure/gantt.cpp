// SPDX-License-Identifier: Apache-2.0
#include "reports/figure/gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "model/analysis/breakdown.h"
#include "model/check.h"
#include "model/program/names.h"
#include "reports/figure/ticks.h"
#include "reports/figure/wording.h"
#include "reports/point_rows.h"
#include "reports/savings.h"
#include "reports/trace_label.h"

namespace commfuse::reports {

namespace {

// Heights along the y axis, in pixels.
constexpr double head_height = 28.0;
constexpr double lane_height = 24.0;
constexpr double lane_gap = 4.0;
constexpr double panel_gap = 14.0;

/// One run on one rank, ready to be drawn.
struct Panel {
  const TracedRun* run = nullptr;
  Rank rank = 0;
  Timeline spans;   // spans of this rank, in order of start
  Breakdown parts;  // only makespan, head, bubble, tail, local and exposed are set
  std::vector<ExposedTime> exposed;
  std::vector<std::uint16_t> lanes;  // lanes in use, sorted by kind and number
};

Timeline spans_of(const TracedRun& run, Rank rank) {
  Timeline spans;
  std::copy_if(run.timeline.begin(), run.timeline.end(), std::back_inserter(spans),
               [&](const OpSpan& span) { return span.rank == rank; });
  std::stable_sort(spans.begin(), spans.end(), [](const OpSpan& a, const OpSpan& b) { return a.start < b.start; });
  return spans;
}

Breakdown parts_of(const Program& program, const Timeline& spans) {
  Recorder recorder;
  recorder.start(1);
  for (const OpSpan& span : spans) {
    recorder.record(0, span.op, program.ops[position(span.op)].purpose, span.start, span.end);
  }
  return breakdown_of(recorder.summary(0), {});
}

std::vector<std::uint16_t> lanes_of(const Program& program, const Timeline& spans) {
  std::vector<std::uint16_t> lanes;
  for (const OpSpan& span : spans) {
    lanes.push_back(program.ops[position(span.op)].lane);
  }
  const auto key = [&](std::uint16_t lane) {
    return std::tuple(program.lanes[lane].kind, program.lanes[lane].number, lane);
  };
  std::sort(lanes.begin(), lanes.end(), [&](std::uint16_t a, std::uint16_t b) { return key(a) < key(b); });
  lanes.erase(std::unique(lanes.begin(), lanes.end()), lanes.end());
  return lanes;
}

Panel panel_of(const TracedRun& run, Rank rank) {
  Panel panel{.run = &run, .rank = rank, .spans = spans_of(run, rank)};
  panel.parts = parts_of(*run.program, panel.spans);
  panel.exposed = exposed_times(run, rank);
  panel.lanes = lanes_of(*run.program, panel.spans);
  return panel;
}

double height_of(const Panel& panel) {
  return head_height + lane_height * static_cast<double>(panel.lanes.size()) + panel_gap;
}

/// One or more ops of a lane that are drawn as one bar.
struct Bar {
  Instant start;
  Instant end;
  OpId first{};
  OpId last{};
  int ops = 1;
  Purpose purpose = Purpose::essential;
};

/// Returns the bars of a lane. Merges neighbours of the same purpose that are too narrow to distinguish: shorter than
/// `visible`, with a gap below a quarter of `visible`.
std::vector<Bar> bars_of(const Panel& panel, std::uint16_t lane, Duration visible) {
  std::vector<Bar> bars;
  for (const OpSpan& span : panel.spans) {
    const Op& op = panel.run->program->ops[position(span.op)];
    if (op.lane != lane || span.end == span.start) {
      continue;
    }
    const bool joins = !bars.empty() && bars.back().purpose == op.purpose &&
                       span.start - bars.back().end < visible / 4 && bars.back().end - bars.back().start < visible &&
                       span.end - span.start < visible;
    if (joins) {
      bars.back().end = span.end;
      bars.back().last = span.op;
      ++bars.back().ops;
    } else {
      bars.push_back({span.start, span.end, span.op, span.op, 1, op.purpose});
    }
  }
  return bars;
}

Role role_of(Purpose purpose) {
  switch (purpose) {
    case Purpose::essential: return Role::essential;
    case Purpose::local: return Role::local;
    case Purpose::communication: return Role::communication;
  }
  return Role::ink;
}

std::string_view name_of(ExposedTime::Place place) {
  return place == ExposedTime::Place::head ? "head" : place == ExposedTime::Place::bubble ? "bubble" : "tail";
}

/// Returns the whole name, the name without the kind, and only the position: "gemm y[3]", "y[3]", "3"; "y[0; 4]",
/// "y[0\u2026]".
std::vector<std::string> shortened_labels(const std::string& label) {
  std::vector<std::string> labels{label};
  const std::size_t space = label.find(' ');
  const std::size_t open = label.find('[');
  if (space == std::string::npos) {
    return labels;
  }
  labels.push_back(label.substr(space + 1));
  if (open != std::string::npos && label.back() == ']') {
    const std::string index = label.substr(open + 1, label.size() - open - 2);
    const std::size_t digits = std::min(index.find_first_not_of("0123456789"), index.size());
    if (digits == index.size()) {
      labels.push_back(index);
    } else {
      const std::string first = index.substr(0, digits) + "\u2026";
      labels.push_back(index.find(';') == std::string::npos ? index
                                                            : label.substr(space + 1, open - space) + first + "]");
    }
  }
  return labels;
}

class Gantt {
 public:
  Gantt(std::vector<Panel> panels, std::string id, const VerdictRule& rule)
      : panels_(std::move(panels)), unit_(longest()), rule_(rule) {
    figure_.id = std::move(id);
  }

  Figure make() && {
    figure_.title = title();
    figure_.description = description();
    set_axes();
    double top = 0.0;
    for (const Panel& panel : panels_) {
      add(panel, top);
      top += height_of(panel);
    }
    set_legend();
    return std::move(figure_);
  }

 private:
  [[nodiscard]] Duration longest() const {
    Duration makespan{1};
    for (const Panel& panel : panels_) {
      makespan = std::max(makespan, panel.parts.makespan);
    }
    return makespan;
  }
  [[nodiscard]] double x(Instant instant) const { return unit_.value(instant.time_since_epoch()); }

  [[nodiscard]] std::vector<const Panel*> rivals() const;
  [[nodiscard]] std::optional<std::string> saving_title(const std::vector<const Panel*>& order) const;
  [[nodiscard]] std::string title() const;
  [[nodiscard]] std::string description() const;
  [[nodiscard]] std::string split(const Panel& panel) const;
  void set_axes();
  void set_legend();
  void add(const Panel& panel, double top);
  void add_lane(const Panel& panel, std::uint16_t lane, double top);
  void add_exposed(const Panel& panel, double top);

  std::vector<Panel> panels_;
  TimeUnit unit_;
  VerdictRule rule_;
  Figure figure_;
};

/// Returns predicted schedules that a user can choose: without bounds and without measured times, unless nothing else
/// remains.
std::vector<const Panel*> Gantt::rivals() const {
  std::vector<const Panel*> results;
  std::vector<const Panel*> candidates;
  for (const Panel& panel : panels_) {
    results.push_back(&panel);
    if (!panel.run->row.bound && !panel.run->measured) {
      candidates.push_back(&panel);
    }
  }
  return candidates.empty() ? results : candidates;
}

Contender panel_contender(const Panel& panel) {
  Contender contender = contender_of(panel.run->row);
  contender.time = to_seconds(panel.parts.makespan);
  return contender;
}

/// Names the saving of the recommended schedule against serial; nothing if either is missing.
std::optional<std::string> Gantt::saving_title(const std::vector<const Panel*>& order) const {
  std::vector<const ResultRow*> ranking;
  for (const Panel* panel : order) {
    ranking.push_back(&panel->run->row);
  }
  const std::optional<PayVerdict> verdict = pay_verdict(ranking, rule_);
  if (!verdict) {
    return std::nullopt;
  }
  const auto exposed_of = [&](const ResultRow* row) {
    return order[static_cast<std::size_t>(std::ranges::find(ranking, row) - ranking.begin())]->parts.exposed;
  };
  const Duration overlap = exposed_of(verdict->overlap);
  const Duration serial = exposed_of(verdict->serial);
  const TimeUnit unit(std::max(overlap, serial));
  return fmt::format("{}{} takes {} {} time than serial; exposed time {} against {}",
                     verdict->pays == Pays::close ? "Too close to call: " : "", label_of(*verdict->overlap),
                     percent(std::abs(verdict->saved)), verdict->saved < 0.0 ? "more" : "less", unit.text(overlap),
                     unit.text(serial));
}

std::string Gantt::title() const {
  std::vector<const Panel*> order = rivals();
  std::stable_sort(order.begin(), order.end(),
                   [](const Panel* a, const Panel* b) { return a->parts.makespan < b->parts.makespan; });
  if (const std::optional<std::string> title = saving_title(order)) {
    return *title;
  }
  const Panel& first = *order.front();
  const std::string name = label_of(first.run->row);
  if (order.size() == 1) {
    return fmt::format("{} takes {}, {} of it exposed", name, unit_.text(first.parts.makespan),
                       TimeUnit(first.parts.exposed).text(first.parts.exposed));
  }
  const Panel& second = *order[1];
  const double ratio = first.parts.makespan == second.parts.makespan
                           ? 1.0
                           : to_seconds(second.parts.makespan) / std::max(to_seconds(first.parts.makespan), 1e-12);
  const std::string lead =
      !verdict_of(std::array{panel_contender(first), panel_contender(second)}, rule_).wins()
          ? fmt::format("Tie: {} and {} end within {}", name, label_of(second.run->row), percent(ratio - 1.0))
          : fmt::format("{} takes {} less time than {}", name, percent(1.0 - 1.0 / ratio), label_of(second.run->row));
  const TimeUnit unit(std::max(first.parts.exposed, second.parts.exposed));
  return fmt::format("{}; exposed time {} against {}", lead, unit.text(first.parts.exposed),
                     unit.text(second.parts.exposed));
}

/// Formats the sum of the parts that exist as "exposed 12.0 = head 10.0 + bubble 2.0"; `local` lies inside the gaps and
/// is subtracted.
std::string Gantt::split(const Panel& panel) const {
  const Breakdown& parts = panel.parts;
  std::string sum;
  for (const auto& [name, part] : {std::pair{"head", parts.head}, {"bubble", parts.bubble}, {"tail", parts.tail}}) {
    if (part > Duration{}) {
      sum += fmt::format("{}{} {}", sum.empty() ? " = " : " + ", name, unit_.digits(part));
    }
  }
  if (parts.local > Duration{}) {
    sum += fmt::format(" \u2212 local {}", unit_.digits(parts.local));
  }
  return fmt::format("exposed {}{}", unit_.digits(parts.exposed), sum);
}

std::string Gantt::description() const {
  std::string text = fmt::format("Time since the common release of all ranks, in {}.", unit_.name());
  for (const Panel& panel : panels_) {
    text += fmt::format(" {}{}, rank {}: ends at {}; {}.", label_of(panel.run->row),
                        panel.run->measured ? " as measured" : "", panel.rank, unit_.digits(panel.parts.makespan),
                        split(panel));
  }
  return text;
}

void Gantt::set_axes() {
  const double end = unit_.value(longest());
  figure_.x = {
      .label = "time since the release of all ranks", .unit = unit_.name(), .low = 0.0, .high = end, .grid = true};
  figure_.x.ticks = round_ticks(0.0, end, 8);
  double height = 0.0;
  for (const Panel& panel : panels_) {
    double lane_top = height + head_height;
    for (const std::uint16_t lane : panel.lanes) {
      figure_.y.ticks.push_back(
          {lane_top + (lane_height - lane_gap) / 2, commfuse::name_of(panel.run->program->lanes[lane])});
      lane_top += lane_height;
    }
    height += height_of(panel);
  }
  figure_.height = std::max(height, 1.0);
  figure_.y.high = figure_.height;
  figure_.y.reversed = true;
}

void Gantt::set_legend() {
  figure_.legend = {{"essential compute", Role::essential},
                    {"local: adds, packs, copies", Role::local},
                    {"communication", Role::communication},
                    {"exposed: neither essential nor local work", Role::exposed, true}};
}

void Gantt::add(const Panel& panel, double top) {
  const double end = unit_.value(panel.parts.makespan);
  const ResultRow& row = panel.run->row;
  const std::string mfu = row.mfu > 0.0 && !panel.run->measured ? fmt::format(" \u00b7 MFU {}", percent(row.mfu)) : "";
  figure_.marks.emplace_back(
      TextMark{{0.0, top + head_height - 8.0},
               label_of(row),
               fmt::format("{}{}{} \u00b7 {} \u00b7 rank {}", panel.run->measured ? "measured " : "",
                           unit_.text(panel.parts.makespan), mfu, split(panel), panel.rank)});
  double lane_top = top + head_height;
  for (const std::uint16_t lane : panel.lanes) {
    add_lane(panel, lane, lane_top);
    lane_top += lane_height;
  }
  add_exposed(panel, top + head_height);
  figure_.marks.emplace_back(LineMark{{{end, top + head_height - 2.0}, {end, lane_top - 2.0}}, Role::ink});
}

void Gantt::add_lane(const Panel& panel, std::uint16_t lane, double top) {
  constexpr int bars_across = 500;  // at this number of bars across the figure, each is about two pixels wide
  const Program& program = *panel.run->program;
  for (const Bar& bar : bars_of(panel, lane, longest() / bars_across)) {
    const std::string name = op_label(program, program.ops[position(bar.first)], panel.rank);
    const std::string last = op_label(program, program.ops[position(bar.last)], panel.rank);
    const std::string ops_in_words = bar.ops == 1 ? name : fmt::format("{} ops, {} to {}", bar.ops, name, last);
    const std::string tip = fmt::format("{}: {} to {}, {}", ops_in_words, unit_.digits(bar.start.time_since_epoch()),
                                        unit_.text(bar.end.time_since_epoch()), unit_.text(bar.end - bar.start));
    figure_.marks.emplace_back(RectMark{.from = {x(bar.start), top},
                                        .to = {x(bar.end), top + lane_height - lane_gap},
                                        .role = role_of(bar.purpose),
                                        .labels = bar.ops == 1 ? shortened_labels(name) : std::vector<std::string>{},
                                        .tip = tip});
  }
}

/// Draws exposed time on the compute lane, where it is a gap, or on the first lane if the program computes nothing.
void Gantt::add_exposed(const Panel& panel, double top) {
  const Duration visible = longest() / 1000;
  for (const ExposedTime& time : panel.exposed) {
    if (time.to - time.from < visible) {
      continue;
    }
    const std::string name{name_of(time.place)};
    const std::string length = unit_.digits(time.to - time.from);
    figure_.marks.emplace_back(RectMark{
        .from = {x(time.from), top},
        .to = {x(time.to), top + lane_height - lane_gap},
        .role = Role::exposed,
        .hatched = true,
        .labels = {fmt::format("{} {} {}", name, length, unit_.name()), fmt::format("{} {}", name, length), length},
        .tip = fmt::format("exposed, {}: {} {}", name, length, unit_.name())});
  }
}

Figure gantt_of(std::span<const TracedRun> runs, std::optional<Rank> rank, std::string id, const VerdictRule& rule) {
  check(!runs.empty(), "a Gantt figure needs at least one run");
  std::vector<Panel> panels;
  for (const TracedRun& run : runs) {
    panels.push_back(panel_of(run, rank.value_or(run.row.analysis.critical_rank)));
  }
  return Gantt(std::move(panels), std::move(id), rule).make();
}

}  // namespace

std::vector<ExposedTime> exposed_times(const TracedRun& run, Rank rank) {
  const Timeline spans = spans_of(run, rank);
  const auto purpose = [&](const OpSpan& span) { return run.program->ops[position(span.op)].purpose; };
  Instant first = Instant::max();
  Instant last{};
  Instant end{};
  for (const OpSpan& span : spans) {
    end = std::max(end, span.end);
    if (purpose(span) == Purpose::essential) {
      first = std::min(first, span.start);
      last = std::max(last, span.end);
    }
  }
  std::vector<ExposedTime> exposed;
  Instant covered{};
  const auto gap = [&](Instant to) {
    if (to > covered) {
      const auto place = to <= first       ? ExposedTime::Place::head
                         : covered >= last ? ExposedTime::Place::tail
                                           : ExposedTime::Place::bubble;
      exposed.push_back({place, covered, to});
    }
  };
  for (const OpSpan& span : spans) {
    if (purpose(span) != Purpose::communication) {
      gap(span.start);
      covered = std::max(covered, span.end);
    }
  }
  gap(end);
  return exposed;
}

Figure gantt_figure(std::span<const TracedRun> runs, Rank rank, std::string id) {
  return gantt_of(runs, rank, std::move(id), {});
}

Figure gantt_figure(std::span<const TracedRun> runs, std::string id, const VerdictRule& rule) {
  return gantt_of(runs, std::nullopt, std::move(id), rule);
}

}  // namespace commfuse::reports
