// SPDX-License-Identifier: Apache-2.0
// Durations of a program's exchanges on a machine, concurrent with the exchanges of other lanes.
#pragma once

#include <cstddef>
#include <vector>

#include "model/cost/costs.h"
#include "model/hardware/machine.h"
#include "model/program/order.h"
#include "model/program/sizes.h"

namespace commfuse {

struct PriceOptions;

/// An exchange that may run at the same time as exchanges of other lanes.
struct SharedPort {
  std::size_t op = 0;
  int port = 1;  ///< exchanges of one rank at that time, including this one
  int wire = 1;  ///< exchanges among them with the same peer
  friend bool operator==(const SharedPort&, const SharedPort&) = default;
};
/// Returns the exchanges that have rivals; exchanges of equal price follow each other. Rivals of one lane count once,
/// because a rank runs them one at a time; under predicates, ranks may run different ones. Requires `meetings` to be
/// meetings_of(program), or meetings in which the lists of several ranks are merged.
std::vector<SharedPort> shared_ports(const Program& program, const std::vector<Meetings>& meetings);

/// Sets the durations of exchanges, and the durations of all ops by rank if pairs of GPUs differ. Rank r runs on GPU r.
///
/// An exchange shares the wires with the exchanges at the same position on other lanes (Meetings::rivals); all ranks
/// are assumed to run the same op. It gets an equal part of each segment that it crosses, but at most its own rate. So
/// prices stay fixed and assume that all lanes are busy: exchanges that seldom meet are priced too high. Sharing is a
/// property of the wire and not interference, so it also holds without interference; docs/decisions/0040 gives the
/// reason. Requires `costs` to have durations and undisturbed durations of all ops.
void price_exchanges(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes,
                     const Machine& machine, Costs& costs);
/// Sets the same durations. Requires `shared` to be shared_ports(program, meetings).
void price_exchanges(const Program& program, const std::vector<Meetings>& meetings,
                     const std::vector<SharedPort>& shared, const Sizes& sizes, const Machine& machine, Costs& costs);
/// Sets the durations that exchanges have if each has its wires to itself.
void price_exchanges_alone(const Program& program, const Sizes& sizes, const Machine& machine, Costs& costs);

/// Returns the latencies of exchanges by rank, in the layout of costs.by_rank; empty if costs.by_rank is empty. Other
/// ops keep their values from `by_op`. An exchange between nodes has the latency of the network.
std::vector<Duration> latencies_by_rank(const Program& program, const Machine& machine,
                                        const std::vector<Duration>& by_op, const Costs& costs);

/// Returns the costs of price(), except that every exchange has its wires to itself; kernels lose SMs to the
/// communication in `meetings`.
Costs price_alone(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes,
                  const Machine& machine, const PriceOptions& options);

/// Returns true if exchanges of several lanes may share wires.
bool shares_wires(const Program& program);

}  // namespace commfuse
