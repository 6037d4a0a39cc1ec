// SPDX-License-Identifier: Apache-2.0
// Laws that hold on every machine of the catalogue: No collective takes longer on a faster link. No collective takes
// longer than a larger one, except at the steps that measured tables show. Links that are N times as fast speed up no
// collective by more than a factor of N.
#include <gtest/gtest.h>

#include <algorithm>
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

/// Reports a failure for each collective that takes longer on a faster link. Returns the number of comparisons.
int compare_links(const Machine& machine, int ranks, int nodes) {
  int comparisons = 0;
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
        ++comparisons;
      }
    }
  }
  return comparisons;
}

TEST(FasterLinks, NoCollectiveOfAnyMachineTakesLonger) {
  int comparisons = 0;
  for (const std::string& name : known_names(Catalogue::hardware)) {
    const Machine machine = load_machine(name);
    for (int ranks = 2; ranks <= machine.gpus_per_node; ranks *= 2) {
      comparisons += compare_links(machine, ranks, 1);
    }
    if (machine.network && machine.nodes > 1) {
      comparisons += compare_links(machine, total_gpus(machine), machine.nodes);
    }
  }
  EXPECT_GT(comparisons, 20'000);
}

double step_of(const CollectiveParameters& collective) {
  return collective.nccl == nullptr ? 1.0 : measured_step(collective.nccl->tuning.wire);
}

/// Reports a failure for each size that takes longer than a larger one, beyond the measured step, or that links
/// `factor` times as fast speed up by more than `factor`. Returns the number of compared sizes.
int compare_sizes(const Machine& machine, int ranks, int nodes, double factor) {
  const Machine faster = with_link_rates(machine, {.node = factor, .network = factor});
  const CollectiveParameters& collective = nodes == 1 ? collective_over(faster, 0, ranks) : faster.network->collective;
  const CollectiveParameters& real = nodes == 1 ? collective_over(machine, 0, ranks) : machine.network->collective;
  int sizes = 0;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    Duration least_of_larger = Duration::max();
    for (double bytes = 1e9; bytes > 1e4; bytes /= 1.2) {
      const Bytes total{static_cast<std::int64_t>(bytes) / ranks * ranks};
      const Duration time = time_of(kind, collective, ranks, total, nodes);
      const double largest = step_of(collective) * static_cast<double>(least_of_larger.count());
      EXPECT_LE(static_cast<double>(time.count()), largest)
          << machine.name << ' ' << kinds.at(kind) << " of " << total.count << " bytes on " << ranks
          << " ranks, links x" << factor;
      const Duration before = time_of(kind, real, ranks, total, nodes);
      EXPECT_GE(static_cast<double>(time.count()) * std::max(1.0, factor) + 1e3, static_cast<double>(before.count()))
          << machine.name << ' ' << kinds.at(kind) << " of " << total.count << " bytes, links x" << factor;
      least_of_larger = std::min(least_of_larger, time);
      ++sizes;
    }
  }
  return sizes;
}

TEST(FasterLinks, NoCollectiveExceedsALargerOneExceptAtTheMeasuredStep) {
  int sizes = 0;
  for (const std::string& name : known_names(Catalogue::hardware)) {
    const Machine machine = load_machine(name);
    for (const double factor : {0.25, 1.0, 3.0}) {
      for (int ranks = 2; ranks <= machine.gpus_per_node; ranks *= 2) {
        sizes += compare_sizes(machine, ranks, 1, factor);
      }
      if (machine.network && machine.nodes > 1) {
        sizes += compare_sizes(machine, total_gpus(machine), machine.nodes, factor);
      }
    }
  }
  EXPECT_GT(sizes, 20'000);
}

TEST(FasterLinks, KeepsAMeasuredStep) {
  // Rows of Vidur: four A100, two on each of two nodes, reduce 8,257,536 bytes in 2027 us and 8.7 MB in about 1255 us.
  const Machine machine = load_machine("a100-100g-x2");
  const CollectiveParameters& real = collective_across(machine, 2);
  const auto step_in = [](const CollectiveParameters& collective) {
    return to_microseconds(all_reduce_time(collective, 4, {8'257'536}, 2)) /
           to_microseconds(all_reduce_time(collective, 4, {8'700'000}, 2));
  };
  EXPECT_NEAR(step_in(real), 2027.0 / 1255.0, 0.1);
  for (const double factor : {0.5, 2.0}) {
    EXPECT_LE(step_in(with_rates(real, factor, RateChange::supposed_wires)), step_in(real) + 1e-6) << factor;
  }
}

TEST(FasterLinks, LinksAtFactorOneKeepTheirKernels) {
  const Machine machine = load_machine("h100-sxm");
  const CollectiveParameters& real = collective_over(machine, 0, 8);
  const Machine unchanged = with_link_rates(machine, {.node = 1.0});
  const CollectiveParameters& same = collective_over(unchanged, 0, 8);
  for (std::int64_t bytes = 1 << 10; bytes <= std::int64_t{1} << 32U; bytes *= 2) {
    const NcclTask task{.ranks = 8, .total = static_cast<double>(bytes)};
    EXPECT_EQ(kernel_taken(real, task), kernel_taken(same, task)) << bytes;
  }
}

}  // namespace
}  // namespace commfuse
