// SPDX-License-Identifier: Apache-2.0
// Simulates one schedule many times under jitter. Draws depend only on the seed, the sample, the rank and the step, so
// all strategies run on the same slow ranks and kernels, and results depend neither on how many samples are computed
// together nor on the threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "model/analysis/tails.h"
#include "model/cost/jitter_sampler.h"
#include "sim/engine/engine.h"
#include "sim/replay/replay.h"

namespace commfuse {

/// Calls a function with every number below a count, on several threads or one, in any order.
using ForEachIndex = void (*)(std::size_t count, const std::function<void(std::size_t)>& body);

struct MonteCarloOptions {
  std::shared_ptr<const JitterTables> jitter{};  ///< null: no jitter, so there is nothing to sample
  std::uint64_t seed = 1;
  std::size_t samples = 1000;             ///< at least 1
  const EngineOptions* engine = nullptr;  ///< null: replay simulates
};

/// A schedule and the costs of its ops without jitter. Holds only references.
struct PricedSchedule {
  const Plan& plan;
  const Tape& tape;
  const std::vector<DrawKey>& keys;
  const Costs& costs;

  [[nodiscard]] const Program& program() const { return *plan.lowered.program; }
};

/// Use one object per thread.
class MonteCarlo {
 public:
  /// `for_each` runs the samples; null: one after another. Results do not depend on it.
  explicit MonteCarlo(ForEachIndex for_each = nullptr) : for_each_(for_each) {}

  /// Returns the makespan of every sample; the reference is valid until the next call. Requires options.jitter.
  const std::vector<Duration>& makespans(const PricedSchedule& schedule, const MonteCarloOptions& options);
  /// Returns the percentiles of the makespan, and what the runs near the p99 have in common.
  Tails run(const PricedSchedule& schedule, const MonteCarloOptions& options);

 private:
  void sample_by_replay(const PricedSchedule& schedule, const MonteCarloOptions& options);
  void sample_by_engine(const PricedSchedule& schedule, const MonteCarloOptions& options);
  P99Causes causes(const PricedSchedule& schedule, const MonteCarloOptions& options);

  void for_each_part(std::size_t count, const std::function<void(std::size_t)>& body) const;

  ForEachIndex for_each_;
  std::vector<Duration> makespans_;  // by sample
};

}  // namespace commfuse
