// SPDX-License-Identifier: Apache-2.0
// How much a proof has to look at, known before it begins: a few lines of text can ask for days.
#pragma once

#include <cstdint>

#include "model/program/program.h"
#include "model/proof/symmetry.h"

namespace commfuse {

/// Blocks that a proof looks at, each under 10 ns: as much as one begins with, of one rank of a file or of all ranks.
inline constexpr std::int64_t most_effort = std::int64_t{1} << 27U;

/// As much of one rank of a generated schedule, whose products are cut as regularly as their proofs are quick.
inline constexpr std::int64_t most_effort_generated = std::int64_t{1} << 29U;

/// As much of all ranks as one keeps every value of, to compare two programs by them: some 64 bytes a block.
inline constexpr std::int64_t most_effort_kept = std::int64_t{1} << 24U;

/// As much of all ranks as one shows step by step, a line a rank and step.
inline constexpr std::int64_t most_effort_shown = std::int64_t{1} << 26U;

/// Blocks of one rank that check_program() looks at, about: those of contents and operands, products and attention by
/// what they multiply, and memory by the lanes that may hold it. `ranks`: whether the rank is one of all, or stands for
/// all and does their part of reductions. At most 2^62. Requires that ids and pools refer (check_references).
std::int64_t effort_of(const Program& program, Ranks ranks);

/// Whether all ranks together stay within it.
bool all_ranks_within(const Program& program, std::int64_t effort);

}  // namespace commfuse
