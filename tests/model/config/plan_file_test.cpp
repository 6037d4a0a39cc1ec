// SPDX-License-Identifier: Apache-2.0
// Tests the content of valid plan files; tests/config/bad has invalid ones.
#include "model/config/plan_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "model/config/choices.h"
#include "model/config/plan_field.h"
#include "model/config_error.h"
#include "tests/own_folder.h"

namespace commfuse {
namespace {

const std::string gpus = "gpus: {h100: {hardware: dgx-h100-x2, price: 2.5, price_date: 2026-05-04, available: 2K}}\n";
const std::string minimal = "schema: commfuse.plan/1\ntokens: 15e12\ndeadline: 60 days\n" + gpus;

class PlanFileTest : public ::testing::Test {
 protected:
  static PlanFile plan(const std::string& text) {
    std::ofstream("mine.yaml") << text;
    return load_plan("mine.yaml");
  }
  static std::string refusal(const std::string& text) {
    try {
      plan(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }

 private:
  OwnFolder folder_;
};

TEST_F(PlanFileTest, TitlesAndKindsHaveNoControlCharacters) {
  EXPECT_EQ(refusal("title: \"a\\e[31m\"\n" + minimal),
            "mine.yaml:1:8: 'title' must be one line of plain text; remove control characters");
  std::string kind = minimal;
  kind.replace(kind.find("h100:"), 5, "\"h\\e]0;x\\a\":");
  EXPECT_EQ(refusal(kind), "mine.yaml:4:21: 'h\\x1b]0;x\\x07' must be plain text; remove control characters");
}

TEST_F(PlanFileTest, TitlesAndKindsAreUtf8) {
  EXPECT_EQ(refusal("title: Jos\xe9\n" + minimal), "mine.yaml:1:8: 'title' is not UTF-8; save the file as UTF-8");
  std::string kind = minimal;
  kind.replace(kind.find("h100:"), 5, "h\xff:");
  EXPECT_EQ(refusal(kind), "mine.yaml:4:12: 'h\xff' is not UTF-8; save the file as UTF-8");
}

TEST_F(PlanFileTest, LimitsOfZeroAreRefused) {
  EXPECT_EQ(refusal(minimal + "limits: {p99_step: 0 s}\n"),
            "mine.yaml:5:20: 'p99_step' is 0, which no run can meet; give a time above 0, as in \"p99_step: 30 s\", or "
            "remove it");
  EXPECT_EQ(refusal(minimal + "limits: {power: 0 MW}\n"),
            "mine.yaml:5:17: 'power' is 0, which no run can meet; give a power above 0, as in \"power: 10 MW\", or "
            "remove it");
  std::string kind = minimal;
  kind.replace(kind.find("available"), 0, "power: 0 W, ");
  EXPECT_NE(
      refusal(kind).find("'power' is 0, but every GPU draws power; give what one GPU, including its share of the node, "
                         "draws, as in \"power: 1.3 kW\", or remove it"),
      std::string::npos)
      << refusal(kind);
}

TEST_F(PlanFileTest, ARunHasAtLeastOneStep) {
  const std::string set = "set: {batch: 2K, seq: 8K}\n";
  std::string short_run = minimal + set;
  short_run.replace(short_run.find("15e12"), 5, "1");
  EXPECT_EQ(refusal(short_run),
            "mine.yaml:2:9: 'tokens' is 1, less than one step of 16777216 (batch 2K x seq 8K); give more tokens, or a "
            "smaller batch");
  short_run.replace(short_run.find("tokens: 1"), 9, "tokens: 16777216");
  EXPECT_EQ(plan(short_run).tokens, 16777216.0);
}

TEST_F(PlanFileTest, ADeadlineMayBeOneDay) {
  std::string one_day = minimal;
  one_day.replace(one_day.find("60 days"), 7, "1 day");
  EXPECT_EQ(plan(one_day).deadline->count(), 86400.0);
}

TEST_F(PlanFileTest, TheRuleOfTheVerdictIsASetting) {
  EXPECT_EQ(choices_of(plan(minimal + "set: {verdict: {difference: 5%}}\n").settings).verdict.difference, 0.05);
}

TEST_F(PlanFileTest, OmittedKeysHaveTheirPresets) {
  const PlanFile file = plan(minimal);
  EXPECT_EQ(file.title, "mine");
  EXPECT_EQ(file.tokens, 15e12);
  EXPECT_EQ(file.deadline, Seconds{60.0 * 86400.0});
  EXPECT_FALSE(file.budget);
  EXPECT_EQ(file.confidence, 0.5);
  EXPECT_EQ(file.currency, "$");
  EXPECT_FALSE(file.model_error);
  EXPECT_EQ(file.memory_share, 0.9);
  EXPECT_FALSE(file.p99_step);
  EXPECT_FALSE(file.power);
  EXPECT_EQ(file.failures.per_gpu_hour, 2e-5);
  EXPECT_EQ(file.failures.checkpoint, Seconds{60.0});
  EXPECT_EQ(file.failures.restart, Seconds{600.0});
  EXPECT_EQ(file.pue, 1.0);
  EXPECT_EQ(file.energy_price, 0.0);
  EXPECT_EQ(file.settings.text("jitter"), "default");  // A run of months has jitter.
  ASSERT_EQ(file.gpus.size(), 1U);
  EXPECT_EQ(file.gpus[0].name, "h100");
  EXPECT_EQ(file.gpus[0].machine.text("hardware"), "dgx-h100-x2");
  EXPECT_EQ(file.gpus[0].price, 2.5);
  EXPECT_EQ(file.gpus[0].available, 2048);
}

TEST_F(PlanFileTest, EveryKeyIsReadAndKindsKeepTheOrderOfTheFile) {
  const PlanFile file = plan(
      "schema: commfuse.plan/1\ntitle: T\ntokens: 1e12\nstart: 2026-12-01\ndeadline: 2027-03-01\nbudget: 2e6\n"
      "confidence: 0.9\ncurrency: EUR\nmodel_error: 0.05\n"
      "set: {model: llama-3.1-8b, seq: 8K, batch: 512, jitter: none, seed: 7, parallel: {pipeline: 2}}\n"
      "limits: {p99_step: 500 ms, memory_share: 0.8, power: 2 MW}\n"
      "failures: {per_gpu_hour: 1e-4, error: 0.5, checkpoint: 30 s, restart: 0.1 h}\n"
      "energy: {pue: 1.1, price: 0.2}\nwhat_if: {slow_node: 1.5, change: 0.1}\n"
      "gpus:\n"
      "  z: {hardware: dgx-h100-x2, network_bandwidth: x2, price: 3, price_date: 2026-05-04, price_source: a quote, "
      "price_error: 0.1, available: 64, power: 1.2 kW}\n"
      "  a: {hardware: h100-sxm, link_bandwidth: x0.5, price: 2, price_date: 2026-05-04, available: 8, power: 900 "
      "W}\n");
  EXPECT_EQ(file.deadline, Seconds{90.0 * 86400.0});
  EXPECT_EQ(file.budget, 2e6);
  EXPECT_EQ(file.confidence, 0.9);
  EXPECT_EQ(file.currency, "EUR");
  EXPECT_EQ(file.settings.text("jitter"), "none");
  EXPECT_EQ(file.settings.count("parallel.pipeline"), 2);
  EXPECT_EQ(file.p99_step, Seconds{0.5});
  EXPECT_EQ(file.power, Watts{2e6});
  EXPECT_EQ(file.failures.restart, Seconds{360.0});
  EXPECT_EQ(file.failures.error, 0.5);
  EXPECT_EQ(file.slow_node, 1.5);
  EXPECT_EQ(file.change, 0.1);
  ASSERT_EQ(file.gpus.size(), 2U);
  EXPECT_EQ(file.gpus[0].name, "z");
  EXPECT_EQ(file.gpus[0].machine.text("network_bandwidth"), "x2");
  EXPECT_EQ(file.gpus[0].price_source, "a quote");
  EXPECT_EQ(file.gpus[1].machine.text("link_bandwidth"), "x0.5");
  EXPECT_EQ(file.gpus[1].machine.text("model"), "llama-3.1-8b");
  EXPECT_EQ(file.gpus[1].power, Watts{900.0});
}

/// Returns a plan in which this field, at the top level or in a group, has the given value.
std::string plan_with(const PlanField& field, const std::string& value) {
  const std::size_t dot = field.key.rfind('.');
  const std::string name(field.key.substr(dot == std::string_view::npos ? 0 : dot + 1));
  std::string text = "schema: commfuse.plan/1\n";
  text += field.key == "tokens" ? "" : "tokens: 1e12\n";
  text += field.key == "deadline" || field.key == "start" ? "" : "deadline: 60 days\n";
  if (!field.key.starts_with("gpus.")) {
    const std::string group(field.key.substr(0, dot == std::string_view::npos ? 0 : dot));
    return text + gpus + (group.empty() ? name + ": " + value + "\n" : group + ": {" + name + ": " + value + "}\n");
  }
  text += "gpus:\n  k:\n    " + name + ": " + value + "\n";
  for (const PlanField& other : plan_fields()) {
    const bool is_needed = other.required || (other.key == "gpus.NAME.available" && field.key != "gpus.NAME.count");
    if (is_needed && other.key.starts_with("gpus.") && other.key != field.key) {
      text += "    " + std::string(other.key.substr(10)) + ": " + std::string(other.example) + "\n";
    }
  }
  return text;
}

TEST_F(PlanFileTest, EveryFieldOfTheTableIsReadAndChecked) {
  for (const PlanField& field : plan_fields()) {
    if (field.type == PlanType::words) {
      continue;
    }
    EXPECT_NE(refusal(plan_with(field, "nonsense")).find("'nonsense'"), std::string::npos) << field.key;
    const bool clashes = field.key == "limits.power" || field.key == "energy.price" || field.key == "start";
    if (!clashes) {
      EXPECT_EQ(refusal(plan_with(field, std::string(field.example))), "accepted") << field.key;
    }
    if (field.type == PlanType::number) {
      EXPECT_NE(refusal(plan_with(field, "-1")).find(" is -1; choose "), std::string::npos) << field.key;
    }
  }
}

TEST_F(PlanFileTest, ACountReplacesAvailableGpusAndLimits) {
  const std::string kind = "gpus: {h100: {hardware: dgx-h100-x2, price: 2.5, price_date: 2026-05-04, ";
  const PlanFile exact = plan("schema: commfuse.plan/1\ntokens: 15e12\n" + kind + "count: 1K}}\n");
  EXPECT_EQ(exact.gpus[0].count, 1024);
  EXPECT_EQ(exact.gpus[0].available, 1024);
  EXPECT_EQ(exact.gpus[0].count_place, "mine.yaml:3:81");
  EXPECT_FALSE(exact.deadline || exact.budget);
  const PlanFile part = plan("schema: commfuse.plan/1\ntokens: 15e12\n" + kind + "count: 1K, available: 2K}}\n");
  EXPECT_EQ(part.gpus[0].count, 1024);
  EXPECT_EQ(part.gpus[0].available, 2048);
  EXPECT_FALSE(plan(minimal).gpus[0].count);
}

TEST_F(PlanFileTest, EveryPresetAndExampleIsAValueOfItsField) {
  for (const PlanField& field : plan_fields()) {
    EXPECT_FALSE(field.example.empty()) << field.key;
    EXPECT_FALSE(field.required && !field.preset.empty()) << field.key;
    EXPECT_FALSE(values_in_words(field).empty()) << field.key;
  }
}

}  // namespace
}  // namespace commfuse
