// SPDX-License-Identifier: Apache-2.0
#include "model/record/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "model/check.h"
#include "model/describe/joined.h"
#include "model/record/model_version.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"

namespace commfuse {

namespace {

template <class T>
Value maybe(const std::optional<T>& value) {
  return value ? Value{*value} : Value{};
}

using Row = ResultRow;

/// Returns the value, or an empty one in the row of a point that could not be run.
template <class T>
Value result(const Row& row, T value) {
  return row.feasible() ? Value{value} : Value{};
}

Value us(const Row& row, Duration duration) { return result(row, to_microseconds(duration)); }

Value gb_per_second(const std::optional<double>& rate) { return rate ? Value{*rate / 1e9} : Value{}; }

Value unless_empty(const std::string& text) { return text.empty() ? Value{} : Value{text}; }

const Breakdown& critical(const ResultRow& row) { return row.analysis.critical; }

template <Option which>
Value option(const Row& row) {
  if (!row.relevant.has(which)) {
    return {};
  }
  const std::string text = text_of(which, row.options);
  return is_count(which) ? Value{static_cast<std::int64_t>(std::stoll(text))} : Value{text};
}

/// Returns an empty value unless the row has tails.
template <class Get>
Value tail(const Row& row, const Get& get) {
  return row.feasible() && row.tails ? Value{get(*row.tails)} : Value{};
}

template <Estimate Percentiles::*which>
Value estimate(const Row& row) {
  return tail(row, [](const Tails& tails) { return to_microseconds((tails.percentiles.*which).value); });
}

template <Estimate Percentiles::*which, Duration TimeRange::*end>
Value range_end(const Row& row) {
  const bool has_range = row.feasible() && row.tails && (row.tails->percentiles.*which).range;
  return has_range ? Value{to_microseconds(*(row.tails->percentiles.*which).range.*end)} : Value{};
}
template <Estimate Percentiles::*which>
constexpr auto low = range_end<which, &TimeRange::low>;
template <Estimate Percentiles::*which>
constexpr auto high = range_end<which, &TimeRange::high>;

template <Estimate Percentiles::*which>
Value mfu_over(const Row& row) {
  return tail(row, [&](const Tails& tails) {
    const double makespan = to_seconds((tails.percentiles.*which).value);
    return makespan > 0.0 ? row.mfu * to_seconds(critical(row).makespan) / makespan : 0.0;
  });
}

/// Returns an empty value unless the row has the causes of its p99; a row that was read from JSON has none.
template <class Get>
Value cause(const Row& row, const Get& get) {
  return row.tails && row.tails->causes.samples > 0 ? tail(row, [&](const Tails& tails) { return get(tails.causes); })
                                                    : Value{};
}

template <Duration Breakdown::*part>
Value near(const Row& row) {
  return cause(row, [](const P99Causes& causes) { return to_microseconds(causes.mean.*part); });
}

template <PathKind kind>
Value on_path(const Row& row) {
  return cause(row, [](const P99Causes& causes) { return causes.on_path[static_cast<std::size_t>(kind)]; });
}

Value worst_rank(const Row& row) {
  return cause(row, [](const P99Causes& causes) { return std::int64_t{causes.worst_rank()}; });
}

Value worst_rank_share(const Row& row) {
  return cause(row, [](const P99Causes& causes) { return causes.share_of_path(causes.worst_rank()); });
}

// The functions below write a value of a column back to its row.

const std::string& text_in(const Value& value) { return std::get<std::string>(value); }
double number_in(const Value& value) { return std::get<double>(value); }
std::int64_t count_in(const Value& value) { return std::get<std::int64_t>(value); }
/// Restores whole picoseconds exactly up to 2^33 us (2.4 hours); a double in microseconds cannot tell longer times
/// apart to the picosecond.
Duration time_in(const Value& value) {
  const double us = number_in(value);
  const double product = us * 1e6;
  // A double from 2^51 on may be half a picosecond off, which would be rounded up. From 2^52 on all doubles are whole.
  constexpr double first_whole = 4503599627370496.0;
  if (!(std::abs(product) < first_whole)) {
    return Duration{std::llround(product)};
  }
  const double whole = std::floor(product);
  return Duration{std::llround(whole) + std::llround(product - whole + std::fma(us, 1e6, -product))};
}

template <std::string Row::*member>
void put_text(Row& row, const Value& value) {
  row.*member = text_in(value);
}

template <std::optional<double> Row::*member>
void put_share(Row& row, const Value& value) {
  row.*member = number_in(value);
}

template <std::optional<double> Row::*member>
void put_rate(Row& row, const Value& value) {
  row.*member = number_in(value) * 1e9;
}

template <Option which>
void put_option(Row& row, const Value& value) {
  put(which, is_count(which) ? std::to_string(count_in(value)) : text_in(value), row.options);
  row.relevant.add(which);
}

template <Duration Breakdown::*part>
void put_part(Row& row, const Value& value) {
  row.analysis.critical.*part = time_in(value);
}

template <Duration Analysis::*member>
void put_exposed(Row& row, const Value& value) {
  row.analysis.*member = time_in(value);
}

void put_critical_rank(Row& row, const Value& value) {
  row.analysis.critical_rank = static_cast<Rank>(count_in(value));
}
void put_buffers(Row& row, const Value& value) { row.buffers = Bytes{count_in(value)}; }
void put_seed(Row& row, const Value& value) { row.seed = static_cast<std::uint64_t>(count_in(value)); }

Percentiles& percentiles_of(Row& row) {
  if (!row.tails) {
    row.tails.emplace();
  }
  return row.tails->percentiles;
}

void put_samples(Row& row, const Value& value) {
  percentiles_of(row).samples = static_cast<std::size_t>(count_in(value));
}

template <Estimate Percentiles::*which>
void put_estimate(Row& row, const Value& value) {
  (percentiles_of(row).*which).value = time_in(value);
}

template <Estimate Percentiles::*which, Duration TimeRange::*end>
void put_end(Row& row, const Value& value) {
  std::optional<TimeRange>& range = (percentiles_of(row).*which).range;
  if (!range) {
    range.emplace();
  }
  *range.*end = time_in(value);
}
template <Estimate Percentiles::*which>
constexpr auto put_low = put_end<which, &TimeRange::low>;
template <Estimate Percentiles::*which>
constexpr auto put_high = put_end<which, &TimeRange::high>;

template <std::string Row::*member>
Value show(const Row& row) {
  return unless_empty(row.*member);
}
template <std::int64_t Row::*member>
Value show(const Row& row) {
  return row.*member;
}
template <std::string Row::*member>
void put_setting(Row& row, const Value& value) {
  row.*member = text_in(value);
}
template <std::int64_t Row::*member>
void put_setting(Row& row, const Value& value) {
  row.*member = count_in(value);
}

/// Returns the column of a setting that is a string or a count of the row.
template <auto member>
constexpr ResultColumn setting(std::string_view name, std::string_view doc, ColumnRole role = ColumnRole::point) {
  constexpr bool is_text = std::is_same_v<decltype(member), std::string Row::*>;
  return {name,
          doc,
          is_text ? ColumnType::text : ColumnType::count,
          show<member>,
          put_setting<member>,
          role,
          [](const Row& a, const Row& b) -> std::strong_ordering { return a.*member <=> b.*member; }};
}

constexpr std::array columns_before{
    ResultColumn{"schema", "schema of the row", ColumnType::text,
                 [](const Row&) -> Value { return std::string{result_schema}; }, nullptr},
    ResultColumn{"model_version", "version of the model behind the numbers", ColumnType::count,
                 [](const Row&) -> Value { return std::int64_t{model_version}; }, nullptr},
    setting<&Row::model>("model", "transformer"),
    setting<&Row::hardware>("hardware", "machine"),
    setting<&Row::link_bandwidth>("link_bandwidth", "links inside a node, as set"),
    setting<&Row::network_bandwidth>("network_bandwidth", "links between nodes, as set"),
    setting<&Row::all_reduce_kernel>("all_reduce_kernel", "kernels that sum in a node"),
    ResultColumn{"link_rate_gb_s", "nominal rate of a link inside a node, one direction", ColumnType::number,
                 [](const Row& row) -> Value { return gb_per_second(row.link_rate); }, put_rate<&Row::link_rate>},
    ResultColumn{"network_rate_gb_s", "nominal rate of one GPU between nodes", ColumnType::number,
                 [](const Row& row) -> Value { return gb_per_second(row.network_rate); }, put_rate<&Row::network_rate>},
    setting<&Row::scope>("scope", "simulated part: one site, or a chain such as the MLP"),
    setting<&Row::ranks>("ranks", "tensor-parallel ranks", ColumnRole::axis),
    setting<&Row::batch>("batch", "sequences"),
    setting<&Row::seq>("seq", "tokens of a sequence", ColumnRole::axis),
    setting<&Row::dtype>("dtype", "element type of tensors and of the wire"),
    ResultColumn{"strategy", "family of schedules, or the name of an implementation", ColumnType::text,
                 [](const Row& row) -> Value { return row.strategy; }, put_text<&Row::strategy>},
    ResultColumn{"implements", "implementations: the strategy whose schedule it realizes", ColumnType::text,
                 show<&Row::implements>, put_text<&Row::implements>},
    ResultColumn{"bound", "yes: a bound, which never wins because no kernels reach it", ColumnType::text,
                 [](const Row& row) -> Value { return row.bound ? Value{std::string{"yes"}} : Value{}; },
                 [](Row& row, const Value& value) { row.bound = text_in(value) == "yes"; }},
};

constexpr std::array columns_after{
    ResultColumn{"status", "ok, or infeasible: no numbers follow", ColumnType::text,
                 [](const Row& row) -> Value { return std::string{row.feasible() ? "ok" : "infeasible"}; }, nullptr},
    ResultColumn{"reason", "why the point is infeasible", ColumnType::text,
                 [](const Row& row) -> Value { return unless_empty(row.reason); }, put_text<&Row::reason>},
    ResultColumn{"makespan_us", "last end of an op on any rank", ColumnType::number,
                 [](const Row& row) -> Value { return us(row, critical(row).makespan); },
                 put_part<&Breakdown::makespan>},
    ResultColumn{"makespan_error", "one standard error of the makespan, as a share", ColumnType::number,
                 [](const Row& row) -> Value { return row.feasible() ? maybe(row.makespan_error) : Value{}; },
                 put_share<&Row::makespan_error>},
    ResultColumn{"win_probability", "probability of being faster than the point's fastest other schedule",
                 ColumnType::number,
                 [](const Row& row) -> Value { return row.feasible() ? maybe(row.win_probability) : Value{}; },
                 put_share<&Row::win_probability>},
    ResultColumn{"compute_us", "essential compute, unsliced", ColumnType::number,
                 [](const Row& row) -> Value { return us(row, critical(row).compute); }, put_part<&Breakdown::compute>},
    ResultColumn{"slicing_us", "cost of cutting the compute", ColumnType::number,
                 [](const Row& row) -> Value { return us(row, critical(row).slicing); }, put_part<&Breakdown::slicing>},
    ResultColumn{"stretch_us", "essential compute slowed by interference and jitter", ColumnType::number,
                 [](const Row& row) -> Value { return us(row, critical(row).stretch); }, put_part<&Breakdown::stretch>},
    ResultColumn{"local_us", "strategy-made adds, packs and copies outside essential compute", ColumnType::number,
                 [](const Row& row) -> Value { return us(row, critical(row).local); }, put_part<&Breakdown::local>},
    ResultColumn{"exposed_us", "head + bubble + tail - local", ColumnType::number,
                 [](const Row& row) -> Value { return us(row, critical(row).exposed); }, put_part<&Breakdown::exposed>},
    ResultColumn{"head_us", "before the first essential op", ColumnType::number,
                 [](const Row& row) -> Value { return us(row, critical(row).head); }, put_part<&Breakdown::head>},
    ResultColumn{"bubble_us", "gaps between essential ops", ColumnType::number,
                 [](const Row& row) -> Value { return us(row, critical(row).bubble); }, put_part<&Breakdown::bubble>},
    ResultColumn{"tail_us", "after the last essential op", ColumnType::number,
                 [](const Row& row) -> Value { return us(row, critical(row).tail); }, put_part<&Breakdown::tail>},
    ResultColumn{"critical_rank", "rank whose last op finishes last; the times above are its own", ColumnType::count,
                 [](const Row& row) -> Value { return result(row, std::int64_t{row.analysis.critical_rank}); },
                 put_critical_rank},
    ResultColumn{"mean_exposed_us", "exposed time, mean over ranks", ColumnType::number,
                 [](const Row& row) -> Value { return us(row, row.analysis.mean_exposed); },
                 put_exposed<&Analysis::mean_exposed>},
    ResultColumn{"max_exposed_us", "exposed time, maximum over ranks", ColumnType::number,
                 [](const Row& row) -> Value { return us(row, row.analysis.max_exposed); },
                 put_exposed<&Analysis::max_exposed>},
    ResultColumn{"comm_cost_us", "makespan minus the makespan with free communication", ColumnType::number,
                 [](const Row& row) -> Value { return us(row, critical(row).makespan - row.ideal); }, nullptr},
};

/// Columns of percentiles, memory and the evaluator.
constexpr std::array columns_of_tails{
    ResultColumn{"samples", "runs under jitter, described by the columns up to p99_9_high_us", ColumnType::count,
                 [](const Row& row) -> Value {
                   return row.tails ? Value{static_cast<std::int64_t>(row.tails->percentiles.samples)} : Value{};
                 },
                 put_samples, ColumnRole::setting},
    ResultColumn{"mean_us", "mean makespan", ColumnType::number, estimate<&Percentiles::mean>,
                 put_estimate<&Percentiles::mean>},
    ResultColumn{"mean_low_us", "lower end of its 95% confidence interval", ColumnType::number, low<&Percentiles::mean>,
                 put_low<&Percentiles::mean>},
    ResultColumn{"mean_high_us", "upper end of that interval", ColumnType::number, high<&Percentiles::mean>,
                 put_high<&Percentiles::mean>},
    ResultColumn{"p50_us", "median makespan", ColumnType::number, estimate<&Percentiles::p50>,
                 put_estimate<&Percentiles::p50>},
    ResultColumn{"p50_low_us", "lower end of its 95% confidence interval", ColumnType::number, low<&Percentiles::p50>,
                 put_low<&Percentiles::p50>},
    ResultColumn{"p50_high_us", "upper end of that interval", ColumnType::number, high<&Percentiles::p50>,
                 put_high<&Percentiles::p50>},
    ResultColumn{"p95_us", "percentile 95 of the makespan", ColumnType::number, estimate<&Percentiles::p95>,
                 put_estimate<&Percentiles::p95>},
    ResultColumn{"p95_low_us", "lower end of its 95% confidence interval", ColumnType::number, low<&Percentiles::p95>,
                 put_low<&Percentiles::p95>},
    ResultColumn{"p95_high_us", "upper end of that interval", ColumnType::number, high<&Percentiles::p95>,
                 put_high<&Percentiles::p95>},
    ResultColumn{"p99_us", "percentile 99 of the makespan", ColumnType::number, estimate<&Percentiles::p99>,
                 put_estimate<&Percentiles::p99>},
    ResultColumn{"p99_low_us", "lower end of its 95% confidence interval", ColumnType::number, low<&Percentiles::p99>,
                 put_low<&Percentiles::p99>},
    ResultColumn{"p99_high_us", "upper end of that interval", ColumnType::number, high<&Percentiles::p99>,
                 put_high<&Percentiles::p99>},
    ResultColumn{"p99_9_us", "percentile 99.9 of the makespan", ColumnType::number, estimate<&Percentiles::p99_9>,
                 put_estimate<&Percentiles::p99_9>},
    ResultColumn{"p99_9_low_us", "lower end of its 95% confidence interval", ColumnType::number,
                 low<&Percentiles::p99_9>, put_low<&Percentiles::p99_9>},
    ResultColumn{"p99_9_high_us", "upper end of that interval", ColumnType::number, high<&Percentiles::p99_9>,
                 put_high<&Percentiles::p99_9>},
    ResultColumn{"mfu_mean", "MFU over the mean makespan", ColumnType::number, mfu_over<&Percentiles::mean>, nullptr},
    ResultColumn{"mfu_p99", "MFU over the p99 makespan", ColumnType::number, mfu_over<&Percentiles::p99>, nullptr},
    ResultColumn{"p99_exposed_us", "exposed time, mean of the samples near the p99", ColumnType::number,
                 near<&Breakdown::exposed>, nullptr},
    ResultColumn{"p99_stretch_us", "stretch, mean of the samples near the p99", ColumnType::number,
                 near<&Breakdown::stretch>, nullptr},
    ResultColumn{"p99_path_communication", "share of those samples with communication on the critical path",
                 ColumnType::number, on_path<PathKind::communication>, nullptr},
    ResultColumn{"p99_path_local", "share of those samples with adds, packs or copies on the critical path",
                 ColumnType::number, on_path<PathKind::local>, nullptr},
    ResultColumn{"p99_path_issue", "share of those samples with host issue on the critical path", ColumnType::number,
                 on_path<PathKind::issue>, nullptr},
    ResultColumn{"p99_worst_rank", "rank with the largest part of the critical path in those samples",
                 ColumnType::count, worst_rank, nullptr},
    ResultColumn{"p99_worst_rank_share", "share of the path on that rank", ColumnType::number, worst_rank_share,
                 nullptr},
    ResultColumn{"buffer_bytes", "memory of all buffers of one rank", ColumnType::count,
                 [](const Row& row) -> Value { return result(row, row.buffers.count); }, put_buffers},
    ResultColumn{"evaluator", "evaluator used for the schedule", ColumnType::text,
                 [](const Row& row) -> Value { return unless_empty(row.evaluator); }, put_text<&Row::evaluator>},
};

/// Columns of the random draws, after the settings that rows repeat.
constexpr std::array columns_of_draws{
    ResultColumn{
        "seed", "seed of the draws, if there are samples", ColumnType::count,
        [](const Row& row) -> Value { return row.tails ? Value{static_cast<std::int64_t>(row.seed)} : Value{}; },
        put_seed, ColumnRole::setting},
};

/// Columns of the origin of a result.
constexpr std::array columns_of_origin{
    ResultColumn{"leans_on", "kinds of parameters behind the numbers, weakest first", ColumnType::text,
                 [](const Row& row) -> Value { return unless_empty(row.provenances); }, put_text<&Row::provenances>},
    ResultColumn{
        "beats_serial",
        "probability of being faster than serial; for a framework's implementations, than the framework's own step",
        ColumnType::number, [](const Row& row) -> Value { return row.feasible() ? maybe(row.beats_serial) : Value{}; },
        put_share<&Row::beats_serial>},
    ResultColumn{"saving_error", "implementations: one standard error of ln(time of serial / its time)",
                 ColumnType::number,
                 [](const Row& row) -> Value { return row.feasible() ? maybe(row.saving_error) : Value{}; },
                 put_share<&Row::saving_error>},
    ResultColumn{"held_back", "implementations: time lost relative to the same schedule with ideal kernels",
                 ColumnType::text, show<&Row::held_back>, put_text<&Row::held_back>},
    ResultColumn{"unmeasured_on", "implementations: GPU on which nobody measured it; the last warning says so",
                 ColumnType::text, show<&Row::unmeasured_on>, put_text<&Row::unmeasured_on>},
    ResultColumn{"warnings", "insufficient memory; sizes outside the range of a fit", ColumnType::text,
                 [](const Row& row) -> Value { return unless_empty(row.warnings); }, put_text<&Row::warnings>},
    ResultColumn{"schedule_sha256", "digest of the schedule's canonical text", ColumnType::text,
                 [](const Row& row) -> Value { return unless_empty(row.schedule_sha256); },
                 put_text<&Row::schedule_sha256>},
};

constexpr auto option_values = by_option<Value (*)(const Row&)>([]<Option which>() { return option<which>; });
constexpr auto option_puts = by_option<void (*)(Row&, const Value&)>([]<Option which>() { return put_option<which>; });

ResultColumn option_column(Option which) {
  const auto index = static_cast<std::size_t>(which);
  return {name_of(which), entry_of(which).column, is_count(which) ? ColumnType::count : ColumnType::text,
          option_values[index], option_puts[index]};
}

/// Conversion between an outcome's member of type `Member` and a value of results.
template <typename Member>
struct OutcomeConversion {
  static constexpr ColumnType type = std::is_same_v<Member, std::int64_t> ? ColumnType::count : ColumnType::number;

  static Value show(const Member& value) {
    if constexpr (std::is_same_v<Member, Duration>) {
      return to_microseconds(value);
    } else if constexpr (std::is_same_v<Member, std::optional<double>>) {
      return maybe(value);
    } else {
      return value;
    }
  }

  static Member read(const Value& value) {
    if constexpr (std::is_same_v<Member, Duration>) {
      return time_in(value);
    } else if constexpr (std::is_same_v<Member, std::int64_t>) {
      return count_in(value);
    } else {
      return number_in(value);
    }
  }
};

/// Returns the column of outcome_columns[index].
template <std::size_t index>
constexpr ResultColumn outcome_column() {
  constexpr const OutcomeColumn& entry = outcome_columns[index];
  constexpr auto member = std::get<entry.member.index()>(entry.member);
  using Conversion = OutcomeConversion<std::remove_cvref_t<decltype(std::declval<Row&>().*member)>>;
  return {entry.name, entry.doc, Conversion::type,
          [](const Row& row) -> Value { return row.feasible() ? Conversion::show(row.*member) : Value{}; },
          [](Row& row, const Value& value) { row.*member = Conversion::read(value); }};
}

/// Returns the column of price_settings[index].
template <std::size_t index>
constexpr ResultColumn price_column() {
  constexpr auto member = price_settings[index].member;
  return {price_settings[index].key,
          price_settings[index].column,
          ColumnType::text,
          [](const Row& row) -> Value { return unless_empty(row.*member); },
          [](Row& row, const Value& value) { row.*member = text_in(value); },
          ColumnRole::point,
          [](const Row& a, const Row& b) -> std::strong_ordering { return a.*member <=> b.*member; }};
}

/// Returns the column of repeated_settings[index].
template <std::size_t index>
constexpr ResultColumn repeated_column() {
  constexpr const RepeatedSetting& entry = repeated_settings[index];
  return setting<entry.member>(entry.name, entry.doc, entry.role);
}

/// Columns of percentiles, settings, draws and origin. The first of price_settings comes before the repeated settings,
/// as in every version.
constexpr auto columns_of_making = concatenated(
    joined<1>(
        columns_of_tails, []<std::size_t index>() { return price_column<index>(); }, std::array<ResultColumn, 0>{}),
    joined<repeated_settings.size()>(
        std::array<ResultColumn, 0>{}, []<std::size_t index>() { return repeated_column<index>(); }, columns_of_draws),
    joined<price_settings.size() - 1>(
        std::array<ResultColumn, 0>{}, []<std::size_t index>() { return price_column<index + 1>(); },
        columns_of_origin));

constexpr auto columns_after_options = joined<outcome_columns.size()>(
    columns_after, []<std::size_t index>() { return outcome_column<index>(); }, columns_of_making);

}  // namespace

std::string machine_in_words(std::string_view hardware, std::string_view link, std::string_view network) {
  std::string text{hardware};
  for (const auto& [name, bandwidth] : {std::pair("links", link), std::pair("network", network)}) {
    text += bandwidth == "x1" ? "" : fmt::format(", {} {}", name, bandwidth);
  }
  return text;
}

std::string machine_in_words(const ResultRow& row) {
  return machine_in_words(row.hardware, row.link_bandwidth, row.network_bandwidth);
}

std::span<const ResultColumn> result_columns() {
  static const std::vector<ResultColumn> columns = with_options(columns_before, option_column, columns_after_options);
  return columns;
}

namespace {

template <ColumnRole role>
std::vector<const ResultColumn*> columns_of() {
  std::vector<const ResultColumn*> matches;
  for (const ResultColumn& column : result_columns()) {
    if (column.role == role) {
      matches.push_back(&column);
    }
  }
  return matches;
}

template <ColumnRole role>
std::strong_ordering compare_by(const ResultRow& a, const ResultRow& b) {
  static const std::vector<const ResultColumn*> columns = columns_of<role>();
  for (const ResultColumn* column : columns) {
    if (const std::strong_ordering order = column->compare(a, b); order != 0) {
      return order;
    }
  }
  return std::strong_ordering::equal;
}

}  // namespace

std::strong_ordering compare_points(const ResultRow& a, const ResultRow& b) {
  const std::strong_ordering order = compare_by<ColumnRole::point>(a, b);
  return order != 0 ? order : compare_by<ColumnRole::axis>(a, b);
}

bool same_but_for_axes(const ResultRow& a, const ResultRow& b) { return compare_by<ColumnRole::point>(a, b) == 0; }

void append_values_of(const ResultRow& row, std::vector<Value>& values) {
  for (const ResultColumn& column : result_columns()) {
    values.push_back(column.value(row));
  }
}

std::vector<Value> values_of(const ResultRow& row) {
  std::vector<Value> values;
  values.reserve(result_columns().size());
  append_values_of(row, values);
  return values;
}

ResultRow row_of(std::span<const Value> values) {
  const std::span<const ResultColumn> columns = result_columns();
  check(values.size() == columns.size(), "a row has a value for every column");
  ResultRow row;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].put != nullptr && !std::holds_alternative<std::monostate>(values[i])) {
      columns[i].put(row, values[i]);
    }
  }
  complete_times(row);
  complete_schedule(row);
  return row;
}

void complete_times(ResultRow& row) {
  Breakdown& critical = row.analysis.critical;
  critical.busy = critical.makespan - critical.exposed - critical.local;
}

void complete_schedule(ResultRow& row) {
  const Strategy* strategy = find_strategy(row.implements.empty() ? row.strategy : row.implements);
  const std::optional<Scope> scope = scope_named(row.scope);
  if (row.feasible() && strategy != nullptr && scope) {
    row.options.dtype = *dtype_named(row.dtype);
    row.parameters = row.implements.empty() ? parameters_of(*strategy, kinds_of(*scope), row.options) : std::string{};
    row.bound = row.bound || (row.implements.empty() && strategy->bound);
  }
}

}  // namespace commfuse
