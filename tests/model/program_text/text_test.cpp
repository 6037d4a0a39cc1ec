// SPDX-License-Identifier: Apache-2.0
#include "model/program_text/text.h"
#include "model/program/names.h"

#include <gtest/gtest.h>

#include <map>
#include <string_view>

#include "model/config_error.h"
#include "model/program/builder.h"
#include "model/program_text/index_text.h"
#include "model/strategies/generate.h"
#include "model/strategies/scope.h"

namespace commfuse {
namespace {

/// Checks that the whole text, and the program itself, survive a round trip through text.
void expect_round_trip(const Program& program) {
  const std::string text = to_text(program);
  try {
    const Program parsed = parse_program(text, program.name);
    EXPECT_EQ(parsed, program) << text;
    EXPECT_EQ(to_text(parsed), text);
  } catch (const ConfigError& error) {
    FAIL() << error.what() << "\n" << text;
  }
}

const OperationStage gate_up{.name = "gate_up",
                             .kind = SiteKind::ag_gemm,
                             .contraction = "hidden",
                             .columns = "ffn",
                             .columns_per_rank = 2,
                             .activation = Function::swiglu};
const OperationStage down{.name = "down", .kind = SiteKind::gemm_rs, .contraction = "ffn", .columns = "hidden"};
const OperationStage qkv{.name = "qkv", .kind = SiteKind::ag_gemm, .contraction = "hidden", .columns = "heads"};

TEST(ScheduleText, ProtocolsAndCreditsReadBack) {
  ProgramBuilder builder("one-sided", Mesh{{{"tp", 3}}});
  const Extent rows{builder.dimension("rows", 2), 2};
  const Extent columns{builder.dimension("columns", 1), 1};
  const BufferId buffer = builder.buffer("b", BufferRole::scratch, rows, columns, DType::bf16);
  const Operand first{builder.rows_of(buffer, 0)};
  const Operand second{builder.rows_of(buffer, 1)};
  builder.exchange({.send = first, .receive = second, .protocol = Protocol::push});
  builder.exchange({.send = first, .protocol = Protocol::pull});
  builder.exchange({.receive = second, .protocol = Protocol::pull});
  builder.credit({.shift = -1});
  builder.credit({.shift = 2, .receives = false});
  const OpId last = builder.credit({.lane = {LaneKind::copy, 0}, .shift = 2, .sends = false});
  builder.only_where(last, {Relation::not_equal, 0, 1});
  const Program program = std::move(builder).build();
  expect_round_trip(program);
  EXPECT_NE(to_text(program).find("shift: 1, wire: bf16, protocol: push, send: \"b[0]\", receive: \"b[1]\"}"),
            std::string::npos);
  EXPECT_NE(to_text(program).find("where: \"tp != 1\", axis: tp, shift: 2, credit: receive}"), std::string::npos);
}

TEST(ScheduleText, EveryGeneratedScheduleReadsBack) {
  const std::vector<Operation> operations{{"qkv", {qkv}},
                                          {"down", {down}},
                                          {"mlp", {gate_up, down}},
                                          operation_of(Scope::attention, true),
                                          operation_of(Scope::layer, true),
                                          operation_of(Scope::mlp_ar, true),
                                          operation_of(Scope::data_parallel, true),
                                          operation_of(Scope::ulysses, true)};
  for (const Strategy& strategy : strategies()) {
    for (const Operation& operation : operations) {
      const std::vector<SiteKind> kinds = kinds_of(operation);
      for (const std::int32_t ranks : {1, 2, 3, 4, 8}) {
        for (const StrategyOptions& options : kinds.size() == 1 ? schedules_to_prove(strategy, kinds, ranks)
                                                                : schedules_to_try(strategy, kinds, ranks)) {
          if (refusal_of(strategy, kinds, options, ranks).empty()) {
            expect_round_trip(generate(operation, ranks, strategy, options));
          }
        }
      }
    }
  }
}

TEST(ScheduleText, AScheduleAlongOneOfTwoAxesReadsBack) {
  for (const Strategy& strategy : strategies()) {
    if (!applies(strategy, kinds_of(Scope::mlp))) {
      continue;
    }
    expect_round_trip(generate({"mlp", {gate_up, down}}, Mesh{{{"node", 2}, {"tp", 4}}}, 1, strategy, {}));
    expect_round_trip(generate({"mlp", {gate_up, down}}, Mesh{{{"node", 2}, {"tp", 4}}}, 0, strategy, {}));
  }
}

//            step 0     step 1          (2 ranks)
//   comm     r  ->      idle
//   compute  shard r    shard r-1
TEST(ScheduleText, ReadsLikeTheFigure) {
  const Program ring = generate({"qkv", {qkv}}, Mesh{{{"tp", 2}}}, 0, commfuse_strategy, {});
  EXPECT_EQ(to_text(ring), R"(schema: commfuse.schedule/1
name: "commfuse (ring) qkv"
mesh: {tp: 2}
dimensions:
  tokens: 2
  hidden: 1
  heads: 2
tensors:
  x: {rows: tokens*2, columns: hidden*1, dtype: bf16}
  qkv.weight: {rows: hidden*1, columns: heads*2, dtype: bf16}
  qkv: {rows: tokens*2, columns: heads*2, dtype: bf16, product: [x, qkv.weight]}
buffers:
  x: {role: input, rows: tokens*1, columns: hidden*1, dtype: bf16}
  qkv.weight: {role: weight, rows: hidden*1, columns: heads*1, dtype: bf16}
  qkv: {role: output, rows: tokens*2, columns: heads*1, dtype: bf16}
  qkv.gathered: {role: scratch, rows: tokens*1, columns: hidden*1, dtype: bf16}
initial:
  - {here: "x", tensor: x, row: "tp", column: "0"}
  - {here: "qkv.weight", tensor: qkv.weight, row: "0", column: "tp"}
final:
  - {here: "qkv", tensor: qkv, row: "0", column: "tp"}
unfused:
  - {gemm: {m: tokens*2, n: heads*1, k: hidden*1, dtype: bf16}}
ops:
  - {id: 0, op: exchange, lane: comm, axis: tp, shift: 1, wire: bf16, send: "x", receive: "qkv.gathered"}
  - {id: 1, op: gemm, lane: compute, a: "x", b: "qkv.weight", out: "qkv[tp]"}
  - {id: 2, op: gemm, lane: compute, a: "qkv.gathered", b: "qkv.weight", out: "qkv[(tp+1)%2]", waits: [0]}
)");
}

/// A program with two axes, every kind of op, and unusual values for all members that generators leave at their
/// defaults.
class Zoo {
 public:
  Zoo() {
    declare();
    gemms();
    exchanges();
    collectives();
  }
  Program build() { return std::move(builder_).build(); }

 private:
  void declare() {
    const TensorId a = builder_.input_tensor("a", {tokens_, 8}, {hidden_, 2}, DType::fp16);
    const TensorId b = builder_.input_tensor("b", {hidden_, 2}, {ffn_, 16}, DType::fp8);
    const TensorId c = builder_.product_tensor("c", a, b);
    const TensorId d = builder_.function_tensor("d", Function::swiglu, c);
    const TensorId e = builder_.function_tensor("e", Function::gelu, d);
    builder_.function_tensor("f", Function::copy, builder_.function_tensor("g", Function::add, e));
    Index both = along(mesh(), 1, -1);  // with the next line, 8*((node+1)%2) + (tp+3)%4
    both.terms[0] = {8, 1};
    builder_.initially(builder_.rows_of(x_, mirrored(), 2), a, both + -1, 0);
    builder_.finally(builder_.whole(y_), c, 0, along(mesh(), 1) * 2);
    builder_.unfused(GemmShape{.m = {tokens_, 8},
                               .n = {ffn_, 16},
                               .k = {hidden_, 2},
                               .accumulate = true,
                               .dtype = DType::fp8,
                               .accumulator = DType::fp16,
                               .transpose_a = true,
                               .out = DType::fp32});
    builder_.product_tensor("dw", a, c, {.transpose_a = true, .dtype = DType::fp32});
    builder_.product_tensor("dx", c, b, {.transpose_b = true});
    builder_.unfused(ElementwiseShape{.inputs = 3, .rows = {tokens_, 8}, .columns = {ffn_, 2}, .dtype = DType::fp32});
  }

  void gemms() {
    builder_.gemm({.lane = {LaneKind::compute, 1},
                   .a = {builder_.rows_of(x_, mirrored(), 2), builder_.rows_of(x_, 5)},
                   .b = {builder_.whole(w_)},
                   .out = {builder_.rows_of(y_, from_the_end()), builder_.rows_of(y_, 0, 2)},
                   .accumulate = true,
                   .purpose = Purpose::local,
                   .accumulator = DType::fp16,
                   .kernel_rows = 6});
    builder_.gemm({.a = {builder_.rows_of(x_, mirrored(), 2)},
                   .b = {builder_.rows_of(y_, 3, 2)},
                   .out = {builder_.whole(w_)},
                   .transpose_a = true});
    builder_.gemm({.a = {builder_.rows_of(y_, 3, 2)},
                   .b = {builder_.whole(w_)},
                   .out = {builder_.rows_of(x_, 0, 2)},
                   .accumulate = true,
                   .transpose_b = true});
    const Region region{x_, along(mesh(), 0) * 2, along(mesh(), 0, 1), 2, 1};
    builder_.elementwise({.lane = {LaneKind::aux, 0},
                          .inputs = {{region}, {Region{x_, 3, 1, 2, 1}}, {region}},
                          .out = {region},
                          .waits = {OpId{0}, OpId{0}},
                          .purpose = Purpose::essential});
    builder_.elementwise({.lane = {LaneKind::copy, 7},
                          .function = Function::gelu,
                          .inputs = {{builder_.whole(x_)}},
                          .out = {builder_.whole(x_)},
                          .waits = {OpId{1}, OpId{0}}});
    builder_.elementwise({.function = Function::zero, .out = {region}});
    builder_.gemm({.a = {builder_.whole(x_)},
                   .b = {builder_.column_of(w_, along(mesh(), 0))},
                   .out = {builder_.column_of(y_, along(mesh(), 0))},
                   .kernel_columns = 4});
  }

  void exchanges() {
    const Operand sent{builder_.rows_of(x_, from_the_end())};
    const Operand received{builder_.rows_of(x_, 0)};
    const Relation relations[]{Relation::equal, Relation::not_equal, Relation::less, Relation::at_least};
    for (const Relation relation : relations) {
      const auto lane = static_cast<std::uint16_t>(relation);
      builder_.only_where(builder_.exchange({.lane = {LaneKind::comm, lane}, .axis = 0, .send = sent}),
                          {relation, 0, 1});
      builder_.only_where(
          builder_.exchange({.lane = {LaneKind::comm, lane}, .axis = 1, .shift = -1, .receive = received}),
          {relation, 1, 3});
    }
    builder_.exchange({.axis = 1, .shift = 0, .send = sent, .receive = received, .wire = DType::fp8});
    builder_.exchange({.lane = {LaneKind::kernel, 0}, .axis = 1, .send = sent, .receive = received});
  }

  void collectives() {
    const Operand whole{builder_.rows_of(x_, 0, 8)};
    const Operand part{builder_.rows_of(x_, along(mesh(), 1) * 2, 2)};  // a quarter, along tp
    const auto collective = [&](CollectiveKind kind, const Operand& in, const Operand& out) {
      builder_.collective(
          {.kind = kind, .axis = 1, .in = in, .out = out, .wire = DType::fp32, .waits = {OpId{2}, OpId{5}}});
    };
    collective(CollectiveKind::all_gather, part, whole);
    collective(CollectiveKind::reduce_scatter, whole, part);
    collective(CollectiveKind::all_reduce, whole, whole);
    collective(CollectiveKind::all_to_all, whole, whole);
  }

  [[nodiscard]] const Mesh& mesh() const { return builder_.mesh(); }
  static Index mirrored() {  // (2 - tp) mod 4
    Index index;
    index.terms[1] = {1, 2, -1};
    return index;
  }
  static Index from_the_end() {  // 7 - (-tp mod 4) - 2 * (-node mod 2)
    Index index = 7;
    index.terms[0] = {-2, 0, -1};
    index.terms[1] = {-1, 0, -1};
    return index;
  }

  ProgramBuilder builder_{R"(a "zoo", c:\ & ünïcode)", Mesh{{{"node", 2}, {"tp", 4}}}};
  DimensionId tokens_ = builder_.dimension("tokens", 8);
  DimensionId hidden_ = builder_.dimension("hidden", 2);
  DimensionId ffn_ = builder_.dimension("ffn", 8);
  BufferId x_ = builder_.buffer("x", BufferRole::input, {tokens_, 8}, {hidden_, 2}, DType::fp16);
  BufferId w_ = builder_.buffer("w_1.B", BufferRole::weight, {hidden_, 2}, {ffn_, 2}, DType::fp8);
  BufferId y_ = builder_.buffer("true", BufferRole::output, {tokens_, 8}, {ffn_, 2}, DType::fp32);
};

TEST(ScheduleText, EveryFeatureOfAProgramReadsBack) { expect_round_trip(Zoo().build()); }

TEST(ScheduleText, ShowsOnlyUnusualValues) {
  const std::string text = to_text(Zoo().build());
  const auto contains = [&](std::string_view line) { return text.find(line) != std::string::npos; };
  EXPECT_TRUE(contains(R"(name: "a \"zoo\", c:\\ & ünïcode")"));
  EXPECT_TRUE(contains(R"(here: "x[(-tp+2)%4 +: 2]", tensor: a, row: "8*((node+1)%2)+(tp+3)%4-1", column: "0")"));
  EXPECT_TRUE(contains(R"({id: 0, op: gemm, lane: compute1, purpose: local, accumulate: true, accumulator: fp16, )"
                       R"(kernel_m: tokens*6, a: "x[(-tp+2)%4 +: 2]; x[5]", b: "w_1.B", )"
                       R"(out: "true[7-2*((-node)%2)-((-tp)%4)]; true[0 +: 2]"})"));
  EXPECT_TRUE(contains(R"(in: ["x[2*node +: 2, (node+1)%2]", "x[3 +: 2, 1]", "x[2*node +: 2, (node+1)%2]"])"));
  EXPECT_TRUE(
      contains(R"(op: exchange, lane: comm4, where: "tp >= 3", axis: tp, shift: 3, wire: bf16, receive: "x[0]"})"));
  EXPECT_TRUE(contains(R"(op: elementwise, lane: compute, function: zero, out: "x[2*node +: 2, (node+1)%2]"})"));
  EXPECT_TRUE(contains("op: exchange, lane: kernel, axis: tp, shift: 1, wire: bf16, send: "));
  EXPECT_TRUE(contains("{add: {rows: tokens*8, columns: ffn*2, dtype: fp32, inputs: 3}}"));
  EXPECT_TRUE(
      contains("{gemm: {m: tokens*8, n: ffn*16, k: hidden*2, dtype: fp8, out: fp32, transpose_a: true, "
               "accumulate: true, accumulator: fp16}}"));
  EXPECT_TRUE(contains("  dw: {rows: hidden*2, columns: ffn*16, dtype: fp32, product: [a, c], transpose_a: true}\n"));
  EXPECT_TRUE(contains("  dx: {rows: tokens*8, columns: hidden*2, dtype: fp16, product: [c, b], transpose_b: true}\n"));
  EXPECT_TRUE(
      contains(R"({id: 1, op: gemm, lane: compute, transpose_a: true, a: "x[(-tp+2)%4 +: 2]", b: "true[3 +: 2]", )"
               R"(out: "w_1.B"})"));
  EXPECT_TRUE(contains(R"({id: 2, op: gemm, lane: compute, transpose_b: true, accumulate: true, a: "true[3 +: 2]", )"
                       R"(b: "w_1.B", out: "x[0 +: 2]"})"));
  EXPECT_TRUE(contains(R"({id: 6, op: gemm, lane: compute, kernel_n: ffn*4, a: "x", b: "w_1.B[0 +: 2, node]", )"
                       R"(out: "true[0 +: 8, node]"})"));
}

TEST(ScheduleText, NamesThatYamlWouldReadAsEmptyAreQuoted) {
  ProgramBuilder builder("nulls", Mesh{{{"null", 2}}});
  const Extent rows{builder.dimension("Null", 2), 2};
  const BufferId buffer = builder.buffer("NULL", BufferRole::scratch, rows, rows, DType::bf16);
  builder.exchange({.send = {builder.rows_of(buffer, 0)}, .receive = {builder.rows_of(buffer, 1)}});
  const Program program = std::move(builder).build();
  expect_round_trip(program);
  EXPECT_NE(to_text(program).find("mesh: {\"null\": 2}\ndimensions:\n  \"Null\": 2\n"), std::string::npos);
  EXPECT_NE(to_text(program).find("axis: \"null\", shift: 1, wire: bf16, send: \"NULL[0]\""), std::string::npos);
}

TEST(ScheduleText, AnEmptyProgramReadsBack) {
  const Program program = ProgramBuilder("nothing", Mesh{{{"tp", 1}}}).build();
  EXPECT_EQ(to_text(program),
            "schema: commfuse.schedule/1\nname: \"nothing\"\nmesh: {tp: 1}\ndimensions: {}\ntensors: {}\n"
            "buffers: {}\ninitial: []\nfinal: []\nunfused: []\nops: []\n");
  expect_round_trip(program);
}

// The digest is from coreutils' sha256sum of the text of the empty program above.
TEST(ScheduleText, TheDigestIsTheSha256OfTheText) {
  EXPECT_EQ(digest_of(ProgramBuilder("nothing", Mesh{{{"tp", 1}}}).build()),
            "23415da37ce9f6722794a94777e7a333ab23e72c254c8503d181a962b20e60df");
  EXPECT_NE(digest_of(Zoo().build()), digest_of(ProgramBuilder("nothing", Mesh{{{"tp", 1}}}).build()));
}

constexpr std::string_view schedule_head = R"(schema: commfuse.schedule/1
name: x
mesh: {node: 2, tp: 4}
dimensions: {tokens: 8, hidden: 1}
tensors: {x: {rows: tokens*8, columns: hidden*1, dtype: fp16}, y: {copy: x}}
buffers: {x: {role: input, rows: tokens*8, columns: hidden*1, dtype: fp16}}
initial: [{here: x, tensor: x}]
final: []
unfused: []
ops:
)";

/// Returns the canonical form of the only op in a string.
std::string canonical(const std::string& op) {
  const std::string text = to_text(parse_program(std::string{schedule_head} + op, "hand.yaml"));
  return text.substr(text.find("\nops:\n") + 6);
}

TEST(ScheduleText, UsualValuesMayBeOmitted) {
  EXPECT_EQ(canonical("- {id: 0, op: exchange, axis: tp, shift: 1, send: \"x[0]\"}"),
            "  - {id: 0, op: exchange, lane: comm, axis: tp, shift: 1, wire: fp16, send: \"x[0]\"}\n");
  EXPECT_EQ(canonical("- {id: 0, op: elementwise, function: gelu, in: x, out: x}"),
            "  - {id: 0, op: elementwise, lane: compute, function: gelu, in: \"x\", out: \"x\"}\n");
  EXPECT_EQ(canonical("- {id: 0, op: collective, kind: all_reduce, axis: tp, in: x, out: x, purpose: communication}"),
            "  - {id: 0, op: collective, lane: comm, kind: all_reduce, axis: tp, wire: fp16, in: \"x\", out: \"x\"}\n");
}

TEST(ScheduleText, DtypeRoleAndTheOnlyAxisMayBeOmitted) {
  const Program brief = parse_program(R"(schema: commfuse.schedule/1
name: "brief"
mesh: {tp: 2}
dimensions: {tokens: 2, hidden: 1}
tensors: {x: {rows: tokens*2, columns: hidden*1}}
buffers: {x: {rows: tokens*2, columns: hidden*1}}
initial: [{here: "x[tp]", tensor: x, row: tp}]
final: [{here: x, tensor: x}]
unfused: [copy: {rows: tokens*2, columns: hidden*1}]
ops:
  - {id: 0, op: exchange, shift: 1, send: "x[tp]", receive: "x[(tp+1)%2]"}
  - {id: 1, op: collective, kind: all_gather, in: "x[tp]", out: x}
)",
                                      "brief.yaml");
  EXPECT_EQ(to_text(brief), R"(schema: commfuse.schedule/1
name: "brief"
mesh: {tp: 2}
dimensions:
  tokens: 2
  hidden: 1
tensors:
  x: {rows: tokens*2, columns: hidden*1, dtype: bf16}
buffers:
  x: {role: scratch, rows: tokens*2, columns: hidden*1, dtype: bf16}
initial:
  - {here: "x[tp]", tensor: x, row: "tp", column: "0"}
final:
  - {here: "x", tensor: x, row: "0", column: "0"}
unfused:
  - {copy: {rows: tokens*2, columns: hidden*1, dtype: bf16}}
ops:
  - {id: 0, op: exchange, lane: comm, axis: tp, shift: 1, wire: bf16, send: "x[tp]", receive: "x[(tp+1)%2]"}
  - {id: 1, op: collective, lane: comm, kind: all_gather, axis: tp, wire: bf16, in: "x[tp]", out: "x"}
)");
  expect_round_trip(brief);
}

TEST(ScheduleText, UnfusedFunctionsHaveTheirUsualInputs) {
  const Program program = parse_program(R"(schema: commfuse.schedule/1
name: sums
mesh: {tp: 1}
dimensions: {tokens: 1, hidden: 1}
tensors: {}
buffers: {}
initial: []
final: []
unfused:
  - residual: {rows: tokens*1, columns: hidden*1}
  - add: {rows: tokens*1, columns: hidden*1}
ops: []
)",
                                        "sums.yaml");
  EXPECT_EQ(std::get<ElementwiseShape>(program.unfused.at(0)).inputs, 2);
  EXPECT_EQ(std::get<ElementwiseShape>(program.unfused.at(1)).inputs, 1);
  expect_round_trip(program);
}

TEST(ScheduleText, WithTwoAxesTheAxisIsRequired) {
  EXPECT_THROW(canonical("- {id: 0, op: exchange, shift: 1, send: \"x[0]\"}"), ConfigError);
}

TEST(ScheduleText, KeyOrderSpacingStyleAndCommentsAreFree) {
  EXPECT_EQ(
      canonical("  # an add of one row\n"
                "  - op: elementwise\n"
                "    out: 'x[ 2 ]'\n"
                "    in:\n"
                "      - x[0]   # plain text needs no quotes here\n"
                "      - \"x[ ( tp - 1 ) % 4 +: 1 , 0 ]\"\n"
                "    waits: []\n"
                "    function: add\n"
                "    id: 0\n"),
      "  - {id: 0, op: elementwise, lane: compute, function: add, in: [\"x[0]\", \"x[(tp+3)%4]\"], out: \"x[2]\"}\n");
}

TEST(ScheduleText, DerivedSizesOfATensorMayBeOmitted) {
  const Program program = parse_program(std::string{schedule_head} + "  []", "hand.yaml");
  EXPECT_EQ(program.tensors[1].rows, program.tensors[0].rows);
  EXPECT_EQ(program.tensors[1].dtype, DType::fp16);
}

/// Returns the canonical form of an index written by hand.
std::string index(std::string_view by_hand) {
  const Mesh mesh{{{"node", 2}, {"tp", 4}}};
  return text_of(mesh, text::parse_index(by_hand, mesh));
}

TEST(IndexText, EveryIndexHasOneForm) {
  EXPECT_EQ(index("0"), "0");
  EXPECT_EQ(index("-3 + 5"), "2");
  EXPECT_EQ(index("tp"), "tp");
  EXPECT_EQ(index("(tp)"), "tp");
  EXPECT_EQ(index("tp % 4"), "tp");
  EXPECT_EQ(index("(tp+4)%4"), "tp");
  EXPECT_EQ(index("(tp-1)%4"), "(tp+3)%4");
  EXPECT_EQ(index("(1+tp)%4"), "(tp+1)%4");
  EXPECT_EQ(index("((tp+1)%4)"), "(tp+1)%4");
  EXPECT_EQ(index("2*(tp%4)"), "2*tp");
  EXPECT_EQ(index("1*tp"), "tp");
  EXPECT_EQ(index("-1*tp+3"), "3-tp");
  EXPECT_EQ(index("-tp+3"), "3-tp");
  EXPECT_EQ(index("-tp-3"), "-tp-3");
  EXPECT_EQ(index("tp+8*node"), "8*node+tp");  // in the order of the axes
  EXPECT_EQ(index("1+8*node-2*((3-tp)%4)"), "8*node-2*((-tp+3)%4)+1");
  EXPECT_EQ(index("7-((tp+1)%4)"), "7-((tp+1)%4)");
  EXPECT_EQ(index("-((-tp+2)%4)"), "-((-tp+2)%4)");
}

TEST(IndexText, TheTextReadsBackForEveryIndex) {
  const Mesh mesh{{{"node", 2}, {"tp", 4}}};
  for (const std::int32_t scale : {-8, -2, -1, 0, 1, 2, 8}) {
    for (std::int32_t offset = 0; offset < 4; ++offset) {
      for (const int sign : {1, -1}) {
        for (const std::int32_t constant : {-5, 0, 5}) {
          Index index = constant;
          if (scale != 0) {
            index.terms[1] = {scale, offset, sign};
          }
          EXPECT_EQ(text::parse_index(text_of(mesh, index), mesh), index) << text_of(mesh, index);
          index.terms[0] = {-scale + 1, offset % 2, sign};
          if (index.terms[0].scale != 0) {
            EXPECT_EQ(text::parse_index(text_of(mesh, index), mesh), index) << text_of(mesh, index);
          }
        }
      }
    }
  }
}

/// Returns a program in which each of two ranks attends to all keys with two rows of queries, at these positions.
Program attention_at(const std::vector<Index>& positions) {
  ProgramBuilder builder("mirrored", Mesh{{{"tp", 2}}});
  const Extent tokens{builder.dimension("tokens", 4), 4};
  const Extent columns{builder.dimension("qkv", 1), 1};
  const Extent heads{builder.dimension("attention", 1), 1};
  const BufferId in = builder.buffer("qkv", BufferRole::input, tokens, columns, DType::bf16);
  const BufferId out = builder.buffer("out", BufferRole::output, {tokens.dimension, 2}, heads, DType::bf16);
  builder.attention({.queries = {builder.rows_of(in, 0), builder.rows_of(in, 1)},
                     .keys = {builder.whole(in)},
                     .out = {builder.whole(out)},
                     .positions = positions,
                     .batch = builder.dimension("batch", 1),
                     .head = builder.dimension("head", 1)});
  return std::move(builder).build();
}

TEST(ScheduleText, PositionsOfQueriesReadBack) {
  const Mesh mesh{{{"tp", 2}}};
  const Program program = attention_at({along(mesh, 0), along(mesh, 0) * -1 + 3});
  expect_round_trip(program);
  EXPECT_NE(to_text(program).find(R"(causal: true, positions: ["tp", "3-tp"], in: ["qkv[0]; qkv[1]", "qkv"])"),
            std::string::npos)
      << to_text(program);
}

TEST(ScheduleText, OmitsUsualPositions) {
  EXPECT_EQ(attention_at({0, 1}), attention_at({}));
  EXPECT_EQ(to_text(attention_at({0, 1})).find("positions"), std::string::npos);
  EXPECT_NE(to_text(attention_at({1, 2})), to_text(attention_at({})));
}

}  // namespace
}  // namespace commfuse
