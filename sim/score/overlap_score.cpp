// SPDX-License-Identifier: Apache-2.0
// Scores overlapped kernels against serial communication. Every prediction is one that `run --as` prints, with one
// exception: on a table that an implementation was fitted on, its costs are those of a fit without all tables of that
// thread.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/config_error.h"
#include "sim/point/request.h"
#include "sim/score/judged_ways.h"
#include "sim/score/kinds.h"
#include "sim/score/overlap_pairs.h"

namespace commfuse::score {

namespace {

double makespan_us(const Prediction& prediction) { return to_microseconds(prediction.analysis.critical.makespan); }

/// Returns the probability that the predicted winner is the faster one.
double sure_of(const Way& serial, const Way& overlapped) {
  const double pays = probability_shorter(from_seconds(overlapped.predicted_us * 1e-6), overlapped.uncertainty,
                                          from_seconds(serial.predicted_us * 1e-6), serial.uncertainty);
  return std::max(pays, 1.0 - pays);
}

/// Returns the implementation that stands for kernels without a description. Throws ConfigError where the catalogue has
/// none.
const Implementation& typical(const KnownImplementations& known) {
  const auto found = std::ranges::find_if(
      known, &Implementation::stands_in, [](const auto& each) -> const auto& { return *each; });
  if (found == known.end()) {
    throw ConfigError(
        "configs/implementations has no typical.yaml, which stands for kernels that nobody described; "
        "install the program again");
  }
  return **found;
}

class PairScorer {
 public:
  PairScorer(const Table& table, Context& context, Tally& tally)
      : context_(context),
        tally_(tally),
        thread_(thread_of(table)),
        known_(load_implementations("all")),
        columns_(overlap_columns(table, context.file_name, known_)),
        machines_(table, context.file_name, context.machines) {
    if (columns_.other_serials > 0) {
      tally.result().remarks.push_back(
          fmt::format("Of several columns of serial times {} counts.", columns_.serial.name));
    }
    for (const auto& one : columns_.implemented) {
      if (one.implementation == nullptr) {
        tally.result().remarks.push_back(
            fmt::format("No implementation is known as {}; it is scored as a typical one.", one.time.name));
      }
    }
  }

  void add(Row& row) {
    const OverlapRow read = overlap_row(row, columns_);
    const std::string_view hw = row.text(columns_.hw);
    if (!tally_.takes(row, true)) {
      return;
    }
    if (!columns_.says_operator) {
      return tally_.skip("neither a column op nor the file's name says ag or rs");
    }
    if (read.reduces_all) {
      return tally_.skip("a GEMM before an all-reduce is no scope of a run");
    }
    const FoundMachine found = machines_.of(hw);
    if (found.machine == nullptr) {
      return tally_.skip(found.why_not);
    }
    try {
      score(row, read, *found.machine);
    } catch (const ConfigError& error) {
      tally_.skip(error.what());
    }
  }

 private:
  struct Overlapped {
    Way way;
    std::string name;
  };

  [[nodiscard]] Overlapped overlapped(const Point& point, std::size_t place, double measured_us) {
    const auto& found = columns_.implemented[place].implementation;
    const Implementation& one = found == nullptr ? typical(known_) : *found;
    if (std::string refusal = refusal_of(one, point.machine, point.ranks, point.dtype); !refusal.empty()) {
      throw ConfigError(refusal);
    }
    const auto unseen = one.without.find(thread_);
    const Point priced = priced_as(point, one, unseen == one.without.end() ? one.costs : unseen->second);
    const Prediction best = context_.predictor.predict_best(priced, *one.strategy,
                                                            schedules_of(one, point.scope, point.ranks, point.dtype));
    return {{measured_us, makespan_us(best), context_.predictor.uncertainty(priced, best)}, one.name};
  }

  void score(const Row& row, const OverlapRow& read, const Machine& machine) {
    if (columns_.is_eager && is_host_bound(read, machine, context_.predictor)) {
      return tally_.skip("eager Python takes longer to issue it than GPUs to do it");
    }
    Point point = point_of(read, machine);
    point.raised = context_.doubts.raised(machine);
    require_possible(point);
    std::vector<Compared> compared;
    const std::string_view serial_part = "serial";
    Way serial;
    if (read.serial_us) {
      const Prediction prediction = context_.predictor.predict(point, serial_strategy, {.dtype = read.dtype});
      serial = {*read.serial_us, makespan_us(prediction), context_.predictor.uncertainty(point, prediction)};
      compared.push_back({serial.measured_us, serial.predicted_us, std::span(&serial_part, 1)});
    }
    std::vector<Overlapped> ways;
    for (const auto& [place, us] : read.implemented) {
      ways.push_back(overlapped(point, place, us));
    }
    std::vector<std::string_view> names;
    for (const Overlapped& one : ways) {
      names.push_back(one.name);
    }
    for (std::size_t i = 0; i < ways.size(); ++i) {
      compared.push_back({ways[i].way.measured_us, ways[i].way.predicted_us, std::span(&names[i], 1)});
    }
    if (!tally_.score(row, machine, true, compared) || !read.serial_us) {
      return;
    }
    for (const Overlapped& one : ways) {
      tally_.compare(one.way.measured_us / serial.measured_us, one.way.predicted_us / serial.predicted_us);
      tally_.result().pairs.push_back({.line = row.line(),
                                       .implementation = one.name,
                                       .measured_us = one.way.measured_us,
                                       .predicted_us = one.way.predicted_us,
                                       .serial_measured_us = serial.measured_us,
                                       .serial_predicted_us = serial.predicted_us,
                                       .sure = sure_of(serial, one.way),
                                       .command = command_of(read, machine, one.name)});
      tally_.pays({.measured = one.way.measured_us / serial.measured_us,
                   .predicted = one.way.predicted_us / serial.predicted_us,
                   .sure = sure_of(serial, one.way)});
      judge(machine, "serial or overlapped", serial, one.way, {read.n, read.k}, tally_);
    }
  }

  Context& context_;
  Tally& tally_;
  std::string thread_;
  KnownImplementations known_;
  OverlapColumns columns_;
  OverlapMachines machines_;
};

}  // namespace

void score_overlap_pairs(const Table& table, Context& context, Tally& tally) {
  PairScorer scorer(table, context, tally);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    scorer.add(row);
  }
}

}  // namespace commfuse::score
