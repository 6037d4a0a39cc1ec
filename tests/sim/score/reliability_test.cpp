// SPDX-License-Identifier: Apache-2.0
// Compares intervals, pairs and public figures of whole tables with what runs state about the same times.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/analysis/error_tail.h"
#include "model/config/catalogue.h"
#include "model/cost/communication.h"
#include "model/cost/gemm.h"
#include "model/fit/holdout.h"
#include "sim/point/predict.h"
#include "sim/score/doubts.h"
#include "sim/score/figures.h"
#include "sim/score/sampled_op.h"
#include "sim/score/score.h"
#include "tests/sim/score/gemm_table.h"
#include "tests/sim/score/score_text.h"

namespace commfuse::score {
namespace {

const Machine& h100() {
  static const Machine machine = load_machine("h100-sxm");
  return machine;
}

/// Returns the residual of a GEMM's limit.
double residual_of(const GemmSize& size) { return commfuse::residual_of(shape_of(size), h100(), 1); }

/// Returns the row of a measurement that is `factor` times its prediction.
std::string gemm_row(const GemmSize& size, double factor) {
  return fmt::format("H100-SXM5-80GB,bfloat16,{},{},{},{:.12g}\n", size.m, size.n, size.k,
                     gemm_us(h100(), size) * factor);
}

/// Returns one standard error of one GEMM, by the formulas of docs/metrics.md.
double error_of_gemm(const GemmSize& size) {
  double squares = std::pow(std::log(1.0 + residual_of(size)), 2);
  for (const RaisedMachine& raised : raised_by_error(h100())) {
    squares += std::pow(std::log(gemm_us(*raised.machine, size) / gemm_us(h100(), size)), 2);
  }
  return std::sqrt(squares);
}

TEST(Intervals, ARowHasTheErrorThatARunWouldState) {
  const GemmSize size{.m = 2048, .n = 4096, .k = 4096};
  const TableScore score = score_text(std::string(gemm_header) + gemm_row(size, 1.1), "x.csv", {});
  ASSERT_EQ(score.checked.size(), 1U);
  const CheckedKind& checked = score.checked.front();
  EXPECT_EQ(checked.kind, "GEMM bf16");
  EXPECT_EQ(checked.machine, "h100-sxm");
  EXPECT_FALSE(checked.fitted);
  ASSERT_EQ(checked.times.size(), 1U);
  EXPECT_NEAR(checked.times[0].distance, std::log(1.1), 1e-9);
  EXPECT_NEAR(checked.times[0].error, error_of_gemm(size), 1e-9);
  EXPECT_EQ(checked.times[0].shape, (ShapeKey{4096, 4096, 0}));
}

TEST(Intervals, OnlyHeldOutRowsOfAFittedTableAreChecked) {
  std::string text(gemm_header);
  std::size_t held_out_count = 0;
  for (std::int64_t n = 64; n <= 3200; n += 64) {
    text += gemm_row({.m = 128, .n = n, .k = 4096}, 1.0);
    held_out_count += is_held_out(gemm_group("gemm", "H100-SXM5-80GB", "bf16", {.n = n, .k = 4096})) ? 1 : 0;
  }
  const TableScore fitted = score_text(text, "gemm_h100_bf16_aic.csv", {});
  ASSERT_EQ(fitted.checked.size(), 1U);
  EXPECT_TRUE(fitted.checked.front().fitted);
  EXPECT_EQ(fitted.checked.front().times.size(), held_out_count);
  EXPECT_GT(held_out_count, 0U);
  EXPECT_EQ(score_text(text, "x.csv", {}).checked.front().times.size(), 50U);
}

TEST(Intervals, ATableIsFittedOnlyUnderItsWholeName) {
  Doubts doubts;
  EXPECT_TRUE(doubts.is_fitted(h100(), "gemm_h100_bf16_aic"));
  EXPECT_FALSE(doubts.is_fitted(h100(), "h100_bf16_aic"));
  EXPECT_FALSE(doubts.is_fitted(h100(), "aic"));
}

TEST(Intervals, RowsThatAFitReadAreCollectedForResidualsOnly) {
  const std::string text = std::string(gemm_header) + gemm_row({.m = 128, .n = 64, .k = 4096}, 1.1) +
                           gemm_row({.m = 128, .n = 128, .k = 4096}, 1.1);
  EXPECT_TRUE(score_text(text, "gemm_h100_bf16_aic.csv", {}).fits.empty());
  EXPECT_TRUE(score_text(text, "x.csv", {.residuals = true}).fits.empty());
  const TableScore score = score_text(text, "gemm_h100_bf16_aic.csv", {.residuals = true});
  ASSERT_EQ(score.fits.size(), 1U);
  EXPECT_EQ(score.fits[0].machine, "h100-sxm");
  EXPECT_EQ(score.fits[0].key, "accelerator.matrix_units.bf16.fit.residual");
  EXPECT_EQ(score.fits[0].residual, h100().accelerator.matrix_unit(DType::bf16).fit.residual);
  ASSERT_EQ(score.fits[0].rows.size(), 2U);
  const FitRow& row = score.fits[0].rows[0];
  EXPECT_NEAR(row.distance, std::log(1.1), 1e-9);
  const double residual = std::log(1.0 + residual_of(GemmSize{.m = 128, .n = 64, .k = 4096}));
  EXPECT_NEAR(std::hypot(row.parameters, residual), error_of_gemm({.m = 128, .n = 64, .k = 4096}), 1e-9);
  EXPECT_EQ(row.held_out, is_held_out(gemm_group("gemm", "H100-SXM5-80GB", "bf16", {.n = 64, .k = 4096})));
}

TEST(Intervals, AnOpHasDoubtsAboutItsResidualAndTheParametersItUses) {
  const GemmSize size{.m = 4096, .n = 8192, .k = 8192};
  const TimedShape timed{shape_of(size), gemm_us(h100(), size), 0.05};
  Doubts doubts;
  const Uncertainty uncertainty =
      doubts.of(h100(), std::span(&timed, 1), [&](const Machine& other) { return gemm_us(other, size); });
  ASSERT_FALSE(uncertainty.doubts.empty());
  EXPECT_NEAR(uncertainty.doubts.back().effect, std::log(1.05), 1e-12);
  EXPECT_EQ(std::get<PricedShape>(uncertainty.doubts.back().of), shape_of(size));
  // There is one doubt for each parameter that changes the price, and one for the residual.
  std::size_t used_parameters = 0;
  for (const RaisedMachine& raised : raised_by_error(h100())) {
    used_parameters += gemm_us(*raised.machine, size) != gemm_us(h100(), size) ? 1 : 0;
  }
  EXPECT_EQ(uncertainty.doubts.size(), used_parameters + 1);
}

TEST(Pairs, SlicesAndTheWholeAreJudgedByTheRuleOfVerdicts) {
  const GemmSize whole{.m = 8192, .n = 4096, .k = 4096};
  const GemmSize slice{.m = 2048, .n = 4096, .k = 4096};
  const TableScore score =
      score_text(std::string(gemm_header) + gemm_row(whole, 1.0) + gemm_row(slice, 0.5), "x.csv", {});
  ASSERT_EQ(score.judged.size(), 1U);
  EXPECT_EQ(score.judged[0].ways, "GEMM whole or in slices");
  EXPECT_EQ(score.judged[0].machine, "h100-sxm");
  ASSERT_EQ(score.judged[0].pairs.size(), 1U);
  double squares = std::pow(std::log(1.0 + residual_of(whole)), 2) + std::pow(std::log(1.0 + residual_of(slice)), 2);
  for (const RaisedMachine& raised : raised_by_error(h100())) {
    const double whole_effect = std::log(gemm_us(*raised.machine, whole) / gemm_us(h100(), whole));
    const double slice_effect = std::log(gemm_us(*raised.machine, slice) / gemm_us(h100(), slice));
    squares += (whole_effect - slice_effect) * (whole_effect - slice_effect);
  }
  const double distance = std::log(4.0 * gemm_us(h100(), slice) / gemm_us(h100(), whole));
  ASSERT_GT(distance, 0.0);
  const double expected = share_below(distance / std::sqrt(squares));
  EXPECT_NEAR(score.judged[0].pairs[0].probability, expected, 1e-6);
  // The measured slices take half of their prediction and win.
  EXPECT_FALSE(score.judged[0].pairs[0].came_true);
}

// The weight fits into the L2 of an L40S, so the number of its copies changes prices; the doubts are about the changed
// prices.
TEST(Pairs, WarmWeightsAreWarmOnRaisedMachinesToo) {
  const Machine l40s = load_machine("l40s-pcie");
  const GemmSize whole{.m = 1024, .n = 2048, .k = 2048, .weight_copies = 5};
  const GemmSize slice{.m = 512, .n = 2048, .k = 2048, .weight_copies = 5};
  ASSERT_LT(gemm_us(l40s, slice), gemm_us(l40s, {.m = 512, .n = 2048, .k = 2048}));
  const TableScore score = score_text(
      fmt::format("# software: weight copies exceed L2\n{}L40S,bf16,1024,2048,2048,50\nL40S,bf16,512,2048,2048,20\n",
                  gemm_header),
      "x.csv", {});
  ASSERT_EQ(score.judged.size(), 1U);
  ASSERT_EQ(score.judged[0].pairs.size(), 1U);
  double squares = 0.0;
  for (const GemmSize& size : {whole, slice}) {
    squares += std::pow(std::log(1.0 + commfuse::residual_of(shape_of(size), l40s, 1)), 2);
  }
  for (const RaisedMachine& raised : raised_by_error(l40s)) {
    const double whole_effect = std::log(gemm_us(*raised.machine, whole) / gemm_us(l40s, whole));
    const double slice_effect = std::log(gemm_us(*raised.machine, slice) / gemm_us(l40s, slice));
    squares += (whole_effect - slice_effect) * (whole_effect - slice_effect);
  }
  const double distance = std::log(2.0 * gemm_us(l40s, slice) / gemm_us(l40s, whole));
  ASSERT_GT(distance, 0.0);
  EXPECT_NEAR(score.judged[0].pairs[0].probability, share_below(distance / std::sqrt(squares)), 1e-6);
}

TEST(Pairs, AWeightIsCutOverRanksByRowsOrByColumns) {
  const GemmSize by_rows{.m = 1024, .n = 4096, .k = 2048};
  const GemmSize by_columns{.m = 1024, .n = 2048, .k = 4096};
  const TableScore score =
      score_text(std::string(gemm_header) + gemm_row(by_rows, 1.0) + gemm_row(by_columns, 1.0), "x.csv", {});
  ASSERT_EQ(score.judged.size(), 1U);
  EXPECT_EQ(score.judged[0].ways, "weight cut by rows or columns");
  ASSERT_EQ(score.judged[0].pairs.size(), 1U);
  EXPECT_TRUE(score.judged[0].pairs[0].came_true);
  const TableScore narrow = score_text(std::string(gemm_header) + gemm_row({.m = 1024, .n = 512, .k = 256}, 1.0) +
                                           gemm_row({.m = 1024, .n = 256, .k = 512}, 1.0),
                                       "x.csv", {});
  EXPECT_TRUE(narrow.judged.empty());
}

TEST(Pairs, AnAllReduceIsJudgedBesideItsTwoHalves) {
  const Bytes bytes{64 << 20};
  const auto us = [](Duration time) { return to_microseconds(time); };
  const double sum = us(all_reduce_time(h100().link, 8, bytes));
  const std::string text = fmt::format(
      "# hardware: 8x H100-SXM5-80GB, NVSwitch, one node\nop,ngpus,bytes,time_us\nall_reduce,8,{0},{1:.9g}\n"
      "reduce_scatter,8,{0},{2:.9g}\nall_gather,8,{0},{3:.9g}\nall_reduce,4,{0},{1:.9g}\n",
      bytes.count, sum, us(reduce_scatter_time(h100().link, 8, bytes)), us(all_gather_time(h100().link, 8, bytes)));
  const TableScore score = score_text(text, "x.csv", {});
  ASSERT_EQ(score.judged.size(), 1U);
  EXPECT_EQ(score.judged[0].ways, "all-reduce or two halves");
  ASSERT_EQ(score.judged[0].pairs.size(), 1U);
  EXPECT_TRUE(score.judged[0].pairs[0].came_true);
  ASSERT_EQ(score.checked.size(), 1U);
  EXPECT_EQ(score.checked[0].kind, "collectives >= 64 KiB");
  EXPECT_EQ(score.checked[0].times.size(), 4U);
}

TEST(Pairs, SchedulesAreJudgedAsInRuns) {
  const std::string header = "hw,model,scope,ranks,batch,seq,dtype,strategy,slices,time_us\n";
  const auto rows = [](std::string_view hw, std::string_view model) {
    return fmt::format("{0},{1},gate_up,4,1,8192,bf16,serial,,3000\n{0},{1},gate_up,4,1,8192,bf16,commfuse,,2000\n", hw,
                       model);
  };
  const TableScore score = score_text(header + rows("h100-sxm", "llama-3.1-70b"), "x.csv", {});
  ASSERT_EQ(score.scored, 2);
  ASSERT_EQ(score.judged.size(), 1U);
  EXPECT_EQ(score.judged[0].ways, "two schedules");
  StructureCache structures;
  Predictor predictor(structures);
  Point point;
  point.model = load_model("llama-3.1-70b");
  point.machine = h100();
  point.scope = Scope::gate_up;
  point.ranks = 4;
  point.seq = 8192;
  point.raised = std::make_shared<const std::vector<RaisedMachine>>(raised_by_error(h100()));
  const Strategy& ring = *find_strategy("commfuse");
  const Prediction serial = predictor.predict(point, serial_strategy, {});
  const Prediction fastest = predictor.predict_best(point, ring, ring.variants({}, {}));
  const double expected = probability_shorter(fastest.analysis.critical.makespan, predictor.uncertainty(point, fastest),
                                              serial.analysis.critical.makespan, predictor.uncertainty(point, serial));
  ASSERT_EQ(score.judged[0].pairs.size(), 1U);
  EXPECT_NEAR(score.judged[0].pairs[0].probability, std::max(expected, 1.0 - expected), 1e-9);
  EXPECT_EQ(score.judged[0].pairs[0].came_true, expected > 0.5);
  // The parameters of this machine are fitted to the time of one of the schedules.
  const TableScore paper = score_text(header + rows("commfuse-paper-npu", "commfuse-paper-mlp"), "x.csv", {});
  EXPECT_TRUE(paper.judged.empty());
}

TEST(Figures, AreReadFromAValueAndItsUnit) {
  const auto figures = figures_in(1.013, "x p50; 1.093 p90; 1.152 p99");
  ASSERT_TRUE(figures);
  ASSERT_EQ(figures->size(), 3U);
  EXPECT_EQ((*figures)[0].name, "p50");
  EXPECT_DOUBLE_EQ((*figures)[0].factor, 1.013);
  EXPECT_EQ((*figures)[2].name, "p99");
  EXPECT_DOUBLE_EQ((*figures)[2].factor, 1.152);
  const auto percents = figures_in(1.0, "pct p50; 5.6 p90; max/median p99 1.29");
  ASSERT_TRUE(percents);
  EXPECT_DOUBLE_EQ((*percents)[1].factor, 1.056);
  EXPECT_EQ((*percents)[2].name, "max/median p99");
  EXPECT_DOUBLE_EQ((*percents)[2].factor, 1.29);
  EXPECT_DOUBLE_EQ((*figures_in(18.9, "pct"))[0].factor, 1.189);
  EXPECT_EQ((*figures_in(18.9, "pct \x1b[2J"))[0].name, "\\x1b[2J");
  EXPECT_FALSE(figures_in(3.0, "us"));
  EXPECT_FALSE(figures_in(3.0, "x p50; many p90"));
  EXPECT_FALSE(figures_in(-3.0, "x"));
}

TEST(SampledOp, MatchesStatisticsByHand) {
  EXPECT_DOUBLE_EQ(value_at({4.0, 1.0, 2.0, 3.0}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(variation_of({1.0, 3.0}), 0.5);
  EXPECT_EQ(largest_over_median({2.0, 3.0, 4.0, 5.0, 5.0, 10.0, 7.0}, 3), (std::vector<double>{4.0 / 3.0, 2.0}));
  EXPECT_EQ(largest_over_smallest({2.0, 3.0, 4.0}, 3), (std::vector<double>{2.0}));
  EXPECT_NEAR(log_ratios({1.0, 2.0, 3.0})[0], std::log(2.0), 1e-12);
}

TEST(SampledOp, RunsUnderAJitterOfKernelsVaryByItsSigma) {
  Jitter jitter = load_jitter("none");
  jitter.compute_sigma.value = 0.01;
  const auto tables = std::make_shared<const JitterTables>(jitter);
  const std::vector<double> times =
      sampled_us({.price = std::chrono::microseconds(100), .jitter = tables, .runs = 4000});
  ASSERT_EQ(times.size(), 4000U);
  EXPECT_NEAR(variation_of(times), 0.01, 0.0005);
  // The total of a hundred repetitions varies a tenth as much.
  const std::vector<double> many =
      sampled_us({.repeats = 100, .price = std::chrono::microseconds(100), .jitter = tables, .runs = 4000});
  EXPECT_NEAR(value_at(many, 0.5), 10000.0, 10.0);
  EXPECT_NEAR(variation_of(many), 0.001, 0.00005);
}

TEST(SampledOp, ASendHasOneDrawAndAnAllGatherWaitsForTheSlowest) {
  Jitter jitter = load_jitter("none");
  jitter.communication_sigma.value = 0.02;
  const auto tables = std::make_shared<const JitterTables>(jitter);
  const std::vector<double> sends =
      sampled_us({.op = SampledOp::send_recv, .price = std::chrono::microseconds(100), .jitter = tables, .runs = 4000});
  EXPECT_NEAR(value_at(sends, 0.5), 100.0, 0.2);
  EXPECT_NEAR(variation_of(sends), 0.02, 0.001);
  // The median of the largest of eight lognormal factors: exp(0.02 x 1.39).
  const std::vector<double> gathers = sampled_us({.op = SampledOp::all_gather,
                                                  .ranks = 8,
                                                  .price = std::chrono::microseconds(100),
                                                  .jitter = tables,
                                                  .runs = 4000});
  EXPECT_NEAR(value_at(gathers, 0.5), 102.8, 0.2);
}

constexpr std::string_view variability_header = "what,where,value,unit,source,trust\n";

TEST(Variability, RowsAreComparedWithThePercentilesOfARun) {
  const std::string text =
      std::string(variability_header) +
      "inter-node send/recv max over median (3 runs),H100 one NIC,1.013,x p50; 1.093 p90,here,seen\n"
      "\"GEMM repeat coefficient of variation, ops above 100 us\",A100,0.8,pct p50; max/median p99 "
      "1.065,here,seen\n";
  const TableScore score = score_text(text, "x.csv", {});
  EXPECT_EQ(score.kind, "variability");
  EXPECT_EQ(score.scored, 2);
  ASSERT_EQ(score.observations.size(), 3U);
  EXPECT_EQ(score.observations[0].what, "inter-node send/recv max over median: p50");
  EXPECT_EQ(score.observations[0].machine, "h100-sxm");
  EXPECT_DOUBLE_EQ(score.observations[0].measured, 1.013);
  // With kernel factors of 2%, the ratio of the largest of three to their median has a median of exp(0.02 x 0.75).
  EXPECT_NEAR(score.observations[0].predicted, 1.015, 0.004);
  EXPECT_GT(score.observations[1].predicted, score.observations[0].predicted);
  EXPECT_EQ(score.observations[2].machine, "a100-sxm-80");
  EXPECT_NEAR(score.observations[2].predicted, 1.01, 0.01);
  ASSERT_EQ(score.remarks.size(), 1U);
  EXPECT_EQ(
      score.remarks[0],
      "GEMM repeat coefficient of variation, max/median p99: the row does not state the number of runs, so it is not "
      "scored.");
}

TEST(Variability, UnscorableRowsAreSkippedAndFaultyUnitsReported) {
  const std::string text =
      std::string(variability_header) +
      "\"fleet GPU variation, average\",V100,8,pct,here,seen\n"
      "share of jobs slowed,fleet,42.5,pct,here,recalled\nmood of the operators,H100,3,x,here,seen\n"
      "per-node GPU spread seen by a practitioner,H100,5,apples,here,seen\n"
      "per-node GPU spread seen by a practitioner,Wafer,5,pct,here,seen\n";
  const TableScore score = score_text(text, "x.csv", {});
  EXPECT_EQ(score.scored, 0);
  EXPECT_EQ(score.rows, 5);
  ASSERT_EQ(score.skipped.size(), 4U);
  EXPECT_EQ(score.skipped[0].reason, "the source does not state the number of GPUs or how it measures the variation");
  EXPECT_EQ(score.skipped[1].reason, "written down from memory, so it is not scored");
  EXPECT_EQ(score.skipped[2].reason, "figures of this kind are not predicted");
  EXPECT_EQ(score.skipped[3].reason, "no hardware file is known as 'Wafer'");
  ASSERT_EQ(score.faults.size(), 1U);
  EXPECT_EQ(score.faults[0].line, 5);
  EXPECT_EQ(score.faults[0].reason, "unit is 'apples'; write pct or x, as in \"x p50; 1.09 p90\"");
}

TEST(Variability, AFigureThatNoRunPredictsIsSkippedWithItsReason) {
  const std::string what = "NCCL run-to-run 64 KiB - 4 MiB,H100,";
  const TableScore score = score_text(
      std::string(variability_header) + what + "1.05,x p95,here,seen\n" + what + "1.05,x,here,seen\n", "x.csv", {});
  EXPECT_EQ(score.scored, 0);
  ASSERT_EQ(score.skipped.size(), 2U);
  EXPECT_EQ(score.skipped[0].reason, "this percentile is not predicted");
  EXPECT_EQ(score.skipped[1].reason, "the row does not state which percentile its value is");
  ASSERT_EQ(score.remarks.size(), 2U);
  EXPECT_EQ(score.remarks[0],
            "NCCL run-to-run 64 KiB - 4 MiB, p95: this percentile is not predicted, so it is not scored.");
  EXPECT_EQ(score.remarks[1],
            "NCCL run-to-run 64 KiB - 4 MiB: the row does not state which percentile its value is, so it is not "
            "scored.");
}

TEST(Variability, AFactorInAnotherUnitIsNotCalledATime) {
  const TableScore score = score_text(
      std::string(variability_header) + "NCCL run-to-run 64 KiB - 4 MiB,H100,500,x p50,here,seen\n", "x.csv", {});
  ASSERT_EQ(score.faults.size(), 1U);
  const std::string& reason = score.faults[0].reason;
  EXPECT_TRUE(reason.starts_with("a factor of 500 was measured and 1.0")) << reason;
  EXPECT_TRUE(reason.ends_with(" predicted; is it in another unit?")) << reason;
}

TEST(InterferenceScore, AGemmOfOneWaveLosesTheSmsOfACollective) {
  const TableScore score = score_text(
      "what,hardware,value,unit,source,trust\n"
      "GEMM of exactly 132 CTAs next to a 24-CTA NCCL all-gather: MFU 80 to 47,H100,1.7,x GEMM time,here,seen\n"
      "GEMM slow-down when overlapped,Ascend 970,1.1,x,here,seen\n"
      "T3 sub-layer speed-up,MI210-like,30,pct,here,seen\n",
      "x.csv", {});
  EXPECT_EQ(score.kind, "interference");
  ASSERT_EQ(score.observations.size(), 1U);
  EXPECT_DOUBLE_EQ(score.observations[0].measured, 1.7);
  const GemmSize size{.m = 1536, .n = 2816, .k = 8192};
  const Accelerator& accelerator = h100().accelerator;
  EXPECT_DOUBLE_EQ(score.observations[0].predicted, to_seconds(estimate_gemm(accelerator, size, 132 - 24).time) /
                                                        to_seconds(estimate_gemm(accelerator, size, 132).time));
  ASSERT_EQ(score.skipped.size(), 2U);
  EXPECT_EQ(score.skipped[0].reason, "no hardware file is known as 'Ascend 970'");
  EXPECT_EQ(score.skipped[1].reason, "a gain over workloads that the source does not describe");
}

}  // namespace
}  // namespace commfuse::score
