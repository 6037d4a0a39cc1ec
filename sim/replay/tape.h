// SPDX-License-Identifier: Apache-2.0
// A lowered program as a list of sums and maxima: the max-plus recurrence for the ends of all ops, ordered so that each
// value exists before it is read. It is computed once per structure; costs come later.
//
//   post(x) = max(issued(x), end of every wait, end of the op before on its lane)
//   end(x)  = post(x) + duration(x)                                         x is a kernel
//           = max(half(x), half of the send that x receives)                x is an exchange
//           = max(post of all members) + max(duration of all members)       x is a collective
//   half(x) = max(post(x), post of the receive that its send meets) + duration(x)
//
// In a push, half(x) does not wait for the post of the receive. A receive in a push or a pull also waits for its own
// post, and the sender of a pull ends at its post.
//
// In most schedules a send meets the receive of the same op on another rank: the exchange is self-paired. Then all
// ranks run it together, and one instruction replaces its post, half and join.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/program/lower.h"

namespace commfuse {

/// If every rank runs every op, an instruction computes one op on all ranks: the k-th value of a register belongs to
/// rank k. Otherwise it computes one op on one rank, and registers hold one value.
struct Tape {
  static constexpr std::uint32_t none = 0xffffffff;

  enum class Kind : std::uint8_t {
    kernel,      // to = max(issue, operands) + duration
    post,        // to = max(issue, operands)
    half,        // to = max(self, other turned) + duration; other is none for a push
    join,        // to = max(self, other turned); one of them may be none
    exchange,    // a self-paired rendezvous exchange: its post, half and join; self becomes the half
    collective,  // to = max of the operand over the members (single ranks: max of all operands) + longest duration
  };
  struct Instruction {
    Kind kind = Kind::kernel;
    bool last = false;  // the last op on its lane; the run ends with one of these
    std::uint32_t op = 0;
    Rank rank = 0;            // only on a tape of single ranks
    std::uint32_t to = 0;     // a register, like `self`, `other` and the operands
    std::uint32_t first = 0;  // index into operands
    std::uint32_t count = 0;  // number of operands
    std::uint32_t self = none;
    std::uint32_t other = none;
    std::uint32_t turn = 0;         // index into turns, for `other`; for an exchange, for the posts that senders read
    std::uint32_t turn_back = 0;    // exchange: index into turns, for the halves that receivers read
    std::uint32_t other_op = none;  // join: the op whose send arrives
    Rank other_rank = 0;            // join: the rank of that op, on a tape of single ranks
  };

  /// Maps each rank to the rank whose value it reads: the rank `by` ahead on the axis, which wraps around.
  struct Turn {
    std::uint8_t axis = 0;
    std::int32_t by = 0;  // from 0 to below the axis' extent
  };

  bool all_ranks = true;
  Rank ranks = 1;
  std::vector<Instruction> instructions;
  std::vector<std::uint32_t> operands;  // pool
  std::vector<Turn> turns;
  std::uint32_t registers = 0;

  [[nodiscard]] std::span<const std::uint32_t> operands_of(const Instruction& instruction) const {
    return std::span(operands).subspan(instruction.first, instruction.count);
  }
};

/// Returns the tape of a program. Takes O(ops) time if every rank runs every op, otherwise O(ops x ranks). Requires
/// `lowered` not to deadlock.
Tape tape_of(const Lowered& lowered);

}  // namespace commfuse
