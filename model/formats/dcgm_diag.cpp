// SPDX-License-Identifier: Apache-2.0
// The names of keys follow DCGM's NvvsJsonStrings.h and dcgmi/Diag.cpp.
#include "model/formats/dcgm_diag.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/check.h"
#include "model/formats/tool_json.h"
#include "model/text/quantity.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

using Json = nlohmann::json;

constexpr std::string_view diagnostic_command = "dcgmi diag -j";
constexpr std::int64_t max_id = 1 << 20;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char letter) {
    return static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter + 32 : letter);
  });
  return text;
}

DcgmStatus dcgm_status(const ToolValue& result) {
  const std::optional<ToolValue> status = result.find("status");
  if (!status) {
    result.refuse("has no status; give the whole file as it was printed");
  }
  const std::string word = lower(status->text());
  if (word == "pass") {
    return DcgmStatus::pass;
  }
  if (word == "fail") {
    return DcgmStatus::fail;
  }
  if (word == "warn") {
    return DcgmStatus::warn;
  }
  if (word == "skip" || word == "skipped" || word == "not run") {
    return DcgmStatus::skip;
  }
  status->refuse(fmt::format("unknown status {}; known: Pass, Fail, Warn, Skip", in_quotes(status->text())));
}

DcgmWarning warning_of(const ToolValue& value, ReadingNotes& notes) {
  if (value.json.is_string()) {
    return {.text = value.text()};
  }
  value.require_object();
  value.note_others(std::array<std::string_view, 4>{"warning", "error_id", "error_category", "error_severity"}, notes);
  const auto number = [&](const char* key, std::int64_t largest) {
    const std::optional<ToolValue> member = value.find(key);
    return member ? std::optional(static_cast<int>(member->whole(largest))) : std::nullopt;
  };
  DcgmWarning warning{.text = value.text_at("warning"),
                      .error = number("error_id", max_id),
                      .category = number("error_category", max_id)};
  if (const std::optional<int> severity = number("error_severity", max_id)) {
    const bool is_known = *severity <= static_cast<int>(DcgmSeverity::reset);
    warning.severity = is_known ? static_cast<DcgmSeverity>(*severity) : DcgmSeverity::unknown;
    if (!is_known) {
      notes.add(fmt::format("{}: {}: unknown severity {}", value.path, value.place, *severity));
    }
  }
  return warning;
}

/// Returns the items of a list, or the value itself if it is a single string; versions of DCGM differ.
std::vector<ToolValue> one_or_more(const ToolValue& value) {
  return value.json.is_array() ? value.items() : std::vector<ToolValue>{value};
}

DcgmResult result_of(const ToolValue& value, const std::string& category, const std::string& test,
                     ReadingNotes& notes) {
  value.require_object();
  value.note_others(std::array<std::string_view, 8>{"status", "warnings", "info", "gpu_ids", "gpu_id", "entity_group",
                                                    "entity_group_id", "entity_id"},
                    notes);
  DcgmResult result{.category = category, .test = test, .entity = "", .status = dcgm_status(value)};
  if (const std::optional<ToolValue> warnings = value.find("warnings")) {
    for (const ToolValue& warning : one_or_more(*warnings)) {
      result.warnings.push_back(warning_of(warning, notes));
    }
  }
  if (const std::optional<ToolValue> info = value.find("info")) {
    for (const ToolValue& line : one_or_more(*info)) {
      result.info.push_back(line.text());
    }
  }
  return result;
}

/// Returns the GPUs of "0,1,2", "0" or the number 0.
std::vector<int> gpus_of(const ToolValue& value) {
  std::vector<int> gpus;
  if (!value.json.is_string()) {
    return {static_cast<int>(value.whole(max_id))};
  }
  const std::string text = value.text();
  for (const std::string_view word : split_list(text)) {
    const std::optional<std::int64_t> gpu = parse_integer(word);
    if (!gpu || *gpu < 0 || *gpu > max_id) {
      value.refuse(fmt::format("{} is not a list of GPUs; give the whole file as it was printed", in_quotes(text)));
    }
    gpus.push_back(static_cast<int>(*gpu));
  }
  return gpus;
}

/// Adds one result for the entity, or for each GPU, that `value` names.
void add_results(const ToolValue& value, DcgmResult result, std::vector<DcgmResult>& results) {
  if (const std::optional<ToolValue> id = value.find("entity_id")) {
    result.entity = value.text_at("entity_group");
    if (result.entity.empty()) {
      value.refuse("has an entity without its group; give the whole file as it was printed");
    }
    result.id = static_cast<int>(id->whole(max_id));
    results.push_back(std::move(result));
    return;
  }
  const std::optional<ToolValue> list = value.find("gpu_ids");
  const std::optional<ToolValue> single = value.find("gpu_id");  // before 2.0
  const ToolValue* const gpus = list ? &*list : single ? &*single : nullptr;
  if (gpus == nullptr) {
    value.refuse("names neither a GPU nor another entity; give the whole file as it was printed");
  }
  result.entity = "GPU";
  for (const int gpu : gpus_of(*gpus)) {
    result.id = gpu;
    results.push_back(result);
  }
}

void read_test(const ToolValue& test, const std::string& category, ReadingNotes& notes, DcgmDiagnostic& diagnostic) {
  if (test.json.is_null()) {
    return;  // DCGM 3 writes nulls between tests
  }
  test.require_object();
  test.note_others(std::array<std::string_view, 3>{"name", "results", "test_summary"}, notes);
  const std::string name = test.text_at("name");
  if (name.empty()) {
    test.refuse("has no name; give the whole file as it was printed");
  }
  bool is_empty = true;
  if (const std::optional<ToolValue> results = test.find("results"); results && !results->json.is_null()) {
    for (const ToolValue& value : results->items()) {
      if (!value.json.is_null()) {  // DCGM 3 writes nulls between results, too
        add_results(value, result_of(value, category, name, notes), diagnostic.results);
        is_empty = false;
      }
    }
  }
  if (const std::optional<ToolValue> summary = test.find("test_summary")) {
    diagnostic.results.push_back(result_of(*summary, category, name, notes));
    is_empty = false;
  }
  if (is_empty) {
    notes.add(fmt::format("{}: {}: test {} has no result", test.path, test.place, in_quotes(name)));
  }
}

void read_categories(const ToolValue& list, ReadingNotes& notes, DcgmDiagnostic& diagnostic) {
  for (const ToolValue& category : list.items()) {
    if (category.json.is_null()) {
      continue;
    }
    category.require_object();
    category.note_others(std::array<std::string_view, 2>{"category", "tests"}, notes);
    const std::string name = category.text_at("category");
    if (const std::optional<ToolValue> tests = category.find("tests"); tests && !tests->json.is_null()) {
      for (const ToolValue& test : tests->items()) {
        read_test(test, name, notes, diagnostic);
      }
    } else {
      notes.add(fmt::format("{}: {}: category {} has no tests", list.path, category.place, in_quotes(name)));
    }
  }
}

/// Notes the statements of dcgmi about the whole run.
void add_statements(const std::optional<ToolValue>& value, ReadingNotes& notes) {
  if (value) {
    for (const ToolValue& statement : one_or_more(*value)) {
      notes.add(fmt::format("{}: dcgmi reports: {}", statement.path, in_quotes(statement.text())));
    }
  }
}

/// Returns the text of the first key that has one, because versions spell keys differently.
std::string text_at_first(const ToolValue& object, std::initializer_list<const char*> keys) {
  for (const char* const key : keys) {
    if (std::string text = object.text_at(key); !text.empty()) {
      return text;
    }
  }
  return "";
}

/// Known keys. Serials and ids of devices are not read, because they only identify parts.
constexpr std::array<std::string_view, 9> keys_of_a_diagnostic{"test_categories",
                                                               "version",
                                                               "Driver Version Detected",
                                                               "driver_version_detected",
                                                               "runtime_error",
                                                               "error_code",
                                                               "GPU Device IDs",
                                                               "GPU Device Serials",
                                                               "info"};

}  // namespace

std::string name_of(DcgmSeverity severity) {
  switch (severity) {
    case DcgmSeverity::none: return "none";
    case DcgmSeverity::monitor: return "monitor";
    case DcgmSeverity::isolate: return "isolate";
    case DcgmSeverity::unknown: return "unknown";
    case DcgmSeverity::triage: return "triage";
    case DcgmSeverity::config: return "config";
    case DcgmSeverity::reset: return "reset";
  }
  check(false, "a severity has a name");
  return {};
}

DcgmDiagnostic read_dcgm_diag(std::string_view text, const std::string& path) {
  ReadingNotes notes;
  const Json document = tool_document(text, path, diagnostic_command, notes);
  const ToolValue top{document, path, ""};
  const std::optional<ToolValue> current = top.find("DCGM Diagnostic");
  const std::optional<ToolValue> old = top.find("DCGM GPU Diagnostic");
  if (!current && !old) {
    throw NoDcgmDiagnostic(fmt::format(
        "{}: has neither 'DCGM Diagnostic' nor 'DCGM GPU Diagnostic'; give what {} printed", path, diagnostic_command));
  }
  const ToolValue& root = current ? *current : *old;
  root.require_object();
  top.note_others(
      std::array<std::string_view, 5>{"DCGM Diagnostic", "DCGM GPU Diagnostic", "entity_groups", "metadata", "warning"},
      notes);
  root.note_others(keys_of_a_diagnostic, notes);
  DcgmDiagnostic diagnostic{.version = root.text_at("version"),
                            .driver = text_at_first(root, {"Driver Version Detected", "driver_version_detected"}),
                            .error = root.text_at("runtime_error")};
  add_statements(top.find("warning"), notes);
  add_statements(root.find("info"), notes);
  if (const std::optional<ToolValue> metadata = top.find("metadata")) {
    metadata->require_object();
    metadata->note_others(std::array<std::string_view, 4>{"version", "Driver Version Detected", "EUD Test Version",
                                                          "CPU EUD Test Version"},
                          notes);
    diagnostic.version = metadata->text_at("version");
    diagnostic.driver = metadata->text_at("Driver Version Detected");
  }
  if (const std::optional<ToolValue> categories = root.find("test_categories")) {
    read_categories(*categories, notes, diagnostic);
  }
  if (diagnostic.results.empty() && diagnostic.error.empty()) {
    root.refuse("has no result and no error; check the output of dcgmi, and run it again");
  }
  diagnostic.notes = notes.take();
  return diagnostic;
}

}  // namespace commfuse
