// SPDX-License-Identifier: Apache-2.0
#include "model/cost/wires.h"

#include <algorithm>
#include <array>

#include "model/cost/communication.h"
#include "model/schedule/matching.h"

namespace commfuse {

namespace {

const ExchangeShape* exchange_of(const Program& program, std::size_t op) {
  return std::get_if<ExchangeShape>(&program.shapes[program.ops[op].shape]);
}

Bytes bytes_of(const Sizes& sizes, const ExchangeShape& exchange) {
  return Bytes{sizes.elements(exchange.rows) * sizes.elements(exchange.columns) * bytes_of(exchange.wire)};
}

/// Inside one node all lanes share one port.
WireShare share_of(const std::vector<Rival>& rivals) {
  WireShare share;
  for (const Rival& rival : rivals) {
    ++share.port;
    share.peer += rival.same_peer ? 1 : 0;
  }
  return share;
}

/// The sends of one rank by lane, those inside the node and those across apart.
class SendsOfRank {
 public:
  SendsOfRank(const Program& program, const Machine& machine, Rank rank)
      : program_(program), machine_(machine), rank_(rank), lanes_(program.lanes.size()) {
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      const ExchangeShape* exchange = exchange_of(program, op);
      if (exchange != nullptr && exchange->sends) {
        lanes_[program.ops[op].lane][across(*exchange) ? 1 : 0].push_back(OpId{static_cast<std::int32_t>(op)});
      }
    }
  }

  [[nodiscard]] WireShare share_of(const ExchangeShape& exchange, const std::vector<Rival>& rivals) const {
    WireShare share;
    for (const Rival& rival : rivals) {
      const std::vector<OpId>& alike = lanes_[rival.lane][across(exchange) ? 1 : 0];
      const auto met = std::lower_bound(alike.begin(), alike.end(), rival.first);
      share.port += met != alike.end() && *met <= rival.last ? 1 : 0;
      share.peer += rival.same_peer ? 1 : 0;
    }
    return share;
  }

 private:
  [[nodiscard]] bool across(const ExchangeShape& exchange) const {
    return target_of(program_, exchange, rank_) / machine_.gpus_per_node != rank_ / machine_.gpus_per_node;
  }

  const Program& program_;
  const Machine& machine_;
  Rank rank_;
  std::vector<std::array<std::vector<OpId>, 2>> lanes_;
};

void price_pairs(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes,
                 const Machine& machine, Costs& costs) {
  const std::size_t ops = program.ops.size();
  costs.by_rank.reserve(ops * static_cast<std::size_t>(program.mesh.ranks()));
  for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
    const SendsOfRank sends(program, machine, rank);
    for (std::size_t op = 0; op < ops; ++op) {
      costs.by_rank.push_back(costs.duration[op]);
      const ExchangeShape* exchange = exchange_of(program, op);
      if (exchange != nullptr && exchange->shift != 0 && program.lanes[program.ops[op].lane].kind != LaneKind::kernel) {
        const PeerParameters& peer = peer_between(machine, rank, target_of(program, *exchange, rank));
        costs.by_rank.back() =
            p2p_time(peer, bytes_of(sizes, *exchange), sends.share_of(*exchange, meetings[op].rivals));
      }
    }
  }
}

}  // namespace

void price_exchanges(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes,
                     const Machine& machine, Costs& costs) {
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    if (!meetings[op].rivals.empty()) {
      const Bytes bytes = bytes_of(sizes, *exchange_of(program, op));
      costs.duration[op] = p2p_time(machine.link.peer, bytes, share_of(meetings[op].rivals));
      costs.undisturbed[op] = costs.duration[op];
    }
  }
  if (program.mesh.ranks() > machine.gpus_per_node || machine.pair_peers != nullptr) {
    price_pairs(program, meetings, sizes, machine, costs);
  }
}

bool shares_wires(const Program& program) {
  std::vector<std::uint16_t> lanes;
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::exchange && std::find(lanes.begin(), lanes.end(), op.lane) == lanes.end()) {
      lanes.push_back(op.lane);
    }
  }
  return lanes.size() > 1;
}

}  // namespace commfuse
