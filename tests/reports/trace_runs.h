// SPDX-License-Identifier: Apache-2.0
// Small runs with invented costs, and matching rows, for tests of traces, figures and reports.
#pragma once

#include <string>
#include <utility>

#include "reports/traced_run.h"
#include "tests/sim/simulated.h"

namespace commfuse::test {

/// Returns costs: GEMMs of 80 us in total, an exchange of 25 us, a collective of 60 us or of 20 us for a slice, and an
/// add of 5 us.
inline OpCosts invented_costs(const std::string& strategy, std::int32_t ranks) {
  using namespace std::chrono_literals;
  const std::int32_t parts = strategy == "serial" ? 1 : strategy == "sliced" ? 4 : ranks;
  return {.gemm = 80us / parts,
          .exchange = 25us,
          .collective = strategy == "sliced" ? 20us : 60us,
          .elementwise = 5us,
          .compute = 80us};
}

inline reports::TracedRun traced(const std::string& strategy, SiteKind kind, std::int32_t ranks,
                                 const StrategyOptions& options = {}) {
  const Simulated simulated(one_site(strategy.c_str(), kind, ranks, options), invented_costs(strategy, ranks));
  reports::TracedRun run;
  run.program = simulated.program;
  run.timeline = simulated.recorder.timeline();
  run.row.model = "llama-3.1-70b";
  run.row.hardware = "h100-sxm";
  run.row.scope = "gate_up";
  run.row.ranks = ranks;
  run.row.batch = 1;
  run.row.seq = 8192;
  run.row.dtype = "bf16";
  run.row.strategy = strategy;
  run.row.parameters = find_strategy(strategy)->describe(options);
  run.row.analysis = analyse(*simulated.program, simulated.costs, simulated.recorder);
  run.row.ideal = std::chrono::microseconds(80);
  run.row.link = std::chrono::microseconds(50);
  run.row.mfu = 40e-6 / to_seconds(simulated.makespan());
  run.row.evaluator = "engine";
  run.row.interference = "static";
  run.row.launch = "stream";
  run.row.provenances = "prior+fitted";
  run.row.schedule_sha256 = "0123456789abcdef";
  return run;
}

}  // namespace commfuse::test
