// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/check_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/columns.h"
#include "model/schedule/scope.h"
#include "model/schedule/work.h"

namespace commfuse::validate {

namespace {

using Json = nlohmann::ordered_json;

struct Column {
  const char* name;
  Json (*value)(const CheckResult&);
};

std::string_view operation_of(const CheckResult& result) {
  return result.point.file ? "file" : result.point.operation->name;
}
std::string_view strategy_of(const CheckResult& result) {
  return result.point.file ? result.point.file->program.name : result.point.strategy->name;
}
/// "bf16"; of a file what its products are in, which may be several.
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

/// Null where the program was not proved, so not run.
template <class Number>
Json if_run(const CheckResult& result, Number value) {
  return was_run(result) ? Json(value) : Json();
}

/// Null also where equal bits are not asked for.
Json of_bits(const CheckResult& result, std::int64_t Tally::*number) {
  return result.verdict.bitwise ? if_run(result, (*result.verdict.bitwise).*number) : Json();
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

constexpr std::array columns{
    Column{"schema", [](const CheckResult&) { return Json("commfuse.check/1"); }},
    Column{"operation", [](const CheckResult& r) { return Json(operation_of(r)); }},
    Column{"ranks", [](const CheckResult& r) { return Json(r.point.ranks); }},
    Column{"dtype", [](const CheckResult& r) { return Json(dtype_of(r)); }},
    Column{"seed", [](const CheckResult& r) { return Json(r.point.seed); }},
    Column{"strategy", [](const CheckResult& r) { return Json(strategy_of(r)); }},
    Column{"file", [](const CheckResult& r) { return r.point.file ? Json(r.point.file->name()) : Json(); }},
    Column{"slices", option<Option::slices>},
    Column{"sub_slices", option<Option::sub_slices>},
    Column{"form", option<Option::form>},
    Column{"add_lane", option<Option::add_lane>},
    Column{"sum", option<Option::sum>},
    Column{"lanes", option<Option::lanes>},
    Column{"directions", option<Option::directions>},
    Column{"group", option<Option::group>},
    Column{"inner", option<Option::inner>},
    Column{"attention", option<Option::attention>},
    Column{"shuffles", option<Option::shuffles>},
    Column{"regather", option<Option::regather>},
    Column{"ops", [](const CheckResult& r) { return Json(r.ops); }},
    Column{"ok", [](const CheckResult& r) { return Json(r.ok()); }},
    Column{"proved", [](const CheckResult& r) { return Json(r.findings.empty()); }},
    Column{"finding", [](const CheckResult& r) { return r.findings.empty() ? Json() : Json(r.findings.front()); }},
    Column{"integer_elements", [](const CheckResult& r) { return if_run(r, r.verdict.integers.elements); }},
    Column{"integer_wrong", [](const CheckResult& r) { return if_run(r, r.verdict.integers.wrong); }},
    Column{"bitwise_elements", [](const CheckResult& r) { return of_bits(r, &Tally::elements); }},
    Column{"bitwise_wrong", [](const CheckResult& r) { return of_bits(r, &Tally::wrong); }},
    Column{"bound_elements", [](const CheckResult& r) { return if_run(r, r.verdict.bound.elements); }},
    Column{"bound_wrong", [](const CheckResult& r) { return if_run(r, r.verdict.bound.wrong); }},
    Column{"bound_worst", [](const CheckResult& r) { return if_run(r, r.verdict.bound.worst); }},
};

std::string csv_cell(const Json& value) {
  if (!value.is_string()) {
    std::string text = value.dump();  // "null" also for what is infinite
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

/// "-" where it was not run or is not asked for.
std::string level(const CheckResult& result, const std::optional<Tally>& tally, const std::string& right = "ok") {
  if (!was_run(result) || !tally) {
    return "-";
  }
  return tally->ok() ? right : fmt::format("{} wrong", tally->wrong);
}

std::string summary(std::span<const CheckResult> results) {
  std::int64_t failed = 0;
  Verdict all;
  for (const CheckResult& result : results) {
    failed += result.ok() ? 0 : 1;
    all += result.verdict;
  }
  if (failed > 0) {
    return fmt::format("{} of {} schedules failed\n", failed, results.size());
  }
  return fmt::format("{} schedules right: {} integers exact, {} bitwise, {} in bound\n", results.size(),
                     all.integers.elements, all.bitwise.value_or(Tally{}).elements, all.bound.elements);
}

}  // namespace

std::string to_table(std::span<const CheckResult> results) {
  constexpr auto what = "{:<{}}  {:>5}  {:<{}}";
  constexpr auto verdicts = "  {:<5}  {:<8}  {:<8}  {}\n";
  std::size_t name = 10;
  for (const CheckResult& result : results) {
    name = std::max(name, operation_of(result).size());
  }
  const std::size_t width = name < 24 ? 34 - name : 10;  // a longer schedule has a line of its own
  std::string text = fmt::format(what, "operation", name, "ranks", "schedule", width) +
                     fmt::format(verdicts, "proof", "integers", "bitwise", "bound");
  for (const CheckResult& result : results) {
    const Verdict& verdict = result.verdict;
    const std::string schedule = cut(schedule_of(result), 71 - name);
    text += fmt::format(what, operation_of(result), name, result.point.ranks, schedule, width);
    if (schedule.size() > width) {
      text += "\n" + fmt::format(what, "", name, "", "", width);
    }
    text += fmt::format(verdicts, was_run(result) ? "ok" : "no", level(result, verdict.integers),
                        level(result, verdict.bitwise),
                        level(result, verdict.bound, fmt::format("{:.2f}", verdict.bound.worst)));
  }
  return text + summary(results);
}

std::string to_json(std::span<const CheckResult> results) {
  std::string text = "[";
  for (const CheckResult& result : results) {
    Json object;
    for (const Column& column : columns) {
      object[column.name] = column.value(result);
    }
    text += fmt::format("{}\n{}", &result == results.data() ? "" : ",", object.dump());
  }
  return text + "\n]\n";
}

std::string to_csv(std::span<const CheckResult> results) {
  std::string text;
  for (const Column& column : columns) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", column.name);
  }
  text += "\r\n";
  for (const CheckResult& result : results) {
    std::string row;
    for (const Column& column : columns) {
      row += fmt::format("{}{}", &column == columns.data() ? "" : ",", csv_cell(column.value(result)));
    }
    text += row + "\r\n";
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
