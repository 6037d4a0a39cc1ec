// SPDX-License-Identifier: Apache-2.0
// Compares predictions of some points and steps with stored text. model_version distinguishes stores of results, so
// numbers may change only together with it. Rows may be added without a new version, for example by a new strategy,
// because the digest of a sweep distinguishes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/model_version.h"
#include "reports/rows.h"
#include "reports/step_rows.h"
#include "sim/parallel/run_points.h"
#include "sim/point/grid.h"
#include "sim/step/predict_steps.h"
#include "tests/sim/grid_of.h"

namespace commfuse {
namespace {

const std::string golden_path = COMMFUSE_SOURCE_DIR "/tests/sim/golden/predictions.csv";

/// Columns that are compared for a layer: the question, and every number that does not follow from the others.
constexpr std::array<std::string_view, 22> shown{
    "model",      "hardware", "scope",       "ranks",          "seq",        "dtype",      "strategy",   "slices",
    "form",       "reason",   "makespan_us", "makespan_error", "compute_us", "slicing_us", "stretch_us", "local_us",
    "exposed_us", "head_us",  "ideal_us",    "link_us",        "mfu",        "p99_us"};

/// Stands in for the reason of a refusal: the refusal is part of the prediction, but its sentence may be reworded.
constexpr const char* refused = "refused";

std::string layers(const Grid& grid) {
  const Library library = library_of(grid);
  std::string text;
  for (const auto& rows : run_points(points_of(grid), library, {})) {
    for (ResultRow row : rows) {
      row.reason = row.feasible() ? "" : refused;
      std::vector<Value> values;
      for (const ResultColumn& column : result_columns()) {
        if (std::find(shown.begin(), shown.end(), column.name) != shown.end()) {
          values.push_back(column.value(row));
        }
      }
      text += reports::csv_line(values);
    }
  }
  return text;
}

std::string models(const Grid& grid) {
  const Library library = library_of(grid);
  StepPoints steps(library);
  std::vector<StepRow> rows;
  for (const Settings& settings : points_of(grid)) {
    for (StepRow& row : steps.rows_or_reason(settings)) {
      // The times depend on the schedules, and their description may be reworded.
      std::erase_if(row.cells, [](const auto& cell) { return cell.first == "schedules"; });
      for (auto& [name, value] : row.cells) {
        if (name == "reason") {
          value = std::string(refused);
        }
      }
      rows.push_back(std::move(row));
    }
  }
  return reports::to_csv(rows);
}

std::string predictions() {
  const std::string small = "model=llama-3.1-8b";
  std::string text = layers(test::grid_of(
      {small},
      {"scope=mlp,layer,ulysses,qkv_backward,down_backward,down_ar,mlp_ar,fsdp_gate_up,data_parallel", "seq=2K,16K"}));
  text += layers(test::grid_of({small, "strategy.variants=all"}, {"hardware=h100-sxm,mi300x,a100-pcie", "ranks=2,4"}));
  text += layers(test::grid_of({small, "hardware=dgx-h100-x2", "ranks=16"}, {"interference=none,static,dynamic"}));
  text += layers(test::grid_of({small, "hardware=hgx-h800-x2", "ranks=16", "strategy.name=ring_exchange"},
                               {"scope=gate_up_backward,down_backward"}));
  text += layers(test::grid_of({small, "jitter=default", "samples=64"}, {"launch=stream,graph"}));
  text += layers(test::grid_of({"model=llama-3.1-70b", "dtype=fp8", "hardware=b200-sxm"}, {"seq=1000,8K"}));
  text += layers(test::grid_of({"model=llama-3.1-70b", "hardware=gb200", "scope=mlp_ar"}, {"ranks=8,16"}));
  text += models(test::grid_of({small, "ranks=2", "hardware=h100-sxm"}, {"scope=step,prefill,decode"}));
  text.erase(std::remove(text.begin(), text.end(), '\r'), text.end());
  return text;
}

/// Removes the first line, which states model_version.
std::string without_version(const std::string& text) { return text.substr(text.find('\n') + 1); }

/// Returns true if `now` has all lines of `before` in the same order, possibly with other lines between them.
bool only_adds(const std::string& before, const std::string& now) {
  std::istringstream old_lines{before};
  std::istringstream new_lines{now};
  std::string expected;
  bool is_missing = static_cast<bool>(std::getline(old_lines, expected));
  for (std::string line; is_missing && std::getline(new_lines, line);) {
    if (line == expected) {
      is_missing = static_cast<bool>(std::getline(old_lines, expected));
    }
  }
  return !is_missing;
}

TEST(Predictions, AreComparedLineByLine) {
  EXPECT_TRUE(only_adds("a\nb\n", "a\nb\n"));
  EXPECT_TRUE(only_adds("a\nb\n", "0\na\n1\nb\n"));
  EXPECT_FALSE(only_adds("a\nb\n", "a\n"));
  EXPECT_FALSE(only_adds("a\nb\n", "b\na\n"));
  EXPECT_FALSE(only_adds("a\nb\n", "a\nc\n"));
}

TEST(Predictions, ChangeOnlyTogetherWithTheModelVersion) {
  const std::string now = "model_version " + std::to_string(model_version) + "\n" + predictions();
  std::ifstream in(golden_path);
  const std::string before{std::istreambuf_iterator<char>(in), {}};
  const bool same_version = before.substr(0, before.find('\n')) == now.substr(0, now.find('\n'));
  ASSERT_TRUE(!same_version || only_adds(without_version(before), without_version(now)))
      << "predictions have changed: raise model_version in model/record/model_version.h, and run this again with "
         "COMMFUSE_RENEW_GOLDEN=1\n"
      << now;
  if (std::getenv("COMMFUSE_RENEW_GOLDEN") != nullptr) {
    std::ofstream{golden_path} << now;
    return;
  }
  EXPECT_EQ(before, now) << "model_version was raised, or rows were added: run this again with COMMFUSE_RENEW_GOLDEN=1";
}

}  // namespace
}  // namespace commfuse
