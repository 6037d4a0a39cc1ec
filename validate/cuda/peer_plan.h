// SPDX-License-Identifier: Apache-2.0
// What one process issues for its rank where ranks reach each other's memory: copies into and out of it, and flags that
// say when. Waits on other ranks are those of the program's protocols and no others: a push begins when its sender is
// ready, a pull when both ends are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/program/lower.h"

namespace commfuse::validate {

struct PeerStep {
  enum class Kind : std::uint8_t {
    record,   ///< the event
    wait,     ///< for the event, of another lane of this rank
    compute,  ///< a GEMM, function or attention
    signal,   ///< writes the flag of the peer
    await,    ///< waits for the flag of this rank
    pack,     ///< what is sent, rounded to the wire's dtype, into this rank's shared memory
    send,     ///< copies into the peer's memory
    fetch,    ///< copies from the peer's memory
    unpack,   ///< what arrived in the wire's dtype, to where it belongs
    take,     ///< of a collective: copies what this rank needs of every member
    add,      ///< of a collective: sums what was taken
    place,    ///< of a collective: sums to where they belong, those of other members from their memory
  };
  Kind kind = Kind::compute;
  std::int32_t lane = 0;  ///< Which is the stream.
  std::int32_t event = -1;
  std::int32_t command = -1;
  Rank peer = -1;          ///< Of send, fetch and signal.
  std::int64_t flag = -1;  ///< Of PeerFlags.
};

/// One iteration.
struct PeerPlan {
  std::int32_t events = 0;
  std::vector<PeerStep> steps;
  std::vector<std::int32_t> used;  ///< Lanes that have something to do.
};

/// The number of every flag, the same on all ranks.
class PeerFlags {
 public:
  explicit PeerFlags(const Program& program);
  /// Of a barrier of all ranks: rank `from` has come to it.
  [[nodiscard]] static std::int64_t barrier(Rank from) { return from; }
  /// On the sender of a rendezvous, whose op this is: the receiver is ready.
  [[nodiscard]] std::int64_t ready(OpId op) const { return first_[position(op)]; }
  /// On the receiver, whose op this is: the data has arrived; of a pull: it may be fetched.
  [[nodiscard]] std::int64_t arrived(OpId op) const { return first_[position(op)] + 1; }
  /// On a member of a collective: the member at that coordinate has come to it, and its input may be read.
  [[nodiscard]] std::int64_t open(OpId op, std::size_t member) const {
    return first_[position(op)] + static_cast<std::int64_t>(member);
  }
  /// On a member of a collective of `members`: the member at that coordinate has read all that it needs of the others'
  /// inputs, and its sums are ready.
  [[nodiscard]] std::int64_t done(OpId op, std::size_t member, std::size_t members) const {
    return open(op, member + members);
  }
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  std::vector<std::int64_t> first_;  // by op
  std::int64_t count_ = 0;
};

/// Whether the input of an op that communicates has another dtype than its wire.
bool packs(const Program& program, const Op& op);
/// The same of its output.
bool unpacks(const Program& program, const Op& op);

/// `commands` of the rank. Requires a program without peer_findings().
PeerPlan peer_plan(const Program& program, const PeerFlags& flags, Rank rank, std::span<const Command> commands);

/// Reasons why this program cannot run by such copies, one sentence each.
std::vector<std::string> peer_findings(const Program& program);

}  // namespace commfuse::validate
