// SPDX-License-Identifier: Apache-2.0
// Inputs of an engine that computes shared rates during the run (`interference: dynamic`): the time of every op when it
// runs alone, the speed of kernels during communication, and the links of each transfer.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/cost/costs.h"
#include "model/cost/price.h"
#include "model/hardware/machine.h"
#include "model/program/sizes.h"

namespace commfuse {

/// Order in which a transfer crosses several hops. cut_through: all hops simultaneously, at the rate of the slowest;
/// store_and_forward: one hop after another, with all bytes each time.
enum class Forwarding : std::uint8_t { cut_through, store_and_forward };

/// Part of a transfer during which it holds the same links.
struct WireStage {
  double cap = 0.0;  ///< bytes per second if no other transfer shares the links
  /// Share of the transfer's undisturbed time (without latency) that has passed at the end of this stage; 1 for the
  /// last stage.
  double until = 1.0;
  std::uint32_t first_link = 0;
  std::uint32_t links = 0;
};

/// Path from one rank to another.
struct WirePath {
  Duration latency{};  ///< time before the first byte moves; holds no links
  std::uint32_t first_stage = 0;
  std::uint32_t stages = 0;
};

/// Links that the exchanges of a program use. Links are directed: first the edges of the topology (number 2 x edge +
/// direction), then the four ports of every GPU (out and in, for transfers inside the node and across nodes).
///
/// A transfer is limited to the measured rate of its peer, so an undisturbed transfer takes the time that price()
/// returns. All transfers over one wire together are limited to the wire's nominal rate, scaled by the ratio of the
/// peer's rate to the slowest wire of its route. All transfers through a port together are limited to the peer's
/// aggregate rate.
struct Wiring {
  std::vector<std::int32_t> move_of_op;  ///< by op: its row of paths; -1 if the op holds no wires (a compute op, a
                                         ///< collective, a receive, a transfer within a rank or inside a kernel)
  std::vector<WirePath> paths;           ///< by move and rank
  std::vector<WireStage> stages;         ///< pool of all paths
  std::vector<std::int32_t> links;       ///< pool of all stages; distinct inside a stage
  /// Parallel to `links`: number of equal transfers on the link that each transfer represents; empty means 1
  /// (fold_wiring.h).
  std::vector<std::int32_t> times;
  std::vector<double> capacity;  ///< by link, bytes per second
  std::size_t ranks = 0;

  /// Returns the path, or null when the exchange holds no wires.
  [[nodiscard]] const WirePath* path_of(Rank sender, std::size_t op) const {
    const std::int32_t move = move_of_op[op];
    return move < 0 ? nullptr : &paths[static_cast<std::size_t>(move) * ranks + static_cast<std::size_t>(sender)];
  }
  [[nodiscard]] std::span<const std::int32_t> links_of(const WireStage& stage) const {
    return std::span(links).subspan(stage.first_link, stage.links);
  }
  [[nodiscard]] std::span<const std::int32_t> times_of(const WireStage& stage) const {
    return times.empty() ? std::span<const std::int32_t>{} : std::span(times).subspan(stage.first_link, stage.links);
  }
};

/// Returns the wiring, which depends on the structure of a program and not on sizes. Rank r runs on GPU r. Requires the
/// GPUs of `machine` to reach each other.
Wiring wiring_of(const Program& program, const Machine& machine, Forwarding forwarding = Forwarding::cut_through);
/// Returns the cut-through wiring. `routes` is a cache that later programs on the same machine can reuse.
Wiring wiring_of(const Program& program, const Machine& machine, KnownRoutes& routes);

struct Fluid {
  Costs costs;  ///< costs of ops that run alone
  /// Undisturbed time of an op divided by its time during communication of its rank, in (0, 1]. First index: the
  /// communication (1: exchanges, 2: a collective, 3: both); second index: as costs.duration or costs.by_rank. Empty
  /// means 1.
  std::array<std::vector<double>, 4> speeds;
  std::shared_ptr<const Wiring> wiring;

  [[nodiscard]] double speed_of(unsigned communication, Rank rank, std::size_t op) const {
    const std::vector<double>& by_op = speeds[communication];
    if (by_op.empty()) {
      return 1.0;
    }
    const std::size_t row = static_cast<std::size_t>(rank) * costs.duration.size();
    return by_op[(row < by_op.size() ? row : row % by_op.size()) + op];
  }
};

/// Prices every op as if it ran alone, except collectives and the transfers concurrent with them: collectives hold no
/// links, so their contention is priced before the run (contention.h). Requires `meetings` to be meetings_of(program),
/// and `wiring` to be that of this program and machine.
Fluid price_fluid(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes,
                  const Machine& machine, PriceOptions options, std::shared_ptr<const Wiring> wiring);

}  // namespace commfuse
