// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/monte_carlo.h"

#include <algorithm>

#include "model/check.h"

namespace commfuse {

namespace {

/// Number of runs near the p99 that are examined: enough for shares accurate to some percent, and examining takes far
/// longer than sampling.
constexpr std::size_t most_near = 400;

JitterDraws draws_of(const PricedSchedule& schedule, const MonteCarloOptions& options) {
  return {.tables = options.jitter, .seed = options.seed, .keys = schedule.keys};
}

/// Returns a number of lanes with which a register fills some kilobytes: the loops are long and everything stays in the
/// cache.
std::size_t lanes_for(Rank ranks) {
  constexpr std::size_t values = 512;
  const std::size_t lanes = values / static_cast<std::size_t>(ranks);
  return std::clamp<std::size_t>(lanes / 4 * 4, 4, 64);
}

}  // namespace

const std::vector<Duration>& MonteCarlo::makespans(const PricedSchedule& schedule, const MonteCarloOptions& options) {
  check(options.jitter != nullptr && options.samples > 0, "samples are drawn from something");
  makespans_.resize(options.samples);
  options.engine == nullptr ? sample_by_replay(schedule, options) : sample_by_engine(schedule, options);
  return makespans_;
}

Tails MonteCarlo::run(const PricedSchedule& schedule, const MonteCarloOptions& options) {
  const Percentiles percentiles = percentiles_of(makespans(schedule, options));
  return {.percentiles = percentiles, .causes = causes(schedule, options)};
}

void MonteCarlo::sample_by_replay(const PricedSchedule& schedule, const MonteCarloOptions& options) {
  JitterSampler sampler(draws_of(schedule, options), schedule.tape.ranks, lanes_for(schedule.tape.ranks));
  for (std::size_t first = 0; first < options.samples; first += sampler.lanes()) {
    sampler.begin(first);
    const std::span<const double> ends = replay_.sample(schedule.program(), schedule.tape, schedule.costs, sampler);
    const std::size_t count = std::min(ends.size(), options.samples - first);
    for (std::size_t i = 0; i < count; ++i) {
      makespans_[first + i] = Duration{static_cast<std::int64_t>(ends[i])};
    }
  }
}

void MonteCarlo::sample_by_engine(const PricedSchedule& schedule, const MonteCarloOptions& options) {
  const JitterDraws draws = draws_of(schedule, options);
  Recorder recorder(Recorder::Keep::ends);
  for (std::size_t sample = 0; sample < options.samples; ++sample) {
    engine_.run(schedule.plan, jittered(schedule.program(), schedule.costs, draws, sample), recorder, *options.engine);
    makespans_[sample] = recorder.makespan().time_since_epoch();
  }
}

/// Runs the samples near the p99 again and examines them.
P99Causes MonteCarlo::causes(const PricedSchedule& schedule, const MonteCarloOptions& options) {
  const JitterDraws draws = draws_of(schedule, options);
  P99Collector collector(schedule.program().mesh.ranks());
  Recorder recorder(Recorder::Keep::timeline);
  for (const std::size_t sample : near_p99(makespans_, most_near)) {
    const Costs costs = jittered(schedule.program(), schedule.costs, draws, sample);
    if (options.engine == nullptr) {
      replay_.run(schedule.program(), schedule.tape, costs, Replay::Ranks::all, &recorder);
    } else {
      engine_.run(schedule.plan, costs, recorder, *options.engine);
    }
    check(recorder.makespan().time_since_epoch() == makespans_[sample], "a sample that is run again gives the same");
    collector.add(analyse(schedule.program(), costs, recorder).critical,
                  critical_path(schedule.plan.lowered, costs, recorder.timeline()));
  }
  return collector.causes();
}

}  // namespace commfuse
