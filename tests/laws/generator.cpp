// SPDX-License-Identifier: Apache-2.0
#include "tests/laws/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "model/config/catalogue.h"
#include "model/config/choices.h"
#include "model/hardware/machine.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"
#include "sim/step/site_times.h"

namespace commfuse::laws {

namespace {

std::vector<MachineChoice> shipped_machines() {
  std::vector<MachineChoice> machines;
  for (const std::string& name : known_names(Catalogue::hardware)) {
    const Machine machine = load_machine(name);
    MachineChoice& choice = machines.emplace_back(MachineChoice{name, total_gpus(machine), machine.gpus_per_node, {}});
    for (const DType dtype : all_dtypes) {
      if (machine.accelerator.supports(dtype)) {
        choice.dtypes.push_back(dtype);
      }
    }
  }
  return machines;
}

void add_places(std::size_t machine, std::vector<Place>& places) {
  for (const Scope scope : all_scopes) {
    for (const Strategy& strategy : strategies()) {
      if (applies(strategy, kinds_of(scope))) {
        places.push_back({machine, std::string(name_of(scope)), std::string(strategy.name)});
      }
    }
  }
  for (const auto& [scope, use] : whole_model_scopes) {
    for (const Strategy* strategy : strategies_for_steps()) {
      places.push_back({machine, std::string(scope), std::string(strategy->name)});
    }
  }
}

}  // namespace

Axes shipped_axes() {
  Axes axes{.machines = shipped_machines(), .models = known_names(Catalogue::models), .places = {}};
  for (std::size_t machine = 0; machine < axes.machines.size(); ++machine) {
    add_places(machine, axes.places);
  }
  return axes;
}

namespace {

using Words = std::vector<std::string_view>;

/// Returns the first number above `wanted` mod `count` that is coprime to `count`, so that its multiples visit all
/// places.
std::size_t stride_for(std::size_t wanted, std::size_t count) {
  std::size_t stride = wanted % count + 1;
  while (std::gcd(stride, count) != 1) {
    ++stride;
  }
  return stride;
}

const Place& place_in_turn(const Axes& axes, std::uint64_t seed, std::uint32_t index) {
  const std::size_t count = axes.places.size();
  Draws draws({.seed = seed, .purpose = 1});
  const std::size_t first = draws.below(count);
  return axes.places[(first + index * stride_for(count / 3 + draws.below(count / 3), count)) % count];
}

void put_ranks(Setting& setting, const MachineChoice& machine, Draws& draws) {
  constexpr std::array<std::int64_t, 14> counts{8, 4, 2, 8, 4, 2, 16, 16, 1, 8, 4, 3, 6, 12};
  const std::int64_t ranks = std::min<std::int64_t>(draws.pick(counts), machine.gpus);
  setting = setting.with("ranks", ranks);
}

void put_tokens(Setting& setting, Draws& draws) {
  constexpr std::array<std::int64_t, 16> lengths{4096,  4096, 2048, 8192, 1024,  512, 256, 16384,
                                                 32768, 768,  1536, 3072, 12288, 128, 960, 5760};
  constexpr std::array<std::int64_t, 8> batches{1, 1, 1, 2, 4, 8, 16, 3};
  setting = setting.with("seq", draws.pick(lengths)).with("batch", draws.pick(batches));
}

void put_links(Setting& setting, Draws& draws) {
  const Words rates{"x1", "x1", "x1", "x1", "x0.25", "x0.5", "x2", "x4"};
  setting = setting.with("link_bandwidth", draws.pick(rates));
  if (is_cluster(setting)) {
    setting = setting.with("network_bandwidth", draws.pick(rates));
  }
}

/// Draws a schedule of the strategy and fixes all its relevant options. Leaves them open one time in eight, and
/// whenever there is no schedule to draw.
void put_schedule(Setting& setting, Draws& draws) {
  const Strategy& strategy = *find_strategy(setting.text("strategy.name"));
  const std::vector<SiteKind> kinds = kinds_of(*scope_named(setting.text("scope")));
  const auto ranks = static_cast<std::int32_t>(setting.count("ranks"));
  const std::vector<StrategyOptions> schedules = schedules_to_prove(strategy, kinds, ranks);
  if (schedules.empty() || draws.once_in(8)) {
    return;
  }
  const StrategyOptions& options = draws.pick(schedules);
  const OptionSet relevant = relevant_options(strategy, kinds, options);
  for (const Option option : all_options()) {
    if (relevant.has(option)) {
      setting = setting.with(fmt::format("strategy.{}", name_of(option)), text_of(option, options));
    }
  }
}

void put_layer_options(Setting& setting, Draws& draws) {
  const Words interference{"static", "static", "static", "none", "dynamic"};
  const Words evaluators{"auto", "auto", "auto", "engine"};
  setting = setting.with("interference", draws.pick(interference))
                .with("attention_kernel", draws.once_in(5) ? "unfused" : "fused")
                .with("evaluator", draws.pick(evaluators));
  if (draws.once_in(10)) {
    setting = setting.with("jitter", "default").with("samples", std::int64_t{16});
  } else if (draws.once_in(12) && setting.count("ranks") > 1) {
    const Words faults{"slow-rank", "slow-link", "link-down", "late-start"};
    setting = setting.with("faults", draws.pick(faults));
  }
}

void put_layout(Setting& setting, Draws& draws) {
  constexpr std::array<std::int64_t, 6> stages{1, 1, 2, 4, 1, 8};
  constexpr std::array<std::int64_t, 5> replicas{1, 2, 4, 1, 8};
  const std::int64_t data = draws.pick(replicas);
  const std::int64_t micro_batch = draws.once_in(3) ? 2 : 1;
  const std::int64_t passes = std::int64_t{1} << draws.below(5);
  const std::int64_t pipeline = draws.pick(stages);
  setting = setting.with("parallel.pipeline", pipeline)
                .with("parallel.data", data)
                .with("parallel.zero", static_cast<std::int64_t>(draws.below(4)))
                .with("step.micro_batch", micro_batch)
                .with("batch", data * micro_batch * passes)
                .with("parallel.sequence_parallel", draws.once_in(4) ? "off" : "on");
  if (pipeline > 1 && draws.once_in(3)) {
    setting = draws.once_in(2) ? setting.with("parallel.interleave", std::int64_t{2})
                               : setting.with("parallel.schedule", "zero_bubble");
  }
  const Words recomputes{"none", "none", "selective", "full"};
  setting =
      setting.with("step.recompute", draws.pick(recomputes)).with("step.optimizer", draws.once_in(4) ? "sgd" : "adam");
  if (draws.once_in(6)) {
    setting = setting.with("parallel.context", std::int64_t{2});
  } else if (draws.once_in(6)) {
    setting = setting.with("parallel.ulysses", std::int64_t{2});
  }
}

void put_model_options(Setting& setting, Draws& draws) {
  const std::string scope = setting.text("scope");
  if (scope == "step") {
    put_layout(setting, draws);
    setting = draws.once_in(6) ? setting.with("jitter", "default") : setting;
  } else if (scope == "decode") {
    setting = setting.with("batch", std::int64_t{8} << draws.below(6))
                  .with("step.latent_decode", draws.once_in(4) ? "naive" : "absorb");
  }
}

Setting draw_setting(const Axes& axes, std::uint64_t seed, std::uint32_t index, std::uint32_t attempt) {
  const Place& place = place_in_turn(axes, seed, index);
  const MachineChoice& machine = axes.machines[place.machine];
  Draws draws({.seed = seed, .index = index, .attempt = attempt, .purpose = 2});
  Setting setting = Setting{}
                        .with("hardware", machine.name)
                        .with("scope", place.scope)
                        .with("strategy.name", place.strategy)
                        .with("model", draws.pick(axes.models))
                        .with("dtype", name_of(draws.pick(machine.dtypes)))
                        .with("launch", draws.once_in(3)   ? "graph"
                                        : draws.once_in(3) ? "eager"
                                                           : "stream");
  put_ranks(setting, machine, draws);
  put_tokens(setting, draws);
  put_links(setting, draws);
  if (is_whole_model(setting)) {
    put_model_options(setting, draws);
  } else {
    put_schedule(setting, draws);
    put_layer_options(setting, draws);
  }
  return setting;
}

}  // namespace

const Generator independent_draws{"independent draws", draw_setting};

}  // namespace commfuse::laws
