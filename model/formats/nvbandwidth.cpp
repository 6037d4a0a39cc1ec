// SPDX-License-Identifier: Apache-2.0
// The names of keys follow nvbandwidth's json_output.cpp.
#include "model/formats/nvbandwidth.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/formats/tool_json.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

using Json = nlohmann::json;
using Values = std::vector<std::vector<std::optional<double>>>;

constexpr std::string_view bandwidth_command = "nvbandwidth -j";
constexpr std::size_t max_devices = 1 << 14;
constexpr double max_value = 1e9;  // GB/s or ns

/// Returns the word before `mark`: "GPU" before "(row)".
std::string word_before(std::string_view description, std::string_view mark) {
  const std::size_t end = description.find(mark);
  if (end == std::string_view::npos) {
    return "";
  }
  const std::size_t space = description.rfind(' ', end);
  const std::size_t begin = space == std::string_view::npos ? 0 : space + 1;
  return std::string(description.substr(begin, end - begin));
}

/// Reads the description: "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)".
void describe(const ToolValue& value, BandwidthMatrix& matrix) {
  matrix.description = value.text();
  const std::string_view text = matrix.description;
  matrix.is_latency = text.ends_with("(ns)");
  if (!matrix.is_latency && !text.ends_with("(GB/s)")) {
    value.refuse(fmt::format("{} names neither GB/s nor ns; convert the values", in_quotes(text)));
  }
  matrix.row = word_before(text, "(row)");
  matrix.column = word_before(text, "(column)");
  for (const std::string_view arrow : {"<->", "->", "<-"}) {
    if (matrix.arrow.empty() && text.find(fmt::format(" {} ", arrow)) != std::string_view::npos) {
      matrix.arrow = arrow;
    }
  }
}

/// Returns the value of a cell such as "276.1"; nullopt for "N/A".
std::optional<double> cell(const ToolValue& value) {
  if (value.json.is_string() && value.json.get_ref<const std::string&>() == "N/A") {
    return std::nullopt;
  }
  const std::optional<double> number = value.json.is_string()   ? parse_number(value.text())
                                       : value.json.is_number() ? std::optional(value.json.get<double>())
                                                                : std::nullopt;
  if (!number || !std::isfinite(*number) || *number < 0.0 || *number > max_value) {
    value.refuse(fmt::format("{} is not a rate or time; run nvbandwidth again",
                             in_quotes(value.json.is_string() ? value.text() : std::string("a value"))));
  }
  return number;
}

Values cells(const ToolValue& matrix) {
  Values values;
  for (const ToolValue& row : matrix.items()) {
    std::vector<std::optional<double>>& cells = values.emplace_back();
    for (const ToolValue& column : row.items()) {
      cells.push_back(cell(column));
    }
    if (cells.empty() || cells.size() > max_devices || cells.size() != values.front().size()) {
      row.refuse(fmt::format("has {} columns, but the first row has {}; give the whole file", cells.size(),
                             values.front().size()));
    }
  }
  if (values.empty() || values.size() > 3 * max_devices) {
    matrix.refuse(fmt::format("has {} rows; give the whole file", values.size()));
  }
  return values;
}

double sum_of(const Values& values) {
  double sum = 0.0;
  for (const auto& row : values) {
    for (const std::optional<double>& value : row) {
      sum += value.value_or(0.0);
    }
  }
  return sum;
}

/// Refuses values that do not add up to the file's sum, apart from rounding: cells are printed with six digits.
void require_sum(const ToolValue& test, const Values& values) {
  constexpr double rounding = 1e-4;
  const std::optional<ToolValue> stated = test.find("sum");
  if (!stated) {
    return;  // versions before 0.5 print no sum
  }
  if (!stated->json.is_number()) {
    stated->refuse("is not a number; give the whole file as it was printed");
  }
  const double sum = sum_of(values);
  const double expected = stated->json.get<double>();
  if (!(std::abs(sum - expected) <= rounding * std::max(1.0, std::abs(expected)))) {
    stated->refuse(fmt::format("is {:g}, but the values add up to {:g}; give the whole file", expected, sum));
  }
}

/// Splits the values of a test into matrices. A test in both directions may print three matrices, one below the other,
/// and the sum of the last one.
std::vector<BandwidthMatrix> parts_of(const ToolValue& test, BandwidthMatrix matrix, Values values) {
  constexpr std::size_t parts = 3;
  const std::size_t columns = values.front().size();
  const bool is_split = matrix.description.find(" Total ") != std::string::npos && values.size() == parts * columns;
  std::vector<BandwidthMatrix> matrices;
  if (!is_split) {
    require_sum(test, values);
    matrix.values = std::move(values);
    matrices.push_back(std::move(matrix));
    return matrices;
  }
  constexpr std::array<const char*, parts> names{"first", "second", "total"};
  for (std::size_t part = 0; part < parts; ++part) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(part * columns);
    matrix.part = names[part];
    matrix.values.assign(begin, begin + static_cast<std::ptrdiff_t>(columns));
    matrices.push_back(matrix);
  }
  require_sum(test, matrices.back().values);
  return matrices;
}

/// Refuses a matrix that is neither square (between GPUs) nor a single row.
void require_shape(const ToolValue& test, const BandwidthMatrix& matrix) {
  const std::size_t rows = matrix.values.size();
  if (rows != 1 && rows != matrix.values.front().size()) {
    test.refuse(
        fmt::format("the matrix has {} rows and {} columns; give the whole file", rows, matrix.values.front().size()));
  }
}

BandwidthStatus bandwidth_status(const ToolValue& test) {
  const std::optional<ToolValue> status = test.find("status");
  if (!status) {
    test.refuse("has no status; give the whole file as it was printed");
  }
  const std::string word = status->text();
  if (word == "Passed") {
    return BandwidthStatus::passed;
  }
  if (word == "Waived") {
    return BandwidthStatus::waived;
  }
  if (word == "Error" || word == "ERROR" || word == "Running" || word == "Not Found") {
    return BandwidthStatus::failed;
  }
  status->refuse(fmt::format("unknown status {}; known: Passed, Waived, Error, Running, Not Found", in_quotes(word)));
}

/// Known keys; min, max and average (--verbose) are not read, because they follow from the values.
constexpr std::array<std::string_view, 9> keys_of_a_test{
    "name", "status", "error", "bandwidth_description", "bandwidth_matrix", "sum", "min", "max", "average"};

std::vector<BandwidthMatrix> read_test(const ToolValue& test, ReadingNotes& notes) {
  test.require_object();
  test.note_others(keys_of_a_test, notes);
  BandwidthMatrix matrix{
      .test = test.text_at("name"), .status = bandwidth_status(test), .error = test.text_at("error")};
  if (matrix.test.empty()) {
    test.refuse("has no name; give the whole file as it was printed");
  }
  if (matrix.status != BandwidthStatus::passed) {
    if (matrix.error.empty() && matrix.status == BandwidthStatus::failed) {
      matrix.error = fmt::format("status {}", in_quotes(test.text_at("status")));
    }
    if (test.find("bandwidth_matrix")) {
      notes.add(fmt::format("{}: {}: values of a test that did not pass are not used", test.path, test.place));
    }
    return {std::move(matrix)};
  }
  const std::optional<ToolValue> description = test.find("bandwidth_description");
  const std::optional<ToolValue> values = test.find("bandwidth_matrix");
  if (!description || !values) {
    test.refuse("passed without a matrix or its description; give the whole file as it was printed");
  }
  describe(*description, matrix);
  std::vector<BandwidthMatrix> matrices = parts_of(test, std::move(matrix), cells(*values));
  require_shape(test, matrices.front());
  return matrices;
}

/// Adds the matrices of a test. nvbandwidth writes an entry when a test starts ("Running"), and some versions write a
/// second one if the test fails; the last entry wins.
void add_test(std::vector<BandwidthMatrix> test, std::vector<BandwidthMatrix>& matrices) {
  if (!matrices.empty() && matrices.back().test == test.front().test &&
      matrices.back().status == BandwidthStatus::failed) {
    matrices.pop_back();
  }
  std::move(test.begin(), test.end(), std::back_inserter(matrices));
}

/// Parses "0: NVIDIA H100 80GB HBM3 (00000000:07:00): (node-1)".
BandwidthDevice device_of(const ToolValue& value, std::size_t index) {
  std::string text = value.text();
  const std::string number = fmt::format("{}: ", index);
  if (!text.starts_with(number)) {
    value.refuse(fmt::format("{} is not device {}; give the whole file as it was printed", in_quotes(text), index));
  }
  text.erase(0, number.size());
  const std::size_t mark = text.rfind(": (");
  if (mark == std::string::npos || !text.ends_with(')')) {
    return {.name = std::move(text), .host = ""};
  }
  const std::size_t begin = mark + 3;
  return {.name = text.substr(0, mark), .host = text.substr(begin, text.size() - 1 - begin)};
}

constexpr std::array<std::string_view, 8> keys_of_a_run{"version",        "git_version", "CUDA Runtime Version",
                                                        "Driver Version", "error",       "GPU Device list",
                                                        "warning",        "testcases"};

}  // namespace

BandwidthRun read_nvbandwidth(std::string_view text, const std::string& path) {
  ReadingNotes notes;
  const Json document = tool_document(text, path, bandwidth_command, notes);
  const ToolValue top{document, path, ""};
  const std::optional<ToolValue> root = top.find("nvbandwidth");
  if (!root) {
    throw NoNvbandwidth(fmt::format("{}: has no key nvbandwidth; give what {} printed", path, bandwidth_command));
  }
  root->require_object();
  top.note_others(std::array<std::string_view, 1>{"nvbandwidth"}, notes);
  root->note_others(keys_of_a_run, notes);
  BandwidthRun run{
      .version = root->text_at("version"), .driver = root->text_at("Driver Version"), .error = root->text_at("error")};
  if (const std::string warning = root->text_at("warning"); !warning.empty()) {
    notes.add(fmt::format("{}: nvbandwidth reports: {}", path, in_quotes(warning)));
  }
  if (const std::optional<ToolValue> devices = root->find("GPU Device list"); devices && !devices->json.is_null()) {
    for (const ToolValue& device : devices->items()) {
      run.devices.push_back(device_of(device, run.devices.size()));
    }
  }
  if (const std::optional<ToolValue> tests = root->find("testcases")) {
    for (const ToolValue& test : tests->items()) {
      add_test(read_test(test, notes), run.matrices);
    }
  }
  if (run.matrices.empty() && run.error.empty()) {
    root->refuse("has no test and no error; give the whole file as it was printed");
  }
  run.notes = notes.take();
  return run;
}

}  // namespace commfuse
