// SPDX-License-Identifier: Apache-2.0
// Tests that the proof of a mutant by its differences from the program agrees with the proof of the whole mutant.
#include "model/proof/mutant_proof.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/program/builder.h"
#include "model/program_text/load_schedule.h"
#include "model/proof/check_program.h"
#include "model/strategies/generate.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"
#include "tests/slow_build.h"

namespace commfuse {
namespace {

/// Counts the verdicts on all mutants of a program by kind of mutation, and compares each with check_program().
void compare(const Program& program, std::map<std::string, int>& counts) {
  const auto words = [](const std::optional<FindingKind>& kind) {
    return std::string{kind ? name_of(*kind) : "right"};
  };
  Sums sums;
  MutantProof proof(program, sums);
  for_each_mutation(program, [&](const Mutation& mutation) {
    const CheckReport report = check_program(mutation.program);
    const std::string verdict = words(proof.first_finding(mutation));
    ++counts[fmt::format("{} {}", name_of(mutation.kind), verdict)];
    EXPECT_EQ(verdict, report.ok() ? "right" : words(report.findings.front().kind))
        << program.name << ", " << program.mesh.ranks() << " ranks, " << mutation.description;
  });
}

TEST(MutantProof, AgreesWithTheWholeProofOnGeneratedSchedules) {
  std::map<std::string, int> counts;
  for (const Scope scope : {Scope::qkv, Scope::down, Scope::mlp, Scope::attention, Scope::down_backward}) {
    for (const Strategy& strategy : strategies()) {
      const bool is_site = kinds_of(scope).size() == 1 && !slow_build;
      for (std::int32_t ranks = 2; ranks <= (is_site ? 3 : 2); ++ranks) {
        for (const StrategyOptions& options : schedules_to_prove(strategy, kinds_of(scope), ranks)) {
          compare(generate(operation_of(scope, true), ranks, strategy, options), counts);
        }
      }
    }
  }
  for (const char* verdict :
       {"shift contents", "offset hazard", "offset contents", "position hazard", "position contents", "position right",
        "buffer hazard", "buffer contents", "wait hazard", "wait right", "accumulate hazard", "accumulate contents",
        "add_input contents", "removal hazard", "removal contents", "lane hazard", "lane right", "order right"}) {
    EXPECT_GT(counts[verdict], 0) << verdict;
  }
}

TEST(MutantProof, AgreesWithTheWholeProofOnNestedRings) {
  std::map<std::string, int> counts;
  const Strategy& commfuse = commfuse_strategy;
  for (const Scope scope : {Scope::gate_up, Scope::down}) {
    for (const StrategyOptions& options : schedules_to_prove(commfuse, kinds_of(scope), 4)) {
      if (options.inner > 1 && mesh_of(4, options).axes.size() == 2) {
        compare(generate(operation_of(scope, true), 4, commfuse, options), counts);
      }
    }
  }
  EXPECT_GT(counts["shift contents"], 0);
}

// Some of these schedules have predicates, halves of exchanges, pushes or pulls.
TEST(MutantProof, AgreesWithTheWholeProofOnHandwrittenSchedules) {
  std::map<std::string, int> counts;
  for (const auto& entry : std::filesystem::directory_iterator(COMMFUSE_SOURCE_DIR "/configs/schedules")) {
    if (entry.path().extension() == ".yaml") {
      const Program program = load_schedule(entry.path().string()).program;
      if (program.mesh.ranks() <= 4) {
        compare(program, counts);
      }
    }
  }
  EXPECT_GT(counts["wait hazard"], 0);
}

// Two copies read a slot on one lane, and the op that overwrites the slot waits only for the second. If the copies are
// swapped, the first copy may still be reading.
TEST(MutantProof, FindsAReaderWithoutItsWait) {
  ProgramBuilder builder("slot", Mesh{{{"tp", 1}}});
  const Extent block{builder.dimension("tokens", 1), 1};
  const auto buffer = [&](const char* name, BufferRole role) {
    return builder.whole(builder.buffer(name, role, block, block, DType::bf16));
  };
  const auto copy = [&](const Region& from, const Region& to, const std::vector<OpId>& waits, Lane lane = {}) {
    return builder.elementwise(
        {.lane = lane, .function = Function::copy, .inputs = {{from}}, .out = {to}, .waits = waits});
  };
  const TensorId x = builder.input_tensor("x", block, block, DType::bf16);
  const TensorId z = builder.input_tensor("z", block, block, DType::bf16);
  const Region slot = buffer("slot", BufferRole::scratch);
  const Region first = buffer("first", BufferRole::input);
  const Region second = buffer("second", BufferRole::input);
  const std::array outputs{buffer("a", BufferRole::output), buffer("b", BufferRole::output),
                           buffer("c", BufferRole::output)};
  builder.initially(first, x, 0, 0);
  builder.initially(second, z, 0, 0);
  builder.finally(outputs[0], x, 0, 0);
  builder.finally(outputs[1], x, 0, 0);
  builder.finally(outputs[2], z, 0, 0);
  copy(first, slot, {});
  copy(slot, outputs[0], {});
  const OpId last_reader = copy(slot, outputs[1], {});
  const OpId overwrite = copy(second, slot, {last_reader}, {LaneKind::aux, 0});
  copy(slot, outputs[2], {overwrite});
  const Program program = std::move(builder).build();
  ASSERT_TRUE(check_program(program).ok());
  std::map<std::string, int> counts;
  compare(program, counts);
  EXPECT_EQ(counts["order hazard"], 2);  // The second mutant moves a reader before the op that writes the slot.
}

}  // namespace
}  // namespace commfuse
