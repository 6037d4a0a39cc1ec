// SPDX-License-Identifier: Apache-2.0
// What one command does to memory, once everything it needs is there.
#pragma once

#include <optional>
#include <span>

#include "validate/executor.h"
#include "validate/reference/memory.h"

namespace commfuse::validate {

/// A command on a rank.
struct Place {
  Rank rank = 0;
  const Command* command = nullptr;
};

void run_gemm(const Program& program, Memory& memory, const Place& at, const RunOptions& options);
void run_elementwise(const Program& program, const Sizes& sizes, Memory& memory, const Place& at,
                     const RunOptions& options);
void run_attention(const Program& program, const Sizes& sizes, Memory& memory, const Place& at,
                   const RunOptions& options);
/// What the send half of a command sends, in the values of its wire. Requires one that sends, and no credit.
Matrix<float> sent_by(const Program& program, const Memory& memory, const Place& from);
/// From the send half of one command into the receive half of another.
void run_transfer(const Program& program, Memory& memory, const Place& from, const Place& to);
/// What a member gives to its collective, in the values of the wire; nothing where the functions leave sums out.
std::optional<Matrix<float>> given_by(const Program& program, const Memory& memory, const Place& member,
                                      const RunOptions& options);
/// `members` by coordinate. All inputs are read before any output is written.
void run_collective(const Program& program, Memory& memory, std::span<const Place> members, const RunOptions& options);

}  // namespace commfuse::validate
