// SPDX-License-Identifier: Apache-2.0
#include "validate/measure/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/check.h"
#include "validate/values/random.h"

namespace commfuse::validate {

namespace {

/// Runs a variant once. Returns nothing if it fails now or has failed before.
std::optional<Execution> take_turn(Variant& variant, const RunOptions& options, bool alone) {
  if (variant.run.status == RunStatus::failed) {
    return std::nullopt;
  }
  try {
    return variant.executor->run(options);
  } catch (const Stuck& stuck) {
    variant.run.status = RunStatus::failed;
    variant.run.message = stuck.what();
    variant.run.makespans.clear();
    if (!alone) {
      throw;
    }
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::vector<std::size_t>> turns(std::size_t count, int rounds, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::vector<std::size_t>> orders;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t remaining = count; remaining > 1; --remaining) {
      std::swap(order[remaining - 1], order[static_cast<std::size_t>(random.next() % remaining)]);
    }
    orders.push_back(std::move(order));
  }
  return orders;
}

void measure(std::span<Variant> variants, const MeasureOptions& options,
             const std::function<void(int done, int rounds)>& after_round) {
  const int rounds = options.warm_up + options.iterations;
  int done = 0;
  for (const std::vector<std::size_t>& order : turns(variants.size(), rounds, options.seed)) {
    for (const std::size_t index : order) {
      const std::optional<Execution> execution = take_turn(variants[index], options.run, options.alone);
      if (execution && done >= options.warm_up) {
        variants[index].run.makespans.push_back(execution->makespan);
      }
    }
    ++done;
    if (after_round) {
      after_round(done, rounds);
    }
  }
  if (options.traced) {
    RunOptions run = options.run;
    run.traced = true;
    for (Variant& variant : variants) {
      if (std::optional<Execution> execution = take_turn(variant, run, options.alone)) {
        variant.run.spans = std::move(execution->timeline);
      }
    }
  }
}

Summary summary_of(std::vector<Duration> makespans) {
  check(!makespans.empty(), "a summary needs at least one makespan");
  std::sort(makespans.begin(), makespans.end());
  return {.samples = makespans.size(),
          .median = percentile(makespans, 500),
          .p10 = percentile(makespans, 100).value,
          .p90 = percentile(makespans, 900).value};
}

std::string in_words(const NoiseFloor& noise) {
  const Summary summary = summary_of(noise.samples);
  std::string threads;
  if (noise.threads > 0) {
    threads = noise.threads == 1 ? " on one thread" : fmt::format(" on {} threads simultaneously", noise.threads);
  }
  return fmt::format("{:g} ms took {:.3f} ms{} (p90 {:.3f} ms)", to_seconds(noise.stated) * 1e3,
                     to_seconds(summary.median.value) * 1e3, threads, to_seconds(summary.p90) * 1e3);
}

std::string pace_in_words(double dilation) {
  return dilation == 1.0 ? "in real time"
                         : fmt::format("{:g} times slower; times are divided by that factor", dilation);
}

}  // namespace commfuse::validate
