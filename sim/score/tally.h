// SPDX-License-Identifier: Apache-2.0
// Records the outcome of each row of a table: scored, skipped or faulty.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "model/hardware/machine.h"
#include "model/record/score.h"
#include "sim/score/row.h"

namespace commfuse::score {

/// A measured and a predicted time of a row, and the names of the parts in which its error is counted.
struct Compared {
  double measured_us = 0.0;
  double predicted_us = 0.0;
  std::span<const std::string_view> parts = {};
  bool is_factor = false;  ///< Both values are ratios of times, without a unit.
};

class Tally {
 public:
  /// With `held_out_only`, rows that a fit may have seen are skipped.
  Tally(TableScore& into, bool held_out_only) : into_(into), held_out_only_(held_out_only) {}

  /// Returns whether the caller should score the row. Otherwise counts the row: as a fault if it is invalid, or as
  /// skipped if only held-out rows are scored and the row is not held out.
  bool takes(const Row& row, bool held_out);
  void skip(std::string_view reason);
  void fault(const Row& row, std::string_view reason);
  /// Records the times of a row and returns whether they were scored. If a prediction is off by a factor that no model
  /// error explains, the time is probably in another unit, and the row is faulty.
  bool score(const Row& row, const Machine& machine, bool held_out, std::span<const Compared> times);
  bool score(const Row& row, const Machine& machine, bool held_out, std::initializer_list<Compared> times) {
    return score(row, machine, held_out, std::span(times.begin(), times.size()));
  }

  /// Records the time of a variant divided by the time of the first variant of the same work. winner() records whether
  /// the fastest variant was predicted.
  void ratio(double measured, double predicted);
  /// Records the ratio of two times of a row that no fit has seen. The ratio is counted only in the part `name`,
  /// because the table already counts both times.
  void ratio(const Machine& machine, std::string_view name, double measured, double predicted);
  void winner(bool agreed);
  /// A row that shows whether overlap pays: the measured and predicted ratios of overlapped to serial time, and the
  /// probability of the predicted winner.
  struct Pays {
    double measured = 1.0;
    double predicted = 1.0;
    double sure = 0.5;
  };
  void pays(const Pays& pair);
  /// Records the ratio and the winner of two variants.
  void compare(double measured_ratio, double predicted_ratio);

  /// Records a time that no fit has seen, for comparison with its interval.
  void check_interval(const Machine& machine, std::string_view kind, bool fitted, const CheckedTime& time);
  /// Records a row of a table that a fit read. `key` locates the residual of `fit` in the machine's file.
  void calibrate(const Machine& machine, std::string_view key, const FitScope& fit, const FitRow& row);
  /// Records two ways to do the same work, from rows that no fit has seen.
  void judge(const Machine& machine, std::string_view ways, const JudgedPair& pair);
  /// Records the figures of a row that no fit has seen. Returns whether they were scored.
  bool observe(const Row& row, const Machine& machine, std::span<const Observation> figures);

  /// Records whether the prediction agrees with a fact: that a step fits in memory, or that it does not. memory_fact()
  /// also counts the row as scored; also_memory_fact() is for rows whose times are scored.
  void memory_fact(const Machine& machine, bool agrees);
  void also_memory_fact(bool agrees);

  /// Returns the result, so that a scorer can add to it.
  TableScore& result() { return into_; }

 private:
  ScoredPart& part(std::string_view machine, std::string_view name);
  /// Returns the index of a machine among the machines of the table. Adds the machine if it is new.
  std::size_t place_of(const Machine& machine);

  TableScore& into_;
  bool held_out_only_;
};

}  // namespace commfuse::score
