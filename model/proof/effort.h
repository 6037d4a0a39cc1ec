// SPDX-License-Identifier: Apache-2.0
// Estimates the amount of work of a proof before it begins, because a few lines of text can require days of work.
#pragma once

#include <cstdint>

#include "model/program/program.h"
#include "model/proof/symmetry.h"

namespace commfuse {

/// Largest number of blocks that a proof examines, each in under 10 ns. Limits one rank of a schedule file, and all
/// ranks together if the proof examines them all.
inline constexpr std::int64_t max_effort = std::int64_t{1} << 27U;

/// Limit for one rank of a generated schedule, whose regular slices make its proof faster.
inline constexpr std::int64_t max_effort_generated = std::int64_t{1} << 29U;

/// Limit for all ranks when every value is kept to compare two programs: about 64 bytes per block.
inline constexpr std::int64_t max_effort_kept = std::int64_t{1} << 24U;

/// Limit for all ranks when they are shown step by step, with a line per rank and step.
inline constexpr std::int64_t max_effort_shown = std::int64_t{1} << 26U;

/// Returns the approximate number of blocks of one rank that check_program() examines. It counts the blocks of contents
/// and operands, the output blocks of each GEMM and attention once per contracted block or key, and the blocks of
/// memory once per lane that may read them. With Ranks::first, rank 0 represents all ranks and also does their part of
/// reductions. At most 2^62. Requires valid ids and pools (check_references).
std::int64_t effort_of(const Program& program, Ranks ranks);

/// Returns true if all ranks together stay within `effort`.
bool all_ranks_within(const Program& program, std::int64_t effort);

}  // namespace commfuse
