// SPDX-License-Identifier: Apache-2.0
// One transfer takes longer than the others; the tests check how much later the run ends. docs/decisions/0013 derives
// the sums. GEMMs take c, transfers take p <= c, and adds take no time. Every remaining step recovers c - p if nothing
// is idle. N: ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "sim/replay/replay.h"
#include "tests/sim/simulated.h"

namespace commfuse::test::late_transfer {
namespace {

using namespace std::chrono_literals;

constexpr std::int32_t ranks = 8;
constexpr Duration c = 10us;
constexpr Duration p = 8us;

/// Returns, for each step of the schedule, how much later the run ends when that step's transfer of rank 0 takes
/// `delay` longer. Fails unless replay and engine agree.
std::vector<Duration> later_by(SiteKind site, const StrategyOptions& options, Duration delay) {
  Simulated simulated(one_site("commfuse", site, ranks, options), {.gemm = c, .exchange = p});
  const Duration before = simulated.makespan();
  const Tape tape = tape_of(lower(simulated.program));
  const std::size_t ops = simulated.program->ops.size();
  std::vector<Duration> later;
  for (std::size_t late = 0; late < ops; ++late) {
    if (simulated.program->ops[late].kind != OpKind::exchange) {
      continue;
    }
    simulated.costs.by_rank.clear();
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      simulated.costs.by_rank.insert(simulated.costs.by_rank.end(), simulated.costs.duration.begin(),
                                     simulated.costs.duration.end());
    }
    simulated.costs.by_rank[late] += delay;
    simulated.run();
    later.push_back(simulated.makespan() - before);
    EXPECT_EQ(Replay{}.makespan(*simulated.program, tape, simulated.costs, Replay::Ranks::all), simulated.makespan());
  }
  return later;
}

/// Returns what is left of a delay after `steps` steps, each of which recovers c - p.
Duration remaining(Duration delay, std::int32_t steps) { return std::max(Duration{}, delay - steps * (c - p)); }

class LateTransfer : public testing::TestWithParam<std::int64_t> {
 protected:
  const Duration delay = GetParam() * 1us;
};

TEST_P(LateTransfer, ARingGatherCatchesUpByOneStepPerEarlierShard) {
  // The GEMM that needs shard s + 1 starts (s + 1)(c - p) after the shard has arrived.
  for (const StrategyOptions& options : {StrategyOptions{.form = Form::ring}, StrategyOptions{.form = Form::direct}}) {
    const std::vector<Duration> later = later_by(SiteKind::ag_gemm, options, delay);
    for (std::int32_t step = 0; step + 1 < ranks; ++step) {
      EXPECT_EQ(later[static_cast<std::size_t>(step)], remaining(delay, step + 1)) << step;
    }
  }
}

TEST_P(LateTransfer, AGatherWithALanePerPeerDelaysOnlyOneGemm) {
  // All shards arrive at p; the GEMM of shard s + 1 starts at (s + 1) c.
  const std::vector<Duration> later = later_by(SiteKind::ag_gemm, {.form = Form::direct, .lanes = ranks - 1}, delay);
  for (std::int32_t step = 0; step + 1 < ranks; ++step) {
    EXPECT_EQ(later[static_cast<std::size_t>(step)], std::max(Duration{}, p + delay - (step + 1) * c)) << step;
  }
}

TEST_P(LateTransfer, AScatterAroundARingThatAddsOnItsComputeLaneNeverCatchesUp) {
  // The add precedes the next GEMM, so the GEMMs are late too, and only the first step recovers any time.
  for (const Duration lateness :
       later_by(SiteKind::gemm_rs, {.form = Form::ring, .add_lane = LaneKind::compute}, delay)) {
    EXPECT_EQ(lateness, remaining(delay, 1));
  }
}

TEST_P(LateTransfer, AScatterThatAddsDuringItsGemmsCatchesUpInEveryStep) {
  const std::vector<Duration> later =
      later_by(SiteKind::gemm_rs, {.form = Form::ring, .add_lane = LaneKind::aux}, delay);
  for (std::int32_t step = 0; step + 1 < ranks; ++step) {
    // GEMM s + 3, if it exists, writes the buffer that add s + 1 reads; two buffers absorb a delay of up to 2c - p.
    const Duration buffer_delay = step + 3 < ranks ? std::max(Duration{}, delay - (2 * c - p)) : Duration{};
    EXPECT_EQ(later[static_cast<std::size_t>(step)], std::max(remaining(delay, ranks - 1 - step), buffer_delay))
        << step;
  }
}

TEST_P(LateTransfer, AScatterWithALanePerPeerIsLateOnlyByTheLastStep) {
  // Shard s is sent at (s + 1) c and must arrive by N c.
  const std::vector<Duration> later = later_by(SiteKind::gemm_rs, {.form = Form::direct, .lanes = ranks - 1}, delay);
  for (std::int32_t step = 0; step + 1 < ranks; ++step) {
    EXPECT_EQ(later[static_cast<std::size_t>(step)], std::max(Duration{}, p + delay - (ranks - 1 - step) * c)) << step;
  }
}

TEST_P(LateTransfer, AScatterWithTwoBuffersDelaysTheGemmThatNeedsOne) {
  // GEMM s + 2 writes the buffer that transfer s sends, so it waits for that transfer. No GEMM waits for the last two
  // transfers, because the last GEMM computes the rank's own shard; a delay of the last but one transfer delays only
  // the last transfer.
  const std::vector<Duration> later = later_by(SiteKind::gemm_rs, {.form = Form::direct}, delay);
  for (std::int32_t step = 0; step + 1 < ranks; ++step) {
    EXPECT_EQ(later[static_cast<std::size_t>(step)], remaining(delay, step == ranks - 3 ? 2 : 1)) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Microseconds, LateTransfer, testing::Values(1, 2, 5, 9, 15, 40));

}  // namespace
}  // namespace commfuse::test::late_transfer
