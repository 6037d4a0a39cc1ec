// SPDX-License-Identifier: Apache-2.0
#include "model/config/field.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "model/config/choices.h"
#include "model/dtype.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"
#include "model/text/suggest.h"
#include "tests/known.h"

namespace commfuse {
namespace {

std::string field_refusal(std::string_view key, std::string_view text) {
  return mistake_in(*find_field(key), text).value_or("accepted");
}

TEST(FieldTest, EveryEntryIsComplete) {
  std::set<std::string_view> flags;
  for (const Field& field : run_fields()) {
    EXPECT_EQ(find_field(field.key), &field) << field.key;
    EXPECT_TRUE(flags.insert(field.flag).second) << field.flag;
    EXPECT_FALSE(field.doc.empty()) << field.key;
    EXPECT_FALSE(field.group.empty()) << field.key;
    EXPECT_EQ(mistake_in(field, field.example), std::nullopt) << field.key;
    EXPECT_TRUE(field.preset.empty() || !mistake_in(field, field.preset)) << field.key;
    EXPECT_FALSE(values_in_words(field).empty()) << field.key;
  }
}

TEST(FieldTest, ChoicesComeFromTheListsInTheCode) {
  const auto scopes = find_field("scope")->choices();
  ASSERT_EQ(scopes.size(), all_scopes.size() + whole_model_scopes.size());
  for (const Scope scope : all_scopes) {
    EXPECT_EQ(field_refusal("scope", name_of(scope)), "accepted");
  }
  for (const DType dtype : all_dtypes) {
    EXPECT_EQ(field_refusal("dtype", name_of(dtype)), "accepted");
  }
  for (const Strategy& strategy : strategies()) {
    EXPECT_EQ(field_refusal("strategy.name", strategy.name), "accepted");
  }
}

TEST(FieldTest, CountsNameTheirRange) {
  EXPECT_EQ(field_refusal("ranks", "0"), "'0' is out of range; choose 1 to 1M ranks");
  EXPECT_EQ(field_refusal("ranks", "-8"), "'-8' is out of range; choose 1 to 1M ranks");
  EXPECT_EQ(field_refusal("ranks", "2M"), "'2M' is out of range; choose 1 to 1M ranks");
  EXPECT_EQ(field_refusal("seq", "2G"), "'2G' is out of range; choose 1 to 1G tokens");
  EXPECT_EQ(field_refusal("batch", "0"), "'0' is out of range; choose 1 to 1G sequences");
  EXPECT_EQ(field_refusal("strategy.slices", "1025"), "'1025' is out of range; choose 1 to 1K slices");
  EXPECT_EQ(field_refusal("threads", "-1"), "'-1' is out of range; choose 0 to 4K threads");
  EXPECT_EQ(field_refusal("threads", "0"), "accepted");
  EXPECT_EQ(field_refusal("verdict.probability", "40%"), "'40%' is out of range; choose 50% to 100%");
  EXPECT_EQ(field_refusal("verdict.probability", "likely"), "'likely' is not a share; write percent, such as 95%");
  EXPECT_EQ(field_refusal("verdict.difference", "0.05"), "accepted");
  EXPECT_EQ(field_refusal("seed", "2G"), "'2G' is out of range; choose 0 to 1G");
  EXPECT_EQ(values_in_words(*find_field("seed")), "a whole number from 0 to 1G");
  EXPECT_EQ(field_refusal("seq", "1G"), "accepted");
}

TEST(FieldTest, AmountsAreNumbersWithinTheirRange) {
  EXPECT_EQ(field_refusal("price", "2.80"), "accepted");
  EXPECT_EQ(field_refusal("price", "$2.80"), "accepted");
  EXPECT_EQ(field_refusal("price", "0"), "accepted");
  EXPECT_EQ(field_refusal("price", "-1"), "'-1' is out of range; choose 0 to 1000000000");
  EXPECT_EQ(field_refusal("price", "2G"), "'2G' is out of range; choose 0 to 1000000000");
  EXPECT_EQ(field_refusal("price", "cheap"), "'cheap' is not a number; write one, such as 2.80");
  EXPECT_EQ(values_in_words(*find_field("price")), "a number from 0 to 1000000000, for example 2.80");
}

TEST(FieldTest, CountsAreWholeNumbers) {
  for (const char* text : {"", "many", "4 KB", "0.5", "1e3", "--8", "-x", " 8", "99999999999999999999"}) {
    EXPECT_EQ(field_refusal("seq", text), in_quotes(text) + " is not a whole number; write one, such as 4K");
  }
  EXPECT_EQ(field_refusal("ranks", "eight"), "'eight' is not a whole number; write one, such as 8");
  EXPECT_EQ(field_refusal("batch", "x"), "'x' is not a whole number; write one, such as 1");
  EXPECT_EQ(field_refusal("strategy.slices", "x"), "'x' is not a whole number; write one, such as 4");
  EXPECT_EQ(field_refusal("threads", "x"), "'x' is not a whole number; write one, such as 4");
  EXPECT_EQ(field_refusal("seq", "010"), "'010' begins with 0, which YAML may read as octal; write 10");
  EXPECT_EQ(field_refusal("seq", "00"), "'00' begins with 0, which YAML may read as octal; write 0");
  EXPECT_EQ(field_refusal("seq", "01/06"), "'01/06' is not a whole number; write one, such as 4K");
}

TEST(FieldTest, UnknownWordsGetTheNearestWordOrTheWholeList) {
  EXPECT_EQ(field_refusal("dtype", "bf61"), "unknown dtype 'bf61'; did you mean 'bf16'?");
  EXPECT_EQ(field_refusal("dtype", "int4"), "unknown dtype 'int4'; known dtypes: bf16, fp16, fp32, fp8");
  EXPECT_EQ(field_refusal("scope", "mpl"), "unknown scope 'mpl'; did you mean 'mlp'?");
  EXPECT_EQ(field_refusal("strategy.variants", "x"), "unknown choice 'x'; known choices: best, all");
  EXPECT_EQ(field_refusal("strategy.form", "x"), "unknown form 'x'; known forms: ring, direct");
  EXPECT_EQ(field_refusal("strategy.add_lane", "comm"), "unknown add lane 'comm'; known lanes: compute, aux");
  EXPECT_EQ(field_refusal("interference", "x"), "unknown choice 'x'; known choices: static, dynamic, none");
  EXPECT_EQ(field_refusal("launch", "x"), "unknown choice 'x'; known choices: stream, eager, graph");
  EXPECT_EQ(field_refusal("attention_kernel", "x"), "unknown choice 'x'; known choices: fused, unfused");
  EXPECT_EQ(field_refusal("evaluator", "x"), "unknown evaluator 'x'; known evaluators: auto, replay, engine");
  EXPECT_EQ(field_refusal("dtype", ""), "unknown dtype ''; known dtypes: bf16, fp16, fp32, fp8");
}

TEST(FieldTest, StrategiesAreAListWithoutRepetition) {
  EXPECT_EQ(field_refusal("strategy.name", "sliced,commfuse"), "accepted");
  EXPECT_EQ(field_refusal("strategy.name", "sliced,comfuse"), "unknown strategy 'comfuse'; did you mean 'commfuse'?");
  const std::string known = "known strategies: all, " + test::known_strategies();
  EXPECT_EQ(field_refusal("strategy.name", "zzz"), "unknown strategy 'zzz'; " + known);
  // A user who writes nccl means serial.
  EXPECT_EQ(field_refusal("strategy.name", "nccl"), "unknown strategy 'nccl'; did you mean 'serial'?");
  EXPECT_EQ(field_refusal("strategy.name", "sliced,sliced"), "'sliced' is given twice; keep one of them");
  EXPECT_EQ(field_refusal("strategy.name", "sliced,all"), "'all' cannot be combined with other values; write it alone");
  EXPECT_EQ(field_refusal("strategy.name", "sliced,"), "unknown strategy ''; " + known);
}

TEST(FieldTest, StrategiesAndImplementationsAreNotConfused) {
  EXPECT_EQ(field_refusal("strategy.name", "te"),
            "unknown strategy 'te'; did you mean 'ring_exchange'? commfuse-sim prices the implementation with --as te");
  EXPECT_EQ(field_refusal("strategy.name", "cutlass"),
            "unknown strategy 'cutlass'; known strategies: all, " + test::known_strategies() +
                "; commfuse-sim prices the implementation with --as cutlass");
  EXPECT_EQ(field_refusal("as", "commfuse"), "'commfuse' is a strategy; name it by --strategy");
  EXPECT_EQ(field_refusal("as", "async_tp"), "accepted");  // both a strategy and an implementation
}

TEST(FieldTest, ImplementationsAreSuggestedByTheirOtherNames) {
  for (const std::string name : {"userbuffers", "transformer_engine", "Transformer-Engine"}) {
    EXPECT_EQ(field_refusal("as", name).rfind("unknown implementation '" + name + "'; did you mean 'te'? known: ", 0),
              0U)
        << field_refusal("as", name);
  }
  EXPECT_EQ(field_refusal("as", "flux,te"), "accepted");
  EXPECT_EQ(field_refusal("as", "te,te"), "'te' is given twice; keep one of them");
}

TEST(FieldTest, NamesAreInACatalogueOrReadablePaths) {
  EXPECT_EQ(field_refusal("model", "llama-3.1-70b"), "accepted");
  EXPECT_EQ(
      field_refusal("model", "llama-3.1-70x").rfind("unknown model 'llama-3.1-70x'; did you mean 'llama-3.1-70b'?", 0),
      0U);
  EXPECT_EQ(field_refusal("hardware", "absent.yaml"),
            "'absent.yaml' cannot be read (No such file or directory); check the path");
  EXPECT_EQ(field_refusal("hardware", "./"), "'./' cannot be read (Is a directory); check the path");
  EXPECT_EQ(field_refusal("hardware", "./h\xff"), "'./h\xff' is not UTF-8; give the file another name");
}

TEST(FieldTest, BandwidthsAreFactorsOrRates) {
  for (const char* right : {"x2", "x0.5", "x1000", "450GB/s", "450 GB/s", "400 Gbit/s"}) {
    EXPECT_EQ(field_refusal("link_bandwidth", right), "accepted") << right;
  }
  for (const char* wrong : {"2", "2x", "x", "x0", "x-1", "x1001", "0 GB/s", "450", "450GB"}) {
    EXPECT_EQ(field_refusal("network_bandwidth", wrong),
              fmt::format("'{}' is not a bandwidth; write a factor from x0.001 to x1000, or a rate, as "
                          "in 450GB/s",
                          wrong));
  }
}

TEST(FieldTest, VariablesAreTheKeysInCapitals) {
  EXPECT_EQ(variable_of(*find_field("seq")), "COMMFUSE_SEQ");
  EXPECT_EQ(variable_of(*find_field("strategy.add_lane")), "COMMFUSE_STRATEGY_ADD_LANE");
}

TEST(FieldTest, AWrongKeySuggestsTheIntendedSetting) {
  EXPECT_EQ(remedy_for_key("sqe"), "did you mean 'seq'?");
  EXPECT_EQ(remedy_for_key("slices"), "did you mean 'strategy.slices'?");
  EXPECT_EQ(remedy_for_key("add-lane"), "did you mean 'strategy.add_lane'?");
  EXPECT_EQ(remedy_for_key("data_parallel"), "did you mean 'parallel.data'?");
  EXPECT_EQ(remedy_for_key("expert_parallel"), "did you mean 'parallel.experts'?");
  EXPECT_EQ(remedy_for_key("colour").rfind("known settings: model, hardware, link_bandwidth, ", 0), 0U);
  EXPECT_TRUE(is_group("strategy"));
  EXPECT_FALSE(is_group("strat"));
  EXPECT_FALSE(is_group("seq"));
}

}  // namespace
}  // namespace commfuse
