// SPDX-License-Identifier: Apache-2.0
// Tests the rows of implementations and of ideal schedules at a point, and that a higher cost never shortens a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/workload/bare_mlp.h"
#include "sim/point/grid.h"
#include "sim/point/point_list.h"
#include "sim/point/point_runner.h"
#include "tests/sim/grid_of.h"
#include "tests/sim/message_of.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

/// Returns rows of a GEMM of 4096 x 8192 times 8192 x 28672 over 8 H100, with the given settings changed.
std::vector<ResultRow> gemm_rows(const std::vector<std::string>& sets) {
  std::vector<std::string> settings_of_gemm{"model=8192x28672", "scope=gate_up", "seq=4K", "hardware=h100-sxm",
                                            "ranks=8"};
  settings_of_gemm.insert(settings_of_gemm.end(), sets.begin(), sets.end());
  const Settings settings = test::settings_of(settings_of_gemm);
  Library library;
  library.load(settings);
  StructureCache structures;
  return PointRunner(library, structures).rows(settings);
}

std::vector<std::string> names_of(const std::vector<ResultRow>& rows) {
  std::vector<std::string> names;
  for (const ResultRow& row : rows) {
    names.push_back(row.strategy);
  }
  return names;
}

const ResultRow& row_named(const std::vector<ResultRow>& rows, std::string_view name) {
  const auto row = std::ranges::find(rows, name, &ResultRow::strategy);
  EXPECT_NE(row, rows.end()) << name;
  return row == rows.end() ? rows.front() : *row;
}

TEST(Implementations, FollowTheSchedulesUnderTheirOwnNames) {
  const auto rows = gemm_rows({"as=te,flux", "strategy.name=serial,fused_kernel"});
  EXPECT_EQ(names_of(rows), (std::vector<std::string>{"serial", "fused_kernel", "te", "flux"}));
  EXPECT_EQ(rows[0].implements, "");
  EXPECT_EQ(rows[1].implements, "");
  EXPECT_EQ(rows[2].implements, "ring_exchange");
  EXPECT_EQ(rows[3].implements, "fused_kernel");
  for (const ResultRow& row : rows) {
    EXPECT_TRUE(row.feasible()) << row.strategy << ": " << row.reason;
  }
  EXPECT_GT(rows[3].analysis.critical.makespan, rows[1].analysis.critical.makespan);
}

TEST(Implementations, OverNcclTakeTheSameTimeWithEveryEvaluator) {
  const auto time = [](const std::string& evaluator) {
    return row_named(gemm_rows({"as=two_streams", "evaluator=" + evaluator}), "two_streams").analysis.critical.makespan;
  };
  EXPECT_EQ(time("replay"), time("auto"));
  EXPECT_EQ(time("engine"), time("auto"));
}

TEST(Implementations, OnlySomeHaveKernelsForExperts) {
  const std::vector<std::string> experts{"model=8192x8192-e32-top4", "seq=8K", "as=te,flux", "strategy.name=serial"};
  const auto rows = gemm_rows(experts);
  EXPECT_TRUE(row_named(rows, "serial").feasible());
  EXPECT_TRUE(row_named(rows, "flux").feasible()) << row_named(rows, "flux").reason;
  EXPECT_EQ(row_named(rows, "te").reason,
            "te has no kernels for experts; choose another implementation, or a model without experts");
  EXPECT_EQ(row_named(rows, "flux").model, "8192x8192-e32-top4");
  for (const ResultRow& row : gemm_rows({"model=8192x8192-e32-top4-ep2", "seq=8K", "as=all"})) {
    EXPECT_TRUE(row.feasible()) << row.strategy << ": " << row.reason;
    EXPECT_TRUE(row.implements.empty() || row.strategy == "flux") << row.strategy;
  }
}

TEST(Implementations, ExpertsCostTheirGemmAndTheCopiesOfTheirRows) {
  const auto serial = [](const std::string& model) {
    return row_named(gemm_rows({"model=" + model, "seq=8K", "strategy.name=serial"}), "serial").analysis.critical;
  };
  const auto dense = serial("8192x8192");
  const auto experts = serial("8192x8192-e8-top1");
  const auto active = serial("8192x8192-e8-top2");
  // Communication is the same; the copies read and write 134 MB for each active expert.
  EXPECT_EQ(experts.exposed, dense.exposed);
  EXPECT_GT(experts.compute, dense.compute);
  EXPECT_NEAR(to_seconds(active.compute) / to_seconds(experts.compute), 2.0, 0.1);
}

TEST(Implementations, MarkIdealSchedulesExceptSerialAsBounds) {
  for (const ResultRow& row : gemm_rows({"as=flux"})) {
    EXPECT_EQ(row.bound, row.implements.empty() && row.strategy != "serial") << row.strategy;
    EXPECT_EQ(row.win_probability.has_value(), !row.bound) << row.strategy;
  }
  EXPECT_FALSE(row_named(gemm_rows({}), "sliced").bound);
  EXPECT_FALSE(row_named(gemm_rows({"as=none"}), "sliced").bound);
}

TEST(Implementations, BoundsNextToThemHaveNoChanceOfBeatingSerial) {
  const auto rows = gemm_rows({"as=flux", "strategy.name=serial,sliced"});
  EXPECT_FALSE(rows[0].beats_serial);
  EXPECT_FALSE(rows[1].beats_serial);
  ASSERT_TRUE(rows[2].beats_serial);
  const bool faster = rows[2].analysis.critical.makespan < rows[0].analysis.critical.makespan;
  EXPECT_EQ(*rows[2].beats_serial > 0.5, faster);
  // With two competitors, beating serial and winning have equal probability.
  EXPECT_EQ(rows[2].win_probability, rows[2].beats_serial);
  EXPECT_FALSE(row_named(gemm_rows({"as=flux", "strategy.name=sliced"}), "flux").beats_serial);
  EXPECT_FALSE(row_named(gemm_rows({"as=flux", "uncertainty=off"}), "flux").beats_serial);
}

/// A schedule that is not the fastest may be less sure, or surer, to beat serial than the fastest one.
TEST(BeatsSerial, IsKnownForEveryIdealSchedule) {
  const auto rows = gemm_rows({"strategy.name=serial,sliced,commfuse,fused_kernel"});
  const ResultRow& serial = row_named(rows, "serial");
  EXPECT_FALSE(serial.beats_serial);
  EXPECT_FALSE(row_named(rows, "fused_kernel").beats_serial);  // a bound
  const ResultRow* fastest = &serial;
  for (const ResultRow& row : rows) {
    if (row.bound || row.strategy == "serial") {
      continue;
    }
    ASSERT_TRUE(row.beats_serial) << row.strategy;
    EXPECT_FALSE(row.saving_error) << row.strategy;
    const bool faster = row.analysis.critical.makespan < serial.analysis.critical.makespan;
    EXPECT_EQ(*row.beats_serial > 0.5, faster) << row.strategy;
    fastest = row.analysis.critical.makespan < fastest->analysis.critical.makespan ? &row : fastest;
  }
  ASSERT_NE(fastest, &serial);
  EXPECT_NEAR(*fastest->beats_serial, 1.0 - *serial.win_probability, 1e-9);
}

TEST(Implementations, StateTheirHandicaps) {
  const std::string held_back = row_named(gemm_rows({"as=flux", "strategy.name=serial"}), "flux").held_back;
  EXPECT_NE(held_back.find("the cost of its calls 59 us"), std::string::npos) << held_back;  // 58.6 us at one site
  EXPECT_NE(held_back.find("its GEMM "), std::string::npos) << held_back;                    // 3.2% longer
  EXPECT_EQ(held_back.find("the time of its separate sums"), std::string::npos) << held_back;
  EXPECT_EQ(row_named(gemm_rows({"as=flux"}), "serial").held_back, "");
}

TEST(Implementations, AllSelectsImplementationsThatRunOnTheMachine) {
  const auto has = [](const std::vector<ResultRow>& rows, std::string_view name) {
    return std::ranges::find(rows, name, &ResultRow::strategy) != rows.end();
  };
  const auto hopper = gemm_rows({"as=all", "strategy.name=serial"});
  EXPECT_TRUE(has(hopper, "flux"));
  EXPECT_FALSE(has(hopper, "typical"));  // A typical implementation does not exist as software.
  EXPECT_TRUE(has(gemm_rows({"as=typical", "strategy.name=serial"}), "typical"));
  const auto blackwell = gemm_rows({"as=all", "strategy.name=serial", "hardware=b200-sxm"});
  EXPECT_FALSE(has(blackwell, "flux"));
  EXPECT_TRUE(has(blackwell, "te"));
  EXPECT_TRUE(all_feasible(hopper));
  EXPECT_TRUE(all_feasible(blackwell));
}

TEST(Implementations, KernelsForCudaDoNotRunOnAmd) {
  const auto rows = gemm_rows({"as=te", "strategy.name=serial", "hardware=mi300x"});
  EXPECT_EQ(rows[1].reason, "te does not run on mi300x; it is for ampere, hopper, blackwell");
}

TEST(Implementations, ANamedImplementationThatCannotRunIsARowWithAReason) {
  const auto rows = gemm_rows({"as=flux,te", "strategy.name=serial", "hardware=b200-sxm"});
  ASSERT_EQ(names_of(rows), (std::vector<std::string>{"serial", "flux", "te"}));
  EXPECT_EQ(rows[1].reason, "flux does not run on b200-sxm; it is for ampere, hopper");
  EXPECT_EQ(rows[1].implements, "fused_kernel");
  EXPECT_FALSE(rows[1].beats_serial);
  EXPECT_EQ(rows[1].held_back, "");
  EXPECT_EQ(rows[2].reason, "");
}

TEST(Implementations, WarnWhereNobodyMeasured) {
  const ResultRow unmeasured = row_named(gemm_rows({"as=te", "hardware=b200-sxm"}), "te");
  EXPECT_NE(unmeasured.unmeasured_on, "");
  // The page omits the last warning of an unmeasured row.
  EXPECT_TRUE(unmeasured.warnings.ends_with("te was not measured on GPUs such as " + unmeasured.unmeasured_on))
      << unmeasured.warnings;
  const ResultRow measured = row_named(gemm_rows({"as=te"}), "te");
  EXPECT_EQ(measured.unmeasured_on, "");
  EXPECT_EQ(measured.warnings.find("was not measured on GPUs"), std::string::npos);
}

/// Returns the reason of the last row, which is the row of an implementation.
std::string clash_in(const std::vector<std::string>& sets) { return gemm_rows(sets).back().reason; }

TEST(Implementations, ThatSumInTheSwitchAreRefusedWithoutOne) {
  const auto refusal = [](const std::string& name, const std::string& machine) {
    return name + " needs a switch that sums (NVLS), which " + machine + " lacks; choose another implementation";
  };
  EXPECT_EQ(clash_in({"as=vllm_gemm_ar", "scope=down_ar", "hardware=pcie-rtx-pro-6000"}),
            refusal("vllm_gemm_ar", "pcie-rtx-pro-6000"));
  EXPECT_EQ(clash_in({"as=torch_multimem", "scope=mlp_ar", "hardware=gh200", "tp=4"}),
            refusal("torch_multimem", "gh200"));
}

TEST(Implementations, AreRefusedForOtherScopesAndOmittedFromAll) {
  EXPECT_EQ(clash_in({"as=flux", "scope=mlp_ar"}),
            "implementation flux does not cover scope mlp_ar; scopes that it covers: qkv, out_proj, gate_up, down, "
            "mlp");
  EXPECT_EQ(clash_in({"as=te", "scope=down_backward"}),
            "implementation te does not cover scope down_backward, as it was measured in forward passes only; "
            "scopes that it covers: qkv, out_proj, gate_up, down, mlp");
  EXPECT_EQ(clash_in({"as=flash_overlap"}),
            "implementation flash_overlap does not cover scope gate_up; scopes that it covers: out_proj, down, "
            "out_proj_ar, down_ar");
  for (const ResultRow& row : gemm_rows({"as=all", "scope=ulysses"})) {
    EXPECT_EQ(row.implements, "") << row.strategy;
  }
}

TEST(Implementations, AScopeThatTheyDoNotCoverIsARowWithAReason) {
  const auto rows = gemm_rows({"as=te,flux", "strategy.name=serial,sliced", "scope=mlp_ar"});
  ASSERT_EQ(names_of(rows), (std::vector<std::string>{"serial", "sliced", "te,flux"}));
  EXPECT_FALSE(rows[0].bound);
  EXPECT_TRUE(rows[1].bound);  // No implementation is compared with it, so it cannot win.
  EXPECT_FALSE(rows[2].bound);
  EXPECT_FALSE(rows[2].feasible());
}

TEST(Implementations, AScopeThatTheyDoNotCoverIsRefusedBeforeARun) {
  const Grid grid = test::grid_of({"as=flux"}, {"scope=mlp,mlp_ar"});
  const Library library = library_of(grid);
  EXPECT_EQ(test::message_of([&] { require_all_runnable(PointList(grid, max_run_points), library); }),
            "implementation flux does not cover scope mlp_ar; scopes that it covers: qkv, out_proj, gate_up, down, "
            "mlp");
}

/// Draws points of many sizes on several machines, schedules of strategies that implementation files name, and costs.
class RandomCases {
 public:
  explicit RandomCases(std::uint32_t seed) : random_(seed) {
    for (const char* name : {"h100-sxm", "b200-sxm", "a100-sxm-80", "pcie-rtx-pro-6000"}) {
      machines_.push_back(load_machine(name));
    }
  }

  Point point() {
    Point point{
        .model = bare_mlp({.hidden = one_of<4>({1024, 4096, 8192, 16384}), .ffn = one_of<3>({4096, 28672, 53248})}),
        .machine = machines_[random_() % machines_.size()]};
    point.scope = std::array{Scope::gate_up, Scope::down, Scope::mlp}[random_() % 3];
    point.ranks = static_cast<std::int32_t>(one_of<3>({2, 4, 8}));
    point.seq = one_of<5>({256, 1024, 4096, 8192, 32768});
    point.price.interference = random_() % 2 == 0 ? Interference::none : Interference::constant;
    return point;
  }
  std::pair<const Strategy*, StrategyOptions> schedule(const Point& point) {
    const std::array<const Strategy*, 4> known{&fused_kernel_strategy, &ring_exchange_strategy, &async_tp_strategy,
                                               &sliced_strategy};
    const Strategy* strategy = known[random_() % known.size()];
    const auto schedules = schedules_to_try(*strategy, kinds_of(point.scope), point.ranks);
    return {strategy, schedules[random_() % schedules.size()]};
  }
  /// Returns two sets of costs that differ in one parameter, at both kinds of sites: the first has the lower cost.
  std::pair<ImplementedSites, ImplementedSites> costs() {
    std::pair<ImplementedSites, ImplementedSites> low_and_high;
    const auto parameter = random_() % 10;
    const double low = share(), high = low + share();
    for (ImplementedSites* sites : {&low_and_high.first, &low_and_high.second}) {
      const double cost = (sites == &low_and_high.first ? low : high) / 2.0;  // 0 to 1
      for (ImplementedSite* site : {&sites->ag_gemm, &sites->gemm_rs}) {
        switch (parameter) {
          case 0: site->per_call.value = from_seconds(cost * 300e-6); break;
          case 1: site->per_step.value = from_seconds(cost * 100e-6); break;
          case 2: site->product_time.value = 1.0 + cost; break;
          case 3: site->cut_cost.value = cost; break;
          case 4: site->rate_share.value = 1.0 - 0.95 * cost; break;
          case 5: site->rate.emplace().value = BytesPerSecond{500e9 * (1.01 - cost)}; break;
          case 6: site->sms.value = static_cast<int>(64.0 * cost); break;
          case 7: site->host_per_call.value = static_cast<int>(40.0 * cost); break;
          case 8: site->host_per_step.value = static_cast<int>(10.0 * cost); break;
          default: site->separate_sum.value = sites == &low_and_high.first ? 0 : 1; break;
        }
      }
    }
    return low_and_high;
  }

 private:
  template <std::size_t count>
  std::int64_t one_of(const std::array<std::int64_t, count>& values) {
    return values[random_() % count];
  }
  double share() { return static_cast<double>(random_() % 1001) / 1000.0; }

  std::mt19937 random_;
  std::vector<Machine> machines_;
};

/// Returns the makespan, or nothing if the schedule cannot cut so few tokens.
std::optional<Duration> makespan(Predictor& predictor, Point point, const Strategy& strategy,
                                 const StrategyOptions& options, const ImplementedSites* sites) {
  point.price.implementation = sites;
  try {
    return predictor.predict(point, strategy, options).analysis.critical.makespan;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

TEST(Implementations, WithoutCostsTakeAsLongAsTheirSchedule) {
  RandomCases cases(59);
  StructureCache structures;
  Predictor predictor(structures);
  const ImplementedSites ideal;
  int compared = 0;
  for (int i = 0; i < 150; ++i) {
    const Point point = cases.point();
    const auto [strategy, options] = cases.schedule(point);
    const auto strategy_time = makespan(predictor, point, *strategy, options, nullptr);
    EXPECT_EQ(makespan(predictor, point, *strategy, options, &ideal), strategy_time)
        << i << " " << point.model.name << " " << name_of(point.scope) << " on " << point.machine.name << ", "
        << point.ranks << " ranks, seq " << point.seq << ", " << strategy->name;
    compared += strategy_time ? 1 : 0;
  }
  EXPECT_GT(compared, 100);
}

TEST(Implementations, AHigherCostNeverMakesThemFaster) {
  RandomCases cases(60);
  StructureCache structures;
  Predictor predictor(structures);
  int compared = 0;
  int longer = 0;
  for (int i = 0; i < 300; ++i) {
    const Point point = cases.point();
    const auto [strategy, options] = cases.schedule(point);
    const auto [low, high] = cases.costs();
    const auto low_cost_time = makespan(predictor, point, *strategy, options, &low);
    const auto high_cost_time = makespan(predictor, point, *strategy, options, &high);
    ASSERT_EQ(low_cost_time.has_value(), high_cost_time.has_value());
    if (low_cost_time) {
      EXPECT_LE(*low_cost_time, *high_cost_time)
          << i << " " << point.model.name << " " << name_of(point.scope) << " on " << point.machine.name << ", "
          << point.ranks << " ranks, seq " << point.seq << ", " << strategy->name << ", per call "
          << to_microseconds(high.ag_gemm.per_call.value) << " us, per step "
          << to_microseconds(high.ag_gemm.per_step.value) << " us, GEMM x" << high.ag_gemm.product_time.value
          << ", cut " << high.ag_gemm.cut_cost.value << ", share " << high.ag_gemm.rate_share.value << ", SMs "
          << high.ag_gemm.sms.value;
      ++compared;
      longer += *high_cost_time > *low_cost_time ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 200);
  EXPECT_GT(longer, compared / 3);
}

}  // namespace
}  // namespace commfuse
