// SPDX-License-Identifier: Apache-2.0
// The held-out generator. One point of a Richtmyer sequence determines a whole setting: axis a of number k is the
// fraction of offset + k sqrt(prime a), in 64-bit arithmetic, so that any run of numbers is spread evenly over each
// axis and over each pair of them. Many of its values are ones that the other generator does not draw.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"
#include "tests/laws/generator.h"

namespace commfuse::laws {

namespace {

enum class Coordinate : std::uint8_t {
  place,
  model,
  dtype,
  launch,
  ranks,
  length,
  batch,
  links,
  network,
  schedule,
  interference,
  attention,
  evaluator,
  stages,
  replicas,
  memory,
};

/// Fractions of the square roots of the first 16 primes.
constexpr std::array<std::uint64_t, 16> steps{
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
    0xcbbb9d5dc1059ed8, 0x629a292a367cd507, 0x9159015a3070dd17, 0x152fecd8f70e5939,
    0x67332667ffc00b31, 0x8eb44a8768581511, 0xdb0c2e0d64f98fa7, 0x47b5481dbefa4fa4};

class SequencePoint {
 public:
  SequencePoint(std::uint64_t seed, std::uint64_t number) : seed_(seed), number_(number) {}

  [[nodiscard]] std::size_t below(Coordinate axis, std::size_t count) const {
    const auto a = static_cast<std::size_t>(axis);
    const PhiloxWords words = philox({static_cast<std::uint32_t>(a), 0, 0, 0}, seed_);
    const std::uint64_t offset = (static_cast<std::uint64_t>(words[0]) << 32U) | words[1];
    const std::uint64_t fraction = offset + number_ * steps[a];
    return static_cast<std::size_t>(((fraction >> 32U) * count) >> 32U);
  }
  template <class Values>
  [[nodiscard]] const auto& pick(Coordinate axis, const Values& values) const {
    return values[below(axis, values.size())];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t number_;
};

using Words = std::vector<std::string_view>;

/// Returns 64 to 30K tokens in steps of an eighth of a power of two.
std::int64_t length_at(const SequencePoint& at) {
  const auto step = static_cast<std::int64_t>(at.below(Coordinate::length, 72));
  return (8 + step % 8) * (std::int64_t{1} << (3 + step / 8));
}

Setting schedule_at(const Setting& setting, const SequencePoint& at) {
  const Strategy& strategy = *find_strategy(setting.text("strategy.name"));
  const std::vector<SiteKind> kinds = kinds_of(*scope_named(setting.text("scope")));
  const std::vector<StrategyOptions> schedules =
      schedules_to_try(strategy, kinds, static_cast<std::int32_t>(setting.count("ranks")));
  const std::size_t choice = at.below(Coordinate::schedule, schedules.size() + 1);
  Setting other = setting;
  if (choice < schedules.size()) {
    const OptionSet relevant = relevant_options(strategy, kinds, schedules[choice]);
    for (const Option option : all_options()) {
      other = relevant.has(option)
                  ? other.with(fmt::format("strategy.{}", name_of(option)), text_of(option, schedules[choice]))
                  : other;
    }
  }
  return other;
}

Setting layer_at(const Setting& setting, const SequencePoint& at) {
  const Words interference{"none", "static", "dynamic", "static"};
  const Words faults{"none", "none", "none", "none", "slow-link", "late-start"};
  Setting other = schedule_at(setting, at)
                      .with("interference", at.pick(Coordinate::interference, interference))
                      .with("attention_kernel", at.below(Coordinate::attention, 3) == 0 ? "unfused" : "fused")
                      .with("faults", at.pick(Coordinate::evaluator, faults));
  const bool has_jitter = at.below(Coordinate::memory, 12) == 0;
  return has_jitter ? other.with("jitter", "default").with("samples", std::int64_t{12}) : other;
}

Setting model_at(const Setting& setting, const SequencePoint& at) {
  if (setting.text("scope") == "decode") {
    return setting.with("batch", 16 * (1 + static_cast<std::int64_t>(at.below(Coordinate::batch, 20))));
  }
  if (setting.text("scope") == "prefill") {
    return setting;
  }
  const auto replicas = 1 + static_cast<std::int64_t>(at.below(Coordinate::replicas, 6));
  const Words recomputes{"full", "selective", "none"};
  return setting.with("parallel.data", replicas)
      .with("parallel.pipeline", 1 + static_cast<std::int64_t>(at.below(Coordinate::stages, 5)))
      .with("parallel.zero", static_cast<std::int64_t>(at.below(Coordinate::memory, 4)))
      .with("batch", replicas * (1 + static_cast<std::int64_t>(at.below(Coordinate::batch, 9))))
      .with("step.recompute", at.pick(Coordinate::interference, recomputes))
      .with("step.optimizer", at.below(Coordinate::evaluator, 2) == 0 ? "sgd" : "adam");
}

Setting setting_at(const Axes& axes, std::uint64_t seed, std::uint32_t index, std::uint32_t attempt) {
  const SequencePoint at(seed, index + (std::uint64_t{attempt} << 32U));
  const Place& place = at.pick(Coordinate::place, axes.places);
  const MachineChoice& machine = axes.machines[place.machine];
  const Words rates{"x1", "x0.3", "x0.7", "x1.7", "x3.3", "x9"};
  const auto largest = static_cast<std::size_t>(std::min(machine.gpus, 16));
  Setting setting = Setting{}
                        .with("hardware", machine.name)
                        .with("scope", place.scope)
                        .with("strategy.name", place.strategy)
                        .with("model", at.pick(Coordinate::model, axes.models))
                        .with("dtype", name_of(at.pick(Coordinate::dtype, machine.dtypes)))
                        .with("launch", at.below(Coordinate::launch, 2) == 0 ? "graph" : "stream")
                        .with("ranks", 1 + static_cast<std::int64_t>(at.below(Coordinate::ranks, largest)))
                        .with("seq", length_at(at))
                        .with("batch", 1 + static_cast<std::int64_t>(at.below(Coordinate::batch, 12)))
                        .with("link_bandwidth", at.pick(Coordinate::links, rates));
  if (is_cluster(setting)) {
    setting = setting.with("network_bandwidth", at.pick(Coordinate::network, rates));
  }
  return is_whole_model(setting) ? model_at(setting, at) : layer_at(setting, at);
}

}  // namespace

const Generator low_discrepancy{"low discrepancy", setting_at};

}  // namespace commfuse::laws
