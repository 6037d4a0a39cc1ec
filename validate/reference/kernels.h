// SPDX-License-Identifier: Apache-2.0
// The effect of one command on memory, once its dependencies have ended.
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
/// Returns the data of a command's send half, rounded to the wire's dtype. Requires the command of `from` to send, and
/// not to be a credit.
Matrix<float> sent_by(const Program& program, const Memory& memory, const Place& from);
/// Moves data from the send half of one command to the receive half of another.
void run_transfer(const Program& program, Memory& memory, const Place& from, const Place& to);
/// Returns a member's part of its collective, rounded to the wire's dtype; nothing if Functions::none omits its sum.
std::optional<Matrix<float>> given_by(const Program& program, const Memory& memory, const Place& member,
                                      const RunOptions& options);
/// `members` must be in order of coordinate. All inputs are read before any output is written.
void run_collective(const Program& program, Memory& memory, std::span<const Place> members, const RunOptions& options);

}  // namespace commfuse::validate
