// SPDX-License-Identifier: Apache-2.0
// Tests passes whose tokens are processed in two halves: their rows, their refusals, and how their time follows from
// the times of their parts.
#include "sim/step/woven.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/implementation.h"
#include "model/workload/layers.h"
#include "sim/point/grid.h"
#include "sim/step/predict_steps.h"
#include "sim/step/step.h"
#include "tests/sim/grid_of.h"

namespace commfuse {
namespace {

/// A prefill of a 70B model on eight H100 without sequence parallelism.
struct WovenPrefill {
  WovenPrefill() : times(structures, machine) {
    point.plan.tensor = 8;
    point.plan.seq = 8192;
    point.serves = true;
    point.implemented.kernels = kernels.get();
  }

  Transformer model = load_model("llama-3.1-70b");
  Machine machine = load_machine("h100-sxm");
  std::shared_ptr<const Implementation> kernels = load_implementation("tokenweave");
  StructureCache structures;
  SiteTimes times;
  StepPoint point{.model = &model, .machine = &machine, .plan = {}, .framework = {}};
};

std::vector<StepRow> woven_rows(std::vector<std::string> more) {
  std::vector<std::string> settings{"model=llama-3.1-70b", "ranks=8", "seq=8K", "as=tokenweave"};
  settings.insert(settings.end(), more.begin(), more.end());
  const Grid grid = test::grid_of(settings);
  const Library library = library_of(grid);
  return StepPoints(library).rows(grid.settings);
}

/// Kernels of one half hide the sums of the other; only the last sum is exposed, if kernels take longer than sums.
TEST(Woven, LongKernelsHideEverySumButTheLast) {
  WovenPrefill prefill;
  const ImplementedSite& site = prefill.kernels->costs.on(prefill.machine).mlp_ar;
  std::array<StepPoint, 2> halves{prefill.point, prefill.point};
  halves[0].plan.seq = halves[1].plan.seq = 4096;
  halves[1].earlier = 4096;
  Duration kernels{};
  Duration least = Duration::max();
  for (const StepPoint& half : halves) {
    LayerCost costs(half, prefill.times, site.sms.value);
    const std::vector<Stream> parts = costs.forward_between_sums(layer_runs(prefill.model).front().kind);
    ASSERT_EQ(parts.size(), 2U);  // attention, MLP
    for (const Stream& part : parts) {
      kernels += prefill.model.layers * part.device;
      least = std::min(least, part.device);
    }
  }
  const Duration sum = switch_sum_time(site, prefill.machine.link, 8, Bytes{4096 * 8192 * 2});
  ASSERT_LT(sum, least);
  EXPECT_EQ(woven_pass(prefill.point, prefill.times).device, kernels + sum);
}

TEST(Woven, SequencesAreHalvedBeforeTokens) {
  WovenPrefill prefill;
  prefill.point.plan.micro_batch = prefill.point.plan.global_batch = 2;
  prefill.point.plan.seq = 4096;
  const Duration two_sequences = woven_pass(prefill.point, prefill.times).device;
  prefill.point.plan.micro_batch = prefill.point.plan.global_batch = 1;
  prefill.point.plan.seq = 8192;
  // The second half of one long sequence also attends to the first half.
  EXPECT_LT(two_sequences, woven_pass(prefill.point, prefill.times).device);
}

TEST(Woven, PartsOfASequenceAttendAsOftenAsTheWhole) {
  WovenPrefill prefill;
  prefill.point.implemented.kernels = nullptr;
  prefill.point.free_sums = true;
  const Duration whole = predict_prefill(prefill.point, prefill.times).time;
  Duration parts{};
  prefill.point.plan.seq = 4096;
  for (const std::int64_t earlier : {0, 4096}) {
    prefill.point.earlier = earlier;
    parts += predict_prefill(prefill.point, prefill.times).time;
  }
  EXPECT_GT(parts, whole);  // Smaller kernels are less efficient.
  EXPECT_LT(to_seconds(parts), 1.1 * to_seconds(whole));
}

TEST(Woven, FreeSumsBoundWhatOverlapSaves) {
  WovenPrefill prefill;
  prefill.point.implemented.kernels = nullptr;
  const Duration serial = predict_prefill(prefill.point, prefill.times).time;
  prefill.point.free_sums = true;
  EXPECT_LT(predict_prefill(prefill.point, prefill.times).time, serial);
}

TEST(Woven, AnImplementationThatOnlySumsReplacesEverySumOfTheLayers) {
  WovenPrefill prefill;
  const auto multimem = load_implementation("torch_multimem");
  prefill.point.implemented.kernels = nullptr;
  prefill.point.free_sums = true;
  const Duration kernels = predict_prefill(prefill.point, prefill.times).time;
  prefill.point.free_sums = false;
  prefill.point.implemented.kernels = multimem.get();
  const Duration sum =
      switch_sum_time(multimem->costs.on(prefill.machine).mlp_ar, prefill.machine.link, 8, Bytes{8192 * 8192 * 2});
  // Two sums for each of 80 layers, and one for the embedding.
  EXPECT_EQ(predict_prefill(prefill.point, prefill.times).time, kernels + 161 * sum);
}

TEST(Woven, ASlowHostSetsTheTimeOfShortPasses) {
  WovenPrefill prefill;
  prefill.point.plan.seq = 64;
  prefill.point.framework.issue.value = std::chrono::microseconds(50);
  const WovenPass pass = woven_pass(prefill.point, prefill.times);
  const Duration issue = prefill.point.framework.issue.value;
  EXPECT_EQ(pass.host % issue, Duration{});
  EXPECT_GT(pass.host, pass.device);
  EXPECT_GE(predict_prefill(prefill.point, prefill.times).time, pass.host);
}

TEST(Woven, RowsNameTheSumsAndCompareWithSerial) {
  const std::vector<StepRow> rows = woven_rows({"scope=prefill", "parallel.sequence_parallel=off"});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].text("strategy"), "serial");
  EXPECT_EQ(rows[1].text("strategy"), "tokenweave");
  EXPECT_EQ(rows[1].text("implements"), "tokenweave");
  EXPECT_EQ(rows[1].text("implemented_sites"), all_sums);
  EXPECT_LT(rows[1].number("time_ms"), rows[0].number("time_ms"));
  EXPECT_GT(rows[1].number("beats_serial"), 0.5);
  EXPECT_GT(rows[1].number("time_error"), 0.05);  // with the residual of the implementation
}

TEST(Woven, IsRefusedWhereNothingIsSummedInASwitch) {
  const auto reason = [](std::vector<std::string> more) {
    const std::vector<StepRow> rows = woven_rows(std::move(more));
    EXPECT_EQ(rows.back().has("implemented_sites"), rows.back().feasible());
    return rows.back().feasible() ? std::string{} : rows.back().text("reason");
  };
  EXPECT_EQ(reason({"scope=prefill"}),
            "tokenweave sums over tensor ranks that do not share the tokens; choose --sequence-parallel off");
  EXPECT_EQ(reason({"scope=step", "parallel.sequence_parallel=off"}),
            "tokenweave covers prefills only; choose --scope prefill");
  EXPECT_EQ(reason({"scope=prefill", "parallel.sequence_parallel=off", "ranks=1"}),
            "tokenweave sums over tensor ranks that do not share the tokens; choose more --ranks");
  EXPECT_EQ(reason({"scope=prefill", "parallel.sequence_parallel=off", "hardware=a100-sxm-80"}),
            "tokenweave does not run on a100-sxm-80; it is for hopper, blackwell");
  EXPECT_EQ(reason({"scope=prefill", "parallel.sequence_parallel=off", "hardware=h100-pcie", "ranks=2"}),
            "tokenweave needs a switch that sums (NVLS), which h100-pcie lacks; choose another implementation");
  EXPECT_EQ(reason({"scope=prefill", "parallel.sequence_parallel=off", "model=nemotron-h-8b"}),
            "tokenweave has no kernels for the state-space layers of nemotron-h-8b; choose another model");
}

}  // namespace
}  // namespace commfuse
