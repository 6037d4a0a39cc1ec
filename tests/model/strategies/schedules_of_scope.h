// SPDX-License-Identifier: Apache-2.0
// Schedules of a scope for the tests of backward passes and of data parallelism, and the requirements on all of them.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "model/program_text/text.h"
#include "model/proof/check_program.h"
#include "model/proof/mutation_report.h"
#include "model/strategies/scope.h"

namespace commfuse {

/// Returns all schedules that are proved on `ranks` ranks.
inline std::vector<Program> schedules_of(Scope scope, std::int32_t ranks) {
  std::vector<Program> programs;
  for (const Strategy& strategy : strategies()) {
    for (const StrategyOptions& options : schedules_to_prove(strategy, kinds_of(scope), ranks)) {
      programs.push_back(generate(operation_of(scope, true), ranks, strategy, options));
    }
  }
  return programs;
}

inline std::vector<std::string> names(const std::vector<Program>& programs) {
  std::vector<std::string> program_names;
  for (const Program& program : programs) {
    program_names.push_back(program.name);
  }
  return program_names;
}

inline void expect_proved_and_read_back(std::span<const Scope> scopes) {
  for (const std::int32_t ranks : {1, 2, 3, 4, 5, 7, 8, 16}) {
    for (const Scope scope : scopes) {
      for (const Program& program : schedules_of(scope, ranks)) {
        EXPECT_EQ(check_program(program).findings.size(), 0U) << program.name << ", " << ranks << " ranks";
        EXPECT_EQ(parse_program(to_text(program), program.name), program) << program.name << ", " << ranks << " ranks";
      }
    }
  }
}

/// Expects every mutant of the schedules on 2 and 3 ranks to be caught or proved equivalent.
inline void expect_no_mutant_survives(std::span<const Scope> scopes) {
  MutationReport report;
  for (const std::int32_t ranks : {2, 3}) {
    for (const Scope scope : scopes) {
      for (const Program& program : schedules_of(scope, ranks)) {
        report += mutate(program, [](Fate fate) { return fate == Fate::survived; });
      }
    }
  }
  for (const MutantResult& survivor : report.listed) {
    ADD_FAILURE() << survivor.schedule << ", " << survivor.ranks << " ranks, " << survivor.mutation;
  }
  EXPECT_GT(report.count(Fate::caught), 1000);
  // Lanes and order are often free, so many mutants are equivalent.
  EXPECT_LT(report.count(Fate::equivalent), report.count(Fate::caught));
}

}  // namespace commfuse
