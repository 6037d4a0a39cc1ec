// SPDX-License-Identifier: Apache-2.0
// The rows of one point in a table for people: who they are and in what unit they are told.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/record/result.h"

namespace commfuse::reports {

using Rows = std::span<const ResultRow>;

/// Runs of rows of one point: model, hardware and its links, scope, ranks, batch, seq, dtype.
std::vector<Rows> rows_by_point(Rows rows);

/// "sliced (k=4)"
std::string label(const ResultRow& row);
/// The strategy alone where that tells it from the other rows, else with its parameters.
std::string short_label(const ResultRow& row, Rows rows);

/// " (91% sure)" behind who wins; empty where nobody asked how sure.
std::string sure_in_words(const ResultRow& winner);

/// What was asked of a point beside what headings always say, where it is not what is usual: "faults slow-rank".
std::vector<std::string> unusual(const ResultRow& row);

/// "One standard error of a time: 4.1 to 6.3%." over the rows that say so; empty where none does.
std::string errors_in_words(Rows rows);

/// Every warning of the rows once, in their order.
std::vector<std::string> warnings_of(Rows rows);

/// Microseconds below 10 ms, milliseconds from there on, so that a block of one point reads in one unit.
struct Unit {
  explicit Unit(Rows rows);
  [[nodiscard]] std::string text(Duration duration) const;
  [[nodiscard]] const char* name() const { return in_milliseconds ? "ms" : "us"; }
  bool in_milliseconds = false;
};

}  // namespace commfuse::reports
