// SPDX-License-Identifier: Apache-2.0
// Pairs sends with receives: the k-th send s -> d on a lane meets the k-th receive at d from s on the lane of the same
// name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/program/program.h"

namespace commfuse {

struct Matching {
  /// True when no op has a predicate, so that partners have the same op ids on all ranks. The tables below then have
  /// one entry per op, otherwise one entry per (rank, op).
  bool uniform = true;
  std::size_t ops = 0;
  std::vector<std::int32_t> receive_of_send;  // op at the target whose receive half meets this send half; -1: none
  std::vector<std::int32_t> send_of_receive;  // op at the source whose send half meets this receive half; -1: none
  /// One sentence for each mistake: a send or a receive without a partner, halves of different sizes or protocols, a
  /// collective that only a part of its group joins. Empty if there is no mistake.
  std::vector<std::string> problems;

  [[nodiscard]] std::int32_t receiver(Rank rank, OpId op) const { return receive_of_send[entry(rank, op)]; }
  [[nodiscard]] std::int32_t sender(Rank rank, OpId op) const { return send_of_receive[entry(rank, op)]; }

 private:
  [[nodiscard]] std::size_t entry(Rank rank, OpId op) const {
    return uniform ? position(op) : static_cast<std::size_t>(rank) * ops + position(op);
  }
};

Matching match(const Program& program);

/// Returns true if the predicate of a collective is true on some ranks of its group and false on others. A predicate
/// that is always true, such as "tp >= 0", splits no group.
bool splits_groups(const Program& program, const Op& op, const CollectiveShape& collective);

/// Return the rank to which `rank` sends in an exchange, and the rank from which it receives.
Rank target_of(const Program& program, const ExchangeShape& exchange, Rank rank);
Rank source_of(const Program& program, const ExchangeShape& exchange, Rank rank);

/// Returns "op 3 (exchange)", for messages.
std::string op_in_words(const Program& program, OpId op);

}  // namespace commfuse
