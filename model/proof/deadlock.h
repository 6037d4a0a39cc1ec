// SPDX-License-Identifier: Apache-2.0
// Runs a program without time, data or hardware, to find out whether every op ends, and one order in which events can
// happen.
#pragma once

#include <vector>

#include "model/program/matching.h"
#include "model/program/program.h"
#include "model/proof/findings.h"
#include "model/proof/symmetry.h"

namespace commfuse {

/// One event; it follows all events on which it depends.
struct Event {
  enum class Kind : std::uint8_t { computed, sent, credited, collected };
  Kind kind = Kind::computed;
  Rank rank = 0;  // sent, credited: the source; collected: the member at coordinate 0
  OpId op{};
  Rank target = 0;   // sent, credited
  OpId target_op{};  // sent, credited
};

/// An op that is posted on a rank.
struct Post {
  Rank rank = 0;
  OpId op{};
};

/// Runs the program. Lanes are in-order; an op is posted when its waits have ended and its lane is free, and holds its
/// lane to its end. One half of an exchange happens when both its ends are posted (a push: when its sender is posted),
/// and an exchange ends when both its halves have happened (a pull ends at its sender as soon as it is posted); a
/// collective ends when its whole group has posted it. The order of posting does not matter: posting an op never blocks
/// another, so if this order completes, every order does. A second iteration cannot deadlock either, because every rank
/// completes its first.
///
/// Adds one finding when ranks are stuck. Requires `program` to have passed check_bounds(), and `matching` to have no
/// problems.
///
/// With Ranks::first all ranks advance together: rank 0 meets itself, as source and target, in place of its neighbours.
/// `posts`, unless null, receives every op in the order of posting.
std::vector<Event> run_abstractly(const Program& program, const Matching& matching, Findings& findings,
                                  Ranks ranks = Ranks::all, std::vector<Post>* posts = nullptr);

}  // namespace commfuse
