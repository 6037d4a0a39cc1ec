// SPDX-License-Identifier: Apache-2.0
// A law: no collective and no exchange takes longer on a faster link. Held on every machine of the catalogue.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "model/config/catalogue.h"
#include "model/cost/communication.h"
#include "model/hardware/link_rates.h"

namespace commfuse {
namespace {

constexpr std::array factors{0.25, 0.5, 0.9, 1.0, 1.1, 1.3, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0};
constexpr std::array kinds{"all_gather", "reduce_scatter", "all_reduce", "all_to_all"};

Duration time_of(std::size_t kind, const CollectiveParameters& collective, int ranks, Bytes total, int nodes) {
  switch (kind) {
    case 0: return all_gather_time(collective, ranks, total, nodes);
    case 1: return reduce_scatter_time(collective, ranks, total, nodes);
    case 2: return all_reduce_time(collective, ranks, total, nodes);
    default: return all_to_all_time(collective, ranks, total);
  }
}

/// Fails for every step to a faster link that takes longer. How many steps were looked at.
int look_at(const Machine& machine, int ranks, int nodes) {
  int steps = 0;
  for (std::int64_t bytes = 1 << 10; bytes <= std::int64_t{1} << 32U; bytes *= 4) {
    const Bytes total{bytes / ranks * ranks};
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      Duration slower = Duration::max();
      for (const double factor : factors) {
        const Machine faster = with_link_rates(machine, {.node = factor, .network = factor});
        const CollectiveParameters& collective =
            nodes == 1 ? collective_over(faster, 0, ranks) : faster.network->collective;
        const Duration time = time_of(kind, collective, ranks, total, nodes);
        EXPECT_LE(time, slower) << machine.name << ' ' << kinds.at(kind) << " of " << total.count << " bytes on "
                                << ranks << " ranks, links x" << factor;
        slower = time;
        ++steps;
      }
    }
  }
  return steps;
}

TEST(FasterLinks, NoCollectiveOfAnyMachineTakesLonger) {
  int steps = 0;
  for (const std::string& name : known_names(Catalogue::hardware)) {
    const Machine machine = load_machine(name);
    for (int ranks = 2; ranks <= machine.gpus_per_node; ranks *= 2) {
      steps += look_at(machine, ranks, 1);
    }
    if (machine.network && machine.nodes > 1) {
      steps += look_at(machine, total_gpus(machine), machine.nodes);
    }
  }
  EXPECT_GT(steps, 20'000);
}

TEST(FasterLinks, ARealLinkHasTheKernelThatNcclEstimates) {
  const Machine machine = load_machine("h100-sxm");
  const CollectiveParameters& real = collective_over(machine, 0, 8);
  const CollectiveParameters& same = collective_over(with_link_rates(machine, {.node = 1.0}), 0, 8);
  for (std::int64_t bytes = 1 << 10; bytes <= std::int64_t{1} << 32U; bytes *= 2) {
    EXPECT_EQ(kernel_taken(real, 8, {bytes}, 1, 1), kernel_taken(same, 8, {bytes}, 1, 1)) << bytes;
  }
}

}  // namespace
}  // namespace commfuse
