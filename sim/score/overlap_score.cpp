// SPDX-License-Identifier: Apache-2.0
// Scores overlapped kernels against serial communication. The predictions are those that `run --as` prints, with one
// exception: if an implementation was fitted to a table, its costs come from a fit that excludes all tables of the same
// source.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "model/config_error.h"
#include "model/text/suggest.h"
#include "sim/point/request.h"
#include "sim/score/judged_ways.h"
#include "sim/score/kinds.h"
#include "sim/score/overlap_pairs.h"

namespace commfuse::score {

namespace {

/// Returns the probability that the predicted winner is indeed faster.
double winner_probability(const Way& serial, const Way& overlapped) {
  const double overlapped_is_faster =
      probability_shorter(from_seconds(overlapped.predicted_us * 1e-6), overlapped.uncertainty,
                          from_seconds(serial.predicted_us * 1e-6), serial.uncertainty);
  return std::max(overlapped_is_faster, 1.0 - overlapped_is_faster);
}

/// Returns the implementation that describes kernels without a file of their own. Throws ConfigError if the catalogue
/// has none.
const Implementation& typical(const KnownImplementations& known) {
  const auto match = std::ranges::find_if(
      known, &Implementation::stands_in, [](const auto& each) -> const auto& { return *each; });
  if (match == known.end()) {
    throw ConfigError(
        "configs/implementations has no typical.yaml, which describes kernels without a file of their own; "
        "reinstall the program");
  }
  return **match;
}

class PairScorer {
 public:
  PairScorer(const Table& table, Context& context, Tally& tally)
      : context_(context),
        tally_(tally),
        thread_(thread_of(table, context.file_name)),
        known_(load_implementations("all")),
        columns_(overlap_columns(table, context.file_name, known_)),
        machines_(table, context.file_name, context.machines) {
    if (columns_.other_serials > 0) {
      tally.result().remarks.push_back(
          fmt::format("Several columns have serial times; the score uses {}.", columns_.serial.name));
    }
    if (columns_.unscored_serial.exists()) {
      tally.result().remarks.push_back(
          fmt::format("{} is not scored: that baseline multiplies one expert after another and passes over all rows up "
                      "to nine times in between, as no schedule does.",
                      columns_.unscored_serial.name));
    }
    for (const auto& implemented : columns_.implemented) {
      if (implemented.implementation == nullptr) {
        tally.result().remarks.push_back(fmt::format("No implementation is known as {}; it is scored as a typical one.",
                                                     in_quotes(implemented.time.name)));
      }
    }
  }

  void add(Row& row) {
    const OverlapRow parsed = overlap_row(row, columns_);
    const std::string_view hw = row.text(columns_.hw);
    if (!tally_.takes(row, true)) {
      return;
    }
    if (!columns_.says_operator) {
      return tally_.skip("neither a column op nor the file name states ag, rs or ar");
    }
    if (columns_.config.exists() && columns_.width == 0) {
      return tally_.skip("no comment states the widths of the experts, such as K=N=8192");
    }
    const FoundMachine known = machines_.of(hw);
    if (known.machine == nullptr) {
      return tally_.skip(known.why_not);
    }
    try {
      score(row, parsed, *known.machine);
    } catch (const ConfigError& error) {
      tally_.skip(error.what());
    }
  }

  /// Adds one remark per reason on times that are not scored although their rows are.
  void note_unscored() {
    for (const auto& [reason, times] : unscored_) {
      tally_.result().remarks.push_back(times == 1 ? fmt::format("1 time is not scored: {}.", reason)
                                                   : fmt::format("{} times are not scored: {}.", times, reason));
    }
  }

 private:
  struct Overlapped {
    Way way;
    std::string name;
    std::string without;  // source whose rows the fit left out
  };

  [[nodiscard]] Overlapped overlapped(const Point& point, std::size_t index, double measured_us) {
    const auto& described = columns_.implemented[index].implementation;
    const Implementation& implementation = described == nullptr ? typical(known_) : *described;
    if (std::string refusal = refusal_of(implementation, point); !refusal.empty()) {
      throw ConfigError(refusal);
    }
    const auto unseen = implementation.without.find(thread_);
    const bool is_fitted = unseen != implementation.without.end();
    const Point priced = priced_as(point, implementation, is_fitted ? unseen->second : implementation.costs);
    const Prediction best = context_.predictor.predict_best(
        priced, *implementation.strategy, schedules_of(implementation, point.scope, point.ranks, point.dtype));
    return {{measured_us, makespan_us(best), context_.predictor.uncertainty(priced, best)},
            implementation.name,
            is_fitted ? thread_ : ""};
  }

  /// Predicts the overlapped kernels of a row. A kernel that cannot run at the point is left out, so that the other
  /// times of the row are scored, and the reason is added to `reasons`. Throws ConfigError if the row has no other
  /// time.
  [[nodiscard]] std::vector<Overlapped> overlapped_ways(const Point& point, const OverlapRow& parsed,
                                                        std::vector<std::string>& reasons) {
    std::vector<Overlapped> ways;
    for (const auto& [index, us] : parsed.implemented) {
      try {
        ways.push_back(overlapped(point, index, us));
      } catch (const ConfigError& error) {
        reasons.emplace_back(error.what());
      }
    }
    if (ways.empty() && !parsed.serial_us && !reasons.empty()) {
      throw ConfigError(reasons.front());
    }
    return ways;
  }

  void score(const Row& row, const OverlapRow& parsed, const Machine& machine) {
    Point point = point_of(parsed, machine, columns_.launch);
    point.raised = context_.doubts.raised(machine);
    require_possible(point);
    std::vector<Compared> compared;
    const std::string_view serial_part = "serial";
    Way serial;
    if (parsed.serial_us) {
      const Prediction prediction = context_.predictor.predict(point, serial_strategy, {.dtype = parsed.dtype});
      serial = {*parsed.serial_us, makespan_us(prediction), context_.predictor.uncertainty(point, prediction)};
      compared.push_back({serial.measured_us, serial.predicted_us, std::span(&serial_part, 1)});
    }
    std::vector<std::string> reasons;
    const std::vector<Overlapped> ways = overlapped_ways(point, parsed, reasons);
    std::vector<std::string_view> names;
    for (const Overlapped& way : ways) {
      names.push_back(way.name);
    }
    for (std::size_t i = 0; i < ways.size(); ++i) {
      compared.push_back({ways[i].way.measured_us, ways[i].way.predicted_us, std::span(&names[i], 1)});
    }
    if (!tally_.score(row, machine, true, compared)) {
      return;
    }
    for (const std::string& reason : reasons) {
      ++unscored_[reason];
    }
    if (parsed.serial_us) {
      compare_with_serial(row, parsed, point, serial, ways);
    }
  }

  void compare_with_serial(const Row& row, const OverlapRow& parsed, const Point& point, const Way& serial,
                           const std::vector<Overlapped>& ways) {
    for (const Overlapped& way : ways) {
      tally_.compare(way.way.measured_us / serial.measured_us, way.way.predicted_us / serial.predicted_us);
      tally_.result().pairs.push_back({.line = row.line(),
                                       .implementation = way.name,
                                       .measured_us = way.way.measured_us,
                                       .predicted_us = way.way.predicted_us,
                                       .without = way.without,
                                       .serial_measured_us = serial.measured_us,
                                       .serial_predicted_us = serial.predicted_us,
                                       .sure = winner_probability(serial, way.way),
                                       .command = command_of(point, way.name)});
      tally_.pays({.measured = way.way.measured_us / serial.measured_us,
                   .predicted = way.way.predicted_us / serial.predicted_us,
                   .sure = winner_probability(serial, way.way)});
      judge(point.machine, "serial or overlapped", serial, way.way, {parsed.n, parsed.k}, tally_);
    }
  }

  Context& context_;
  Tally& tally_;
  std::string thread_;
  KnownImplementations known_;
  OverlapColumns columns_;
  OverlapMachines machines_;
  std::map<std::string, std::int64_t> unscored_;  // number of times that are not scored, by reason
};

}  // namespace

void score_overlap_pairs(const Table& table, Context& context, Tally& tally) {
  PairScorer scorer(table, context, tally);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    scorer.add(row);
  }
  scorer.note_unscored();
}

}  // namespace commfuse::score
