// SPDX-License-Identifier: Apache-2.0
// Tests tables that compare overlapped kernels with serial communication: the meaning of their columns, and how their
// rows are treated.
#include "sim/score/overlap_pairs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "sim/point/request.h"
#include "sim/score/implementation_fit.h"
#include "sim/score/implementation_residuals.h"
#include "sim/score/score.h"
#include "tests/own_folder.h"
#include "tests/sim/score/score_text.h"

namespace commfuse::score {
namespace {

const KnownImplementations& known() {
  static const KnownImplementations implementations = load_implementations("all");
  return implementations;
}

struct Names {
  std::string serial;                    ///< Empty if no column is serial.
  std::vector<std::string> implemented;  ///< "flux_us=flux", "nobody_us="
};

Names names_in(const std::string& header, std::string_view file_name = "x") {
  const Table table(header + "\n");
  const OverlapColumns columns = overlap_columns(table, file_name, known());
  Names names{.serial = columns.serial.exists() ? std::string(columns.serial.name) : ""};
  for (const auto& column : columns.implemented) {
    names.implemented.push_back(
        fmt::format("{}={}", column.time.name, column.implementation == nullptr ? "" : column.implementation->name));
  }
  return names;
}

using Words = std::vector<std::string>;

TEST(OverlapPairs, OneColumnIsSerial) {
  for (const std::string word : {"serial", "torch", "nccl", "nccl_ring", "baseline", "unfused", "serial_cublas_nccl"}) {
    EXPECT_EQ(names_in("op,M,N,K,ngpus," + word + "_us,flux_us").serial, word + "_us");
  }
  EXPECT_EQ(names_in("op,M,N,K,ngpus,torch_total_ms,flux_us").serial, "torch_total_ms");
  EXPECT_EQ(names_in("op,M,N,K,ngpus,flux_us").serial, "");
}

TEST(OverlapPairs, PartsAreNotImplementations) {
  const Names names = names_in(
      "op,M,N,K,ngpus,serial_us,gemm_us,comm_us,torch_gemm_us,torch_mm_us,nccl_comm_us,nccl_tree_us,flux_no_overlap_us,"
      "flux_us,speedup");
  EXPECT_EQ(names.serial, "serial_us");
  EXPECT_EQ(names.implemented, Words{"flux_us=flux"});
}

TEST(OverlapPairs, AnImplementationIsRecognizedOnlyByItsNames) {
  EXPECT_EQ(
      names_in("M,N,K,ngpus,te_us,userbuffers_us,torch_symm_mem_ms,flux_total_ms,wizardry_us").implemented,
      (Words{"te_us=te", "userbuffers_us=te", "torch_symm_mem_ms=async_tp", "flux_total_ms=flux", "wizardry_us="}));
}

TEST(OverlapPairs, GenericKernelColumnsBelongToTheNameOfTheFile) {
  EXPECT_EQ(names_in("M,N,K,ngpus,fused_us", "overlap_flux90_ag_h100").implemented, Words{"fused_us=flux"});
  EXPECT_EQ(names_in("M,N,K,ngpus,gemm_rs_us,serial_us", "overlap_flux90_rs_h100").implemented,
            Words{"gemm_rs_us=flux"});
  EXPECT_EQ(names_in("M,N,K,ngpus,fused_us", "overlap_of_somebody").implemented, Words{"fused_us="});
}

TEST(OverlapPairs, TheNameOfTheFileStatesTheOperatorWithoutAColumn) {
  const auto columns = [](std::string_view header, std::string_view file) {
    return overlap_columns(Table(std::string(header) + "\n"), file, known());
  };
  EXPECT_TRUE(columns("M,N,K,ngpus", "overlap_gemm_rs_h100").scatters);
  EXPECT_FALSE(columns("M,N,K,ngpus", "overlap_ag_h100").scatters);
  EXPECT_TRUE(columns("M,N,K,ngpus", "overlap_ag_h100").says_operator);
  EXPECT_FALSE(columns("M,N,K,ngpus", "overlap_parsec_h100").says_operator);  // "rs" is not a part of the name.
  EXPECT_TRUE(columns("op,M,N,K,ngpus", "x").says_operator);
}

TEST(OverlapPairs, AThreadIsAnIssueAPullRequestOrARepository) {
  const auto thread = [](const std::string& source) { return thread_of(Table("# source: " + source + "\nM\n"), "x"); };
  EXPECT_EQ(thread("https://github.com/bytedance/flux/issues/90 (2025-04-06), comment"), "bytedance/flux/issues/90");
  EXPECT_EQ(thread("https://github.com/bytedance/flux docs/performance.md (L20; 2025)"), "bytedance/flux");
  EXPECT_EQ(thread("https://github.com/weavers/loom; typed by hand"), "weavers/loom");
  EXPECT_EQ(thread("arXiv 2406.06858, Table 2"), "arXiv");
  EXPECT_EQ(thread_of(Table("M\n1\n"), "mine"), "mine");
}

OverlapRow read_row(const std::string& header, const std::string& cells, std::string_view file_name = "x") {
  const Table table(header + "\n" + cells + "\n");
  Row row(table, 0);
  const OverlapRow result = overlap_row(row, overlap_columns(table, file_name, known()));
  EXPECT_TRUE(row.is_sound());
  return result;
}

TEST(OverlapPairs, SizesPerRankAreMultiplied) {
  const OverlapRow gathers =
      read_row("op,M,N_per_gpu,K,ngpus,dtype,serial_us,flux_us", "ag,4096,3584,8192,8,fp16,900,700");
  EXPECT_FALSE(gathers.scatters);
  EXPECT_EQ(gathers.m, 4096);
  EXPECT_EQ(gathers.n, 28672);
  EXPECT_EQ(gathers.k, 8192);
  EXPECT_EQ(gathers.ranks, 8);
  EXPECT_EQ(gathers.dtype, DType::fp16);
  EXPECT_EQ(gathers.serial_us, 900.0);
  EXPECT_EQ(gathers.implemented, (std::vector<std::pair<std::size_t, double>>{{0, 700.0}}));
  const OverlapRow scatters = read_row("op,M,N,K_per_gpu,ngpus,serial_us,flux_us", "rs,4096,8192,3584,8,,700");
  EXPECT_TRUE(scatters.scatters);
  EXPECT_EQ(scatters.n, 8192);
  EXPECT_EQ(scatters.k, 28672);
  EXPECT_EQ(scatters.dtype, DType::bf16);
  EXPECT_FALSE(scatters.serial_us);
}

TEST(OverlapPairs, EveryColumnHasItsUnit) {
  const OverlapRow row = read_row("op,M,N,K,tp,serial_ms,flux_us,te_ms", "ag,4096,28672,8192,8,0.9,700,0.8");
  EXPECT_EQ(row.serial_us, 900.0);
  EXPECT_EQ(row.implemented, (std::vector<std::pair<std::size_t, double>>{{0, 700.0}, {1, 800.0}}));
}

/// Header of the table that Flux publishes, and its comments.
constexpr std::string_view flux_experts =
    "# source: https://github.com/bytedance/flux docs/performance.md\n# hardware: 8x H100\n# software: K=N=8192\n"
    "hw,config,moe_layer,torch_ms,flux_ms\n";

TEST(OverlapPairs, FluxStatesItsExpertsInOneCell) {
  const Table table(std::string(flux_experts) + "h100-sxm,tp4ep2_e32_top4_M8192,1,6.672,1.685\n");
  Row row(table, 0);
  const OverlapColumns columns = overlap_columns(table, "x", known());
  const OverlapRow parsed = overlap_row(row, columns);
  EXPECT_TRUE(row.is_sound()) << row.fault();
  EXPECT_TRUE(parsed.scatters);
  EXPECT_EQ(parsed.m, 8192);
  EXPECT_EQ(parsed.n, 8192);
  EXPECT_EQ(parsed.k, 8192);
  EXPECT_EQ(parsed.ranks, 8);
  ASSERT_TRUE(parsed.experts);
  EXPECT_EQ(parsed.experts->count, 32);
  EXPECT_EQ(parsed.experts->active, 4);
  EXPECT_EQ(parsed.experts->ranks, 2);
  EXPECT_FALSE(parsed.serial_us);
  EXPECT_EQ(columns.unscored_serial.name, "torch_ms");
  EXPECT_EQ(parsed.implemented, (std::vector<std::pair<std::size_t, double>>{{0, 1685.0}}));
}

std::string fault_of_experts(std::string_view config, std::string_view layer) {
  const Table table(std::string(flux_experts) + fmt::format("h100-sxm,{},{},1,1\n", config, layer));
  Row row(table, 0);
  (void)overlap_row(row, overlap_columns(table, "x", known()));
  return row.fault();
}

TEST(OverlapPairs, ImpossibleExpertsAreFaults) {
  EXPECT_EQ(fault_of_experts("tp8ep1_e32_top4", "0"), "config is 'tp8ep1_e32_top4'; write it as tp8ep1_e32_top4_M8192");
  EXPECT_EQ(fault_of_experts("tp8ep1_e4_top8_M8192", "0"),
            "8 of 4 experts on 1 ranks; choose up to 1024 experts, a multiple of their ranks");
  EXPECT_EQ(fault_of_experts("tp8ep3_e32_top4_M8192", "0"),
            "4 of 32 experts on 3 ranks; choose up to 1024 experts, a multiple of their ranks");
  EXPECT_EQ(fault_of_experts("tp8ep1_e32_top4_M8192", "2"), "moe_layer is '2'; it must be 0 or 1");
}

TEST(OverlapPairs, ColumnsMayStateTheExperts) {
  const OverlapRow row =
      read_row("op,M,N,K,tp,ep,experts,topk,serial_us,flux_us", "ag,8192,14336,4096,4,2,8,2,900,700");
  EXPECT_EQ(row.ranks, 8);
  EXPECT_EQ(row.serial_us, 900.0);
  const Point point = point_of(row, load_machine("h100-sxm"), Launch::stream);
  EXPECT_EQ(point.model.name, "4096x14336-e8-top2-ep2");
  EXPECT_EQ(point.scope, Scope::gate_up);
  EXPECT_EQ(point.price.experts, (ExpertSplit{.count = 8, .active = 2, .ranks = 2, .cut = WeightCut::columns}));
  EXPECT_EQ(command_of(point, "flux"),
            "commfuse-sim run --model 4096x14336-e8-top2-ep2 --scope gate_up --hardware h100-sxm --ranks 8 --seq 8192 "
            "--dtype bf16 --as flux");
}

TEST(OverlapPairs, AnUnknownOperatorIsAFault) {
  const Table table(std::string("op,M,N,K,ngpus,flux_us\nalltoall,4096,28672,8192,8,700\n"));
  Row row(table, 0);
  (void)overlap_row(row, overlap_columns(table, "x", known()));
  EXPECT_EQ(row.fault(), "op is 'alltoall'; it must be ag, rs or ar");
}

TEST(OverlapPairs, AnUnknownDtypeIsAFault) {
  const Table table(std::string("op,M,N,K,ngpus,dtype,flux_us\nag,4096,28672,8192,8,int8,700\n"));
  Row row(table, 0);
  (void)overlap_row(row, overlap_columns(table, "x", known()));
  EXPECT_EQ(row.fault(), "dtype is 'int8'; it must be bf16, fp16, fp32 or fp8");
}

/// Comments and header of a table with times of serial communication and of flux on H100.
constexpr std::string_view table_head =
    "# source: https://github.com/weavers/loom/issues/7\n# hardware: 8x H100\n"
    "hw,op,M,N,K,ngpus,dtype,serial_us,flux_us\n";

TEST(OverlapPairs, AllReducesAreScored) {
  const std::string row = "h100-sxm,ar,4096,8192,28672,8,bf16,600,500\n";
  const TableScore score =
      score_text("# hardware: 8x H100\nhw,op,M,N,K,ngpus,dtype,serial_us,nobody_us\n" + row, "x.csv", {});
  EXPECT_EQ(score.scored, 1);
  ASSERT_EQ(score.pairs.size(), 1U);
  EXPECT_EQ(score.pairs[0].command,
            "commfuse-sim run --model 8192x28672 --scope down_ar --hardware h100-sxm --ranks 8 --seq 4096 --dtype bf16 "
            "--as typical");
}

TEST(OverlapPairs, TheFileNameMayStateTheAllReduce) {
  const std::string table =
      "# hardware: 8x B300\nM,N,K,ngpus,dtype,serial_us,gemm_ar_us\n4096,7168,12288,8,bf16,319.6,213.1\n";
  const TableScore score = score_text(table, "overlap_vllm_gemm_ar_b300.csv", {});
  ASSERT_EQ(score.pairs.size(), 1U);
  EXPECT_EQ(score.pairs[0].implementation, "vllm_gemm_ar");
  EXPECT_NE(score.pairs[0].command.find("--scope down_ar"), std::string::npos);
}

TEST(OverlapPairs, RowsWithoutATimeThatCanBePredictedAreSkipped) {
  const TableScore score =
      score_text(std::string(table_head) + "h100-sxm,ar,4096,8192,28672,8,bf16,,500\n", "x.csv", {});
  EXPECT_EQ(score.scored, 0);
  ASSERT_EQ(score.skipped.size(), 1U);
  EXPECT_EQ(score.skipped[0].reason, "flux has no kernel for scope down_ar");
  EXPECT_TRUE(score.remarks.empty());
  EXPECT_FALSE(score.pays);
}

TEST(OverlapPairs, ATimeOfAKernelThatCannotRunIsLeftOutAlone) {
  const std::string rows =
      "h100-sxm,ar,4096,7168,12288,8,bf16,380,300,\nh100-sxm,ar,4096,7168,12288,8,bf16,380,300,320\n";
  const TableScore score =
      score_text("# hardware: 8x H100\nhw,op,M,N,K,tp,dtype,serial_us,vllm_gemm_ar_us,nobody_us\n" + rows, "x.csv", {});
  EXPECT_EQ(score.rows, 2);
  EXPECT_EQ(score.scored, 2);
  EXPECT_TRUE(score.skipped.empty());
  EXPECT_EQ(score.times.size(), 3U);
  ASSERT_EQ(score.pairs.size(), 1U);
  EXPECT_EQ(score.pairs[0].implementation, "typical");
  ASSERT_EQ(score.remarks.size(), 2U);
  EXPECT_EQ(score.remarks[1], "2 times are not scored: vllm_gemm_ar does not run on h100-sxm; it is for blackwell.");
}

TEST(OverlapPairs, ExpertsAreScoredWithoutTheirSlowBaseline) {
  const std::string rows =
      "h100-sxm,tp8ep1_e32_top4_M8192,0,4.702,1.146\nh100-sxm,tp8ep1_e32_top4_M8192,1,10.452,1.863\n";
  const TableScore score = score_text(std::string(flux_experts) + rows, "x.csv", {});
  EXPECT_EQ(score.kind, "overlap_experts");
  EXPECT_EQ(score.scored, 2);
  ASSERT_EQ(score.parts.size(), 1U);
  EXPECT_EQ(score.parts[0].name, "flux");
  EXPECT_TRUE(score.pairs.empty());
  EXPECT_FALSE(score.pays);
  ASSERT_EQ(score.remarks.size(), 1U);
  EXPECT_EQ(score.remarks[0].find("torch_ms is not scored: "), 0U);
  const TableScore unstated = score_text(
      "# hardware: 8x H100\nhw,config,moe_layer,flux_ms\n" + rows.substr(0, rows.find(",0,") + 1) + "0,1.146\n",
      "x.csv", {});
  ASSERT_EQ(unstated.skipped.size(), 1U);
  EXPECT_EQ(unstated.skipped[0].reason, "no comment states the widths of the experts, such as K=N=8192");
}

TEST(OverlapPairs, ATableThatDoesNotNameItsOperatorIsSkipped) {
  const TableScore score =
      score_text("# hardware: 8x H100\nM,N,K,ngpus,serial_us,flux_us\n4096,8192,28672,8,600,500\n", "x.csv", {});
  ASSERT_EQ(score.skipped.size(), 1U);
  EXPECT_EQ(score.skipped[0].reason, "neither a column op nor the file name states ag, rs or ar");
}

TEST(OverlapPairs, UsesAndNamesTheFirstOfTwoSerialColumns) {
  const TableScore score =
      score_text("# hardware: 8x H100\nop,M,N,K,ngpus,torch_us,serial_us,flux_us\nrs,4096,8192,28672,8,600,700,500\n",
                 "x.csv", {});
  ASSERT_EQ(score.pairs.size(), 1U);
  EXPECT_EQ(score.pairs[0].serial_measured_us, 600.0);
  ASSERT_FALSE(score.remarks.empty());
  EXPECT_EQ(score.remarks[0], "Several columns have serial times; the score uses torch_us.");
}

TEST(OverlapPairs, UnknownKernelsAreQuotedWithoutControlCharacters) {
  const TableScore score = score_text(
      "# hardware: 8x H100\nop,M,N,K,ngpus,serial_us,a\x1b[2J_us\nrs,4096,8192,28672,8,600,500\n", "x.csv", {});
  ASSERT_EQ(score.remarks.size(), 1U);
  EXPECT_EQ(score.remarks[0], "No implementation is known as 'a\\x1b[2J_us'; it is scored as a typical one.");
}

TEST(OverlapPairs, APairNamesTheCommandThatRunsIt) {
  const TableScore score =
      score_text(std::string(table_head) + "h100-sxm,rs,4096,8192,28672,8,bf16,600,500\n", "x.csv", {});
  ASSERT_EQ(score.pairs.size(), 1U);
  EXPECT_EQ(score.pairs[0].implementation, "flux");
  EXPECT_EQ(score.pairs[0].measured_us, 500.0);
  EXPECT_EQ(score.pairs[0].serial_measured_us, 600.0);
  EXPECT_EQ(score.pairs[0].command,
            "commfuse-sim run --model 8192x28672 --scope down --hardware h100-sxm --ranks 8 --seq 4096 --dtype bf16 "
            "--as flux");
}

TEST(OverlapPairs, APairSaysWhichSourceItsFitLeftOut) {
  const auto pair = [](std::string_view source) {
    return score_text(fmt::format("# source: {}\n{}h100-sxm,rs,4096,8192,28672,8,bf16,600,500\n", source, table_head),
                      "x.csv", {})
        .pairs.at(0);
  };
  EXPECT_EQ(pair("https://github.com/bytedance/flux/issues/90").without, "bytedance/flux/issues/90");
  EXPECT_EQ(pair("my own node").without, "");
  EXPECT_NE(pair("https://github.com/bytedance/flux/issues/90").predicted_us, pair("my own node").predicted_us);
}

TEST(OverlapPairs, CommentsStateHowTheHostLaunches) {
  const auto launch = [](std::string_view software) {
    return overlap_columns(Table("# software: " + std::string(software) + "\nop,M,N,K,ngpus\n"), "x", known()).launch;
  };
  EXPECT_EQ(launch("eager PyTorch, a barrier before each iteration"), Launch::eager);
  EXPECT_EQ(launch("vLLM; CUDA graphs, median of 20"), Launch::graph);
  EXPECT_EQ(launch("PyTorch, CUDA events"), Launch::stream);
}

TEST(OverlapPairs, EagerRowsAreScoredAsRunWithThatLaunchPredictsThem) {
  const auto pair = [](std::string_view software, int m) {
    const TableScore score =
        score_text(fmt::format("# software: {}\n{}h100-sxm,rs,{},8192,28672,8,bf16,200,150\n", software, table_head, m),
                   "x.csv", {});
    EXPECT_EQ(score.pairs.size(), 1U);
    return score.pairs.at(0);
  };
  EXPECT_EQ(pair("eager PyTorch", 4096).command,
            "commfuse-sim run --model 8192x28672 --scope down --hardware h100-sxm --ranks 8 --seq 4096 --dtype bf16 "
            "--launch eager --as flux");
  // The GEMM starts 14 us after the call instead of 4 us, and lasts longer than the call of the collective. The last of
  // eight hosts calls 0.65 x 2.847 x 14 us after the first.
  EXPECT_NEAR(pair("eager PyTorch", 4096).serial_predicted_us,
              pair("CUDA events", 4096).serial_predicted_us + 10.0 + 25.9077, 1e-6);
  // With few tokens, the GEMM ends before the host has issued the collective.
  EXPECT_GT(pair("eager PyTorch", 64).serial_predicted_us, pair("CUDA events", 64).serial_predicted_us + 11.0);
}

TEST(ImplementationResiduals, ASourceIsOneDrawHoweverManyRowsItHas) {
  // Mean squares by source: 0.01 and 0.04 of implementation 0, 0.09 of implementation 1. An assumed further source has
  // the mean of all three, 0.14/3.
  const std::vector<HeldOutTime> times{{.implementation = 0, .thread = "a", .log_ratio = 0.1},
                                       {.implementation = 0, .thread = "a", .log_ratio = -0.1},
                                       {.implementation = 0, .thread = "b", .log_ratio = 0.2},
                                       {.implementation = 1, .thread = "a", .log_ratio = -0.3},
                                       {.implementation = 0, .thread = "c", .is_elsewhere = true, .log_ratio = 2.0}};
  EXPECT_DOUBLE_EQ(residual_where_measured(0, times), std::sqrt((0.01 + 0.04 + 0.14 / 3.0) / 3.0));
  EXPECT_DOUBLE_EQ(residual_where_measured(1, times), std::sqrt((0.09 + 0.14 / 3.0) / 2.0));
  EXPECT_DOUBLE_EQ(residual_where_measured(2, times), std::sqrt(0.14 / 3.0));  // no times of this implementation
  EXPECT_DOUBLE_EQ(residual_where_measured(0, {}), 0.2);
}

TEST(ImplementationResiduals, ElsewhereIntervalsCoverTheirShareOfSources) {
  // With five sources, 0.6827 x 6 = 4.1 must lie inside, so the fifth smallest error determines the residual.
  std::vector<HeldOutTime> times;
  for (const double error : {0.1, 0.2, 0.3, 0.4, 0.5}) {
    times.push_back({.thread = std::to_string(error), .is_elsewhere = true, .log_ratio = -error});
  }
  times.push_back({.thread = "near", .log_ratio = 3.0});
  EXPECT_DOUBLE_EQ(residual_elsewhere(times), std::exp(0.5) - 1.0);
  // Errors of parameters explain part of an error: sqrt(0.5^2 - 0.3^2) = 0.4 is left.
  times[4].stated_error = 0.3;
  EXPECT_NEAR(residual_elsewhere(times), std::exp(0.4) - 1.0, 1e-12);
  // With three sources, 0.6827 x 4 = 2.7 must lie inside, so the largest error determines the residual.
  EXPECT_DOUBLE_EQ(residual_elsewhere(std::span(times).first(3)), std::exp(0.3) - 1.0);
  EXPECT_DOUBLE_EQ(residual_elsewhere({}), 0.2);
}

TEST(PayScore, CountsPairsThatDiffer) {
  TableScore score;
  Tally tally(score, false);
  tally.pays({.measured = 1.04, .predicted = 0.5, .sure = 1.0});  // a tie
  EXPECT_FALSE(score.pays);
  tally.pays({.measured = 0.8, .predicted = 0.9, .sure = 0.95});  // a win, stated, certain
  tally.pays({.measured = 0.8, .predicted = 1.1, .sure = 0.6});   // a win, not stated
  tally.pays({.measured = 0.7, .predicted = 0.7, .sure = 0.9});   // a win, stated, certain
  tally.pays({.measured = 1.3, .predicted = 0.9, .sure = 0.9});   // a loss, not stated, certain
  tally.pays({.measured = 1.3, .predicted = 1.0, .sure = 0.5});   // a loss, stated
  ASSERT_TRUE(score.pays);
  PayScore pays = *score.pays;
  EXPECT_EQ(pays.wins, 3);
  EXPECT_EQ(pays.wins_predicted, 2);
  EXPECT_EQ(pays.losses, 2);
  EXPECT_EQ(pays.losses_predicted, 1);
  EXPECT_EQ(pays.sure, 3);
  EXPECT_EQ(pays.sure_predicted, 2);
  EXPECT_DOUBLE_EQ(pays.balanced_accuracy().value(), (2.0 / 3.0 + 1.0 / 2.0) / 2.0);
  pays += PayScore{.wins = 1, .wins_predicted = 1, .losses = 0, .losses_predicted = 0, .sure = 1, .sure_predicted = 1};
  EXPECT_EQ(pays.wins, 4);
  EXPECT_EQ(pays.wins_predicted, 3);
  EXPECT_EQ(pays.losses, 2);
  EXPECT_EQ(pays.sure_predicted, 3);
  EXPECT_FALSE((PayScore{.wins = 4, .wins_predicted = 3}.balanced_accuracy()));
  EXPECT_FALSE((PayScore{.losses = 4, .losses_predicted = 3}.balanced_accuracy()));
}

/// Returns the number after a site's key in a printed fit, such as "per_call" of "gemm_rs".
double fitted(const std::string& text, std::string_view site, std::string_view key) {
  const std::size_t site_at = text.find(site, text.find("\ncosts:"));
  const std::size_t at = text.find(std::string(key) + ": {value: ", site_at);
  EXPECT_NE(at, std::string::npos) << text;
  return at == std::string::npos ? 0.0 : std::stod(text.substr(at + key.size() + 10));
}

TEST(ImplementationFit, FindsTheCostsBehindATable) {
  const OwnFolder folder;
  KnownMachines machines;
  const Machine& machine = *machines.by_name("h100-sxm").machine;
  StructureCache structures;
  Predictor predictor(structures);
  const auto loaded = load_implementation("flux");
  const Implementation& flux = *loaded;
  ImplementationCosts costs = flux.costs;
  for (ImplementedSites& sites : costs.generations) {
    sites.ag_gemm.per_call.value = sites.gemm_rs.per_call.value = from_seconds(80e-6);
    sites.ag_gemm.product_time.value = sites.gemm_rs.product_time.value = 1.12;
    sites.gemm_rs.rate.emplace().value = BytesPerSecond{120e9};
  }
  std::string rows;
  for (const bool scatters : {false, true}) {
    for (const std::int64_t m : {512, 1024, 2048, 4096, 8192, 16384, 32768}) {
      const OverlapRow row{
          .scatters = scatters, .m = m, .n = scatters ? 8192 : 28672, .k = scatters ? 28672 : 8192, .ranks = 8};
      const Point point = priced_as(point_of(row, machine, Launch::stream), flux, costs);
      const Prediction best =
          predictor.predict_best(point, *flux.strategy, schedules_of(flux, point.scope, point.ranks, point.dtype));
      rows += fmt::format("h100-sxm,{},{},{},{},8,bf16,,{:.6g}\n", scatters ? "rs" : "ag", row.m, row.n, row.k,
                          to_microseconds(best.analysis.critical.makespan));
    }
  }
  std::ofstream("made.csv") << table_head << rows;
  std::string text = implementation_costs_yaml({"made.csv"});
  EXPECT_EQ(text.find("# flux: 14 rows from 1 source;"), 0U) << text;
  text = text.substr(0, text.find("without:"));
  EXPECT_NEAR(fitted(text, "ag_gemm", "per_call"), 80.0, 4.0);
  // The assumed value is 1.06, and still has some weight.
  EXPECT_NEAR(fitted(text, "ag_gemm", "product_time"), 1.12, 0.03);
  EXPECT_NEAR(fitted(text, "gemm_rs", "rate"), 120.0, 6.0);
}

TEST(ImplementationFit, AKernelWithoutRowsStartsFromItsFamily) {
  const OwnFolder folder;
  const auto write = [](const char* file, std::string_view kernel, std::array<int, 3> us) {
    std::ofstream(file) << fmt::format(
        "hw,op,M,N,K,ngpus,dtype,{}_us\nb200-sxm,rs,512,7168,6144,8,bf16,{}\nb200-sxm,rs,2048,7168,6144,8,bf16,{}\n"
        "b200-sxm,rs,8192,7168,6144,8,bf16,{}\n",
        kernel, us[0], us[1], us[2]);
  };
  write("a.csv", "flashinfer", {60, 100, 230});
  write("b.csv", "vllm", {50, 85, 205});
  const std::string text = implementation_costs_yaml({"a.csv", "b.csv"});
  ASSERT_EQ(text.find("# flashinfer: 3 rows from 1 source;"), 0U) << text;
  const std::string a = text.substr(0, text.find("without:"));
  const std::string b = text.substr(text.find("without:\n  b:"));
  // Both kernels sum in the switch. Without its own rows, vLLM's kernel has the cost per call of FlashInfer's.
  EXPECT_EQ(fitted(a, "gemm_rs", "per_call"), fitted("\ncosts:" + b, "gemm_rs", "per_call"));
  EXPECT_NE(b.find("prior: kernels of the same strategy and transport"), std::string::npos) << b;
  EXPECT_NE(b.find("rate_share: {value: 0.6978, error: 0.4, provenance: \"prior: kernels of all kinds\"}"),
            std::string::npos)
      << b;
}

TEST(ImplementationFit, ATableWithoutASourceIsNamedByItsFile) {
  const OwnFolder folder;
  std::ofstream("mine.csv") << "hw,op,M,N,K,ngpus,dtype,flux_us\nh100-sxm,ag,4096,28672,8192,8,bf16,900\n"
                               "h100-sxm,ag,8192,28672,8192,8,bf16,1800\n";
  const std::string text = implementation_costs_yaml({"mine.csv"});
  EXPECT_EQ(text.find("# flux: 2 rows from 1 source;"), 0U) << text;
  const std::size_t without = text.find("without:\n  mine:\n");
  ASSERT_NE(without, std::string::npos) << text;
  EXPECT_NE(text.substr(0, without).find("provenance: \"fitted: mine\"}"), std::string::npos) << text;
}

TEST(ImplementationFit, FitsNothingWithoutTimes) {
  const OwnFolder folder;
  std::ofstream("none.csv") << "# source: x\nhw,op,M,N,K,ngpus,dtype,serial_us\nh100-sxm,ag,4096,28672,8192,8,bf16,1\n";
  try {
    (void)implementation_costs_yaml({"none.csv"});
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "no table has times of an implementation whose parameters are fitted; name one with --data");
  }
}

}  // namespace
}  // namespace commfuse::score
