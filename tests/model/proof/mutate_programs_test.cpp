// SPDX-License-Identifier: Apache-2.0
// Tests that every mutant of every schedule is caught by check_program() or proved to do equal work. A mutant has
// exactly one mutation.
#include "model/proof/mutate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/program/builder.h"
#include "model/program/names.h"
#include "model/proof/check_program.h"
#include "model/proof/mutation_report.h"
#include "model/strategies/generate.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"
#include "tests/model/strategies/golden_text.h"

namespace commfuse {
namespace {

/// Returns every schedule that is tried, including one whose slices are copied together.
std::vector<StrategyOptions> schedules_of(const Strategy& strategy, Scope scope, std::int32_t ranks) {
  if (!applies(strategy, kinds_of(scope))) {
    return {};
  }
  std::vector<StrategyOptions> variants = strategy.variants({.slices = 2}, {Option::slices});
  variants.push_back({.slices = 2});
  put(*option_named("shuffles"), "copied", variants.back());
  std::erase_if(variants, [&](const StrategyOptions& options) {
    return !refusal_of(strategy, kinds_of(scope), options, ranks).empty();
  });
  return distinct(strategy, kinds_of(scope), variants, ranks);
}

/// Counts the fates of mutations by kind. A mutation that survives fails the test.
std::string fates_of(const std::vector<Scope>& scopes, std::int32_t max_ranks) {
  MutationReport report;
  for (std::int32_t ranks = 2; ranks <= max_ranks; ++ranks) {
    for (const Scope scope : scopes) {
      for (const Strategy& strategy : strategies()) {
        for (const StrategyOptions& options : schedules_of(strategy, scope, ranks)) {
          report += mutate(generate(operation_of(scope, true), ranks, strategy, options),
                           [](Fate fate) { return fate == Fate::survived; });
        }
      }
    }
  }
  for (const MutantResult& result : report.listed) {
    ADD_FAILURE() << result.schedule << ", " << result.ranks << " ranks, " << result.mutation;
  }
  std::string text;
  for (const auto& [kind, outcomes] : report.counts) {
    text += fmt::format("\n{}\n", name_of(kind));
    for (const auto& [outcome, count] : outcomes) {
      text += fmt::format("  {}{}{}: {}\n", name_of(outcome.first), outcome.second.empty() ? "" : ": ", outcome.second,
                          count);
    }
  }
  return text;
}

TEST(Mutations, AreCaughtOrEquivalentInEveryScheduleOfASite) {
  const std::string text = "Single mutations of every schedule of qkv and down for 2, 3 and 4 ranks\n" +
                           fates_of({Scope::qkv, Scope::down}, 4);
  EXPECT_EQ(text, golden_text("mutations.txt", text));
}

TEST(Mutations, AreCaughtOrEquivalentInChainsAndBackwardPasses) {
  const std::string text =
      "Single mutations of every schedule of mlp, mlp_ar, down_ar, gate_up_backward, down_backward and "
      "fsdp_gate_up for 2 ranks\n" +
      fates_of({Scope::mlp, Scope::mlp_ar, Scope::down_ar, Scope::gate_up_backward, Scope::down_backward,
                Scope::fsdp_gate_up},
               2);
  EXPECT_EQ(text, golden_text("mutations_chains.txt", text));
}

TEST(Mutations, AreCaughtOrEquivalentInAttentionAndUlysses) {
  const std::string text = "Single mutations of every schedule of attention and ulysses for 2 ranks\n" +
                           fates_of({Scope::attention, Scope::ulysses}, 2);
  EXPECT_EQ(text, golden_text("mutations_attention.txt", text));
}

TEST(Mutations, AreCaughtOrEquivalentInSchedulesOfFourRanks) {
  MutationReport report;
  for (const Scope scope : {Scope::qkv, Scope::down}) {
    const Operation operation = operation_of(scope, true);
    for (const StrategyOptions& options : schedules_to_prove(commfuse_strategy, kinds_of(operation), 4)) {
      report +=
          mutate(generate(operation, 4, commfuse_strategy, options), [](Fate fate) { return fate == Fate::survived; });
    }
  }
  EXPECT_EQ(report.count(Fate::survived), 0);
  EXPECT_GT(report.count(Fate::caught), 10000);
}

/// A program in which x of one rank passes through one of two slots of equal extents.
struct Detour {
  ProgramBuilder builder{"detour", Mesh{{{"tp", 1}}}};
  Extent block{builder.dimension("tokens", 1), 1};
  TensorId x = builder.input_tensor("x", block, block, DType::bf16);
  BufferId in = builder.buffer("in", BufferRole::input, block, block, DType::bf16);
  BufferId slots = builder.buffer("slots", BufferRole::scratch, {block.dimension, 2}, block, DType::bf16);
  BufferId out = builder.buffer("out", BufferRole::output, block, block, DType::bf16);

  OpId copy(const Region& from, const Region& to, const std::vector<OpId>& waits = {}) {
    return builder.elementwise({.function = Function::copy, .inputs = {{from}}, .out = {to}, .waits = waits});
  }
  Program program_through(std::int32_t slot, const std::vector<OpId>& waits = {}) {
    builder.initially(builder.whole(in), x, 0, 0);
    builder.finally(builder.whole(out), x, 0, 0);
    copy(builder.whole(in), builder.rows_of(slots, slot));
    copy(builder.rows_of(slots, slot), builder.whole(out), waits);
    return std::move(builder).build();
  }
};

TEST(Equivalence, ToItselfNeedsNoProof) {
  EXPECT_EQ(equivalence_of(Detour{}.program_through(0), Detour{}.program_through(0)), Equivalence::same_accesses);
}

TEST(Equivalence, FollowsFromTheOrderForAWaitThatTheLaneImplies) {
  EXPECT_EQ(equivalence_of(Detour{}.program_through(0), Detour{}.program_through(0, {OpId{0}})),
            Equivalence::same_order);
}

TEST(Equivalence, FollowsFromValuesForAConsistentlyRenamedSlot) {
  EXPECT_EQ(equivalence_of(Detour{}.program_through(0), Detour{}.program_through(1)), Equivalence::same_values);
}

TEST(Equivalence, IsNotProvedWhenOneProgramFailsItsCheck) {
  Program wrong = unshared(Detour{}.program_through(0));
  wrong.regions[2].row.constant = 1;  // It reads the other slot.
  EXPECT_EQ(equivalence_of(Detour{}.program_through(0), wrong), std::nullopt);
}

TEST(Equivalence, IsNotProvedWhenValuesTakeAnotherPath) {
  Program straight = Detour{}.program_through(0);
  straight.shapes.emplace_back(ElementwiseShape{.function = Function::add,
                                                .inputs = 1,
                                                .rows = straight.buffers[0].rows,
                                                .columns = straight.buffers[0].columns});
  straight.ops[1].shape = static_cast<std::uint32_t>(straight.shapes.size()) - 1;
  ASSERT_TRUE(check_program(straight).ok());
  EXPECT_EQ(equivalence_of(Detour{}.program_through(0), straight), std::nullopt);
}

/// Returns a program that accumulates y in place from three partial GEMMs, and then makes a copy that nothing needs.
Program three_parts() {
  ProgramBuilder builder("three parts", Mesh{{{"tp", 1}}});
  const Extent tokens{builder.dimension("tokens", 1), 1};
  const DimensionId hidden = builder.dimension("hidden", 3);
  const Extent ffn{builder.dimension("ffn", 1), 1};
  const TensorId x = builder.input_tensor("x", tokens, {hidden, 3}, DType::bf16);
  const TensorId w = builder.input_tensor("w", {hidden, 3}, ffn, DType::bf16);
  const TensorId y = builder.product_tensor("y", x, w);
  const BufferId a = builder.buffer("x", BufferRole::input, tokens, {hidden, 3}, DType::bf16);
  const BufferId b = builder.buffer("w", BufferRole::weight, {hidden, 3}, ffn, DType::bf16);
  const BufferId out = builder.buffer("y", BufferRole::output, tokens, ffn, DType::bf16);
  const BufferId spare = builder.buffer("spare", BufferRole::scratch, tokens, ffn, DType::bf16);
  builder.initially(builder.whole(a), x, 0, 0);
  builder.initially(builder.whole(b), w, 0, 0);
  builder.finally(builder.whole(out), y, 0, 0);
  for (std::int32_t part = 0; part < 3; ++part) {
    builder.gemm({.a = {{a, 0, part, 1, 1}},
                  .b = {builder.rows_of(b, part)},
                  .out = {builder.whole(out)},
                  .accumulate = part > 0});
  }
  builder.elementwise({.function = Function::copy, .inputs = {{builder.whole(out)}}, .out = {builder.whole(spare)}});
  return std::move(builder).build();
}

TEST(MutationReport, ListsSurvivorsWithReasons) {
  const Program program = three_parts();
  ASSERT_TRUE(check_program(program).ok());
  const MutationReport report = mutate(program, [](Fate fate) { return fate != Fate::caught; });
  std::vector<std::string> fates;
  for (const MutantResult& result : report.listed) {
    fates.push_back(fmt::format("{}: {} {}", result.mutation, name_of(result.fate), result.why));
  }
  // The parts may change places, except that the first one overwrites. Nothing needs the copy, and no op depends on the
  // data that it copies.
  EXPECT_EQ(fates, (std::vector<std::string>{
                       "op 1 (gemm): after op 2: equivalent same sums", "op 2 (gemm): after op 3: survived ",
                       "op 3 (elementwise): output 0, region 0: y instead of spare: equivalent same values",
                       "op 3 (elementwise): removed: survived "}));
  EXPECT_EQ(report.count(Fate::survived), 2);
  EXPECT_EQ(report.count(MutationKind::removal, Fate::survived), 1);
  EXPECT_EQ(report.count(MutationKind::order, Fate::equivalent), 1);
  EXPECT_EQ(report.count(Fate::caught) + 4, static_cast<std::int64_t>(mutations_of(program).size()));
}

TEST(MutationReport, AddsUp) {
  const auto list_nothing = [](Fate) { return false; };
  MutationReport twice = mutate(three_parts(), list_nothing);
  const MutationReport single = mutate(three_parts(), list_nothing);
  twice += mutate(three_parts(), list_nothing);
  EXPECT_EQ(twice.schedules, 2);
  for (const Fate fate : {Fate::caught, Fate::equivalent, Fate::survived}) {
    EXPECT_EQ(twice.count(fate), 2 * single.count(fate)) << name_of(fate);
  }
  EXPECT_TRUE(twice.listed.empty());
}

TEST(Equivalence, TracksOpsThatChangedPlaces) {
  // Two copies on one lane do not depend on each other. The ids state which op of `swapped` is which copy.
  ProgramBuilder builder("two", Mesh{{{"tp", 1}}});
  const Extent two{builder.dimension("tokens", 2), 2};
  const Extent one_block{builder.dimension("hidden", 1), 1};
  const TensorId x = builder.input_tensor("x", two, one_block, DType::bf16);
  const BufferId from = builder.buffer("from", BufferRole::input, two, one_block, DType::bf16);
  const BufferId to = builder.buffer("to", BufferRole::output, two, one_block, DType::bf16);
  builder.initially(builder.whole(from), x, 0, 0);
  builder.finally(builder.whole(to), x, 0, 0);
  for (std::int32_t row = 0; row < 2; ++row) {
    builder.elementwise(
        {.function = Function::copy, .inputs = {{builder.rows_of(from, row)}}, .out = {builder.rows_of(to, row)}});
  }
  const Program program = std::move(builder).build();
  Program swapped = program;
  std::swap(swapped.ops[0], swapped.ops[1]);
  EXPECT_EQ(equivalence_of(program, swapped), std::nullopt);
  EXPECT_EQ(equivalence_of(program, swapped, std::vector{OpId{1}, OpId{0}}), Equivalence::same_values);
}

TEST(Mutations, KeepWaitsAndIdsWhenLanesOrOrderChange) {
  // An exchange on comm; two copies on compute; the second waits for the exchange.
  ProgramBuilder builder("three", Mesh{{{"tp", 2}}});
  const Extent one_token{builder.dimension("tokens", 1), 1};
  const BufferId x = builder.buffer("x", BufferRole::scratch, one_token, one_token, DType::bf16);
  const OpId arrived = builder.exchange({.send = {builder.whole(x)}, .receive = {builder.whole(x)}});
  builder.elementwise({.function = Function::copy, .inputs = {{builder.whole(x)}}, .out = {builder.whole(x)}});
  builder.elementwise(
      {.function = Function::copy, .inputs = {{builder.whole(x)}}, .out = {builder.whole(x)}, .waits = {arrived}});
  std::vector<std::string> lanes_by_mutation;
  for (const Mutation& mutation : mutations_of(std::move(builder).build())) {
    if (mutation.kind != MutationKind::lane && mutation.kind != MutationKind::order) {
      continue;
    }
    std::string lanes;
    for (const Op& op : mutation.program.ops) {
      lanes += fmt::format("{}{}", lanes.empty() ? "" : "; ", name_of(mutation.program.lanes[op.lane]));
      for (const OpId wait : mutation.program.waits_of(op)) {
        lanes += fmt::format(" after {}", static_cast<std::int32_t>(wait));
      }
    }
    lanes_by_mutation.push_back(fmt::format("{}: {}", mutation.description, lanes));
  }
  EXPECT_EQ(lanes_by_mutation,
            (std::vector<std::string>{"op 0 (exchange): on compute instead of comm: compute; compute; compute after 0",
                                      "op 0 (exchange): after op 1: compute; comm; compute after 1",
                                      "op 1 (elementwise): on comm instead of compute: comm; comm; compute after 0",
                                      "op 1 (elementwise): after op 2: comm; compute after 0; compute",
                                      "op 2 (elementwise): on comm instead of compute: comm; compute; comm after 0"}));
}

TEST(Mutations, IncludeEveryPossibleMutationOfAnOp) {
  // One exchange on three ranks; the row that it sends is indexed by the rank. Its mutations are two other shifts, two
  // other offsets of that row, two other positions of the row that it receives, another buffer at each end, and its
  // removal.
  ProgramBuilder builder("one", Mesh{{{"tp", 3}}});
  const DimensionId tokens = builder.dimension("tokens", 3);
  const DimensionId hidden = builder.dimension("hidden", 1);
  const BufferId from = builder.buffer("from", BufferRole::input, {tokens, 3}, {hidden, 1}, DType::bf16);
  const BufferId to = builder.buffer("to", BufferRole::output, {tokens, 3}, {hidden, 1}, DType::bf16);
  builder.exchange({.send = {builder.rows_of(from, along(builder.mesh(), 0))}, .receive = {builder.rows_of(to, 1)}});
  std::vector<std::string> mutations;
  for (const Mutation& mutation : mutations_of(std::move(builder).build())) {
    mutations.push_back(fmt::format("{}, {}", name_of(mutation.kind), mutation.description));
  }
  EXPECT_EQ(
      mutations,
      (std::vector<std::string>{
          "shift, op 0 (exchange): shift 2 instead of 1", "shift, op 0 (exchange): shift 0 instead of 1",
          "offset, op 0 (exchange): input 0, region 0, row: offset 1 instead of 0",
          "offset, op 0 (exchange): input 0, region 0, row: offset 2 instead of 0",
          "buffer, op 0 (exchange): input 0, region 0: to instead of from",
          "position, op 0 (exchange): output 0, region 0, row +1",
          "position, op 0 (exchange): output 0, region 0, row -1",
          "buffer, op 0 (exchange): output 0, region 0: from instead of to", "removal, op 0 (exchange): removed"}));
}

}  // namespace
}  // namespace commfuse
