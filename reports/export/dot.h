// SPDX-License-Identifier: Apache-2.0
// Writes a schedule as a Graphviz digraph: a cluster for each rank, a node for each op, an edge for each dependency.
#pragma once

#include <span>
#include <string>

#include "model/program/lower.h"

namespace commfuse::reports {

/// Solid edges are waits. Dotted edges are the order on a lane, except where a wait already joins two ops. Blue edges
/// are messages, from the exchange that sends to the exchange that receives. Orange edges join the members of a
/// collective. Only the given ranks, and edges between two of them, are drawn. Requires a program that passed
/// check_program, and ranks of its mesh.
std::string to_dot(const Lowered& lowered, std::span<const Rank> ranks);

}  // namespace commfuse::reports
