// SPDX-License-Identifier: Apache-2.0
// Files about runs: jitter (model/config/load_jitter.cpp), faults (sim/engine/load_faults.cpp), lab workloads
// (sim/lab/load_lab.cpp).
#include "model/cost/jitter.h"
#include "sim/lab/lab.h"
#include "sim/schema/shape.h"

namespace commfuse::schema {

namespace {

Shape sigma() { return sourced(number(0, highest_sigma)); }

/// Jitter of kernel times: a lognormal distribution, or a sample.
Shape spread() {
  return one_of({map({{"sigma", sigma(), "Of a lognormal with median 1"}}),
                 map({{"sample", sourced(text()), "Ratios to nominal times, a line each; a path below this folder"}})});
}

}  // namespace

Shape jitter_shape() {
  return map({{"name", text()},
              {"compute", spread(), "One draw a kernel"},
              {"communication", spread(), "One draw a transfer or collective"},
              {"rank", map({{"sigma", sigma()}}), "One draw a rank and run"},
              optional({"stall",
                        map({{"probability", sourced(number(0, highest_stall_probability)), "Of an op"},
                             {"scale", sourced(duration()), "The shortest"},
                             {"shape", sourced(number(least_stall_shape, 100)), "Of the Pareto distribution"}}),
                        "Rare long waits"})});
}

Shape faults_shape() {
  const char* rank = "^[0-9]+$";
  const char* link = "^[0-9]+->[0-9]+$";
  return map({{"name", text()},
              optional({"slow_ranks", table(rank, number(1, 1e6)), "How many times slower, by rank"}),
              optional({"slow_links", table(link, number(1, 1e6)), "How many times slower, as in 2->3: 2"}),
              optional({"links_down", table(link, text()), "From when to when, as in 2->3: 100 us..1 ms"}),
              optional({"late_starts", table(rank, duration()), "By how much, by rank"})});
}

Shape lab_shape() {
  return map({{"name", text()},
              {"pattern", word({"all_gather", "all_reduce", "fuse_ag"})},
              {"ranks", count(1, most_lab_ranks)},
              {"chunk", size(), "Of one message"},
              {"rate", bandwidth(), "Of a link"},
              {"latency", duration(), "Of a message"},
              optional({"tile", duration(), "Of fuse_ag; the shortest where there is a longest_tile"}),
              optional({"longest_tile", duration()}),
              optional({"tile_step", duration(), "Between the lengths that tiles have"})});
}

}  // namespace commfuse::schema
