// SPDX-License-Identifier: Apache-2.0
// One row of results: a point and a strategy. One list of columns serves JSON, CSV, tables and documentation.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/analysis/breakdown.h"
#include "model/analysis/tails.h"
#include "model/config/price_settings.h"
#include "model/record/outcome.h"
#include "model/strategies/options.h"
#include "model/units.h"

namespace commfuse {

/// Results change only together with this number.
inline constexpr int model_version = 15;
/// The schema of rows, of layers and of whole models. Rows of "commfuse.result/1" (layers alone) and of
/// "commfuse.step/1" (whole models alone) are read as well.
inline constexpr std::string_view result_schema = "commfuse.result/2";

struct ResultRow : Outcome, PricedAs {
  // What was asked.
  std::string model;
  std::string hardware;
  std::string link_bandwidth = "x1";     ///< As asked: "x2", "450 GB/s".
  std::string network_bandwidth = "x1";  ///< As asked.
  std::optional<double> link_rate{};     ///< Its nominal rate of one direction, bytes a second.
  std::optional<double> network_rate{};  ///< The same between nodes; nothing of one node.
  std::string scope;
  std::int64_t ranks = 0;
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  std::string dtype;
  // Which schedule.
  std::string strategy;    // the bare name; of an implementation its own
  std::string implements;  // of an implementation: the strategy whose schedule it realises; else empty
  std::string parameters;  // in words, for tables: "k=8"; empty when there are none
  bool bound = false;      // a limit, not a schedule that can be had: no winner
  StrategyOptions options;
  OptionSet relevant;  // the options that make a difference to this schedule
  std::string schedule_sha256;
  std::string reason;  // why the point could not be run; empty where it was, and only then what follows means something
  // What came out.
  Analysis analysis;
  Bytes buffers;
  std::optional<Tails> tails{};  // of runs under jitter
  // How sure that is, where somebody asked.
  std::optional<double> makespan_error{};   // one standard error, relative
  std::optional<double> win_probability{};  // of being faster than the fastest other schedule of the point
  std::optional<double> beats_serial{};     // of an implementation: probability of being faster than serial
  std::optional<double> saving_error{};     // of an implementation: one standard error of ln(serial / its time)
  std::string held_back;                    // an implementation: what costs it how much, in words
  std::string warnings;                     // what lies outside what was measured, "; " between
  // How.
  std::string evaluator;
  std::string jitter;
  std::string faults;
  std::uint64_t seed = 0;
  std::string leans_on;  // provenance kinds, weakest first: "prior+fitted"

  [[nodiscard]] bool feasible() const { return reason.empty(); }
};

/// "h100-sxm"; "h100-sxm, links x2", where somebody asked for other links.
std::string machine_in_words(const ResultRow& row);
/// The same of what was asked: "dgx-h100-x2, network x0.5".
std::string machine_in_words(std::string_view hardware, std::string_view link, std::string_view network);

/// Nothing where a column does not apply to a row.
using Value = std::variant<std::monostate, std::string, std::int64_t, double>;

/// Of all values of a column that are there.
enum class ColumnType : std::uint8_t { text, count, number, flag };

/// What a column says of a run.
enum class ColumnRole : std::uint8_t {
  outcome,  ///< What came out, or which schedule it is of.
  setting,  ///< A setting of the same name that tells no points apart: the time without jitter is the same.
  point,    ///< A setting of the same name that tells points apart.
  axis,     ///< The same; one map and one table of a report show all its values.
};

struct ResultColumn {
  std::string_view name;  // unit last: makespan_us
  std::string_view doc;   // one line
  ColumnType type;
  Value (*value)(const ResultRow&);
  /// The way back, of a value that is there; null where other columns say it already.
  void (*put)(ResultRow&, const Value&);
  ColumnRole role = ColumnRole::outcome;
  /// Orders rows by it; null where it tells no points apart.
  std::strong_ordering (*compare)(const ResultRow&, const ResultRow&) = nullptr;
};

/// In the order of every output.
std::span<const ResultColumn> result_columns();

/// Orders rows by all columns that tell points apart, equal where both are of one point.
std::strong_ordering compare_points(const ResultRow& a, const ResultRow& b);
/// Whether the points differ in axes at most.
bool same_but_for_axes(const ResultRow& a, const ResultRow& b);

/// By column.
std::vector<Value> values_of(const ResultRow& row);
void append_values_of(const ResultRow& row, std::vector<Value>& values);
/// The row that these are of, one a column: all that a column says, the schedule's parameters in words, and percentiles
/// without what the runs near the p99 have in common. Requires values of a row; rates may differ in their last bit.
ResultRow row_of(std::span<const Value> values);
/// What no column says, of a row whose columns were put: how long its rank was busy, as row_of() has it.
void complete_times(ResultRow& row);
/// The same of its schedule: the parameters in words, and whether it is a bound.
void complete_schedule(ResultRow& row);

}  // namespace commfuse
