// SPDX-License-Identifier: Apache-2.0
// Files about runs: jitter (model/config/load_jitter.cpp), faults (sim/engine/load_faults.cpp), lab workloads
// (sim/lab/load_lab.cpp).
#include "model/cost/jitter.h"
#include "sim/lab/lab.h"
#include "sim/schema/shape.h"

namespace commfuse::schema {

namespace {

Shape sigma() { return sourced(number(0, highest_sigma)); }

/// Jitter of the times of ops: a lognormal distribution, or a sample.
Shape distribution() {
  return one_of(
      {map({{"sigma", sigma(), "Sigma of a lognormal with median 1"}}),
       map({{"sample", sourced(text()), "File of ratios to nominal times, one per line, below this folder"}})});
}

}  // namespace

Shape jitter_shape() {
  return map(
      {{"name", text()},
       {"compute", distribution(), "One draw per kernel"},
       {"communication", distribution(), "One draw per transfer or collective"},
       {"rank", map({{"sigma", sigma()}}), "One draw per rank and run"},
       optional({"stall",
                 map({{"probability", sourced(number(0, highest_stall_probability)), "Probability that an op stalls"},
                      {"scale", sourced(duration()), "Shortest stall"},
                      {"shape", sourced(number(least_stall_shape, 100)), "Shape of the Pareto distribution"}}),
                 "Rare long waits"})});
}

Shape faults_shape() {
  const char* rank = "^[0-9]+$";
  const char* link = "^[0-9]+->[0-9]+$";
  return map({{"name", text()},
              optional({"slow_ranks", table(rank, number(1, 1e6)), "Slowdown factor, by rank"}),
              optional({"slow_links", table(link, number(1, 1e6)), "Slowdown factor by link, as in 2->3: 2"}),
              optional({"links_down", table(link, text()), "Time span by link, as in 2->3: 100 us..1 ms"}),
              optional({"late_starts", table(rank, duration()), "Delay, by rank"})});
}

Shape lab_shape() {
  return map({{"name", text()},
              {"pattern", word({"all_gather", "all_reduce", "fuse_ag"})},
              {"ranks", count(1, max_lab_ranks)},
              {"chunk", size(), "Bytes of one message"},
              {"rate", bandwidth(), "Bandwidth of a link"},
              {"latency", duration(), "Latency of a message"},
              optional({"tile", duration(), "fuse_ag: time of a tile; the shortest if longest_tile is given"}),
              optional({"longest_tile", duration()}),
              optional({"tile_step", duration(), "Step between tile times"})});
}

}  // namespace commfuse::schema
