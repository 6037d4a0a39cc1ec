// SPDX-License-Identifier: Apache-2.0
// Records row by row the outcome of a table: scored, skipped or faulty.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "model/hardware/machine.h"
#include "model/record/score.h"
#include "sim/score/row.h"

namespace commfuse::score {

/// One time of a row, and the parts in which its error counts.
struct Compared {
  double measured_us = 0.0;
  double predicted_us = 0.0;
  std::span<const std::string_view> parts = {};
};

class Tally {
 public:
  /// With `held_out_only`, rows that a fit may have seen are skipped.
  Tally(TableScore& into, bool held_out_only) : into_(into), held_out_only_(held_out_only) {}

  /// Returns whether the row may be scored: it is valid, and kept back from the fits where only such rows count.
  /// Otherwise the row has been counted.
  bool takes(const Row& row, bool held_back);
  void skip(std::string_view reason);
  void fault(const Row& row, std::string_view reason);
  /// Records the times of one row and returns whether they were scored: a row whose prediction is off by a factor that
  /// no model error explains is in another unit, and faulty.
  bool score(const Row& row, const Machine& machine, bool held_back, std::span<const Compared> times);
  bool score(const Row& row, const Machine& machine, bool held_back, std::initializer_list<Compared> times) {
    return score(row, machine, held_back, std::span(times.begin(), times.size()));
  }

  /// Records the ratio of a variant's time to that of the first variant of the same work; winner() records whether the
  /// fastest was predicted.
  void ratio(double measured, double predicted);
  /// Records the ratio of two times of a row that no fit has seen. It counts only in a part of its own, because the
  /// table counts both times already.
  void ratio(const Machine& machine, std::string_view name, double measured, double predicted);
  void winner(bool agreed);
  /// A row that shows whether overlap pays: the ratios of its time to serial's, and the predicted probability of the
  /// predicted winner.
  struct Pays {
    double measured = 1.0;
    double predicted = 1.0;
    double sure = 0.5;
  };
  void pays(const Pays& pair);
  /// Records both, for two variants.
  void compare(double measured_ratio, double predicted_ratio);

  /// Compares a time that no fit has seen with its interval.
  void check_interval(const Machine& machine, std::string_view kind, bool fitted, const CheckedTime& time);
  /// Records a row of a table that a fit read. `key` names the residual in the machine's file, which is that of `fit`.
  void calibrate(const Machine& machine, std::string_view key, const FitScope& fit, const FitRow& row);
  /// Records two ways to do the same work, of which no fit has seen a row.
  void judge(const Machine& machine, std::string_view ways, const JudgedPair& pair);
  /// Records the figures of one row that no fit has seen. Returns whether they were scored.
  bool observe(const Row& row, const Machine& machine, std::span<const Observation> figures);

  /// Records whether memory was said to be enough for a step where it was, or too little where it was not. The row
  /// counts as scored; also_memory_fact is for rows whose times are.
  void memory_fact(const Machine& machine, bool agrees);
  void also_memory_fact(bool agrees);

  /// Returns the result, so that a scorer can add to it.
  TableScore& result() { return into_; }

 private:
  ScoredPart& part(std::string_view machine, std::string_view name);
  /// Returns the place of a machine among those of the table, and adds it where it is new.
  std::size_t place_of(const Machine& machine);

  TableScore& into_;
  bool held_out_only_;
};

}  // namespace commfuse::score
