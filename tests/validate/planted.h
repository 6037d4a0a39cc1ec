// SPDX-License-Identifier: Apache-2.0
// Plants mistakes in a schedule and checks that an executor detects them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "model/proof/check_program.h"
#include "model/proof/mutate.h"
#include "validate/executor.h"
#include "validate/reference/check_point.h"
#include "validate/reference/collective.h"
#include "validate/reference/data.h"
#include "validate/reference/interpreter.h"

namespace commfuse::validate::test {

/// True if the program can be lowered in spite of its first finding.
inline bool can_run(const CheckReport& report) {
  const FindingKind kind = report.findings.front().kind;
  return kind == FindingKind::deadlock || kind == FindingKind::hazard || kind == FindingKind::contents;
}

/// True if every rank of this executor ends with the contents that the program promises.
inline bool holds_its_final_contents(const Executor& executor, std::span<const Matrix<float>> expected) {
  const Program& program = executor.program();
  for (const Content& content : program.final) {
    for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
      if (!executor.holds(rank)) {
        continue;
      }
      const Area area = area_of(program, executor.sizes(), content, rank);
      const Matrix<float> whole = rows_of(expected[position(content.tensor)], area.row, area.rows);
      const Matrix<float> actual =
          executor.fetch(rank, rectangle_of(program, content.here, program.mesh.coordinates(rank)));
      for (std::int64_t row = 0; row < actual.rows(); ++row) {
        if (!std::ranges::equal(actual.row(row), whole.row(row).subspan(static_cast<std::size_t>(area.column),
                                                                        static_cast<std::size_t>(area.columns)))) {
          return false;
        }
      }
    }
  }
  return true;
}

/// The kind of a planted mistake.
enum class Planted : std::uint8_t { missing_dependency, wrong_peer, early_overwrite, lost_sum, other };

inline Planted kind_of(const Mutation& mutation, const std::string& finding) {
  if (mutation.kind == MutationKind::wait) {
    return Planted::missing_dependency;
  }
  if (mutation.kind == MutationKind::shift) {
    return Planted::wrong_peer;
  }
  if (mutation.kind == MutationKind::add_input ||
      mutation.description.find("overwrites its output") != std::string::npos) {
    return Planted::lost_sum;
  }
  return finding.find(" writes ") != std::string::npos ? Planted::early_overwrite : Planted::other;
}

struct Caught {
  int planted = 0;
  int caught = 0;
};

/// Returns true if a run of this program under this seed of chaos goes wrong.
using IsCaught = std::function<bool(const Program& program, const Sizes& sizes, std::uint64_t seed)>;

/// Plants the mistakes of mutations_of() one at a time, runs each under up to `seeds` seeds of chaos, and counts them
/// by kind. Skips mistakes that break nothing and mistakes after which the schedule cannot run.
inline void plant_in(const Program& program, const IsCaught& is_caught, std::uint64_t seeds,
                     std::array<Caught, 5>& kinds) {
  const Sizes sizes = checked_sizes(program)[1];
  for (const Mutation& mutation : mutations_of(program)) {
    const CheckReport report = check_program(mutation.program);
    if (report.ok() || !can_run(report)) {
      continue;
    }
    Caught& count = kinds[static_cast<std::size_t>(kind_of(mutation, report.findings.front().sentence))];
    ++count.planted;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      if (is_caught(mutation.program, sizes, seed)) {
        ++count.caught;
        break;
      }
    }
  }
}

/// Expects that more than `least` mistakes of each kind except `other` were planted, that all mistakes that are wrong
/// in every order were caught, and that at least half of the mistakes that are wrong only in some orders were caught.
inline void expect_caught(const std::array<Caught, 5>& kinds, int least) {
  const auto count_of = [&](Planted kind) { return kinds[static_cast<std::size_t>(kind)]; };
  for (const auto kind : {Planted::wrong_peer, Planted::lost_sum}) {
    EXPECT_GT(count_of(kind).planted, least);
    EXPECT_EQ(count_of(kind).caught, count_of(kind).planted);
  }
  for (const auto kind : {Planted::missing_dependency, Planted::early_overwrite}) {
    EXPECT_GT(count_of(kind).planted, least);
    EXPECT_GE(2 * count_of(kind).caught, count_of(kind).planted);
  }
}

/// True if a run on integers differs from the unfused operation, or does not end.
inline bool goes_wrong(Executor& executor, std::uint64_t seed) {
  const auto [inputs, expected] = integer_data(executor.program(), executor.sizes(), 1);
  try {
    executor.prepare(inputs);
    executor.run({.functions = Functions::integer, .order = seed, .iterations = 1 + static_cast<int>(seed % 2)});
    return !holds_its_final_contents(executor, expected);
  } catch (const Stuck&) {
    return true;
  }
}

}  // namespace commfuse::validate::test
