// SPDX-License-Identifier: Apache-2.0
#include "sim/point/kernel_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/config/catalogue.h"
#include "model/strategies/strategies.h"
#include "sim/parallel/run_points.h"
#include "sim/point/grid.h"
#include "sim/point/point_runner.h"
#include "tests/sim/grid_of.h"

namespace commfuse {
namespace {

/// The kernels of an MLP with CommFuse on four H100s, and their times.
struct PricedKernels {
  PricedKernels() {
    Costs costs;
    price(structure.priced(), sizes, machine, {}, times, costs);
  }

  [[nodiscard]] KernelInputs inputs() const {
    return {.structure = &structure, .sms_beside_exchanges = 112, .sms_beside_collectives = 100, .sizes = &sizes};
  }
  /// Returns whether these are the times of all kernels, and no time of a transfer.
  [[nodiscard]] bool are_kernels(const KernelTimes& recalled) const {
    KernelTimes kernels = times;
    kernels.forget_transfers(structure.program());
    return recalled.shapes == kernels.shapes && recalled.unfused == kernels.unfused;
  }

  StructureCache structures;
  Machine machine = load_machine(COMMFUSE_SOURCE_DIR "/configs/hardware/h100-sxm.yaml");
  Transformer model = load_model(COMMFUSE_SOURCE_DIR "/configs/models/llama-3.1-70b.yaml");
  const Structure& structure = structures.get({Scope::mlp, model.gated_mlp, 4, find_strategy("commfuse"), {}});
  Sizes sizes = bind_sizes(structure.program(), quantities_of(model, {.batch = 1, .seq = 8192}, 4));
  KernelTimes times;
};

TEST(KernelMemory, RecallsTheTimesOfKernelsAndNotOfTransfers) {
  const PricedKernels priced;
  KernelMemory memory;
  KernelTimes recalled;
  EXPECT_FALSE(memory.recall(priced.inputs(), std::span(&recalled, 1)));
  memory.keep(priced.inputs(), std::span(&priced.times, 1));
  ASSERT_TRUE(memory.recall(priced.inputs(), std::span(&recalled, 1)));
  EXPECT_TRUE(priced.are_kernels(recalled));
}

TEST(KernelMemory, RecallsTheTimesOfSeveralMachines) {
  const PricedKernels priced;
  std::vector<KernelTimes> kept(3, priced.times);
  for (std::size_t machine = 0; machine < kept.size(); ++machine) {
    kept[machine].unfused.front() = Duration{static_cast<std::int64_t>(machine)};
  }
  KernelInputs inputs = priced.inputs();
  inputs.raised = 1;
  KernelMemory memory;
  memory.keep(inputs, kept);
  std::vector<KernelTimes> recalled(3);
  ASSERT_TRUE(memory.recall(inputs, recalled));
  for (std::size_t machine = 0; machine < kept.size(); ++machine) {
    EXPECT_EQ(recalled[machine].unfused, kept[machine].unfused);
  }
}

TEST(KernelMemory, RecallsNothingIfAnyInputDiffers) {
  const PricedKernels priced;
  const PricedKernels other;
  KernelMemory memory;
  memory.keep(priced.inputs(), std::span(&priced.times, 1));
  std::vector<KernelInputs> inputs(6, priced.inputs());
  inputs[0].structure = &other.structure;
  inputs[1].priced_as = 1;
  inputs[2].raised = 1;
  inputs[3].sms_beside_exchanges = 111;
  inputs[4].sms_beside_collectives = 99;
  Sizes longer = priced.sizes;
  longer.block.front() *= 2;
  inputs[5].sizes = &longer;
  KernelTimes recalled;
  for (const KernelInputs& different : inputs) {
    EXPECT_FALSE(memory.recall(different, std::span(&recalled, 1))) << &different - inputs.data();
  }
  EXPECT_TRUE(memory.recall(priced.inputs(), std::span(&recalled, 1)));
}

TEST(KernelMemory, ForgetsEverythingWhenItIsFull) {
  const PricedKernels priced;
  KernelMemory memory;
  KernelTimes recalled;
  const auto number = [&](std::size_t i) {
    KernelInputs inputs = priced.inputs();
    inputs.priced_as = i;
    return inputs;
  };
  std::size_t kept = 0;
  do {
    ASSERT_LT(kept, 1'000'000U);
    memory.keep(number(kept), std::span(&priced.times, 1));
    ++kept;
  } while (memory.recall(number(0), std::span(&recalled, 1)));
  EXPECT_GT(kept, 10'000U);
  EXPECT_FALSE(memory.recall(number(kept - 2), std::span(&recalled, 1)));
  ASSERT_TRUE(memory.recall(number(kept - 1), std::span(&recalled, 1)));
  EXPECT_TRUE(priced.are_kernels(recalled));
}

/// Compares the rows of a grid from one runner with rows from runners that have run nothing else.
void expect_rows_of_new_runners(const std::vector<std::string>& sets, const std::vector<std::string>& axes) {
  const Grid grid = test::grid_of(sets, axes);
  const Library library = library_of(grid);
  StructureCache structures;
  PointRunner runner(library, structures);
  for (const Settings& settings : points_of(grid)) {
    const std::vector<ResultRow> rows = runner.rows(settings);
    const std::vector<ResultRow> expected = PointRunner(library, structures).rows(settings);
    ASSERT_EQ(rows.size(), expected.size());
    for (std::size_t row = 0; row < rows.size(); ++row) {
      EXPECT_EQ(values_of(rows[row]), values_of(expected[row])) << rows[row].strategy << ' ' << rows[row].parameters;
    }
  }
}

TEST(KernelMemory, ChangesNoRowOfAGridOverLinks) {
  expect_rows_of_new_runners({"hardware=gb200-nvl72-x2", "scope=mlp"},
                             {"link_bandwidth=x0.2,x1", "ranks=2,8", "seq=4K,8K,16K"});
}

TEST(KernelMemory, ChangesNoRowOfAGridOverSettingsOfPrices) {
  expect_rows_of_new_runners(
      {"hardware=h100-sxm", "strategy.name=serial,sliced,fused_kernel,commfuse", "ranks=4", "seq=8K"},
      {"scope=layer,mlp", "interference=none,static,dynamic", "launch=graph,stream", "attention_kernel=fused,unfused",
       "link_bandwidth=x0.5,x1", "model=llama-3.1-8b,qwen2.5-7b"});
}

TEST(KernelMemory, ChangesNoRowOfAGridOverHardwareAndNetworks) {
  expect_rows_of_new_runners({"scope=mlp", "ranks=16", "seq=8K", "strategy.name=serial,commfuse", "as=all"},
                             {"network_bandwidth=x0.5,x1", "hardware=dgx-h100-x2,gb200-nvl72-x2", "dtype=bf16,fp8"});
}

}  // namespace
}  // namespace commfuse
