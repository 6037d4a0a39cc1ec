// SPDX-License-Identifier: Apache-2.0
// FuseAG, ring form (CommFuse Alg 1, Fig 6): a rank multiplies the shard that it holds while sending this shard to the
// next rank.
//
//            step 0     step 1     step 2     step 3          (4 ranks, seen from rank r)
//   compute  shard r    shard r-1  shard r-2  shard r-3
//   comm     r   ->     r-1 ->     r-2 ->     idle
//
// Each rank runs N GEMMs and N-1 transfers of one shard. With the times c of a GEMM and p of a transfer, the makespan
// is c + (N-1) max(c, p).
//
// With m parts per shard there are 1 + (N-1) m GEMMs and (N-1) m transfers, and the makespan is max(N c, (N-1) p +
// c/m). Shards can also travel in both directions, each on its own lanes:
//
//   halves   compute  r | first half of r-1, second half of r+1 | r-2, r+2 | ...   2 (N-1) transfers of half a shard
//            c + (N-1) max(c, p/2)
//   shards   compute  r | r-1 | r+1 | r-2 | r+2 ...                                  N-1 transfers, floor(N/2) one way
//            max(N c, p + (N-1) c, A p + (N-2A+1) c) with A = floor(N/2)
#include "model/strategies/fuse_ag.h"
#include "model/strategies/strategies.h"

namespace commfuse {

namespace {

/// Returns, for a rank's own block of a shard, the same block of the rank `steps` ahead in the ring.
Region further(Region region, const Stage& stage, std::int32_t steps) {
  IndexTerm& term = region.row.terms[static_cast<std::size_t>(stage.axis)];
  term = {term.scale, wrapped(steps, stage.ranks)};
  return region;
}

/// State of one chain.
struct Chain {
  // The chain's last exchange; the next exchange forwards what this one received, and their lane keeps both in order.
  ExchangeSpec exchange;
  Region own_rows;  // output rows of the rank's own block
};

Chain start_of(const Way& way, const Stage& stage, const StrategyOptions& options, BufferId gathered,
               CommLanes& lanes) {
  const std::uint16_t lane = lanes.of(way.chain);
  return {.exchange = {.lane = {LaneKind::comm, lane},
                       .axis = stage.axis,
                       .shift = way.shift,
                       .send = Operand(stage.rows_of(stage.input, way.block)),
                       .receive = Operand(stage.rows_of(gathered, 0)),
                       .wire = options.dtype,
                       .waits = lanes.waits_if_first(lane, stage)},
          .own_rows = stage.rows_of(stage.output, stage.shard(0) + way.block)};
}

}  // namespace

Done fuse_ag_ring(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const BufferId gathered =
      stage.ranks > 1 ? stage.scratch("gathered", (stage.ranks - 1) * stage.cuts, stage.input) : stage.input;
  const std::vector<Track> tracks = tracks_of(stage, options.directions);
  std::vector<Chain> chains(static_cast<std::size_t>(chains_of(tracks)));
  std::int32_t row = 0;
  CommLanes lanes(options.lanes);
  builder.reserve_ops(std::int64_t{2} * stage.ranks * chains_of(tracks));
  return multiply_arrivals(stage, options.group, [&](std::int32_t step, Pieces& pieces) {
    for (const Track& track : tracks) {
      if (step > track.reach) {
        continue;
      }
      Piece& piece = pieces.emplace_back();
      for (const Way& way : track.ways) {
        Chain& chain = chains[static_cast<std::size_t>(way.chain)];
        ExchangeSpec& exchange = chain.exchange;
        if (step == 1) {
          chain = start_of(way, stage, options, gathered, lanes);
        } else {
          exchange.send.front() = exchange.receive.front();
          exchange.waits.clear();
        }
        exchange.receive.front().row.constant = stage.grain * row++;
        const OpId arrived = builder.exchange(exchange);
        stack(piece.rows, exchange.receive.front());
        stack(piece.results, further(chain.own_rows, stage, -way.shift * step));
        piece.arrived.push_back({arrived, exchange.lane.number});
      }
    }
  });
}

}  // namespace commfuse
