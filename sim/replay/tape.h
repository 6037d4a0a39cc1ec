// SPDX-License-Identifier: Apache-2.0
// A lowered program as a list of sums and maxima: the max-plus recurrence that says when every op ends, in an order in
// which each value is there before it is asked for. Worked out once a structure; costs come later.
//
//   post(x) = max(issued(x), end of every wait, end of the op before on its lane)
//   end(x)  = post(x) + duration(x)                                         x is a kernel
//           = max(half(x), half of the send that x receives)                x is an exchange
//           = max(post of all members) + max(duration of all members)       x is a collective
//   half(x) = max(post(x), post of the receive that its send meets) + duration(x)
//
// In most schedules a send meets the receive of the same op on another rank. Then all ranks go through an exchange
// together, and one instruction stands for its three.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/program/lower.h"

namespace commfuse {

/// Where every rank runs every op, an instruction speaks of one op on all ranks at once: the k-th value of a register
/// belongs to rank k. Else it speaks of one op on one rank, and registers hold one value.
struct Tape {
  static constexpr std::uint32_t none = 0xffffffff;

  enum class Kind : std::uint8_t {
    kernel,      // to = max(issue, operands) + duration
    post,        // to = max(issue, operands)
    half,        // to = max(own, other turned) + duration; other is none for a push
    join,        // to = max(own, other turned); one of them may be none
    exchange,    // post, half and join of an exchange by rendezvous that meets itself: own becomes the half
    collective,  // to = max over the members of own (of all operands, on a tape of single ranks) + longest duration
  };
  struct Instruction {
    Kind kind = Kind::kernel;
    bool last = false;  // no op comes after it on its lane: the last end is one of these
    std::uint32_t op = 0;
    Rank rank = 0;            // on a tape of single ranks
    std::uint32_t to = 0;     // a register, as are all that follow
    std::uint32_t first = 0;  // into operands
    std::uint32_t count = 0;  // of operands
    std::uint32_t own = none;
    std::uint32_t other = none;
    std::uint32_t turn = 0;         // into turns: how `other` comes here; exchange: how posts come to the senders
    std::uint32_t turn_back = 0;    // exchange: how halves come to the receivers
    std::uint32_t other_op = none;  // join: the op that sends what arrives
    Rank other_rank = 0;            // the same, on a tape of single ranks
  };

  /// What a rank sees of another rank's values: those of the rank `by` further on the axis, where they lie around.
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

/// O(ops) where every rank runs every op, else O(ops x ranks). Requires a program that does not deadlock.
Tape tape_of(const Lowered& lowered);

}  // namespace commfuse
