// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/monte_carlo.h"

#include <algorithm>

#include "model/check.h"

namespace commfuse {

namespace {

/// Largest number of runs near the p99 that are examined: enough for shares accurate to a few percent. Examining a run
/// takes far longer than sampling it.
constexpr std::size_t max_near = 400;

JitterDraws draws_of(const PricedSchedule& schedule, const MonteCarloOptions& options) {
  return {.tables = options.jitter, .seed = options.seed, .keys = schedule.keys};
}

/// Returns the number of samples to compute together, one per lane of a register: loops are long, but a register takes
/// only a few kilobytes, so everything stays in the cache.
std::size_t lanes_for(Rank ranks) {
  constexpr std::size_t values = 512;
  const std::size_t lanes = values / static_cast<std::size_t>(ranks);
  return std::clamp<std::size_t>(lanes / 4 * 4, 4, 64);
}

/// Sizes of the parts that one thread processes at a time: large enough that allocating memory does not matter.
constexpr std::size_t batches_per_part = 16;
constexpr std::size_t runs_per_part = 16;

std::size_t parts_of(std::size_t count, std::size_t part_size) { return (count + part_size - 1) / part_size; }

/// Returns how many of `count` runs one thread examines in sequence. A run keeps about 80 bytes per op and rank, and
/// all threads together keep at most a gigabyte at any time.
std::size_t examined_per_part(std::size_t count, const Program& program) {
  constexpr double max_bytes = 1e9;
  const double ops = static_cast<double>(std::max<std::size_t>(program.ops.size(), 1));  // a file may hold no op
  const double bytes = 80.0 * ops * static_cast<double>(program.mesh.ranks());
  const auto max_kept = static_cast<std::size_t>(std::max(1.0, max_bytes / bytes));
  return std::max(runs_per_part, parts_of(count, max_kept));
}

}  // namespace

const std::vector<Duration>& MonteCarlo::makespans(const PricedSchedule& schedule, const MonteCarloOptions& options) {
  check(options.jitter != nullptr && options.samples > 0, "sampling needs a jitter and at least one sample");
  makespans_.resize(options.samples);
  options.engine == nullptr ? sample_by_replay(schedule, options) : sample_by_engine(schedule, options);
  return makespans_;
}

Tails MonteCarlo::run(const PricedSchedule& schedule, const MonteCarloOptions& options) {
  const Percentiles percentiles = percentiles_of(makespans(schedule, options));
  return {.percentiles = percentiles, .causes = causes(schedule, options)};
}

void MonteCarlo::for_each_part(std::size_t count, const std::function<void(std::size_t)>& body) const {
  if (for_each_ != nullptr && count > 1) {
    for_each_(count, body);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    body(i);
  }
}

void MonteCarlo::sample_by_replay(const PricedSchedule& schedule, const MonteCarloOptions& options) {
  const std::size_t lanes = lanes_for(schedule.tape.ranks);
  const std::size_t part_size = lanes * batches_per_part;
  for_each_part(parts_of(options.samples, part_size), [&](std::size_t part_number) {
    Replay replay;
    JitterSampler sampler(draws_of(schedule, options), schedule.tape.ranks, lanes);
    const std::size_t end = std::min((part_number + 1) * part_size, options.samples);
    for (std::size_t first = part_number * part_size; first < end; first += lanes) {
      sampler.begin(first);
      const std::span<const double> ends = replay.sample(schedule.program(), schedule.tape, schedule.costs, sampler);
      const std::size_t count = std::min(ends.size(), end - first);
      for (std::size_t i = 0; i < count; ++i) {
        makespans_[first + i] = Duration{static_cast<std::int64_t>(ends[i])};
      }
    }
  });
}

void MonteCarlo::sample_by_engine(const PricedSchedule& schedule, const MonteCarloOptions& options) {
  const JitterDraws draws = draws_of(schedule, options);
  for_each_part(parts_of(options.samples, runs_per_part), [&](std::size_t part_number) {
    Engine engine;
    Recorder recorder(Recorder::Keep::ends);
    const std::size_t end = std::min((part_number + 1) * runs_per_part, options.samples);
    for (std::size_t sample = part_number * runs_per_part; sample < end; ++sample) {
      engine.run(schedule.plan, jittered(schedule.program(), schedule.costs, draws, sample), recorder, *options.engine);
      makespans_[sample] = recorder.makespan().time_since_epoch();
    }
  });
}

/// Runs the samples near the p99 again and examines them.
P99Causes MonteCarlo::causes(const PricedSchedule& schedule, const MonteCarloOptions& options) {
  struct Examined {
    Breakdown critical;
    CriticalPath path;
  };
  const JitterDraws draws = draws_of(schedule, options);
  const std::vector<std::size_t> samples = near_p99(makespans_, max_near);
  std::vector<Examined> examined(samples.size());
  const std::size_t part_size = examined_per_part(samples.size(), schedule.program());
  for_each_part(parts_of(samples.size(), part_size), [&](std::size_t part_number) {
    Replay replay;
    Engine engine;
    Recorder recorder(Recorder::Keep::timeline);
    const std::size_t end = std::min((part_number + 1) * part_size, samples.size());
    for (std::size_t i = part_number * part_size; i < end; ++i) {
      const Costs costs = jittered(schedule.program(), schedule.costs, draws, samples[i]);
      if (options.engine == nullptr) {
        replay.run(schedule.program(), schedule.tape, costs, Replay::Ranks::all, &recorder);
      } else {
        engine.run(schedule.plan, costs, recorder, *options.engine);
      }
      check(recorder.makespan().time_since_epoch() == makespans_[samples[i]],
            "a sample that is run again has the same makespan");
      examined[i] = {analyse(schedule.program(), costs, recorder).critical,
                     critical_path(schedule.plan.lowered, costs, recorder.timeline())};
    }
  });
  P99Collector collector(schedule.program().mesh.ranks());
  for (const Examined& run : examined) {
    collector.add(run.critical, run.path);
  }
  return collector.causes();
}

}  // namespace commfuse
