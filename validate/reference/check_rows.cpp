// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/check_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/columns.h"
#include "model/describe/joined.h"
#include "model/program/work.h"
#include "model/strategies/scope.h"
#include "model/text/counted.h"
#include "model/wrapped.h"

namespace commfuse::validate {

namespace {

using Json = nlohmann::ordered_json;

struct Column {
  std::string_view name;
  Json (*value)(const CheckResult&);
};

std::string_view operation_of(const CheckResult& result) {
  return result.point.file ? "file" : result.point.operation->name;
}
std::string_view strategy_of(const CheckResult& result) {
  return result.point.file ? result.point.file->program.name : result.point.strategy->name;
}
/// Returns a dtype such as "bf16"; for a file, the dtypes of its GEMMs, which may be several.
std::string dtype_of(const CheckResult& result) {
  if (!result.point.file) {
    return std::string{name_of(result.point.options.dtype)};
  }
  std::string text;
  for (const DType dtype : product_dtypes(result.point.file->program)) {
    text += fmt::format("{}{}", text.empty() ? "" : "+", name_of(dtype));
  }
  return text;
}

bool was_run(const CheckResult& result) { return result.findings.empty(); }

/// Returns null if the program was not proved, and therefore not run.
template <class Number>
Json if_run(const CheckResult& result, Number value) {
  return was_run(result) ? Json(value) : Json();
}

/// Returns null if the program was not run, or if the level was not requested.
template <std::optional<Tally> Verdict::*level, std::int64_t Tally::*number>
Json value_of_level(const CheckResult& result) {
  const std::optional<Tally>& tally = result.verdict.*level;
  return tally ? if_run(result, (*tally).*number) : Json();
}

template <Option which>
Json option(const CheckResult& result) {
  if (result.point.file) {
    return {};
  }
  const std::vector<SiteKind> kinds = kinds_of(result.point.operation->operation);
  if (!relevant_options(*result.point.strategy, kinds, result.point.options).has(which)) {
    return {};
  }
  const std::string text = text_of(which, result.point.options);
  return is_count(which) ? Json(std::stoll(text)) : Json(text);
}

constexpr std::array columns_before{
    Column{"schema", [](const CheckResult&) { return Json("commfuse.check/1"); }},
    Column{"operation", [](const CheckResult& r) { return Json(operation_of(r)); }},
    Column{"ranks", [](const CheckResult& r) { return Json(r.point.ranks); }},
    Column{"dtype", [](const CheckResult& r) { return Json(dtype_of(r)); }},
    Column{"seed", [](const CheckResult& r) { return Json(r.point.seed); }},
    Column{"strategy", [](const CheckResult& r) { return Json(strategy_of(r)); }},
    Column{"file", [](const CheckResult& r) { return r.point.file ? Json(r.point.file->name()) : Json(); }},
};

constexpr std::array columns_after{
    Column{"ops", [](const CheckResult& r) { return Json(r.ops); }},
    Column{"ok", [](const CheckResult& r) { return Json(r.ok()); }},
    Column{"proved", [](const CheckResult& r) { return Json(r.findings.empty()); }},
    Column{"finding", [](const CheckResult& r) { return r.findings.empty() ? Json() : Json(r.findings.front()); }},
    Column{"integer_elements", [](const CheckResult& r) { return if_run(r, r.verdict.integers.elements); }},
    Column{"integer_wrong", [](const CheckResult& r) { return if_run(r, r.verdict.integers.wrong); }},
    Column{"bitwise_elements", value_of_level<&Verdict::bitwise, &Tally::elements>},
    Column{"bitwise_wrong", value_of_level<&Verdict::bitwise, &Tally::wrong>},
    Column{"bound_elements", [](const CheckResult& r) { return if_run(r, r.verdict.bound.elements); }},
    Column{"bound_wrong", [](const CheckResult& r) { return if_run(r, r.verdict.bound.wrong); }},
    Column{"bound_worst", [](const CheckResult& r) { return if_run(r, r.verdict.bound.worst); }},
    Column{"executor", [](const CheckResult& r) { return Json(r.executor); }},
    Column{"moved_elements", value_of_level<&Verdict::moved, &Tally::elements>},
    Column{"moved_wrong", value_of_level<&Verdict::moved, &Tally::wrong>},
    Column{"same_order_elements", value_of_level<&Verdict::same_order, &Tally::elements>},
    Column{"same_order_wrong", value_of_level<&Verdict::same_order, &Tally::wrong>},
};

constexpr auto option_values = by_option<Json (*)(const CheckResult&)>([]<Option which>() { return option<which>; });

const std::vector<Column>& columns() {
  static const std::vector<Column> table = with_options(
      columns_before,
      [](Option which) {
        return Column{name_of(which), option_values[static_cast<std::size_t>(which)]};
      },
      columns_after);
  return table;
}

std::string csv_cell(const Json& value) {
  if (!value.is_string()) {
    std::string text = value.dump();  // also "null" for infinity
    return text == "null" ? "" : text;
  }
  auto text = value.get<std::string>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string cell = "\"";
  for (const char c : text) {
    cell += c == '"' ? "\"\"" : std::string(1, c);
  }
  return cell + "\"";
}

std::string schedule_of(const CheckResult& result) {
  return result.parameters.empty() ? std::string{strategy_of(result)}
                                   : fmt::format("{} ({})", strategy_of(result), result.parameters);
}

/// Returns "-" if the schedule was not run or the level was not requested.
std::string level(const CheckResult& result, const std::optional<Tally>& tally, const std::string& ok_text = "ok") {
  if (!was_run(result) || !tally) {
    return "-";
  }
  return tally->ok() ? ok_text : fmt::format("{} wrong", tally->wrong);
}

bool is_from_executor(std::span<const CheckResult> results) {
  return !results.empty() && results.front().executor != CheckResult{}.executor;
}

std::string summary(std::span<const CheckResult> results) {
  std::int64_t failed = 0;
  Verdict combined;
  for (const CheckResult& result : results) {
    failed += result.ok() ? 0 : 1;
    combined += result.verdict;
  }
  if (failed > 0) {
    return fmt::format("{} of {} schedules failed\n", failed, results.size());
  }
  const std::string schedules = counted(results.size(), "schedule");
  if (is_from_executor(results)) {
    return wrapped(
        fmt::format("{} correct on {}: {} elements equal to the interpreter's, {} moved unchanged, {} in bound",
                    schedules, results.front().executor, combined.same_order.value_or(Tally{}).elements,
                    combined.moved.value_or(Tally{}).elements, combined.bound.elements),
        "", "  ");
  }
  return wrapped(
      fmt::format("{} correct: {} integers exact, {} bitwise, {} in bound", schedules, combined.integers.elements,
                  combined.bitwise.value_or(Tally{}).elements, combined.bound.elements),
      "", "  ");
}

/// The columns with the outcome of a schedule.
struct Verdicts {
  std::string_view head;
  std::string (*row)(const CheckResult&);
  std::size_t width;  // Total width of the columns operation and schedule.
};

std::string row_of_reference(const CheckResult& result) {
  const Verdict& verdict = result.verdict;
  return fmt::format("  {:<5}  {:<8}  {:<8}  {}\n", was_run(result) ? "ok" : "no", level(result, verdict.integers),
                     level(result, verdict.bitwise),
                     level(result, verdict.bound, fmt::format("{:.2f}", verdict.bound.worst)));
}

/// Columns have the names of the levels; only JSON and CSV have the number of wrong elements.
std::string row_of_executor(const CheckResult& result) {
  const Verdict& verdict = result.verdict;
  const auto cell = [&](const std::optional<Tally>& tally, const std::string& ok_text = "ok") {
    return !was_run(result) || !tally ? "-" : tally->ok() ? ok_text : "wrong";
  };
  return fmt::format("  {:<5}  {:<5}  {:<5}  {:<5}  {:<5}  {}\n", was_run(result) ? "ok" : "no", cell(verdict.moved),
                     cell(verdict.same_order), cell(verdict.integers), cell(verdict.bitwise),
                     cell(verdict.bound, fmt::format("{:.2f}", verdict.bound.worst)));
}

constexpr Verdicts reference_columns{"  proof  integers  bitwise   bound\n", row_of_reference, 34};
constexpr Verdicts executor_columns{"  proof  T0     T1     T-int  T2     T3\n", row_of_executor, 29};

}  // namespace

std::string to_table(std::span<const CheckResult> results) {
  constexpr auto line_format = "{:<{}}  {:>5}  {:<{}}";
  const Verdicts& verdicts = is_from_executor(results) ? executor_columns : reference_columns;
  std::size_t name = 10;
  for (const CheckResult& result : results) {
    name = std::max(name, operation_of(result).size());
  }
  const std::size_t width =
      name + 10 < verdicts.width ? verdicts.width - name : 10;  // a longer schedule gets its own line
  std::string text =
      fmt::format(line_format, "operation", name, "ranks", "schedule", width) + std::string(verdicts.head);
  for (const CheckResult& result : results) {
    const std::string schedule = cut(schedule_of(result), 71 - name);
    text += fmt::format(line_format, operation_of(result), name, result.point.ranks, schedule, width);
    if (schedule.size() > width) {
      text += "\n" + fmt::format(line_format, "", name, "", "", width);
    }
    text += verdicts.row(result);
  }
  return text + summary(results);
}

std::string to_json(std::span<const CheckResult> results) {
  std::string text = "[";
  for (const CheckResult& result : results) {
    Json object;
    for (const Column& column : columns()) {
      object[column.name] = column.value(result);
    }
    text += fmt::format("{}\n{}", &result == results.data() ? "" : ",",
                        object.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return text + "\n]\n";
}

std::string csv_header() {
  std::string text;
  for (const Column& column : columns()) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", column.name);
  }
  return text + "\r\n";
}

std::string csv_row(const CheckResult& result) {
  std::string row;
  for (const Column& column : columns()) {
    row += fmt::format("{}{}", row.empty() ? "" : ",", csv_cell(column.value(result)));
  }
  return row + "\r\n";
}

std::string to_csv(std::span<const CheckResult> results) {
  std::string text = csv_header();
  for (const CheckResult& result : results) {
    text += csv_row(result);
  }
  return text;
}

std::string findings_in_words(std::span<const CheckResult> results) {
  std::string text;
  for (const CheckResult& result : results) {
    for (const std::string& finding : result.findings) {
      text +=
          fmt::format("{} {}, {} ranks: {}\n", schedule_of(result), operation_of(result), result.point.ranks, finding);
    }
  }
  return text;
}

}  // namespace commfuse::validate
