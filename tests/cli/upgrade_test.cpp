// SPDX-License-Identifier: Apache-2.0
// Tests that this build reads files of earlier builds (tests/upgrade), or refuses them with a remedy.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/program_text/text.h"
#include "model/record/model_version.h"
#include "tests/cli/program.h"
#include "tests/cli/rows.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path written_folder = COMMFUSE_SOURCE_DIR "/tests/upgrade/26eb1d7";
constexpr int written_model_version = 4;
/// True if this build has the model version of the old stores, and may therefore add points to them.
constexpr bool resumes = model_version == written_model_version;

constexpr int done = 0;
constexpr int wrong_input = 2;
constexpr int infeasible_rows = 3;
constexpr int gate_missed = 4;

/// Returns the lines without the carriage returns of CSV.
std::vector<std::string> unix_lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') {
      line.pop_back();
    }
    lines.push_back(line);
  }
  return lines;
}

std::string output_of(const std::string& command, int code = done) {
  const Outcome outcome = run_program(command);
  EXPECT_EQ(outcome.code, code) << command << "\n" << outcome.err;
  return outcome.out;
}

json json_of(const std::string& command, int code = done) {
  const std::string text = output_of(command, code);
  return json::accept(text) ? json::parse(text) : json();
}

json json_in(const fs::path& path) { return json::parse(contents_of(path)); }

/// Returns the rows of a store, as text, without its path.
std::string rows_in(const std::string& store) { return output_of("commfuse-sim results " + store + " -o jsonl"); }

/// Compares row by row: a merged store has every value of the old store, in addition to newer columns.
void expect_same_values(const std::string& merged, const std::string& old) {
  std::istringstream merged_lines(merged);
  std::istringstream old_lines(old);
  std::string line;
  std::string other;
  while (std::getline(old_lines, line)) {
    ASSERT_TRUE(std::getline(merged_lines, other));
    json now = json::parse(other);
    const json before = json::parse(line);
    for (auto it = now.begin(); it != now.end();) {
      it = before.contains(it.key()) ? std::next(it) : now.erase(it);
    }
    EXPECT_EQ(now, before);
  }
  EXPECT_FALSE(std::getline(merged_lines, other));
}

/// Checks that every value for which this build still has a column equals the written value.
void expect_rows(const json& rows, const json& written) {
  ASSERT_EQ(rows.size(), written.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const char* name : {"schema", "model_version", "model", "seq", "strategy"}) {
      EXPECT_TRUE(rows[i].contains(name)) << name;
    }
    for (const auto& [name, value] : written[i].items()) {
      if (rows[i].contains(name)) {
        const bool is_flag = value.is_boolean() && rows[i].at(name).is_number();  // SQLite has no booleans.
        EXPECT_EQ(rows[i].at(name), is_flag ? json(value.get<bool>() ? 1 : 0) : value) << "row " << i << ", " << name;
      }
    }
  }
}

/// Checks that every key of `before` is in `now`, in nested objects and in the first element of arrays too.
void expect_keys(const json& before, const json& now, const std::string& place) {
  EXPECT_TRUE(before.type() == now.type() || (before.is_number() && now.is_number()) || before.is_null() ||
              now.is_null())
      << place << " was " << before.type_name() << " and is " << now.type_name();
  if (before.is_object() && now.is_object()) {
    for (const auto& [name, value] : before.items()) {
      ASSERT_TRUE(now.contains(name)) << place << " lost " << name;
      expect_keys(value, now.at(name), fmt::format("{}.{}", place, name));
    }
  } else if (before.is_array() && now.is_array() && !before.empty()) {
    ASSERT_FALSE(now.empty()) << place;
    expect_keys(before[0], now[0], place + "[0]");
  }
}

/// Checks that a message names the remedies for a store to which this build does not add rows.
void expect_refusal(const Outcome& outcome, const std::string& folder) {
  EXPECT_EQ(outcome.code, wrong_input) << outcome.err;
  EXPECT_NE(outcome.err.find(folder), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("choose another folder, or add --force to replace them"), std::string::npos)
      << outcome.err;
}

/// Runs in a copy of the folder.
class Upgrade : public testing::Test {
 protected:
  Upgrade() { fs::copy(written_folder, ".", fs::copy_options::recursive); }
  const OwnFolder folder_;
};

TEST_F(Upgrade, TheReadmeNamesEveryFile) {
  const std::string readme = contents_of("README.md");
  std::uintmax_t bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(".")) {
    if (!entry.is_regular_file() || entry.path().filename() == "README.md") {
      continue;
    }
    bytes += entry.file_size();
    const fs::path path = entry.path().lexically_relative(".");
    const bool is_named = readme.find(fmt::format("`{}`", path.string())) != std::string::npos;
    const bool has_named_folder = readme.find(fmt::format("`{}/*`", path.parent_path().string())) != std::string::npos;
    EXPECT_TRUE(is_named || has_named_folder) << path;
  }
  EXPECT_LT(bytes, 400U * 1024U);
}

TEST_F(Upgrade, QueriesReadAStoreOfLayers) {
  expect_rows(json_of("commfuse-sim results layers -o json"), json_in("layers/results.json"));
  const json query = json_of(
      "commfuse-sim results layers --where \"ranks = 4 AND strategy = 'commfuse'\" --columns seq,model_version "
      "--sort-by -seq -o json");
  EXPECT_EQ(query, json::parse(R"([{"seq": 8192, "model_version": 4}, {"seq": 1024, "model_version": 4}])"));
  EXPECT_EQ(json_of("commfuse-sim best layers -o json").size(), 2U);
  // Rows that only one of the stores has are differences.
  EXPECT_EQ(json_of("commfuse-sim diff layers shards/shard-1-of-2.sqlite -o json", gate_missed).size(), 4U);
}

TEST_F(Upgrade, QueriesReadAStoreOfSteps) {
  expect_rows(json_of("commfuse-sim results steps -o json"), json_in("steps/results.json"));
  EXPECT_EQ(json_of("commfuse-sim best steps -o json").size(), 3U);
}

TEST_F(Upgrade, ReportsReadStoresAndRows) {
  for (const char* rows :
       {"layers", "layers/results.sqlite", "layers/results.json", "rows/layers.json", "rows/layers.jsonl"}) {
    output_of(fmt::format("commfuse-sim report {} --out report.html", rows));
    EXPECT_NE(contents_of("report.html").find("llama-3.1-8b"), std::string::npos) << rows;
    fs::remove("report.html");
  }
}

TEST_F(Upgrade, MergeJoinsShards) {
  output_of("commfuse-sim merge shards", infeasible_rows);
  expect_same_values(rows_in("shards"), rows_in("layers"));
  expect_rows(json_in("shards/results.json"), json_in("layers/results.json"));
}

TEST_F(Upgrade, SweepsReadTheSettingsOfOldStores) {
  for (const char* sweep :
       {"sweeps/layers.yaml", "sweeps/steps.yaml", "sweeps/interrupted.yaml", "sweeps/generated.yaml",
        "layers/settings.yaml", "shards/settings.yaml", "steps/settings.yaml", "interrupted/settings.yaml"}) {
    output_of(fmt::format("commfuse-sim sweep {} --out new --dry-run", sweep));
  }
}

// Predictions of two model versions do not mix in one store.
TEST_F(Upgrade, ResumingUnderAnotherModelVersionIsRefusedWithTheRemedy) {
  struct Case {
    std::string sweep;
    std::string folder;
    std::string store;
    int code;  // Exit code for a store that is resumed or replaced.
  };
  for (const Case& test :
       {Case{"sweeps/layers.yaml", "layers", "layers/results.sqlite", infeasible_rows},
        Case{"layers/settings.yaml", "layers", "layers/results.sqlite", infeasible_rows},
        Case{"sweeps/steps.yaml", "steps", "steps/results.sqlite", infeasible_rows},
        Case{"sweeps/layers.yaml --shard 2/2", "shards", "shards/shard-2-of-2.sqlite", infeasible_rows},
        Case{"sweeps/interrupted.yaml", "interrupted", "interrupted/results.sqlite", done}}) {
    SCOPED_TRACE(test.sweep);
    const std::string before = contents_of(test.store);
    const std::string command = fmt::format("commfuse-sim sweep {} --out {}", test.sweep, test.folder);
    const Outcome outcome = run_program(command);
    if (resumes) {
      EXPECT_EQ(outcome.code, test.code) << outcome.err;
    } else {
      expect_refusal(outcome, test.folder);
      EXPECT_TRUE(contents_of(test.store) == before);
    }
  }
  output_of("commfuse-sim sweep sweeps/interrupted.yaml --out interrupted --force");
  EXPECT_EQ(json_of("commfuse-sim results interrupted --columns model_version -o json"),
            json(8, json{{"model_version", model_version}}));
}

TEST_F(Upgrade, AnInterruptedStoreIsRead) {
  EXPECT_EQ(json_of("commfuse-sim results interrupted --columns point,seq -o json"),
            json::parse(R"([{"point": 0, "seq": 4096}, {"point": 1, "seq": 8192}])"));
}

TEST_F(Upgrade, CompareReadsARunRecord) {
  const json rows = json_of("commfuse-validate compare records/run.json -o json");
  ASSERT_EQ(rows.size(), 2U);  // No digest has changed, so both schedules are compared.
  for (const json& row : rows) {
    EXPECT_EQ(row.at("samples"), 2);
  }
  output_of("commfuse-validate compare records/run.json --by-op --trace both.json --page page.html");
  std::ofstream("rows.jsonl") << output_of(
      "commfuse-sim run --ranks 2 --seq 1K --scope gate_up --strategy serial,commfuse -o jsonl");
  output_of("commfuse-sim report rows.jsonl --measured records/run.json --out report.html");
  EXPECT_FALSE(contents_of("report.html").empty());
}

TEST_F(Upgrade, MicroBenchmarksAreRead) {
  output_of("commfuse-validate links records/links.json --tolerance 1000");
  output_of("commfuse-sim calibrate --base cpu --name again records/bench.json");
  EXPECT_FALSE(contents_of("again.yaml").empty());
}

TEST_F(Upgrade, HardwareFilesAreRead) {
  output_of("commfuse-sim run --hardware ./hardware/h100-sxm.yaml --strategy serial,commfuse");
  output_of("commfuse-sim run --hardware ./hardware/dgx-h100-x2.yaml --ranks 16 --strategy serial,commfuse");
  output_of(
      "commfuse-sim run --hardware ./hardware/my-cpu.yaml --model gpt-2-xl --ranks 2 --seq 256 --scope gate_up "
      "--strategy serial,commfuse");
}

TEST_F(Upgrade, SettingsAreRead) {
  for (const char* file : {"settings/layer.yaml", "settings/step.yaml"}) {
    output_of(fmt::format("commfuse-sim run {}", file));
    output_of(fmt::format("commfuse-sim config show --config {}", file));
  }
  output_of(
      "commfuse-sim run --seq 1K --ranks 4 --strategy serial --samples 10 --jitter ./settings/jitter.yaml --faults "
      "./settings/faults.yaml --evaluator engine");
}

TEST_F(Upgrade, FilesOfTuneAreRead) {
  std::size_t sites = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator("settings/tuned")) {
    const std::string name = entry.path().filename().string();
    if (name == "plan.yaml" || name.starts_with("site-")) {
      output_of("commfuse-sim run " + entry.path().string());
      sites += name.starts_with("site-") ? 1 : 0;
    }
  }
  EXPECT_EQ(sites, 8U);
  output_of("commfuse-sim import megatron models/pretrain.sh --overlap settings/tuned/tp_comm_overlap_cfg.yaml");
}

TEST_F(Upgrade, ImportedModelsAreRead) {
  output_of("commfuse-sim run --config models/imported.run.yaml --hardware h100-sxm");
  output_of("commfuse-sim run --model ./models/imported.model.yaml --strategy serial");
}

/// Returns pairs of file and digest from the list.
std::vector<std::pair<fs::path, std::string>> listed_digests() {
  std::vector<std::pair<fs::path, std::string>> digests;
  std::ifstream in("schedules/digests.txt");
  for (std::string digest, name; in >> digest >> name;) {
    digests.emplace_back(fs::path("schedules") / name, digest);
  }
  return digests;
}

TEST_F(Upgrade, SchedulesKeepTheirDigests) {
  const auto digests = listed_digests();
  EXPECT_EQ(digests.size(), 8U);
  for (const auto& [path, digest] : digests) {
    EXPECT_EQ(digest_of(parse_program(contents_of(path), path.string())), digest) << path;
    output_of("commfuse-sim schedule check " + path.string());
  }
}

TEST_F(Upgrade, SchedulesRoundTripByteForByte) {
  const std::set<std::string> written_by_hand{"doubling.yaml", "push-ring.yaml"};
  std::size_t generated = 0;
  for (const auto& [path, digest] : listed_digests()) {
    const std::string extension = path.extension().string();
    const std::string canonical = output_of("commfuse-sim schedule export " + path.string());
    EXPECT_EQ(digest_of(parse_program(canonical, "canonical.yaml")), digest) << path;
    if (!written_by_hand.contains(path.filename().string())) {
      ++generated;
      EXPECT_EQ(output_of(fmt::format("commfuse-sim schedule export -o {} {}", extension.substr(1), path.string())),
                contents_of(path));
    }
  }
  EXPECT_EQ(generated, 6U);
}

TEST_F(Upgrade, RowsOfSchedulesHaveTheListedDigest) {
  for (const auto& [path, digest] : listed_digests()) {
    if (path.filename() !=
        "sliced_attention.yaml") {  // `run --schedule` does not price attention that is cut by query.
      const json rows = json_of(fmt::format("commfuse-sim run --schedule {} --seq 2K -o json", path.string()));
      ASSERT_EQ(rows.size(), 1U) << path;
      EXPECT_EQ(rows[0].at("schedule_sha256"), digest) << path;
    }
  }
}

// A later build may generate more schedules; the listed ones keep their digests.
TEST_F(Upgrade, GeneratedSchedulesKeepTheirDigests) {
  const std::vector<std::string> written = unix_lines_of(contents_of("schedules/generated.csv"));
  ASSERT_EQ(written.size(), 526U);
  run_program("commfuse-sim sweep sweeps/generated.yaml --out generated --progress none");
  const std::vector<std::string> lines =
      unix_lines_of(output_of("commfuse-sim results generated -o csv --columns " + written.front()));
  const std::set<std::string> generated(lines.begin(), lines.end());
  for (const std::string& line : written) {
    EXPECT_TRUE(generated.contains(line)) << line << " is no longer generated, or its digest has changed";
  }
}

TEST_F(Upgrade, APlanFileIsReadAndItsJsonKeepsItsKeys) {
  const json before = json_in("plans/plan.json");
  const json now = json_of("commfuse-sim plan plans/train-8b.yaml -o json");
  EXPECT_EQ(now.at("schema"), before.at("schema"));
  expect_keys(before, now, "plan");
}

TEST_F(Upgrade, TheCsvOfAPlanKeepsItsColumns) {
  const std::set<std::string> before = column_names_of(contents_of("plans/plan.csv"));
  const std::set<std::string> now = column_names_of(output_of("commfuse-sim plan plans/train-8b.yaml -o csv"));
  EXPECT_TRUE(std::includes(now.begin(), now.end(), before.begin(), before.end()));
}

TEST_F(Upgrade, ALabFileIsReadAndItsJsonKeepsItsKeys) {
  const json before = json_in("lab/faj.json");
  const json now = json_of("commfuse-sim run lab/faj.yaml --set ranks=16 -o json");
  expect_keys(before, now, "result");
  for (const char* name : {"schema", "workload", "ranks", "messages", "tiles"}) {
    EXPECT_EQ(now[0].at(name), before[0].at(name)) << name;
  }
}

}  // namespace
}  // namespace commfuse::test
