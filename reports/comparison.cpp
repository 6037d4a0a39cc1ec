// SPDX-License-Identifier: Apache-2.0
#include "reports/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "model/check.h"
#include "model/config/quantity.h"
#include "model/wrapped.h"
#include "reports/point_rows.h"

namespace commfuse::reports {

namespace {

Duration makespan(const ResultRow& row) { return row.analysis.critical.makespan; }

/// The rows of one point that can win, fastest first.
std::vector<const ResultRow*> ranking(Rows rows) {
  std::vector<const ResultRow*> order;
  for (const ResultRow& row : rows) {
    if (can_win(row, rows)) {
      order.push_back(&row);
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const ResultRow* a, const ResultRow* b) { return makespan(*a) < makespan(*b); });
  return order;
}

/// Two that take no time at all, as a file without ops does, are equal.
double ratio(const ResultRow& slower, const ResultRow& faster) {
  if (makespan(slower) == makespan(faster)) {
    return 1.0;
  }
  return to_seconds(makespan(slower)) / to_seconds(makespan(faster));
}

/// The strategies within the margin of the fastest one, itself included.
std::vector<const ResultRow*> front_runners(Rows rows) {
  std::vector<const ResultRow*> close;
  for (const ResultRow* row : ranking(rows)) {
    if (close.empty() || ratio(*row, *close.front()) < 1.0 + too_close) {
      close.push_back(row);
    }
  }
  return close;
}

constexpr const char* line = "{:<29} {:>9} {:>8} {:>7} {:>7} {:>7} {:>6}\n";
constexpr std::size_t label_width = 29;  // a longer one has a line of its own

std::string block(Rows rows) {
  const Unit unit(rows);
  const ResultRow* fastest = ranking(rows).front();
  std::string text = fmt::format(line, fmt::format("ranks {}, seq {}", rows[0].ranks, format_count(rows[0].seq)),
                                 fmt::format("time/{}", unit.name()), "exposed", "head", "bubble", "tail", "MFU");
  for (const ResultRow& row : rows) {
    const Breakdown& parts = row.analysis.critical;
    std::string name = fmt::format("{} {}", &row == fastest ? '>' : ' ', label(row));
    if (name.size() > label_width) {
      text += name + "\n";
      name.clear();
    }
    text += fmt::format(line, name, unit.text(parts.makespan), unit.text(parts.exposed), unit.text(parts.head),
                        unit.text(parts.bubble), unit.text(parts.tail), fmt::format("{:.1f}%", 100.0 * row.mfu));
  }
  text += wrapped(verdict(rows), "  ", "  ");
  if (const std::string errors = errors_in_words(rows); !errors.empty()) {
    text += wrapped(errors, "  ", "  ");
  }
  if (const std::vector<std::string> warnings = warnings_of(rows); !warnings.empty()) {
    text += wrapped(fmt::format("Beyond the fit: {}.", fmt::join(warnings, "; ")), "  ", "  ");
  }
  return text;
}

/// "8.2% less time than sliced".
std::string saved(const ResultRow& row, const ResultRow& fastest, const std::string& name) {
  return fmt::format("{:.1f}% less time than {}", 100.0 * (1.0 - 1.0 / ratio(row, fastest)), name);
}

/// " fused_kernel (bound) takes 7.6% less.": the lowest bound beside what can win; empty where there is none, or where
/// it is above: it runs an attention core alone, and a machine's file may contradict itself (wires faster than their
/// nominal rate).
std::string bound_in_words(Rows rows, const ResultRow& fastest) {
  const ResultRow* lowest = nullptr;
  for (const ResultRow& row : rows) {
    if (!can_win(row, rows) && (lowest == nullptr || makespan(row) < makespan(*lowest))) {
      lowest = &row;
    }
  }
  return lowest == nullptr || makespan(*lowest) > makespan(fastest)
             ? std::string{}
             : fmt::format(" {} takes {:.1f}% less.", label(*lowest), 100.0 * (1.0 - ratio(*lowest, fastest)));
}

/// All others while they are three, else the next two and the slowest.
std::string lead_in_words(const std::vector<const ResultRow*>& order, Rows rows) {
  constexpr std::size_t most = 3;
  std::string text = fmt::format("{} wins{}: ", short_label(*order[0], rows), sure_in_words(*order[0]));
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order.size() > most + 1 && i == most) {
      return text + fmt::format(" and {}.", saved(*order.back(), *order[0],
                                                  fmt::format("the slowest, {}", short_label(*order.back(), rows))));
    }
    text += fmt::format("{}{}", i == 1 ? "" : ", ", saved(*order[i], *order[0], short_label(*order[i], rows)));
  }
  return text + ".";
}

}  // namespace

bool can_win(const ResultRow& row, Rows rows) {
  return !row.bound ||
         std::all_of(rows.begin(), rows.end(), [](const ResultRow& other) { return other.bound || !other.feasible(); });
}

std::string verdict(Rows rows) {
  check(!rows.empty(), "a verdict is about something");
  const std::vector<const ResultRow*> order = ranking(rows);
  const std::string bound = bound_in_words(rows, *order[0]);
  if (order.size() == 1) {
    const Unit unit(rows);
    return fmt::format("{} takes {} {}.{}", label(*order[0]), unit.text(makespan(*order[0])), unit.name(), bound);
  }
  const std::vector<const ResultRow*> close = front_runners(rows);
  if (close.size() > 1) {
    std::string names = short_label(*close.front(), rows);
    for (std::size_t i = 1; i < close.size(); ++i) {
      names += (i + 1 == close.size() ? " and " : ", ") + short_label(*close[i], rows);
    }
    return fmt::format("Too close to call: {} are within {:.1f}%.{}", names,
                       100.0 * (ratio(*close.back(), *close.front()) - 1.0), bound);
  }
  return lead_in_words(order, rows) + bound;
}

std::string comparison_table(Rows rows) {
  if (rows.empty()) {
    return {};
  }
  const ResultRow& first = rows.front();
  std::string text = fmt::format("{} {} on {}, batch {}, {}\n", first.model, first.scope, machine_in_words(first),
                                 format_count(first.batch), first.dtype);
  for (const Rows point : rows_by_point(rows)) {
    text += "\n" + block(point);
  }
  return text;
}

std::string summary(Rows rows) {
  const std::vector<Rows> points = rows_by_point(rows);
  if (points.size() < 2) {
    return {};
  }
  std::map<std::string, int> wins;
  int close = 0;
  for (const Rows point : points) {
    const std::vector<const ResultRow*> front = front_runners(point);
    front.size() == 1 ? ++wins[front.front()->strategy] : ++close;
  }
  std::string text = fmt::format("Of {} points", points.size());
  for (const auto& [strategy, count] : wins) {
    text += fmt::format(", {} wins {}", strategy, count);
  }
  return wrapped(text + fmt::format(", {} too close to call (within {:.0f}%).", close, 100.0 * too_close), "", "");
}

}  // namespace commfuse::reports
