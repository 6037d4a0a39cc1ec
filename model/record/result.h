// SPDX-License-Identifier: Apache-2.0
// One row of results: a point and a strategy. One list of columns serves JSON, CSV, tables and documentation.
#pragma once

#include <array>
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
#include "model/cost/price_settings.h"
#include "model/record/outcome.h"
#include "model/strategies/options.h"
#include "model/units.h"

namespace commfuse {

/// Schema of rows, of layers and of whole models. Rows of "commfuse.result/1" (layers only) and of "commfuse.step/1"
/// (whole models only) can be read as well.
inline constexpr std::string_view result_schema = "commfuse.result/2";

struct ResultRow : Outcome, PricedAs {
  // The point:
  std::string model;
  std::string hardware;
  std::string link_bandwidth = "x1";       ///< the user's text: "x2", "450 GB/s"
  std::string network_bandwidth = "x1";    ///< the user's text
  std::string all_reduce_kernel = "nccl";  ///< library whose kernels sum inside a node
  std::optional<double> link_rate{};       ///< nominal rate of the link in one direction, bytes per second
  std::optional<double> network_rate{};    ///< nominal rate between nodes; nullopt for one node
  std::string scope;
  std::int64_t ranks = 0;
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  std::string dtype;
  // The schedule:
  std::string strategy;    // name without parameters; for an implementation, its name
  std::string implements;  // for an implementation: the strategy whose schedule it realizes; else empty
  std::string parameters;  // in words, for tables: "k=8"; empty when there are none
  bool bound = false;      // a limit, not an available schedule, so it cannot win
  StrategyOptions options;
  OptionSet relevant;  // options that make a difference to this schedule
  std::string schedule_sha256;
  std::string reason;  // reason why the point could not be run; the members below have a meaning only if it is empty
  // Results:
  Analysis analysis;
  Bytes buffers;
  std::optional<Tails> tails{};  // percentiles of runs under jitter
  // Uncertainty, if it was requested:
  std::optional<double> makespan_error{};   // one standard error, relative
  std::optional<double> win_probability{};  // probability of being faster than the fastest other schedule of the point
  std::optional<double> beats_serial{};     // probability of being faster than serial; none for bounds
  std::optional<double> saving_error{};     // for an implementation: one standard error of ln(serial / its time)
  std::string held_back;                    // for an implementation: its largest costs, in words
  std::string unmeasured_on;                // for an implementation: GPU on which nobody measured it; else empty
  std::string warnings;                     // inputs outside the measured range, separated by "; "
  // Origin:
  std::string evaluator;
  std::string jitter;
  std::string faults;
  std::uint64_t seed = 0;
  std::string provenances;  // column leans_on: kinds of provenance, weakest first, "prior+fitted"

  [[nodiscard]] bool feasible() const { return reason.empty(); }
};

/// Returns "h100-sxm", or "h100-sxm, links x2" if the user changed the links.
std::string machine_in_words(const ResultRow& row);
/// Returns the machine in words from the settings: "dgx-h100-x2, network x0.5".
std::string machine_in_words(std::string_view hardware, std::string_view link, std::string_view network);

/// Value of a column; empty if the column does not apply to the row.
using Value = std::variant<std::monostate, std::string, std::int64_t, double>;

/// Type of all values of a column that are present.
enum class ColumnType : std::uint8_t { text, count, number, flag };

/// Meaning of a column for a run.
enum class ColumnRole : std::uint8_t {
  outcome,  ///< a result, or the schedule that the row belongs to
  setting,  ///< a setting of the same name that does not distinguish points: the time without jitter is the same
  point,    ///< a setting of the same name that distinguishes points
  axis,     ///< a setting that distinguishes points; a map or a table of a report shows all its values
};

/// A setting that rows repeat as text under its own key. A member of ResultRow and an entry in repeated_settings make a
/// column of results and of RowTable; sim/point/point_runner.cpp fills the member.
struct RepeatedSetting {
  std::string_view name;  ///< key of the setting
  std::string_view doc;   ///< description of the column, one line
  ColumnRole role;        ///< not `outcome`
  std::string ResultRow::*member;
};

/// Lists repeated settings in the order of every output. Settings with a separate place among the columns are in
/// result.cpp; settings that change the price of an op are in price_settings.
inline constexpr std::array repeated_settings{
    RepeatedSetting{"jitter", "jitter of op times", ColumnRole::setting, &ResultRow::jitter},
    RepeatedSetting{"faults", "injected faults", ColumnRole::point, &ResultRow::faults},
};

struct ResultColumn {
  std::string_view name;  // ends with the unit: makespan_us
  std::string_view doc;   // description, one line
  ColumnType type;
  Value (*value)(const ResultRow&);
  /// Writes a value that is present back to the row; null if other columns contain it.
  void (*put)(ResultRow&, const Value&);
  ColumnRole role = ColumnRole::outcome;
  /// Orders rows by the column; null if it distinguishes neither points nor runs of one point.
  std::strong_ordering (*compare)(const ResultRow&, const ResultRow&) = nullptr;
};

/// Returns the columns in the order of every output.
std::span<const ResultColumn> result_columns();

/// Orders rows by all columns that distinguish points; rows of one point are equal.
std::strong_ordering compare_points(const ResultRow& a, const ResultRow& b);
/// Returns true if the points differ at most in axes.
bool same_but_for_axes(const ResultRow& a, const ResultRow& b);

/// Returns the values by column.
std::vector<Value> values_of(const ResultRow& row);
void append_values_of(const ResultRow& row, std::vector<Value>& values);
/// Returns the row with these values, one per column. The row contains all that the columns contain, the schedule's
/// parameters in words, and percentiles without the causes of the p99. Requires `values` to come from a row; rates may
/// differ from those of that row in the last bit.
ResultRow row_of(std::span<const Value> values);
/// Fills in the times that no column contains, for a row whose columns were written: the busy time of the critical
/// rank, as in row_of().
void complete_times(ResultRow& row);
/// Fills in the schedule's parameters in words, which are empty for an implementation, and whether it is a bound. Does
/// nothing for a row that could not be run.
void complete_schedule(ResultRow& row);

}  // namespace commfuse
