// SPDX-License-Identifier: Apache-2.0
// Tests schedules from files at points: the settings they agree with, their sizes, and that they run like generated
// ones.
#include "sim/point/hand_written.h"

#include <gtest/gtest.h>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/program/names.h"
#include "model/program/work.h"
#include "model/program_text/text.h"
#include "model/proof/check_program.h"
#include "sim/point/grid.h"
#include "sim/point/predict.h"
#include "tests/schedule_damage.h"
#include "tests/sim/message_of.h"

namespace commfuse {
namespace {

/// A schedule of attention and GEMMs over its own dimensions, which is not a scope.
constexpr std::string_view attention_file = R"(schema: commfuse.schedule/1
name: own
mesh: {tp: 2}
dimensions: {tokens: 2, hidden: 1, qkv: 2, attention: 2, experts: 2, batch: 1, head: 1}
tensors:
  x: {rows: tokens*2, columns: qkv*2}
  a: {attention: x, columns: attention*2, causal: true}
  w: {rows: attention*2, columns: experts*2}
  y: {product: [a, w]}
buffers:
  x: {rows: tokens*2, columns: qkv*2}
  a: {rows: tokens*2, columns: attention*2}
  w: {role: weight, rows: attention*2, columns: experts*1}
  y: {role: output, rows: tokens*2, columns: experts*1}
initial:
  - {here: x, tensor: x}
  - {here: w, tensor: w, column: tp}
final: [{here: y, tensor: y, column: tp}]
unfused:
  - attention: {queries: tokens*2, keys: tokens*2, columns: attention*2, qkv: qkv*2, batch: batch, head: head, causal: true}
  - gemm: {m: tokens*2, n: experts*1, k: attention*2}
ops:
  - {id: 0, op: attention, batch: batch, head: head, causal: true, in: [x, x], out: a}
  - {id: 1, op: gemm, a: a, b: w, out: y, waits: [0]}
)";

ScheduleFile file_of(const std::string& text, const char* name = "own.yaml") {
  return {name, parse_program(text, name)};
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result{text};
  const std::size_t at = result.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return result.replace(at, from.size(), to);
}

Program generated(Scope scope, std::int32_t ranks, const char* strategy = "commfuse", bool gated = true,
                  const StrategyOptions& options = {}) {
  return generate(operation_of(scope, gated), ranks, *find_strategy(strategy), options);
}

HandWritten written(Program program, const char* name = "mine.yaml") {
  return hand_written({name, std::move(program)}, {});
}

/// Loads the files once for all tests.
class HandWrittenTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    llama_ = std::make_unique<Transformer>(load_model("llama-3.1-70b"));
    gpt_ = std::make_unique<Transformer>(load_model("gpt-3-175b"));
    h100_ = std::make_unique<Machine>(load_machine("h100-sxm"));
  }

  static Point point(Scope scope, std::int32_t ranks, std::int64_t seq = 4096) {
    return {.model = *llama_, .machine = *h100_, .scope = scope, .ranks = ranks, .seq = seq};
  }

  static inline std::unique_ptr<Transformer> llama_, gpt_;
  static inline std::unique_ptr<Machine> h100_;
};

TEST_F(HandWrittenTest, AScheduleFromAFileIsPredictedAsTheGeneratedOne) {
  StructureCache structures;
  Predictor predictor(structures);
  for (const Scope scope : all_scopes) {
    for (const Strategy& strategy : strategies()) {
      if (!applies(strategy, kinds_of(scope))) {
        continue;
      }
      const Point tested_point = point(scope, 4);
      const Prediction expected = predictor.predict(tested_point, strategy, {});
      const std::string text = to_text(generate(operation_of(scope, true), 4, strategy, {}));
      const HandWritten file = hand_written(file_of(text), {});
      ASSERT_TRUE(belongs(file, tested_point));
      const Prediction prediction = predictor.predict(tested_point, file);
      EXPECT_EQ(prediction.analysis.critical.makespan, expected.analysis.critical.makespan) << file.program().name;
      EXPECT_EQ(prediction.ideal, expected.ideal);
      EXPECT_EQ(prediction.link, expected.link);
      EXPECT_EQ(prediction.mfu, expected.mfu);
      EXPECT_EQ(prediction.structure->digest, expected.structure->digest);
    }
  }
}

TEST_F(HandWrittenTest, UnfusedWorkTimesRanksIsTheWorkOfAScope) {
  for (const Scope scope : all_scopes) {
    HandWritten file = written(generated(scope, 4, "serial"));
    const Point tested_point = point(scope, 4);
    const Flops scope_flops = flops_of(file, tested_point, sizes_at(file, tested_point));
    file.scope.reset();
    EXPECT_EQ(flops_of(file, tested_point, sizes_at(file, tested_point)).count, scope_flops.count) << name_of(scope);
  }
}

TEST_F(HandWrittenTest, TheScopeIsTheOneThatDoesTheSameWork) {
  for (const Scope scope : all_scopes) {
    for (const bool gated : {false, true}) {
      const HandWritten file = written(generated(scope, 4, "serial", gated));
      EXPECT_EQ(file.scope, scope);
      const bool has_mlp = scope == Scope::gate_up || scope == Scope::mlp || scope == Scope::layer ||
                           scope == Scope::gate_up_backward || scope == Scope::mlp_ar || scope == Scope::fsdp_gate_up;
      EXPECT_EQ(file.gated_mlp, has_mlp ? std::optional(gated) : std::nullopt) << name_of(scope);
    }
  }
  EXPECT_EQ(hand_written(file_of(std::string{attention_file}), {{"experts", 64}}).scope, std::nullopt);
}

TEST_F(HandWrittenTest, BelongsToPointsOfItsRanksDtypeAndScope) {
  const HandWritten file = written(generated(Scope::mlp, 4));
  EXPECT_TRUE(belongs(file, point(Scope::mlp, 4)));
  EXPECT_FALSE(belongs(file, point(Scope::mlp, 8)));
  EXPECT_FALSE(belongs(file, point(Scope::layer, 4)));
  Point fp8 = point(Scope::mlp, 4);
  fp8.dtype = DType::fp8;
  EXPECT_FALSE(belongs(file, fp8));
}

TEST_F(HandWrittenTest, DimensionsAreBoundByNameAndCustomOnesBySize) {
  const HandWritten file = hand_written(file_of(std::string{attention_file}), {{"experts", 64}});
  // Elements per block: tokens 4096 / 2, hidden 8192, qkv (64 + 2 x 8) x 128 / 2, attention 64 x 128 / 2, experts 64 /
  // 2, batch 1, head 128.
  EXPECT_EQ(sizes_at(file, point(Scope::mlp, 2)).block,
            (std::vector<std::int64_t>{2048, 8192, 5120, 4096, 32, 1, 128}));
}

TEST_F(HandWrittenTest, FlopsOfCustomWorkAreUnfusedFlopsTimesRanks) {
  const HandWritten file = hand_written(file_of(std::string{attention_file}), {{"experts", 64}});
  const Point tested_point = point(Scope::mlp, 2);
  const double attention = 2.0 * 4096 * 4096 * 8192;  // 4 x queries x keys x columns, half of them masked
  const double gemm = 2.0 * 4096 * 8192 * 32;
  EXPECT_EQ(flops_of(file, tested_point, sizes_at(file, tested_point)).count, 2.0 * (attention + gemm));
}

TEST_F(HandWrittenTest, MissingAndUnneededSizesAreReported) {
  const ScheduleFile file = file_of(std::string{attention_file});
  EXPECT_EQ(test::message_of([&] { hand_written(file, {}); }),
            "own.yaml: dimension 'experts' has no size: a model defines tokens, batch, hidden, qkv, attention, head, "
            "ffn; add --size experts=ELEMENTS");
  EXPECT_EQ(test::message_of([] {
              hand_written(file_of(replaced(attention_file, "hidden: 1", "hiden: 1")), {{"experts", 64}});
            }),
            "own.yaml: dimension 'hiden' has no size: a model defines tokens, batch, hidden, qkv, attention, head, "
            "ffn; call it 'hidden' in the file, or add --size hiden=ELEMENTS");
  EXPECT_EQ(test::message_of([&] {
              require_needed({{"expert", 8}}, {&file, 1});
            }),
            "--size: unknown dimension 'expert'; did you mean 'experts'?");
  EXPECT_EQ(test::message_of([&] {
              require_needed({{"tokens", 8}}, {&file, 1});
            }),
            "--size: the model defines the size of 'tokens'; remove 'tokens' from --size");
  EXPECT_EQ(test::message_of([&] { require_needed({{"experts", 8}}, {&file, 1}); }), "");
}

TEST_F(HandWrittenTest, ADimensionThatDoesNotDivideIsNamedWithTheRemedy) {
  const HandWritten file = hand_written(file_of(std::string{attention_file}), {{"experts", 63}});
  EXPECT_EQ(test::message_of([&] { sizes_at(file, point(Scope::mlp, 2)); }),
            "63 experts cannot be cut into 2 equal blocks, as own requires; choose a multiple of 2, such as 62 or 64");
  EXPECT_EQ(
      test::message_of([&] { sizes_at(file, point(Scope::mlp, 2, 4095)); }),
      "4095 tokens cannot be cut into 2 equal blocks, as own requires; choose a multiple of 2, such as 4094 or 4096");
}

TEST_F(HandWrittenTest, SizesThatCannotBePricedAreRefused) {
  const HandWritten large = hand_written(file_of(std::string{attention_file}), {{"experts", 1 << 30}});
  EXPECT_EQ(test::message_of([&] { sizes_at(large, point(Scope::mlp, 2, 1 << 20)); }),
            "own.yaml: attention*2 times experts*1 is 4.4e+12 elements, more than 1.1e+12; choose smaller sizes");
  // 8 kv heads cut into 32 blocks.
  const std::string many = replaced(replaced(attention_file, "qkv: 2", "qkv: 32"), "attention: 2", "attention: 32");
  const HandWritten broken = hand_written(file_of(many), {{"experts", 64}});
  EXPECT_EQ(test::message_of([&] { sizes_at(broken, point(Scope::mlp, 2)); }),
            "own.yaml: a block of q, k and v has 320 columns, 256 of them queries, which would split heads of 128 "
            "columns; split heads over fewer ranks");
  const HandWritten gated = written(generated(Scope::mlp, 2));
  Point gpt = point(Scope::mlp, 2);
  gpt.model = *gpt_;
  EXPECT_EQ(test::message_of([&] { sizes_at(gated, gpt); }),
            "mine.yaml is for a gated MLP, which gpt-3-175b does not have; choose another model");
}

TEST_F(HandWrittenTest, AModelIsRefusedForTheFilesScopeAsForItsStrategies) {
  const auto refusal = [](const char* model, Scope scope, bool gated) {
    const HandWritten file = written(generated(scope, 4, "serial", gated));
    Point tested_point = point(scope, 4);
    tested_point.model = load_model(model);
    const std::string message = test::message_of([&] { sizes_at(file, tested_point); });
    EXPECT_EQ(message, test::message_of([&] { require_possible(tested_point); })) << model;
    return message;
  };
  EXPECT_EQ(refusal("deepseek-v3", Scope::qkv, true),
            "scope qkv needs plain attention, but deepseek-v3 has latent attention; choose scope step, prefill or "
            "decode, which run all its layers");
  EXPECT_EQ(refusal("mixtral-8x7b", Scope::gate_up, true),
            "scope gate_up needs a plain MLP, but mixtral-8x7b has experts in 32 of 32 layers; choose scope step, "
            "prefill or decode, which run all its layers");
  EXPECT_EQ(refusal("gpt-2-xl", Scope::qkv, false),
            "25 kv heads of gpt-2-xl cannot be split over 4 ranks; choose ranks that divide heads (25) and either "
            "divide kv heads (25) or are a multiple of them: 1, 5, 25");
  EXPECT_EQ(refusal("llama-3.1-70b", Scope::qkv, true), "");
}

TEST_F(HandWrittenTest, GemmsInSeveralDtypesAndAttentionOfSomeQueriesAreRefused) {
  Program mixed = generated(Scope::mlp, 2);
  std::get<GemmShape>(mixed.unfused.front()).dtype = DType::fp8;
  EXPECT_EQ(test::message_of([&] { written(mixed); }),
            "mine.yaml has GEMMs in bf16 and fp8, but a result has one dtype; use one dtype for all");
  const std::string one_query = replaced(attention_file, "queries: tokens*2", "queries: tokens*1");
  EXPECT_EQ(test::message_of([&] {
              hand_written(file_of(one_query), {{"experts", 64}});
            }),
            "own.yaml: attention is priced for all queries together; use as many query rows as key rows");
}

const std::vector<std::vector<std::string>> words{
    {"tokens*", "hidden*", "qkv*", "attention*", "experts*", "batch*", "head*"},
    {"batch: batch", "batch: head", "batch: tokens"},
    {"*1", "*2", "*3", "*16777216"},
    {": 1", ": 2", ": 3", ": 64"},
    {"true", "false"},
    {"}\n", ", dtype: fp32}\n", ", dtype: fp8}\n", ", where: tp < 1}\n", ", waits: []}\n", ", accumulate: true}\n"},
};

TEST_F(HandWrittenTest, AnyHandWrittenScheduleIsPricedOrRefused) {
  StructureCache structures;
  Predictor predictor(structures);
  test::Dice dice;
  int priced = 0;
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text{attention_file};
    for (std::size_t blow = dice.below(4) + 1; blow > 0; --blow) {
      test::damage(text, words, dice);
    }
    try {
      ScheduleFile file = file_of(text);
      if (check_program(file.program).ok()) {
        const HandWritten schedule = hand_written(std::move(file), {{"experts", 64}});
        Point tested_point = point(Scope::mlp, schedule.ranks());
        tested_point.dtype = schedule.dtype;
        require_machine(tested_point);
        predictor.predict(tested_point, schedule);
        ++priced;
      }
    } catch (const ConfigError&) {
      ++refused;
    }
  }
  EXPECT_GT(priced, 50);
  EXPECT_GT(refused, 50);
}

// --- agreement with settings ----------------------------------------------------------------------------------------

Grid grid_with(std::string_view key = "", const std::string& value = "") {
  Grid grid;
  if (!key.empty()) {
    grid.settings.put(*find_field(key), {value, {Source::flag, "--" + std::string{find_field(key)->flag}}});
  }
  return grid;
}

std::vector<HandWritten> files_of(std::initializer_list<std::pair<Scope, std::int32_t>> sites) {
  std::vector<HandWritten> files;
  for (const auto& [scope, ranks] : sites) {
    files.push_back(written(generated(scope, ranks)));
  }
  return files;
}

TEST(Fit, LeavesOpenSettingsToTheFile) {
  Grid grid;
  fit(grid, files_of({{Scope::down, 4}}), true);
  EXPECT_EQ(grid.settings.count("ranks"), 4);
  EXPECT_EQ(grid.settings.text("scope"), "down");
  EXPECT_EQ(grid.settings.text("dtype"), "bf16");
  EXPECT_TRUE(grid.axes.empty());
}

TEST(Fit, SeveralFilesMakeAnAxis) {
  Grid grid;
  fit(grid, files_of({{Scope::down, 4}, {Scope::down, 2}, {Scope::down, 4}}), true);
  ASSERT_EQ(grid.axes.size(), 1U);
  ASSERT_EQ(grid.axes[0].steps.size(), 2U);
  EXPECT_EQ(grid.axes[0].steps[0][0].text, "4");
  EXPECT_EQ(grid.axes[0].steps[1][0].text, "2");
}

TEST(Fit, ReportsConflictsOfSettingAndFile) {
  const std::vector<HandWritten> files = files_of({{Scope::down, 4}});
  const auto message = [&](Grid grid) { return test::message_of([&] { fit(grid, files, false); }); };
  EXPECT_EQ(message(grid_with("ranks", "4")), "");
  EXPECT_EQ(message(grid_with("scope", "down")), "");
  EXPECT_EQ(message(grid_with("ranks", "8")),
            "mine.yaml fixes ranks at 4, but --ranks requests 8; set ranks to 4 or remove the setting");
  EXPECT_EQ(message(grid_with("scope", "mlp")),
            "mine.yaml fixes scope at down, but --scope requests mlp; set scope to down or remove the setting");
  EXPECT_EQ(message(grid_with("dtype", "fp16")),
            "mine.yaml fixes dtype at bf16, but --dtype requests fp16; set dtype to bf16 or remove the setting");
  Grid axis;
  axis.axes.push_back(parse_axis("ranks=2,8"));
  EXPECT_EQ(message(axis),
            "mine.yaml fixes ranks at 4, but --axis ranks=2,8 requests 2, 8; set ranks to 4 or remove the setting");
  axis.axes = {parse_axis("ranks=2,4")};
  EXPECT_EQ(message(axis), "");
}

TEST(Fit, CustomWorkCannotBeCombined) {
  std::vector<HandWritten> files{hand_written(file_of(std::string{attention_file}), {{"experts", 64}})};
  const auto message = [&](Grid grid, bool generates) {
    return test::message_of([&] { fit(grid, files, generates); });
  };
  EXPECT_EQ(message(grid_with(), false), "");
  EXPECT_EQ(
      message(grid_with(), true),
      "own.yaml computes none of the built-in scopes, so no strategy can be compared with it; remove the strategy");
  EXPECT_EQ(message(grid_with("scope", "mlp"), false),
            "own.yaml computes none of the built-in scopes, but --scope requests mlp; remove this setting");
  EXPECT_EQ(message(grid_with("as", "none"), false), "");
  EXPECT_EQ(message(grid_with("as", "flux"), false),
            "own.yaml computes none of the built-in scopes, but --as requests flux; remove this setting");
  Grid axis;
  axis.axes.push_back(parse_axis("as=none,flux"));
  EXPECT_EQ(message(axis, false),
            "own.yaml computes none of the built-in scopes, but --axis as=none,flux requests none, flux; remove this "
            "setting");
  files.push_back(written(generated(Scope::mlp, 2)));
  EXPECT_EQ(message(grid_with(), false),
            "own.yaml and mine.yaml compute different things and cannot be compared; run them separately");
}

// --- ops in which only some ranks take part --------------------------------------------------------------------------

/// Returns a schedule in which rank r of two computes rows 2r and 2r + 1 during the given transfers.
std::string text_with(std::string_view transfers) {
  return R"(schema: commfuse.schedule/1
name: transfers
mesh: {tp: 2}
dimensions: {tokens: 4, hidden: 1}
tensors: {x: {rows: tokens*4, columns: hidden*1}, w: {rows: hidden*1, columns: hidden*1}, y: {product: [x, w]}}
buffers:
  x: {rows: tokens*4, columns: hidden*1}
  w: {rows: hidden*1, columns: hidden*1}
  y: {rows: tokens*4, columns: hidden*1}
  gathered: {rows: tokens*4, columns: hidden*1}
initial: [{here: "x[2*tp +: 2]", tensor: x, row: 2*tp}, {here: w, tensor: w}]
final: [{here: "y[2*tp +: 2]", tensor: y, row: 2*tp}]
unfused: [gemm: {m: tokens*2, n: hidden*1, k: hidden*1}]
ops:
  - {id: 0, op: gemm, a: "x[2*tp +: 2]", b: w, out: "y[2*tp +: 2]"}
)" + std::string{transfers};
}

Structure structure_with(std::string_view transfers) {
  return structure_of(parse_program(text_with(transfers), "transfers.yaml"));
}

constexpr std::string_view two_sends_of_rank_0 = R"(
  - {id: 1, op: exchange, where: tp < 1, shift: 1, send: "x[0]"}
  - {id: 2, op: exchange, where: tp >= 1, shift: 1, receive: "x[0]"}
  - {id: 3, op: exchange, where: tp < 1, lane: comm1, shift: 1, send: "x[1]"}
  - {id: 4, op: exchange, where: tp >= 1, lane: comm1, shift: 1, receive: "x[1]"}
)";
constexpr std::string_view two_sends_of_rank_1 = R"(
  - {id: 1, op: exchange, where: tp >= 1, shift: 1, send: "x[2]"}
  - {id: 2, op: exchange, where: tp < 1, shift: 1, receive: "x[2]"}
  - {id: 3, op: exchange, where: tp >= 1, lane: comm1, shift: 1, send: "x[3]"}
  - {id: 4, op: exchange, where: tp < 1, lane: comm1, shift: 1, receive: "x[3]"}
)";

TEST(StructureOf, SendsOfAnyRankShareItsPort) {
  for (const std::string_view transfers : {two_sends_of_rank_0, two_sends_of_rank_1}) {
    const Structure structure = structure_with(transfers);
    EXPECT_EQ(structure.meetings[1].rivals, std::vector{OpId{3}});
    EXPECT_EQ(structure.meetings[3].rivals, std::vector{OpId{1}});
    EXPECT_EQ(structure.prices.shared_ports, (std::vector<SharedPort>{{1, 2, 2}, {3, 2, 2}}));
  }
}

TEST_F(HandWrittenTest, SendsOfAnyRankTakeEquallyLong) {
  StructureCache structures;
  Predictor predictor(structures);
  const auto time_of = [&](std::string_view transfers) {
    const HandWritten file = hand_written(file_of(text_with(transfers)), {});
    return predictor.predict(point(Scope::mlp, 2, 32768), file).analysis.critical.makespan;
  };
  EXPECT_EQ(time_of(two_sends_of_rank_1), time_of(two_sends_of_rank_0));
}

TEST(StructureOf, RivalsOfOneLaneOnDifferentRanksShareOnePlace) {
  // Op 1 runs during op 2 on rank 0 and during op 4 on rank 1, so it never shares the port with both.
  const Structure structure = structure_with(R"(
  - {id: 1, op: exchange, shift: 1, send: "x[2*tp]", receive: "x[2*((tp+1)%2)]"}
  - {id: 2, op: exchange, where: tp < 1, lane: comm1, shift: 1, send: "x[1]"}
  - {id: 3, op: exchange, where: tp >= 1, lane: comm1, shift: 1, receive: "x[1]"}
  - {id: 4, op: exchange, where: tp >= 1, lane: comm1, shift: 1, send: "x[3]"}
  - {id: 5, op: exchange, where: tp < 1, lane: comm1, shift: 1, receive: "x[3]"}
)");
  EXPECT_EQ(structure.meetings[1].rivals, (std::vector{OpId{2}, OpId{4}}));
  ASSERT_EQ(structure.prices.shared_ports.size(), 3U);
  for (const SharedPort& shared : structure.prices.shared_ports) {
    EXPECT_EQ(shared.port, 2) << shared.op;
    EXPECT_EQ(shared.wire, 2) << shared.op;
  }
}

TEST(StructureOf, ACollectiveContendsWithTheSendsOfAnyRank) {
  const Structure structure = structure_with(R"(
  - {id: 1, op: collective, kind: all_gather, in: "x[2*tp +: 2]", out: gathered}
  - {id: 2, op: exchange, where: tp >= 1, lane: comm1, shift: 1, send: "x[3]"}
  - {id: 3, op: exchange, where: tp < 1, lane: comm1, shift: 1, receive: "x[3]"}
)");
  EXPECT_EQ(structure.meetings[1].contenders, std::vector{OpId{2}});
  EXPECT_EQ(structure.meetings[2].contenders, std::vector{OpId{1}});
  EXPECT_TRUE(structure.prices.contends);
}

TEST(StructureOf, AnOpMeetsTheOpsThatItMeetsOnAtLeastOneRank) {
  // Only rank 1 receives; its GEMMs run during the exchange.
  const Program program = parse_program(R"(schema: commfuse.schedule/1
name: one way
mesh: {tp: 2}
dimensions: {tokens: 2, hidden: 1}
tensors: {x: {rows: tokens*2, columns: hidden*1}, w: {rows: hidden*1, columns: hidden*1}, y: {product: [x, w]}}
buffers:
  x: {rows: tokens*2, columns: hidden*1}
  w: {rows: hidden*1, columns: hidden*1}
  y: {rows: tokens*2, columns: hidden*1}
initial: [{here: "x[tp]", tensor: x, row: tp}, {here: w, tensor: w}]
final: [{here: "y[tp]", tensor: y, row: tp}]
unfused: []
ops:
  - {id: 0, op: gemm, a: "x[tp]", b: w, out: "y[tp]"}
  - {id: 1, op: exchange, where: tp < 1, shift: 1, send: "x[0]"}
  - {id: 2, op: exchange, where: tp >= 1, shift: 1, receive: "x[0]"}
  - {id: 3, op: gemm, where: tp >= 1, a: "x[1]", b: w, out: "y[1]", waits: [0]}
)",
                                        "one.yaml");
  const Structure structure = structure_of(program);
  EXPECT_TRUE(structure.meetings[0].exchange);
  EXPECT_TRUE(structure.meetings[3].exchange);
}

}  // namespace
}  // namespace commfuse
