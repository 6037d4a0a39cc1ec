// SPDX-License-Identifier: Apache-2.0
// What an engine needs that finds out during the run who shares what (`interference: dynamic`): every op's time alone,
// how fast kernels are beside communication, and which links a transfer goes over.
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

/// How a transfer crosses several hops. cut_through: all at once, at the rate of the slowest. store_and_forward: one
/// after another, all bytes each time.
enum class Forwarding : std::uint8_t { cut_through, store_and_forward };

/// A part of a transfer during which it holds the same links.
struct WireStage {
  double cap = 0.0;    ///< Bytes a second when it is alone.
  double until = 1.0;  ///< Share of the time of its bytes, alone, that is over after this stage; of the last 1.
  std::uint32_t first_link = 0;
  std::uint32_t links = 0;
};

/// From one rank to another.
struct WirePath {
  Duration latency{};  ///< Before the first byte moves; holds no links.
  std::uint32_t first_stage = 0;
  std::uint32_t stages = 0;
};

/// Which links the exchanges of a program go over. Links are directed: 2 x edge + direction of the topology, then the
/// ports of every GPU: out and in, inside the node and across.
///
/// A transfer is never faster than its peer's measured rate, which is its protocol's, so that alone it takes what
/// price() says. All transfers over one wire together get that rate too: the data sheet's of the wire, scaled as
/// the peer's is to the slowest wire of its route. All transfers of a port get its peer's aggregate rate.
struct Wiring {
  std::vector<std::int32_t> move_of_op;  ///< By op: a row of paths; -1: holds no wires (a compute, a collective, a
                                         ///< transfer to oneself or inside a kernel).
  std::vector<WirePath> paths;           ///< By move and rank.
  std::vector<WireStage> stages;         ///< Pool.
  std::vector<std::int32_t> links;       ///< Pool; distinct inside a stage.
  std::vector<std::int32_t> times;       ///< As links: so many such transfers are on it. Empty: one (fold_wiring.h).
  std::vector<double> capacity;          ///< By link, bytes a second.
  std::size_t ranks = 0;

  /// Null when the exchange holds no wires.
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

/// Depends on the structure of a program, not on sizes. Rank r runs on GPU r. Requires GPUs that reach each other.
Wiring wiring_of(const Program& program, const Machine& machine, Forwarding forwarding = Forwarding::cut_through);
/// Does the same with `routes`, a cache that later programs of the same machine share.
Wiring wiring_of(const Program& program, const Machine& machine, KnownRoutes& routes);

struct Fluid {
  Costs costs;  ///< Of ops that run alone.
  /// Undisturbed time over that beside communication of its rank, in (0, 1]; by what is there (1: exchanges, 2: a
  /// collective, 3: both), then as costs.duration or costs.by_rank. Empty: 1.
  std::array<std::vector<double>, 4> speeds;
  std::shared_ptr<const Wiring> wiring;

  [[nodiscard]] double speed_of(unsigned beside, Rank rank, std::size_t op) const {
    const std::vector<double>& by_op = speeds[beside];
    if (by_op.empty()) {
      return 1.0;
    }
    const std::size_t row = static_cast<std::size_t>(rank) * costs.duration.size();
    return by_op[(row < by_op.size() ? row : row % by_op.size()) + op];
  }
};

/// Prices every op as if it ran alone, but for collectives and the transfers beside them: collectives hold no links, so
/// their contention is priced before the run (contention.h). Requires meetings_of(program), and wiring of this program
/// and machine.
Fluid price_fluid(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes,
                  const Machine& machine, PriceOptions options, std::shared_ptr<const Wiring> wiring);

}  // namespace commfuse
