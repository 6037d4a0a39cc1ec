// SPDX-License-Identifier: Apache-2.0
// Commands that one process issues for its rank if ranks access each other's memory: copies into and out of this
// memory, and flags for synchronization. Waits for other ranks are exactly those of the program's protocols: a push
// begins when its sender is ready, a pull or a rendezvous when both ends are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/program/lower.h"

namespace commfuse::validate {

struct PeerStep {
  enum class Kind : std::uint8_t {
    record,   ///< records the event
    wait,     ///< waits for the event, which another lane of this rank records
    compute,  ///< runs a GEMM, function or attention
    signal,   ///< writes the flag on the peer
    await,    ///< waits for the flag on this rank
    pack,     ///< rounds sent data to the wire's dtype, into this rank's shared memory
    send,     ///< copies into the peer's memory
    fetch,    ///< copies from the peer's memory
    unpack,   ///< moves data that arrived in the wire's dtype to its place
    take,     ///< in a collective: copies the data that this rank needs from every member
    add,      ///< in a collective: sums the data that was taken
    place,    ///< in a collective: moves sums to their places, fetching those of other members
  };
  Kind kind = Kind::compute;
  std::int32_t lane = 0;  ///< Lane, which is also the stream.
  std::int32_t event = -1;
  std::int32_t command = -1;
  Rank peer = -1;          ///< Peer of a send, fetch, signal or await.
  std::int64_t flag = -1;  ///< Number in PeerFlags.
};

/// The plan of one iteration.
struct PeerPlan {
  std::int32_t events = 0;
  std::vector<PeerStep> steps;
  std::vector<std::int32_t> used;  ///< Lanes that have work.
};

/// Numbers of all flags, identical on all ranks. Each function returns the number of a flag; its comment states on
/// which rank the flag is, and what a signal to it announces.
class PeerFlags {
 public:
  explicit PeerFlags(const Program& program);
  /// In a barrier of all ranks: rank `from` has reached it.
  [[nodiscard]] static std::int64_t barrier(Rank from) { return from; }
  /// On the sender of a rendezvous, which owns this op: the receiver is ready.
  [[nodiscard]] std::int64_t ready(OpId op) const { return first_[position(op)]; }
  /// On the receiver, which owns this op: the data has arrived, or, for a pull, may be fetched.
  [[nodiscard]] std::int64_t arrived(OpId op) const { return first_[position(op)] + 1; }
  /// On a member of a collective: the member at that coordinate has reached it, and its input may be read.
  [[nodiscard]] std::int64_t open(OpId op, std::size_t member) const {
    return first_[position(op)] + static_cast<std::int64_t>(member);
  }
  /// On a member of a collective of `members`: the member at that coordinate has read all data that it needs from the
  /// inputs of others, and its sums are ready.
  [[nodiscard]] std::int64_t done(OpId op, std::size_t member, std::size_t members) const {
    return open(op, member + members);
  }
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  std::vector<std::int64_t> first_;  // first flag of each op
  std::int64_t count_ = 0;
};

/// Returns the dtype in which an op that communicates sends its data.
DType wire_of(const Program& program, const Op& op);
/// Returns true if the input of an op that communicates has a dtype other than its wire's.
bool packs(const Program& program, const Op& op);
/// Returns true if the output of an op that communicates has a dtype other than its wire's.
bool unpacks(const Program& program, const Op& op);

/// `commands` must be those of the rank. Requires peer_findings() to return none for `program`.
PeerPlan peer_plan(const Program& program, const PeerFlags& flags, Rank rank, std::span<const Command> commands);

/// Returns the reasons why this program cannot run with copies between peers, one sentence each.
std::vector<std::string> peer_findings(const Program& program);

}  // namespace commfuse::validate
