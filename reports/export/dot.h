// SPDX-License-Identifier: Apache-2.0
// A schedule as a Graphviz digraph: one cluster a rank, one node an op, who waits for whom.
#pragma once

#include <span>
#include <string>

#include "model/program/lower.h"

namespace commfuse::reports {

/// Solid: waits. Dotted: order on a lane, where no wait says it. Blue: messages, from the exchange that sends to the
/// one that receives. Orange: the members of a collective. Only the ranks given are drawn, and what joins two of them.
/// Requires a program that passed check_program, and ranks of its mesh.
std::string to_dot(const Lowered& lowered, std::span<const Rank> ranks);

}  // namespace commfuse::reports
