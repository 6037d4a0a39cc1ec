// SPDX-License-Identifier: Apache-2.0
// Tests the twelve keys of TransformerEngine's tp_comm_overlap_cfg: each has the default method that initialize_ub
// assigns, and a schedule of commfuse that can be proved. docs/implementations.md must list the same keys.
#include "model/config/overlap_keys.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/config_error.h"
#include "model/program_text/load_schedule.h"
#include "model/proof/check_program.h"
#include "model/strategies/generate.h"
#include "tests/own_folder.h"
#include "tests/refusal.h"

namespace commfuse {
namespace {

/// `methods` in initialize_ub of transformer_engine/pytorch/module/base.py, as of 27 November 2026.
const std::map<std::string, std::vector<std::string>> methods_of_initialize_ub{
    {"ring_exchange", {"qkv_fprop", "fc1_fprop", "proj_dgrad", "fc2_dgrad"}},
    {"pipeline", {"proj_fprop", "fc2_fprop"}},
    {"bulk", {"qkv_dgrad", "qkv_wgrad", "fc1_dgrad", "fc1_wgrad"}},
    {"external", {"proj_wgrad", "fc2_wgrad"}}};

std::optional<OverlapKey> te_key(const std::string& name) {
  for (const OverlapKey& key : load_overlap_keys("te")) {
    if (key.key == name) {
      return key;
    }
  }
  return std::nullopt;
}

TEST(OverlapKeys, HaveTheTwelveDefaultsOfTransformerEngine) {
  EXPECT_EQ(load_overlap_keys("te").size(), 12U);
  for (const auto& [method, names] : methods_of_initialize_ub) {
    for (const std::string& name : names) {
      const std::optional<OverlapKey> key = te_key(name);
      ASSERT_TRUE(key.has_value()) << name;
      EXPECT_EQ(key->method, method) << name;
      const bool gradient = name.ends_with("grad");
      EXPECT_EQ(std::string(name_of(key->scope)).ends_with("_backward"), gradient) << name;
    }
  }
}

TEST(OverlapKeys, NameSchedulesThatAreProvedOnFourRanks) {
  for (const OverlapKey& key : load_overlap_keys("te")) {
    SCOPED_TRACE(key.key);
    if (!key.file.empty()) {
      const Program program = load_schedule(key.file).program;
      EXPECT_EQ(check_program(program).findings.size(), 0U);
      continue;
    }
    ASSERT_NE(key.strategy, nullptr);
    const std::vector<SiteKind> kinds = kinds_of(key.scope);
    ASSERT_TRUE(applies(*key.strategy, kinds));
    const Program program = generate(operation_of(key.scope, true), 4, *key.strategy, key.options);
    EXPECT_EQ(check_program(program).findings.size(), 0U);
    for (const Option option : all_options()) {
      EXPECT_TRUE(!key.fixed.has(option) || relevant_options(*key.strategy, kinds, key.options).has(option))
          << name_of(option) << " changes nothing at " << name_of(key.scope);
    }
  }
}

/// Returns the row of docs/implementations.md that begins with a list of keys including `key`.
std::string row_of(const std::string& key) {
  std::ifstream file(COMMFUSE_SOURCE_DIR "/docs/implementations.md");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| `") && line.find("`" + key + "`") < line.find(" | ")) {
      return line;
    }
  }
  return {};
}

TEST(OverlapKeys, AreInTheTableOfTheDocsWithTheirSchedules) {
  for (const OverlapKey& key : load_overlap_keys("te")) {
    const std::string row = row_of(key.key);
    const std::string schedule(key.file.empty() ? std::string(key.strategy->name) : key.file);
    EXPECT_NE(row.find(fmt::format("| `{}` |", key.method)), std::string::npos) << key.key << ": " << row;
    EXPECT_NE(row.find(fmt::format("`{}`", schedule)), std::string::npos) << key.key << ": " << row;
    EXPECT_NE(row.find(fmt::format("`{}`", name_of(key.scope))), std::string::npos) << key.key << ": " << row;
  }
}

constexpr const char* loom_keys = R"(schema: commfuse.implementation/1
name: loom
summary: "weaves shards into a GEMM"
use: "pip install loom"
strategy: sliced
transport: nccl
supports: {sites: [ag_gemm], dtypes: [bf16], ranks: 8, generations: [hopper]}
costs: {residual: {value: 0.1, provenance: "prior: a"}}
keys:
  up: {method: warp, scope: KEY_SCOPE, KEY_SCHEDULE}
)";

/// Returns the message about a key with this scope and schedule.
std::string keys_refusal(const std::string& scope, const std::string& schedule) {
  const OwnFolder folder;
  std::string text = loom_keys;
  text.replace(text.find("KEY_SCOPE"), 9, scope);
  text.replace(text.find("KEY_SCHEDULE"), 12, schedule);
  std::ofstream("loom.yaml", std::ios::binary) << text;
  return test::refusal_of([] { load_overlap_keys("./loom.yaml"); });
}

TEST(OverlapKeys, RefuseUnknownSchedules) {
  EXPECT_EQ(keys_refusal("gate_up", "strategy: ring_exchange, options: {group: 2}"), "accepted");
  EXPECT_NE(keys_refusal("mlp_ar", "strategy: ring_exchange").find("loom.yaml:10:"), std::string::npos);
  EXPECT_NE(keys_refusal("mlp_ar", "strategy: ring_exchange")
                .find("strategy ring_exchange has no schedule for scope mlp_ar; choose another strategy or scope"),
            std::string::npos);
  EXPECT_NE(keys_refusal("gate_up", "strategy: async_tp, options: {group: 2}").find("async_tp has no option 'group'"),
            std::string::npos);
  EXPECT_NE(keys_refusal("attic", "strategy: sliced").find("unknown scope 'attic'"), std::string::npos);
  EXPECT_NE(keys_refusal("gate_up", "schedule: no-such-file").find("no-such-file"), std::string::npos);
  EXPECT_EQ(keys_refusal("down_backward", "schedule: te-external-wgrad"), "accepted");
}

}  // namespace
}  // namespace commfuse
