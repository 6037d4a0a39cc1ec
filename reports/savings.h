// SPDX-License-Identifier: Apache-2.0
// Time that overlap saves against serial communication, at one point and over all points of a sweep. Verdicts, maps and
// reports use these numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/analysis/verdict.h"
#include "model/record/result.h"

namespace commfuse::reports {

enum class Pays : std::uint8_t { yes, close, no };

/// A schedule compared with serial at the same point.
struct PayVerdict {
  const ResultRow* overlap = nullptr;
  const ResultRow* serial = nullptr;
  double saved = 0.0;                   ///< Share of serial's time; below 0 the schedule takes longer.
  std::optional<double> probability{};  ///< Probability that the winner is faster; nothing if unknown.
  Pays pays = Pays::close;              ///< By the rule: difference and probability.
};

/// The implementations of a point that overlap: the fastest one, and the recommended one, which is the fastest that
/// clearly beats serial, else the fastest. Both are null without such implementations. `without_overlap` is the fastest
/// implementation if it overlaps nothing, else null. `count` includes implementations that overlap nothing.
struct Implementations {
  const ResultRow* fastest = nullptr;
  const ResultRow* chosen = nullptr;
  std::size_t count = 0;
  const ResultRow* without_overlap = nullptr;
};
/// `ranking` has the rows of a point that can win, fastest first.
Implementations implementations_of(std::span<const ResultRow* const> ranking, const ResultRow& serial,
                                   const VerdictRule& rule);

/// Compares a row with serial. The probability is `beats_serial` of the row. If the row has none, the probability
/// follows from both errors if the faster of row and serial is the fastest of its point; otherwise the difference alone
/// decides.
PayVerdict pay_verdict(const ResultRow& row, const ResultRow& serial, const ResultRow& fastest,
                       const VerdictRule& rule);

/// Returns the verdict on the recommended schedule: an implementation that overlaps if any was run, else the fastest
/// schedule other than serial. Nothing if the ranking lacks that schedule or serial.
std::optional<PayVerdict> pay_verdict(std::span<const ResultRow* const> ranking, const VerdictRule& rule);

/// Savings of many points.
struct SavingCount {
  std::size_t points = 0;
  std::size_t pays = 0;
  std::size_t close = 0;
  std::size_t loses = 0;
  double median = 0.0;  ///< Share of serial's time, like the next three members.
  double low = 0.0;     ///< A tenth of the points save less.
  double high = 0.0;    ///< A tenth of the points save more.
  double best = 0.0;
};

/// Collects the savings of many points.
class SavingTally {
 public:
  void add(double saved, Pays pays);
  /// Sorts the savings. Without points all numbers are 0.
  [[nodiscard]] SavingCount count();

 private:
  std::vector<float> saved_;  // float saves memory for millions of points; a report shows three digits
  SavingCount count_;
};

/// Returns "pays at 18, loses at 2 and is too close to call at 4". Requires at least one point.
std::string counts_in_words(const SavingCount& count);
/// Returns "Over 24 points overlap saves a median of 12.3% of serial's time: it pays at 18 and loses at 6."; `unit`
/// is "points" or "plans". Empty for fewer than two points.
std::string savings_in_words(const SavingCount& count, std::string_view unit = "points",
                             std::string_view baseline = "serial");

}  // namespace commfuse::reports
