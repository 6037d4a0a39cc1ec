// SPDX-License-Identifier: Apache-2.0
// Contention on the wires between collectives and concurrent transfers.
#pragma once

#include <vector>

#include "model/cost/costs.h"
#include "model/hardware/machine.h"
#include "model/program/order.h"

namespace commfuse {

/// Returns true if any transfer can run concurrently with a collective.
bool contend(const std::vector<Meetings>& meetings);

/// Returns copies of the meetings that keep only the contenders.
std::vector<Meetings> contenders_of(const std::vector<Meetings>& meetings);

/// The part of each transfer's duration in which it needs no wire.
struct Latencies {
  std::vector<Duration> by_op;    ///< laid out as Costs::duration
  std::vector<Duration> by_rank;  ///< laid out as Costs::by_rank; exchanges have the latencies of their pairs
};

/// Lengthens every collective, and every exchange concurrent with one, by the time for which the other transfer uses
/// wires that both cross. While two transfers are under way, each gets half of a wire; then the longer one gets the
/// whole wire. So a transfer of one lane is delayed by a transfer of another lane for as long as the shorter of the two
/// needs the wire. Sends of one lane follow each other, so their needs add up (Meetings::contenders). A collective
/// crosses the wires that a ring of its members crosses.
///
/// Requires `costs` to have the durations of all ops, by rank where pairs differ. Rank r runs on GPU r.
void add_contention(const Program& program, const std::vector<Meetings>& meetings, const Machine& machine,
                    const Latencies& latencies, Costs& costs);

}  // namespace commfuse
