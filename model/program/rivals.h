// SPDX-License-Identifier: Apache-2.0
// Which transfers may share the wires, because they are on different lanes and neither is ordered before the other.
#pragma once

#include <vector>

#include "model/program/order.h"

namespace commfuse {

/// Fills in `rivals`. Of the sends of another lane that may be under way meanwhile, lanes being in order, the one that
/// stands abreast counts: from where the lanes began to run beside each other the first beside the first, the second
/// beside the second. A lane that has fewer of them is done by then and has no rival. O(exchanges x lanes x log ops);
/// O(ops) where one lane has all exchanges. Requires one entry an op.
void add_rivals(const Program& program, const Order& order, std::vector<Meetings>& meetings);

/// Fills in `contenders`, lane by lane in order: of sends and collectives that may be under way at the same time, all
/// pairs in which one is a collective. O(ops) where no lane has collectives or only one lane has any transfers.
/// Requires one entry an op.
void add_contenders(const Program& program, const Order& order, std::vector<Meetings>& meetings);

}  // namespace commfuse
