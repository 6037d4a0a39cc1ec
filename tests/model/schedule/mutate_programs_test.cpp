// SPDX-License-Identifier: Apache-2.0
// Every single mutation of every schedule is caught by check_program() or proved to do the same.
#include "model/schedule/mutate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/schedule/builder.h"
#include "model/schedule/check_program.h"
#include "model/schedule/generate.h"
#include "model/schedule/scope.h"
#include "model/schedule/strategies.h"
#include "tests/model/schedule/golden_text.h"

namespace commfuse {
namespace {

/// "caught: hazard", "equivalent: same order", or "missed".
std::string verdict(const Program& original, const Mutation& mutation) {
  const CheckReport report = check_program(mutation.program);
  if (!report.ok()) {
    return fmt::format("caught: {}", name_of(report.findings.front().kind));
  }
  const auto proof = equivalence_of(original, mutation.program);
  return proof ? fmt::format("equivalent: {}", name_of(*proof)) : "missed";
}

std::vector<Program> all_programs() {
  std::vector<Program> programs;
  for (std::int32_t ranks = 2; ranks <= 4; ++ranks) {
    for (const Scope scope : {Scope::qkv, Scope::down, Scope::mlp}) {
      const Operation operation = operation_of(scope, true);
      for (const Strategy& strategy : strategies()) {
        for (const StrategyOptions& options : distinct(strategy, kinds_of(operation), strategy.variants({}), ranks)) {
          if (refusal_of(strategy, kinds_of(operation), options, ranks).empty()) {
            programs.push_back(generate(operation, ranks, strategy, options));
          }
        }
      }
    }
  }
  return programs;
}

TEST(Mutations, OfEveryScheduleAreCaughtOrProvedEquivalent) {
  std::map<MutationKind, std::map<std::string, int>> counts;
  std::map<std::string, int> proved;
  for (const Program& program : all_programs()) {
    for (const Mutation& mutation : mutations_of(program)) {
      const std::string outcome = verdict(program, mutation);
      ++counts[mutation.kind][outcome];
      EXPECT_NE(outcome, "missed") << program.name << ", " << program.mesh.ranks() << " ranks, "
                                   << mutation.description;
      if (outcome.starts_with("equivalent")) {
        ++proved[fmt::format("{}, {} ranks, {}: {}", program.name, program.mesh.ranks(), mutation.description,
                             outcome)];
      }
    }
  }
  std::string text =
      "Single mutations of every schedule of qkv, down and mlp for 2, 3 and 4 ranks, and what becomes of them\n";
  for (const auto& [kind, outcomes] : counts) {
    text += fmt::format("\n{}\n", name_of(kind));
    for (const auto& [outcome, count] : outcomes) {
      text += fmt::format("  {}: {}\n", outcome, count);
    }
  }
  text += "\nproved equivalent\n";
  for (const auto& [what, count] : proved) {
    text += fmt::format("  {}\n", what);
  }
  EXPECT_EQ(text, golden_text("mutations.txt", text));
}

TEST(Mutations, OfEveryProvedScheduleOfFourRanksAreCaughtOrProvedEquivalent) {
  int caught = 0;
  for (const Scope scope : {Scope::qkv, Scope::down}) {
    const Operation operation = operation_of(scope, true);
    for (const StrategyOptions& options : schedules_to_prove(*find_strategy("commfuse"), kinds_of(operation), 4)) {
      const Program program = generate(operation, 4, *find_strategy("commfuse"), options);
      for (const Mutation& mutation : mutations_of(program)) {
        const std::string outcome = verdict(program, mutation);
        EXPECT_NE(outcome, "missed") << program.name << ", " << mutation.description;
        caught += outcome.starts_with("caught") ? 1 : 0;
      }
    }
  }
  EXPECT_GT(caught, 10000);
}

/// x of one rank goes through one of two rooms of the same extents.
struct Detour {
  ProgramBuilder builder{"detour", Mesh{{{"tp", 1}}}};
  Extent one{builder.dimension("tokens", 1), 1};
  TensorId x = builder.input_tensor("x", one, one, DType::bf16);
  BufferId in = builder.buffer("in", BufferRole::input, one, one, DType::bf16);
  BufferId rooms = builder.buffer("rooms", BufferRole::scratch, {one.dimension, 2}, one, DType::bf16);
  BufferId out = builder.buffer("out", BufferRole::output, one, one, DType::bf16);

  OpId copy(const Region& from, const Region& to, std::vector<OpId> waits = {}) {
    return builder.elementwise(
        {.function = Function::copy, .inputs = {{from}}, .out = {to}, .waits = std::move(waits)});
  }
  Program through(std::int32_t room, std::vector<OpId> waits = {}) {
    builder.initially(builder.whole(in), x, 0, 0);
    builder.finally(builder.whole(out), x, 0, 0);
    copy(builder.whole(in), builder.rows_of(rooms, room));
    copy(builder.rows_of(rooms, room), builder.whole(out), std::move(waits));
    return std::move(builder).build();
  }
};

TEST(Equivalence, OfAProgramAndItselfNeedsNoProof) {
  EXPECT_EQ(equivalence_of(Detour{}.through(0), Detour{}.through(0)), Equivalence::same_accesses);
}

TEST(Equivalence, OfAWaitThatTheLaneImpliesIsByOrder) {
  EXPECT_EQ(equivalence_of(Detour{}.through(0), Detour{}.through(0, {OpId{0}})), Equivalence::same_order);
}

TEST(Equivalence, OfAConsistentlyRenamedSlotIsByValues) {
  EXPECT_EQ(equivalence_of(Detour{}.through(0), Detour{}.through(1)), Equivalence::same_values);
}

TEST(Equivalence, IsNotProvedWhenOneOfThemFailsItsCheck) {
  Program wrong = Detour{}.through(0);
  wrong.regions[2].row.constant = 1;  // reads the other room
  EXPECT_EQ(equivalence_of(Detour{}.through(0), wrong), std::nullopt);
}

TEST(Equivalence, IsNotProvedWhenValuesTakeAnotherWay) {
  Program straight = Detour{}.through(0);
  straight.shapes.emplace_back(ElementwiseShape{.function = Function::add,
                                                .inputs = 1,
                                                .rows = straight.buffers[0].rows,
                                                .columns = straight.buffers[0].columns});
  straight.ops[1].shape = static_cast<std::uint32_t>(straight.shapes.size()) - 1;
  ASSERT_TRUE(check_program(straight).ok());
  EXPECT_EQ(equivalence_of(Detour{}.through(0), straight), std::nullopt);
}

TEST(Mutations, OfOneOpAreAllThereAreOfIt) {
  // One exchange on three ranks whose send is indexed by the rank: two other peers, two other rows each way, no others.
  ProgramBuilder builder("one", Mesh{{{"tp", 3}}});
  const DimensionId tokens = builder.dimension("tokens", 3);
  const DimensionId hidden = builder.dimension("hidden", 1);
  const BufferId from = builder.buffer("from", BufferRole::input, {tokens, 3}, {hidden, 1}, DType::bf16);
  const BufferId to = builder.buffer("to", BufferRole::output, {tokens, 3}, {hidden, 1}, DType::bf16);
  builder.exchange({.send = {builder.rows_of(from, along(builder.mesh(), 0))}, .receive = {builder.rows_of(to, 1)}});
  std::vector<std::string> found;
  for (const Mutation& mutation : mutations_of(std::move(builder).build())) {
    found.push_back(fmt::format("{}, {}", name_of(mutation.kind), mutation.description));
  }
  EXPECT_EQ(found, (std::vector<std::string>{"shift, op 0 (exchange): shift 2 instead of 1",
                                             "shift, op 0 (exchange): shift 0 instead of 1",
                                             "offset, op 0 (exchange): input 0, region 0, row: offset 1 instead of 0",
                                             "offset, op 0 (exchange): input 0, region 0, row: offset 2 instead of 0",
                                             "buffer, op 0 (exchange): input 0, region 0: to instead of from",
                                             "position, op 0 (exchange): output 0, region 0, row +1",
                                             "position, op 0 (exchange): output 0, region 0, row -1",
                                             "buffer, op 0 (exchange): output 0, region 0: from instead of to",
                                             "removal, op 0 (exchange): left out"}));
}

}  // namespace
}  // namespace commfuse
