// SPDX-License-Identifier: Apache-2.0
// What collectives and the transfers beside them take from each other on the wires.
#pragma once

#include <vector>

#include "model/cost/costs.h"
#include "model/hardware/machine.h"
#include "model/program/order.h"

namespace commfuse {

/// Whether any transfer stands beside a collective.
bool contend(const std::vector<Meetings>& meetings);

/// Copies of the meetings with their contenders alone.
std::vector<Meetings> contenders_of(const std::vector<Meetings>& meetings);

/// Lengthens every collective, and every exchange beside one, by what the other takes of the wires that both cross.
/// While two transfers are under way each gets half of a wire, and then the longer one has it all; so a transfer of one
/// lane is held up by one of another for as long as the shorter of the two needs the wire. Sends of one lane follow
/// each other, so their needs add up (Meetings::contenders). A collective crosses what a ring of its members crosses.
///
/// `latency`, by op: the part of a transfer's duration in which it needs no wire. Requires durations of all ops, by
/// rank where pairs differ. Rank r runs on GPU r.
void add_contention(const Program& program, const std::vector<Meetings>& meetings, const Machine& machine,
                    const std::vector<Duration>& latency, Costs& costs);

}  // namespace commfuse
