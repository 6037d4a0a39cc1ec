// SPDX-License-Identifier: Apache-2.0
// Tests whole tables: what is scored, skipped and faulty, with errors worked out by hand from the model's own
// predictions.
#include "sim/score/score.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/cost/communication.h"
#include "model/cost/decode_attention.h"
#include "model/cost/expert_layer.h"
#include "model/cost/framework_kernel.h"
#include "model/cost/gemm.h"
#include "model/cost/latent_decode.h"
#include "model/cost/quantization.h"
#include "model/expect/message.h"
#include "model/fit/holdout.h"
#include "model/hardware/link_rates.h"
#include "tests/own_folder.h"
#include "tests/sim/score/gemm_table.h"
#include "tests/sim/score/score_text.h"

namespace commfuse::score {
namespace {

double h100_gemm_us(std::int64_t m, std::int64_t n, std::int64_t k) {
  static const Machine machine = load_machine("h100-sxm");
  return gemm_us(machine, {.m = m, .n = n, .k = k});
}

/// Returns the row of a measurement whose prediction is `factor` times as long.
std::string gemm_row(std::int64_t m, std::int64_t n, std::int64_t k, double factor) {
  return fmt::format("H100-SXM5-80GB,bfloat16,{},{},{},{:.9g}\n", m, n, k, h100_gemm_us(m, n, k) / factor);
}

TEST(Score, AnErrorIsPredictedDividedByMeasuredMinusOne) {
  const std::string text = std::string(gemm_header) + gemm_row(1024, 4096, 4096, 1.25) +
                           gemm_row(2048, 4096, 4096, 0.9) + gemm_row(256, 4096, 4096, 1.0);
  const TableScore score = score_text(text, "x.csv", {});
  EXPECT_EQ(score.kind, "gemm");
  EXPECT_EQ(score.scored, 3);
  EXPECT_EQ(score.skipped_rows(), 0);
  ASSERT_EQ(score.errors.size(), 3U);
  EXPECT_NEAR(score.errors[0], 0.25, 1e-6);
  EXPECT_NEAR(score.errors[1], 0.1, 1e-6);
  EXPECT_NEAR(score.errors[2], 0.0, 1e-6);
  EXPECT_EQ(score.machines, std::vector<std::string>{"h100-sxm"});
}

TEST(Score, AllReducesOfFrameworksUseTheirOwnKernels) {
  Machine machine = *with_all_reduce_kernel(load_machine("h100-sxm"), AllReduceKernel::vllm);
  const double by_vllm = to_microseconds(all_reduce_time(machine.link, 8, Bytes{1 << 16}));
  const std::string text = fmt::format(
      "hw,kernel,ngpus,bytes,time_us\nH100,vLLM_custom_graph,8,65536,{:.9g}\nH100,vLLM_custom_eager,8,65536,20\n"
      "MI300X,vLLM_custom_graph,8,65536,20\n",
      by_vllm / 1.25);
  const TableScore score = score_text(text, "x.csv", {});
  EXPECT_EQ(score.kind, "framework_all_reduce");
  EXPECT_EQ(score.scored, 1);
  EXPECT_EQ(score.skipped_rows(), 2);
  ASSERT_EQ(score.errors.size(), 1U);
  EXPECT_NEAR(score.errors[0], 0.25, 1e-6);
}

TEST(Score, BusRatesBecomeTimesByTheFactorOfTheirOp) {
  const Machine machine = load_machine("h100-sxm");
  constexpr Bytes bytes{1 << 30};
  const auto row = [&](std::string_view op, int gpus, double factor, Duration time, double error) {
    return fmt::format("H100,{},{},{},ring,{:.9g}\n", op, gpus, bytes.count,
                       1e-3 * factor * static_cast<double>(bytes.count) / (to_microseconds(time) / error));
  };
  const TableScore score = score_text(
      "hw,op,ngpus,bytes,algo,busbw_GBs\n" +
          row("all_reduce", 8, 2.0 * 7.0 / 8.0, all_reduce_time(machine.link, 8, bytes), 1.25) +
          row("all_gather", 8, 7.0 / 8.0, all_gather_time(machine.link, 8, bytes), 1.2) +
          row("sendrecv", 2, 1.0, p2p_time(machine.link.peer, bytes), 1.1) + "H100,all_gather,1,1024,ring,9\n",
      "x.csv", {});
  EXPECT_EQ(score.kind, "collective_rate");
  EXPECT_EQ(score.skipped_rows(), 1);
  ASSERT_EQ(score.errors.size(), 3U);
  EXPECT_NEAR(score.errors[0], 0.25, 1e-6);
  EXPECT_NEAR(score.errors[1], 0.2, 1e-6);
  EXPECT_NEAR(score.errors[2], 0.1, 1e-6);
}

TEST(Score, RatesAndKernelsAcrossNodesAreNotPricedAsOneNode) {
  const Machine cluster = load_machine("dgx-h100-x2");
  constexpr std::int64_t bytes = 1 << 30;
  const auto row = [&](int gpus, std::string_view nodes) {
    const Message message{.op = LinkOp::all_reduce, .gpus = gpus, .nodes = 2, .bytes = {bytes}};
    return fmt::format("H100,all_reduce,{},{},{},ring,{:.9g}\n", gpus, nodes, bytes,
                       1e-3 * bus_factor(message.op, gpus) * bytes / to_microseconds(message_time(cluster, message)));
  };
  const TableScore rates =
      score_text("hw,op,ngpus,nodes,bytes,algo,busbw_GBs\n" + row(8, "2") + row(16, "2") + row(16, ""), "x.csv", {});
  EXPECT_EQ(rates.machines, std::vector<std::string>{"dgx-h100-x2"});
  ASSERT_EQ(rates.errors.size(), 3U);
  EXPECT_LT(summary_of(rates.errors).max, 1e-6);
  const TableScore kernels = score_text(
      "hw,kernel,ngpus,nodes,bytes,time_us\nH100,TRTLLM,8,2,65536,20\nH100,TRTLLM,8,1,65536,9\n", "x.csv", {});
  EXPECT_EQ(kernels.scored, 1);
  ASSERT_EQ(kernels.skipped.size(), 1U);
  EXPECT_EQ(kernels.skipped.front().reason, "the kernels of frameworks sum within one node");
}

TEST(Score, LatentAttentionOfDecodingIsScoredByTheDtypeOfItsCache) {
  const auto us = [](const char* machine, DType cache) {
    return to_microseconds(
        latent_decode_time(load_machine(machine).accelerator, {.batch = 32, .seq = 4096, .heads = 16, .dtype = cache}));
  };
  const TableScore score = score_text(
      fmt::format("hw,batch,kv_len,heads,tp,dtype,kv_dtype,time_us\n"
                  "H100-SXM5,32,4096,16,8,bfloat16,bfloat16,{:.9g}\nH100-SXM5,32,4096,16,8,bfloat16,fp8,{:.9g}\n"
                  "H100-SXM5,32,4096,16,8,bfloat16,int4,20\nA100-SXM4-80GB,32,4096,16,8,bfloat16,fp8,20\n",
                  us("h100-sxm", DType::bf16) / 1.25, us("h100-sxm", DType::fp8) / 1.1),
      "x.csv", {});
  EXPECT_EQ(score.kind, "latent_decode");
  EXPECT_EQ(score.scored, 2);
  EXPECT_EQ(score.skipped_rows(), 2);
  ASSERT_EQ(score.errors.size(), 2U);
  EXPECT_NEAR(score.errors[0], 0.25, 1e-6);
  EXPECT_NEAR(score.errors[1], 0.1, 1e-6);
}

TEST(Score, PercentilesInterpolateBetweenErrorsAsInNumpy) {
  const ErrorSummary summary = summary_of({0.4, 0.1, 0.2, 0.3});
  EXPECT_EQ(summary.n, 4);
  EXPECT_NEAR(summary.median, 0.25, 1e-12);
  EXPECT_NEAR(summary.p90, 0.37, 1e-12);
  EXPECT_NEAR(summary.max, 0.4, 1e-12);
  EXPECT_EQ(summary_of({}).n, 0);
}

TEST(Score, CommentsOrRowsNameTheSourceOfATable) {
  const auto source_of = [](std::string text) { return score_text(std::move(text), "x.csv", {}).source; };
  EXPECT_EQ(source_of("# source: https://example.org\nmodel,source\na,b\n"), "https://example.org");
  EXPECT_EQ(source_of("model,source\na,here\nb,here\n"), "here");
  EXPECT_EQ(source_of("model,source\na,here\nb,there\n"), "here; other rows name other sources");
  EXPECT_EQ(source_of("model,source\na,here\nb,\n"), "here");
  EXPECT_EQ(source_of("model,gpus\na,1\n"), "");
}

TEST(Score, FaultyRowsAreReportedAndTheRestIsScored) {
  const std::string text = "# source: none\n" + std::string(gemm_header) + gemm_row(1024, 4096, 4096, 1.0) +
                           "H100-SXM5-80GB,bfloat16,1024,4096,4096,nan\n" +
                           "H100-SXM5-80GB,bfloat16,1024,4096,4096,-4\n" +
                           "H100-SXM5-80GB,bfloat16,1024,4096,4096,0.04\n" +  // The column is in us, the value in ms.
                           gemm_row(512, 4096, 4096, 1.0) + "H100-SXM5-80GB,bfloat16,10";
  const TableScore score = score_text(text, "x.csv", {});
  EXPECT_EQ(score.source, "none");
  EXPECT_EQ(score.scored, 2);
  EXPECT_EQ(score.rows, 6);
  ASSERT_EQ(score.faults.size(), 4U);
  EXPECT_EQ(score.fault_count, 4);
  EXPECT_EQ(score.faults[0].line, 4);
  EXPECT_EQ(score.faults[0].reason, "time_us is nan; a measurement must be a finite number above 0");
  EXPECT_EQ(score.faults[1].reason, "time_us is -4; a measurement must be a finite number above 0");
  EXPECT_NE(score.faults[2].reason.find("0.04 us was measured"), std::string::npos) << score.faults[2].reason;
  EXPECT_NE(score.faults[2].reason.find("is it in another unit?"), std::string::npos);
  EXPECT_EQ(score.faults[3].line, 8);
  EXPECT_EQ(score.faults[3].reason, "the row has 3 cells, but the header has 6 columns; it is truncated");
}

TEST(Score, AWrongHeaderIsReportedAndNothingIsScored) {
  const auto fault = [](const std::string& text) {
    const TableScore score = score_text(text, "x.csv", {});
    EXPECT_EQ(score.scored, 0);
    return score.faults.empty() ? "" : score.faults.front().reason;
  };
  EXPECT_EQ(fault("hw,dtype,m,n,k,time\nH100,bf16,1,1,1,1\n"),
            "the header lacks only the column 'time_us' of kind gemm; add it");
  EXPECT_EQ(fault("op,ngpu,bytes,time_us\nall_gather,8,1,1\n"),
            "the header lacks only the column 'ngpus' of kind collective; is 'ngpu' a misspelling?");
  EXPECT_EQ(fault("model,gpus,gbs,mbs,seq_len,pp,cp,vp,ep,tokens_s_gpu\n"),
            "the header lacks only the column 'tp' of kind training_step; add it");
  EXPECT_EQ(fault("H100,bf16,1,1,1,1\n"),
            "'1' is not a column name; the first line that is not a comment names the columns");
  EXPECT_EQ(fault(""), "the table is empty; the first line that is not a comment names the columns");
  EXPECT_EQ(fault("hw,dtype,m,m,n,k,time_us\nH100,bf16,8,9,8,8,1\n"),
            "the column 'm' is given twice; keep one of them");
  EXPECT_EQ(fault("colour,taste\nred,sweet\n"), "");
}

TEST(Score, SkipsAndCountsUnsupportedRows) {
  const std::string text = std::string(gemm_header) + gemm_row(1024, 4096, 4096, 1.0) +
                           "Wafer 3,bf16,1024,4096,4096,100\nWafer 3,bf16,2048,4096,4096,200\nH100,int4,8,8,8,3\n";
  const TableScore score = score_text(text, "x.csv", {});
  EXPECT_EQ(score.scored, 1);
  EXPECT_EQ(score.skipped_rows(), 3);
  ASSERT_EQ(score.skipped.size(), 2U);
  EXPECT_EQ(score.skipped[0].reason, "no hardware file is known as 'Wafer 3'");
  EXPECT_EQ(score.skipped[0].rows, 2);
  EXPECT_EQ(score.skipped[1].reason, "h100-sxm does not support GEMMs in int4");
}

TEST(Score, AMissingDtypeIsAFaultAndAnUnknownOneIsEscaped) {
  const TableScore score = score_text(std::string(gemm_header) + "H100,,8,8,8,3\nH100,\x1b[31m,8,8,8,3\n", "x.csv", {});
  ASSERT_EQ(score.faults.size(), 1U);
  EXPECT_EQ(score.faults[0].reason, "dtype is missing");
  ASSERT_EQ(score.skipped.size(), 1U);
  EXPECT_EQ(score.skipped[0].reason, "h100-sxm does not support GEMMs in \\x1b[31m");
  const TableScore kernels = score_text("hw,op,tp,m,n,k,median_us\nh100,\x1b[31m,2,4096,,,40\n", "x.csv", {});
  ASSERT_EQ(kernels.skipped.size(), 1U);
  EXPECT_EQ(kernels.skipped[0].reason, "the table does not state what \\x1b[31m moves");
}

TEST(Score, ARowThatTakesLongerThanAnyRunIsSkipped) {
  const auto expect_skipped = [](const std::string& text, std::string_view kind, std::string_view what) {
    const TableScore score = score_text(text, "x.csv", {});
    EXPECT_EQ(score.kind, kind);
    EXPECT_EQ(score.scored, 0);
    ASSERT_EQ(score.skipped.size(), 1U);
    EXPECT_TRUE(score.skipped[0].reason.starts_with(fmt::format("{} would take ", what))) << score.skipped[0].reason;
  };
  const std::string huge = "16777216,16777216,16777216";
  expect_skipped(std::string(gemm_header) + "H100,bf16," + huge + ",9\n", "gemm", "a matrix product");
  expect_skipped("hw,op,tp,m,n,k,median_us\nH100,mlp_up_proj,1," + huge + ",9\n", "gemm_layer", "a matrix product");
  expect_skipped("hw,batch,seqlen,heads,kv_heads,head_dim,time_us\nH100,1024,16777216,128,128,128,9\n", "attention",
                 "attention");
  expect_skipped("hw,ranks,M,K,N,compute_only_us,sequential_us,pipelined_us\n910B,8," + huge + ",9,9,9\n",
                 "overlap_gemm_ar", "a matrix product");
}

TEST(Score, HeldOutRowsBelongToGroupsThatNoFitSaw) {
  std::string text(gemm_header);
  std::int64_t held_out_count = 0;
  for (std::int64_t n = 64; n <= 3200; n += 64) {
    text += gemm_row(128, n, 4096, 1.0);
    held_out_count += is_held_out(gemm_group("gemm", "H100-SXM5-80GB", "bf16", {.n = n, .k = 4096})) ? 1 : 0;
  }
  ASSERT_GT(held_out_count, 0);
  EXPECT_EQ(score_text(text, "x.csv", {}).scored, 50);
  EXPECT_EQ(score_text(text, "x.csv", {}).held_out.size(), static_cast<std::size_t>(held_out_count));
  const TableScore held_out_only = score_text(text, "x.csv", {.held_out = true});
  EXPECT_EQ(held_out_only.scored, held_out_count);
  EXPECT_EQ(held_out_only.skipped_rows(), 50 - held_out_count);
}

TEST(Score, WithoutAMachineColumnTheHardwareFileNamesTheGroups) {
  // The name is longer than the small-string buffer, so a dangling view of it would show up here.
  std::string text = "# hardware: RTX PRO 6000\nop,ngpus,bytes,time_us\n";
  std::int64_t held_out_count = 0;
  for (std::int64_t bytes = 1 << 10; bytes <= std::int64_t{1} << 30; bytes *= 2) {
    text += fmt::format("all_gather,8,{},{}\n", bytes, 100.0 + static_cast<double>(bytes) / 2e4);
    held_out_count += is_held_out(link_group("collective", "pcie-rtx-pro-6000", "all_gather", bytes)) ? 1 : 0;
  }
  ASSERT_GT(held_out_count, 0);
  const TableScore score = score_text(text, "x.csv", {.held_out = true});
  EXPECT_EQ(score.machines, std::vector<std::string>{"pcie-rtx-pro-6000"});
  EXPECT_EQ(score.scored, held_out_count);
}

TEST(Score, AllRowsOfANetworkWithOnlyPriorsAreHeldOut) {
  // For H100 on two nodes, a fit used about 80% of the sizes; for GH200 no fit used any.
  const auto rows = [](int gpus) {
    std::string text = "op,ngpus,nodes,bytes,time_us\n";
    for (std::int64_t bytes = 1 << 20; bytes <= std::int64_t{1} << 30; bytes *= 2) {
      text += fmt::format("all_reduce,{},2,{},{}\n", gpus, bytes, 100.0 + static_cast<double>(bytes) / 1e5);
    }
    return text;
  };
  const TableScore with_priors = score_text("# hardware: 2 nodes x 4 GH200\n" + rows(8), "x.csv", {.held_out = true});
  EXPECT_EQ(with_priors.machines, std::vector<std::string>{"gh200-slingshot-x2"});
  EXPECT_EQ(with_priors.scored, 11);
  const TableScore fitted = score_text("# hardware: 2 nodes x 8 H100 SXM\n" + rows(16), "x.csv", {.held_out = true});
  EXPECT_GT(fitted.scored, 0);
  EXPECT_LT(fitted.scored, 11);
}

TEST(Score, TheSlicingPenaltyIsComparedWithNoPenalty) {
  // The whole GEMM takes as long as predicted, and a quarter of it takes 1.1 times its prediction.
  const std::string text =
      std::string(gemm_header) + gemm_row(8192, 4096, 4096, 1.0) + gemm_row(2048, 4096, 4096, 1.0 / 1.1);
  const TableScore score = score_text(text, "x.csv", {});
  ASSERT_EQ(score.penalties.size(), 1U);
  const PenaltyScore& penalty = score.penalties.front();
  EXPECT_EQ(penalty.parts, 4);
  ASSERT_EQ(penalty.errors.size(), 1U);
  EXPECT_NEAR(penalty.errors[0], 1.0 - 1.0 / 1.1, 1e-6);
  const double measured = 4.0 * 1.1 * h100_gemm_us(2048, 4096, 4096) / h100_gemm_us(8192, 4096, 4096);
  EXPECT_NEAR(penalty.of_no_penalty[0], std::abs(1.0 / measured - 1.0), 1e-6);
}

TEST(Score, PenaltiesCountOnlyGemmsThatASchedulerWouldCut) {
  const std::string narrow = std::string(gemm_header) + gemm_row(8192, 512, 4096, 1.0) + gemm_row(2048, 512, 4096, 1.0);
  EXPECT_TRUE(score_text(narrow, "x.csv", {}).penalties.empty());
  const std::string few = std::string(gemm_header) + gemm_row(1024, 4096, 4096, 1.0) + gemm_row(256, 4096, 4096, 1.0);
  EXPECT_TRUE(score_text(few, "x.csv", {}).penalties.empty());
}

TEST(Score, CollectivesAreOnTheMachineThatTheCommentsName) {
  const Machine machine = load_machine("h100-sxm");
  const double time = to_microseconds(all_gather_time(machine.link, 8, Bytes{1 << 20}));
  const std::string rows = fmt::format(
      "op,ngpus,bytes,time_us\nall_gather,8,1048576,{:.9g}\nbroadcast,8,1048576,9\n"
      "all_gather,8,0,30\n",
      time / 1.2);
  const TableScore score = score_text("# hardware: 8x H100-SXM5-80GB, NVSwitch, one node\n" + rows, "x.csv", {});
  EXPECT_EQ(score.kind, "collective");
  ASSERT_EQ(score.errors.size(), 1U);
  EXPECT_NEAR(score.errors[0], 0.2, 1e-6);
  ASSERT_EQ(score.parts.size(), 1U);
  EXPECT_EQ(score.parts[0].name, "all_gather, one node, >= 64 KiB");
  EXPECT_EQ(score.skipped_rows(), 2);
  EXPECT_EQ(score.skipped[0].reason, "the model has no 'broadcast'");
  EXPECT_EQ(score_text(rows, "nccl_h100_mine.csv", {}).scored, 1);
  EXPECT_EQ(score_text(rows, "mine.csv", {}).scored, 0);
}

TEST(Score, MemoryBoundOpsHaveTheWidthsOfNeighbouringGemms) {
  const std::string text =
      "# software: PyTorch "
      "fp16\nhw,op,tp,m,n,k,median_us\nh100,add,2,4096,,,40\nh100,attn_pre_proj,2,4096,6144,4096,300\n"
      "h100,add,4,4096,,,40\nh100,gelu,2,4096,,,40\n";
  const TableScore score = score_text(text, "x.csv", {});
  EXPECT_EQ(score.kind, "gemm_layer");
  EXPECT_EQ(score.scored, 2);
  ASSERT_EQ(score.skipped.size(), 2U);
  EXPECT_EQ(score.skipped[0].reason, "the table does not state what add moves");
  EXPECT_EQ(score.skipped[1].reason, "the table does not state what gelu moves");
  const Machine machine = load_machine("h100-sxm");
  const FrameworkKernelSize sum{.rows = 4096, .width = 4096, .traffic = Bytes{std::int64_t{3} * 4096 * 4096 * 2}};
  EXPECT_NEAR(score.errors[0], std::abs(to_microseconds(framework_kernel_time(machine.accelerator, sum)) / 40.0 - 1.0),
              1e-9);
}

TEST(Score, AttentionOfDecodingHasTheParametersOfItsCache) {
  const Accelerator accelerator = load_machine("h100-sxm").accelerator;
  AttentionSize size{.batch = 32, .seq = 2048, .heads = 64, .kv_heads = 8, .head_dim = 128};
  const double wide = to_microseconds(decode_attention_time(accelerator, size));
  size.dtype = DType::fp8;
  const double narrow = to_microseconds(decode_attention_time(accelerator, size));
  const TableScore score = score_text(fmt::format("hw,batch,kv_len,heads,kv_heads,head_dim,dtype,kv_dtype,time_us\n"
                                                  "H100,32,2048,64,8,128,bfloat16,bfloat16,{:.9g}\n"
                                                  "H100,32,2048,64,8,128,bfloat16,fp8,{:.9g}\n"
                                                  "H100,32,2048,64,8,128,bfloat16,int4,9\n",
                                                  wide / 1.25, narrow / 1.5),
                                      "x.csv", {});
  EXPECT_EQ(score.kind, "decode_attention");
  ASSERT_EQ(score.errors.size(), 2U);
  EXPECT_NEAR(score.errors[0], 0.25, 1e-6);
  EXPECT_NEAR(score.errors[1], 0.5, 1e-6);
  ASSERT_EQ(score.skipped.size(), 1U);
  EXPECT_EQ(score.skipped[0].reason, "a cache in int4, a dtype that no setting can select");
}

TEST(Score, WeightCopiesThatFitIntoTheL2AreWarm) {
  // The table's tool cycles through copies to keep weights cold, but five copies of 2 x 3072 x 2048 bytes, 63 MB, still
  // fit into the 101 MB of an L40S's L2.
  const std::string rows = std::string(gemm_header) + "L40S,bfloat16,1,3072,2048,10\n";
  const Accelerator accelerator = load_machine("l40s-pcie").accelerator;
  const auto error = [&](int copies) {
    const GemmSize size{.m = 1, .n = 3072, .k = 2048, .weight_copies = copies};
    return std::abs(to_microseconds(estimate_gemm(accelerator, size, accelerator.sms).time) / 10.0 - 1.0);
  };
  EXPECT_NEAR(score_text(rows, "x.csv", {}).errors.at(0), error(0), 1e-9);
  EXPECT_NEAR(score_text("# software: L2-cold weights (weight copies exceed L2)\n" + rows, "x.csv", {}).errors.at(0),
              error(5), 1e-9);
  EXPECT_GT(std::abs(error(0) - error(5)), 0.1);
}

TEST(Score, AFrameworkWithItsOwnKernelsIsASeparateMachine) {
  const std::string rows = std::string(gemm_header) + "H100-SXM5-80GB,bfloat16,2048,4096,4096,100\n";
  const auto error_on = [](const char* name) {
    const Accelerator accelerator = load_machine(name).accelerator;
    const Duration time = estimate_gemm(accelerator, {.m = 2048, .n = 4096, .k = 4096}, accelerator.sms).time;
    return std::abs(to_microseconds(time) / 100.0 - 1.0);
  };
  const auto error_with = [&](const std::string& comment) {
    return score_text(comment + rows, "x.csv", {}).errors.at(0);
  };
  EXPECT_NEAR(error_with(""), error_on("h100-sxm"), 1e-9);
  EXPECT_NEAR(error_with("# software: framework Linear layer (vllm/0.24.0)\n"), error_on("h100-sxm-vllm"), 1e-9);
  EXPECT_NEAR(error_with("# software: framework Linear layer (sglang/0.5.14)\n"), error_on("h100-sxm-sglang"), 1e-9);
  EXPECT_NEAR(error_with("# software: framework Linear layer (trtllm/1.3.0)\n"), error_on("h100-sxm"), 1e-9);
  EXPECT_GT(std::abs(error_on("h100-sxm") - error_on("h100-sxm-vllm")), 1e-3);
}

TEST(Score, LayersOfExpertsAreOneCallPerRow) {
  const Accelerator accelerator = load_machine("h100-sxm").accelerator;
  const ExpertLayerSize size{.tokens = 64, .hidden = 4096, .ffn = 1536, .active = 8, .experts = 128, .tp = 2, .ep = 4};
  ExpertLayerSize ungated = size;
  ungated.gated = false;
  ungated.exponent = 1.2;
  ungated.dtype = DType::fp8;
  const auto us = [&](const ExpertLayerSize& layer) { return to_microseconds(expert_layer_time(accelerator, layer)); };
  const auto row = [](std::string_view machine, std::string_view kernel, std::string_view loads, double time) {
    return fmt::format("{},{},64,4096,1536,8,128,2,4,{},{:.9g}\n", machine, kernel, loads, time);
  };
  const TableScore score = score_text("hw,dtype,kernel,tokens,hidden,inter,topk,experts,tp,ep,distribution,time_us\n" +
                                          row("H100-SXM5", "bfloat16,trtllm_cutlass", "balanced", us(size) / 1.25) +
                                          row("H100-SXM5", "fp8,trtllm_nongated", "power_law_1.2", us(ungated) / 1.1) +
                                          row("H100-SXM5", "bfloat16,sglang_fused_moe_triton", "balanced", 100.0) +
                                          row("H100-SXM5", "int4,trtllm_cutlass", "balanced", 100.0) +
                                          row("MI300X", "bfloat16,x", "balanced", 100.0) +
                                          row("H100-SXM5", "bfloat16,trtllm_cutlass", "uniform", 100.0) +
                                          "H100-SXM5,fp8,trtllm_cutlass,64,4096,1536,8,4,2,4,balanced,100\n" +
                                          "H100-SXM5,fp8,trtllm_cutlass,64,4096,1536,8,128,2,3,balanced,100\n",
                                      "x.csv", {});
  EXPECT_EQ(score.kind, "expert_layer");
  EXPECT_EQ(score.skipped_rows(), 3);
  ASSERT_EQ(score.errors.size(), 2U);
  EXPECT_NEAR(score.errors[0], 0.25, 1e-6);
  EXPECT_NEAR(score.errors[1], 0.1, 1e-6);
  ASSERT_EQ(score.faults.size(), 3U);
  EXPECT_EQ(score.faults[0].reason, "distribution is 'uniform'; write balanced, or a power law such as power_law_1.2");
  EXPECT_EQ(score.faults[1].reason, "topk is 8, but there are 4 experts");
  EXPECT_EQ(score.faults[2].reason, "128 experts are not a multiple of ep 3");
}

TEST(Score, QuantizationIsScoredByItsTwoParts) {
  const auto us = [](QuantizationPart part) {
    return to_microseconds(
        quantization_time(load_machine("h100-sxm").accelerator, {.rows = 512, .width = 4096, .part = part}));
  };
  const TableScore score =
      score_text(fmt::format("hw,op,m,k,in_dtype,out_dtype,time_us\n"
                             "H100-SXM5,scale_matrix,512,4096,bfloat16,fp8,{:.9g}\n"
                             "H100-SXM5,compute_scale,512,4096,float16,fp8,{:.9g}\n"
                             "H100-SXM5,scale_matrix,512,4096,bfloat16,nvfp4,9\n"
                             "H100-SXM5,scale_matrix,512,4096,fp8,fp8,9\n"
                             "A100-SXM4-80GB,scale_matrix,512,4096,bfloat16,fp8,9\n"
                             "H100-SXM5,scale,512,4096,bfloat16,fp8,9\n",
                             us(QuantizationPart::conversion) / 1.25, us(QuantizationPart::scale) / 1.1),
                 "x.csv", {});
  EXPECT_EQ(score.kind, "quantize");
  EXPECT_EQ(score.skipped_rows(), 3);
  ASSERT_EQ(score.errors.size(), 2U);
  EXPECT_NEAR(score.errors[0], 0.25, 1e-6);
  EXPECT_NEAR(score.errors[1], 0.1, 1e-6);
  ASSERT_EQ(score.faults.size(), 1U);
  EXPECT_EQ(score.faults[0].reason,
            "op is 'scale'; write scale_matrix (a conversion with a given scale) or compute_scale (what finding the "
            "scale adds)");
}

TEST(Score, ARemarkNamesAnEarlyLibraryAndRowsOfItsFitAreSkipped) {
  const std::string rows =
      "hw,op,tp,m,n,k,median_us\nh100,mlp_up_proj,1,4096,22016,4096,1000\n"
      "h100,attn_post_proj,1,640,4096,4096,46\n";
  const TableScore later = score_text("# software: fp16\n" + rows, "x.csv", {});
  EXPECT_EQ(later.scored, 2);
  EXPECT_TRUE(later.remarks.empty());
  const TableScore early = score_text("# software: fp16, via sarathi-serve\n" + rows, "x.csv", {});
  EXPECT_EQ(early.scored, 1);
  ASSERT_EQ(early.skipped.size(), 1U);
  EXPECT_EQ(early.skipped[0].reason, "used to fit the rate of the framework's library");
  ASSERT_EQ(early.remarks.size(), 1U);
  EXPECT_NE(early.remarks[0].find("cost as much as full waves and its loops run at 0.76"), std::string::npos);
  EXPECT_LT(early.errors[0], later.errors[1]);  // 160 tiles of 128 x 128: two waves, not 1.2
}

TEST(Score, TheBestOfASearchIsComparedWithTheBestOfTheModel) {
  // The score compares only the rate, so the shape in the row does not matter. No search would choose the shape of the
  // first row.
  const std::string header = "hw,dtype,m,n,k,tflops,efficiency_pct\n";
  const TableScore odd = score_text(header + "NVIDIA H100 SXM,bf16,64,64,64,700,70\n", "x.csv", {});
  const TableScore good = score_text(header + "NVIDIA H100 SXM,bf16,2048,2048,13312,700,70\n", "x.csv", {});
  EXPECT_EQ(odd.kind, "gemm_best");
  ASSERT_EQ(odd.errors.size(), 1U);
  ASSERT_EQ(good.errors.size(), 1U);
  EXPECT_NEAR(odd.errors[0], good.errors[0], 1e-9);
  const double best = 700.0 / (1.0 - good.errors[0]);  // rate of the model's best shape
  const double at_shape = 2.0 * 2048 * 2048 * 13312 / h100_gemm_us(2048, 2048, 13312) / 1e6;
  EXPECT_GT(best, 700.0);
  EXPECT_GE(best, 0.9999 * at_shape);
}

TEST(Score, AttentionOfAScheduleMayBeUnfused) {
  const auto error_of = [](const char* kernel) {
    const TableScore score =
        score_text(fmt::format("hw,model,scope,ranks,batch,seq,dtype,strategy,attention_kernel,time_us\n"
                               "a100-sxm-80,megatron-22b,layer,8,4,2048,fp16,serial,{},20000\n",
                               kernel),
                   "x.csv", {});
    return score.errors.empty() ? -1.0 : score.errors[0];
  };
  EXPECT_LT(error_of("unfused"), error_of("fused"));  // Both are far below 20 ms.
  EXPECT_EQ(error_of("fused"), error_of(""));
  EXPECT_EQ(error_of("half"), -1.0);
}

TEST(Score, NamedSchedulesDecideTheWinner) {
  const std::string text =
      "hw,model,scope,ranks,batch,seq,dtype,strategy,time_us\n"
      "commfuse-paper-npu,commfuse-paper-mlp,down,4,32,4096,bf16,serial,122300\n"
      "commfuse-paper-npu,commfuse-paper-mlp,down,4,32,4096,bf16,commfuse,77100\n"
      "commfuse-paper-npu,commfuse-paper-mlp,down,4,32,4096,bf16,magic,1\n";
  const TableScore score = score_text(text, "x.csv", {});
  EXPECT_EQ(score.kind, "overlap_schedules");
  EXPECT_EQ(score.scored, 2);
  EXPECT_EQ(score.skipped_rows(), 1);
  ASSERT_TRUE(score.variants.has_value());
  EXPECT_EQ(score.variants->compared, 1);
  EXPECT_EQ(score.variants->agreed, 1);
  EXPECT_EQ(score.variants->ratio_errors.size(), 1U);
}

TEST(Score, SchedulesOfDifferentDtypesAreNotCompared) {
  const TableScore score = score_text(
      "hw,model,scope,ranks,batch,seq,dtype,strategy,time_us\n"
      "h100-sxm,llama-3.1-8b,mlp,8,1,4096,bf16,serial,700\nh100-sxm,llama-3.1-8b,mlp,8,1,4096,fp8,serial,500\n",
      "x.csv", {});
  EXPECT_EQ(score.scored, 2);
  EXPECT_FALSE(score.variants.has_value());
  EXPECT_TRUE(score.judged.empty());
}

TEST(Score, AFaultyNumberOfSlicesIsAFaultOfItsRow) {
  const TableScore score = score_text(
      "hw,model,scope,ranks,batch,seq,dtype,strategy,slices,time_us\n"
      "h100-sxm,llama-3.1-70b,down,8,1,8192,bf16,sliced,4,900\n"
      "h100-sxm,llama-3.1-70b,down,8,1,8192,bf16,sliced,k=4,900\n"
      "h100-sxm,llama-3.1-70b,down,8,1,8192,fp3,sliced,4,900\n",
      "x.csv", {});
  EXPECT_EQ(score.scored, 1);
  ASSERT_EQ(score.faults.size(), 1U);
  EXPECT_EQ(score.faults[0].line, 3);
  EXPECT_EQ(score.faults[0].reason, "slices is 'k=4', which is not a whole number from 1 to 16777216");
  ASSERT_EQ(score.skipped.size(), 1U);
  EXPECT_EQ(score.skipped[0].reason, "unknown dtype 'fp3'");
}

constexpr std::string_view steps_header =
    "# hardware: up to 8 A100 GPUs in one node\n"
    "n_gpus,global_batch,micro_batch,hidden_size,attention_heads,n_layers,sequence_length,tensor_parallelism,"
    "data_parallelism,pipeline_parallelism,iteration_time_ms\n";

TEST(Score, PassRatiosAreScoredSeparatelyAndShortMixturesAreSkipped) {
  const TableScore score = score_text(
      "# hardware: DGX H100\nmodel,tp,prompt_tokens,serial_ms,compute_only_ms,overlapped_ms\n"
      "Mixtral-8x22B-Instruct-v0.1,8,4096,60,60,60\nMixtral-8x22B-Instruct-v0.1,8,2048,60,60,60\n"
      "DeepSeek-V3,8,4096,60,60,60\n",
      "x.csv", {});
  EXPECT_EQ(score.scored, 1);
  ASSERT_EQ(score.errors.size(), 3U);  // Serial, compute-only and overlapped times are all above 60 ms.
  const auto part = [&](std::string_view name) {
    const auto scored = std::ranges::find(score.parts, name, &ScoredPart::name);
    return scored == score.parts.end() || scored->errors.size() != 1 ? 0.0 : scored->errors.front();
  };
  EXPECT_NEAR(part("serial over compute only"), (1.0 + score.errors[0]) / (1.0 + score.errors[1]) - 1.0, 1e-9);
  EXPECT_GT(part("serial over compute only"), 0.1);
  ASSERT_EQ(score.skipped.size(), 2U);
  EXPECT_EQ(score.skipped[0].reason, "too few tokens: the host launches kernels more slowly than they run");
  EXPECT_EQ(score.skipped[1].reason, "deepseek-v3 has layers other than plain attention with an MLP or routed experts");
}

TEST(Score, PassesOfAnEngineAreScoredByTheirBatchAndContext) {
  const TableScore score = score_text(
      "hw,case,shape,torch_ms,triton_dist_ms\nH800,e2e_prefill_ag_rs,bsz=32 ctx=128,123,104\n"
      "H800,e2e_decode_gemm_ar,bsz=128 ctx=128,16.5,12.4\nH800,mlp_ag_rs,M=2048,0.6,0.5\n"
      "H800,moe,M=2048,1,1\nH800,e2e_prefill_ag_rs,bsz=1048576 ctx=1048576,1,1\n",
      "x.csv", {});
  EXPECT_EQ(score.kind, "engine_pass");
  EXPECT_EQ(score.scored, 2);
  ASSERT_EQ(score.errors.size(), 2U);
  EXPECT_LT(score.errors[0], 0.1);
  EXPECT_LT(score.errors[1], 0.3);
  ASSERT_EQ(score.skipped.size(), 3U);
  EXPECT_NE(score.skipped[2].reason.find("too large"), std::string::npos);  // The other rows are still scored.
  EXPECT_EQ(score.skipped[0].reason, "the source gives this row 2,048 tokens in one revision and 4,096 in another");
  EXPECT_EQ(score.skipped[1].reason, "an unknown case");
}

TEST(Score, BlocksOfAnEngineAreScoredByThePartsOfAPass) {
  const TableScore score = score_text(
      "hw,case,shape,torch_ms,triton_dist_ms\nH800,attn_prefill_ag_rs,bsz=32 ctx=128,0.719,0.749\n"
      "H800,attn_decode_ag_rs,bsz=4096 ctx=128,1.298,1.318\nH800,mlp_gemm_ar,M=2048,0.6012,0.4756\n"
      "H800,ag_gemm,M=2048,0.3,0.3\nH800,gemm_rs,M=2048,0.3,0.3\n",
      "x.csv", {});
  EXPECT_TRUE(score.skipped.empty());
  ASSERT_EQ(score.errors.size(), 5U);
  EXPECT_LT(score.errors[0], 0.1);
  EXPECT_LT(score.errors[1], 0.5);
  EXPECT_LT(score.errors[2], 0.1);
  // The GEMMs with their collectives are the MLP without its activation.
  ASSERT_EQ(score.times.size(), 5U);
  EXPECT_LT(score.times[3].predicted_us + score.times[4].predicted_us, 1.1 * score.times[2].predicted_us);
}

TEST(Score, GainsOfThroughputAreScoredByThePassOfAChunk) {
  const TableScore score = score_text(
      "# hardware: DGX H100\ntp,chunk_size,model,serial_tps,overlapped_tps\n"
      "8,2048,Llama-3.3-70B-Instruct,17778,21295\n",
      "x.csv", {});
  EXPECT_EQ(score.kind, "overlap_throughput");
  ASSERT_EQ(score.errors.size(), 1U);
  EXPECT_LT(score.errors[0], 0.15);
  ASSERT_EQ(score.times.size(), 1U);
  EXPECT_TRUE(score.times[0].is_factor);
}

TEST(Score, SumsWithNormsAreScoredAgainstAllReduceAndNorm) {
  const TableScore score = score_text(
      "# hardware: DGX H100\nBL,hidden_size,full_rms_norm_us,torch_all_reduce_us,fused_arln_us\n"
      "8192,8192,184,646,502\n",
      "x.csv", {});
  EXPECT_EQ(score.kind, "overlap_sums");
  EXPECT_EQ(score.scored, 1);
  EXPECT_EQ(score.errors.size(), 2U);
  EXPECT_LT(summary_of(score.errors).max, 0.2);
  const TableScore by_ctas = score_text(
      "# hardware: DGX H100\nnum_tokens,hidden_size,fused_arln_us_ctas_2,fused_arln_us_ctas_16,fused_arln_us_ctas_64\n"
      "8192,8192,1571,503,518\n",
      "x.csv", {});
  EXPECT_EQ(by_ctas.kind, "overlap_sums");
  EXPECT_EQ(by_ctas.errors.size(), 1U);  // The kernel takes 16 CTAs.
  const TableScore on_a100 = score_text(
      "# hardware: DGX "
      "A100\nBL,hidden_size,full_rms_norm_us,torch_all_reduce_us,fused_arln_us\n8192,8192,184,646,502\n",
      "x.csv", {});
  ASSERT_EQ(on_a100.skipped.size(), 1U);
}

TEST(Score, TrainingStepsAreScoredWithTheirMeanAndRankCorrelation) {
  const TableScore score = score_text(std::string(steps_header) +
                                          "2,16,8,1024,16,24,1024,1,1,2,372.1\n8,32,4,1024,16,24,1024,2,2,2,219.7\n"
                                          "4,32,2,2048,16,16,1024,1,4,1,406.4\n",
                                      "x.csv", {});
  EXPECT_EQ(score.kind, "training_step");
  EXPECT_EQ(score.scored, 3);
  EXPECT_LT(summary_of(score.errors).max, 0.3);
  ASSERT_TRUE(score.steps.has_value());
  EXPECT_EQ(score.steps->rank_correlation, 1.0);
  EXPECT_EQ(score.steps->layout_pairs, 0);  // The rows are three different workloads.
}

TEST(Score, EqualTimesShareARankAndOneTimeHasNoCorrelation) {
  const auto correlation = [](const std::string& rows) {
    return score_text(std::string(steps_header) + rows, "x.csv", {}).steps.value().rank_correlation;
  };
  const std::string fast = "2,16,8,1024,16,24,1024,1,1,2,";
  const std::string slow = "2,16,1,1024,16,24,1024,1,1,2,717.0\n";
  // Measured ranks 0, 1, 2 and predicted ranks 0.5, 0.5, 2, in any order of the rows.
  const std::optional<double> tied = correlation(fast + "372.1\n" + fast + "380.0\n" + slow);
  ASSERT_TRUE(tied.has_value());
  EXPECT_NEAR(*tied, std::sqrt(0.75), 1e-12);
  EXPECT_EQ(correlation(slow + fast + "380.0\n" + fast + "372.1\n"), tied);
  EXPECT_FALSE(correlation(slow).has_value());
}

TEST(Score, RanksTwoLayoutsOfTheSameWork) {
  const auto layouts = [](const std::string& last) {
    // The first two are 1.3% apart and not a pair; each of them forms a pair with the third.
    return *score_text(std::string(steps_header) +
                           "2,16,8,1024,16,24,1024,1,1,2,372.1\n2,16,4,1024,16,24,1024,1,1,2,377.1\n"
                           "2,16,1,1024,16,24,1024,1,1,2," +
                           last,
                       "x.csv", {})
                .steps;
  };
  EXPECT_EQ(layouts("717.0\n").layout_pairs, 2);
  EXPECT_EQ(layouts("717.0\n").better_named, 2);
  EXPECT_EQ(layouts("200.0\n").layout_pairs, 2);  // Small micro-batches are not that fast.
  EXPECT_EQ(layouts("200.0\n").better_named, 0);
}

TEST(Score, PassesOfALayerAreOnTheMachineOfTheirTableAndOfAKnownModel) {
  const std::string header = "model,experiment,tp,micro_batch,seq,hidden,forward_ms,backward_ms\n";
  const std::string row = "22B one layer,sequence parallelism,8,4,2048,6144,7.2,11.8\n";
  const TableScore paper = score_text(header + row, "x.csv", {});
  EXPECT_EQ(paper.machines, std::vector<std::string>{"a100-sxm-80"});
  const TableScore on_h100 = score_text("# hardware: H100 SXM\n" + header + row, "x.csv", {});
  EXPECT_EQ(on_h100.machines, std::vector<std::string>{"h100-sxm"});
  const TableScore wider =
      score_text(header + "175B one layer,sequence parallelism,8,4,2048,12288,20,40\n", "x.csv", {});
  ASSERT_EQ(wider.skipped.size(), 1U);
  EXPECT_EQ(wider.skipped.front().reason, "the table does not state the number of heads");
}

TEST(Score, FactsAboutMemoryAreCountedAndContradictionsReported) {
  const std::string header =
      "hw,model,layers,hidden,heads,vocab,tp,sp,pp,interleave,dp,cp,zero,mbs,gbs,seq,recompute,attention_kernel,"
      "dropout,dtype,gradient_dtype,fits\n";
  const auto row = [](std::string_view recompute, std::string_view fits) {
    return fmt::format("a100-sxm-80,,96,12288,96,51200,8,off,8,3,1,1,0,1,64,2048,{},unfused,on,fp16,fp32,{}\n",
                       recompute, fits);
  };
  const TableScore score = score_text(header + row("full", "yes") + row("none", "no") + row("full", "no"), "x.csv", {});
  EXPECT_EQ(score.kind, "memory_fit");
  EXPECT_EQ(score.scored, 3);
  ASSERT_TRUE(score.memory.has_value());
  EXPECT_EQ(score.memory->facts, 3);
  EXPECT_EQ(score.memory->agreed, 2);
  ASSERT_EQ(score.remarks.size(), 1U);
  EXPECT_NE(score.remarks[0].find("gpt of 96 x 12288 on 64 GPUs"), std::string::npos) << score.remarks[0];
  EXPECT_NE(score.remarks[0].find("did not fit into 80 GB"), std::string::npos) << score.remarks[0];
  const TableScore wrong = score_text(header + row("sometimes", "yes") + row("full", "perhaps"), "x.csv", {});
  EXPECT_EQ(wrong.fault_count, 2);
  EXPECT_EQ(wrong.faults[1].reason, "fits is 'perhaps'; it must be yes or no");
  EXPECT_FALSE(wrong.memory.has_value());
  const std::string one_gpu = "a100-sxm-80,,1,128,1,128,1,off,1,1,1,1,0,1,1,128,none,unfused,on,fp16,fp32,no\n";
  const TableScore contradiction = score_text(header + one_gpu, "x.csv", {});
  ASSERT_EQ(contradiction.remarks.size(), 1U);
  EXPECT_NE(contradiction.remarks[0].find("gpt of 1 x 128 on 1 GPU (TP 1"), std::string::npos)
      << contradiction.remarks[0];
}

// The model contradicts two facts; docs/decisions/0087 explains why. A change of the model that contradicts other facts
// fails here.
TEST(Score, TheModelContradictsTwoPublishedFactsAboutMemory) {
  const std::vector<TableScore> scores =
      score_tables(tables_in({(published_tables() / "memory_fits.csv").string()}), {});
  ASSERT_EQ(scores.size(), 1U);
  const TableScore& score = scores.front();
  EXPECT_EQ(score.skipped_rows(), 0);
  EXPECT_EQ(score.fault_count, 0);
  ASSERT_TRUE(score.memory.has_value());
  EXPECT_EQ(score.memory->facts, 31);
  EXPECT_EQ(score.memory->agreed, 29);
  ASSERT_EQ(score.remarks.size(), 2U);
  EXPECT_NE(score.remarks[0].find("gpt of 105 x 20480 on 640 GPUs"), std::string::npos) << score.remarks[0];
  EXPECT_NE(score.remarks[1].find("llama-3.1-405b on 8192 GPUs"), std::string::npos) << score.remarks[1];
}

TEST(Score, StepsWithoutAndWithAsyncTensorParallelismArePairs) {
  const std::string config = ",\"64x H100, TP=8 x FSDP=8, seq 8192, bf16 (recalled)\"\n";
  const TableScore score =
      score_text("model,local_batch,async_tp,peak_wps_per_gpu,config_recalled\nllama3_8b,8,no,4401" + config +
                     "llama3_8b,8,yes,4725" + config + "llama3_8b,8,yes,4725,another\n",
                 "x.csv", {});
  EXPECT_EQ(score.kind, "step_pairs");
  EXPECT_EQ(score.scored, 2);
  ASSERT_EQ(score.skipped.size(), 1U);
  EXPECT_EQ(score.skipped.front().reason, "its configuration is not known");
  ASSERT_TRUE(score.variants.has_value());
  EXPECT_EQ(score.variants->compared, 1);
  EXPECT_EQ(score.variants->agreed, 1);
  ASSERT_TRUE(score.gain_distance.has_value());
  EXPECT_GT(*score.gain_distance, 0.0);
  EXPECT_LT(*score.gain_distance, 0.04);
}

TEST(Score, PairsOfStepsMayStandInAnyOrderAndOtherModelsAreSkipped) {
  const std::string config = ",\"64x H100, TP=8 x FSDP=8, seq 8192, bf16 (recalled)\"\n";
  const std::string header = "model,local_batch,async_tp,peak_wps_per_gpu,config_recalled\n";
  const std::string without = "llama3_8b,8,no,4401" + config;
  const std::string with = "llama3_8b,8,yes,4725" + config;
  const TableScore in_order = score_text(header + without + with, "x.csv", {});
  const TableScore reversed = score_text(header + with + without, "x.csv", {});
  ASSERT_TRUE(reversed.variants.has_value());
  EXPECT_EQ(reversed.variants->compared, 1);
  EXPECT_EQ(reversed.gain_distance, in_order.gain_distance);
  const TableScore others =
      score_text(header + "gemma9_8b,8,no,4401" + config + "llama3_8b,8,maybe,4401" + config, "x.csv", {});
  EXPECT_EQ(others.scored, 0);
  ASSERT_EQ(others.skipped.size(), 1U);
  EXPECT_EQ(others.skipped[0].reason, "no model file is known as 'gemma9_8b'");
  ASSERT_EQ(others.faults.size(), 1U);
  EXPECT_EQ(others.faults[0].reason, "async_tp is 'maybe'; it must be yes or no");
}

TEST(Score, AnImpossibleLayoutIsSkippedAndTheReasonNamesBothSettings) {
  const TableScore score = score_text(std::string(steps_header) + "3,16,8,1024,16,24,1024,3,1,1,372.1\n", "x.csv", {});
  ASSERT_EQ(score.skipped.size(), 1U);
  EXPECT_NE(score.skipped.front().reason.find("heads 16 is not a multiple of tensor parallelism 3"), std::string::npos);
}

TEST(Score, ALayoutWithOtherGpusThanItsRowStatesIsAFault) {
  const auto fault_of = [](const std::string& text) {
    const TableScore score = score_text("# hardware: H100 SXM\n" + text, "x.csv", {});
    EXPECT_EQ(score.scored, 0);
    return score.faults.empty() ? "" : score.faults.front().reason;
  };
  EXPECT_EQ(fault_of(std::string(steps_header) + "8,16,1,1024,16,24,1024,8,2,1,372.1\n"),
            "n_gpus is 8, but tensor 8 x context 1 x pipeline 1 x data 2 is 16");
  EXPECT_EQ(fault_of("heads,hidden,layers,tp,pp,dp,gpus,batch,seq,vocab,tflops_per_gpu,mfu_pct\n"
                     "32,4096,32,2,1,4,4,8,2048,32000,400,40\n"),
            "gpus is 4, but tensor 2 x context 1 x pipeline 1 x data 4 is 8");
  EXPECT_EQ(
      fault_of("model,gpus,gbs,mbs,seq_len,tp,pp,cp,vp,ep,tokens_s_gpu\nLLAMA3-8B,12,128,1,8192,8,1,1,n/a,1,9000\n"),
      "gpus is 12, but tensor 8 x context 1 x pipeline 1 x data 1 is 8");
  EXPECT_EQ(fault_of("model,gpus,tp,cp,pp,seq,batch_per_dp,tflops_per_gpu,bf16_mfu_pct,hardware\n"
                     "8b,8,16,1,1,8192,16,400,40,H100-SXM\n"),
            "gpus is 8, but tensor 16 x context 1 x pipeline 1 x data 1 is 16");
  EXPECT_EQ(fault_of("hidden,heads,layers,gpus,seq_len,tp,pp,interleave,gbs,mbs,iter_s_full_recompute,"
                     "iter_s_seqpar_selective\n6144,64,48,16,2048,8,1,1,4,4,1.42,1.1\n"),
            "gpus is 16, but tensor 8 x context 1 x pipeline 1 x data 1 is 8");
}

TEST(Score, MoreNodesThanAnIntHoldsAreTooManyGpus) {
  const TableScore score =
      score_text(std::string(steps_header) + ",32768,1,32768,32768,16,1024,32768,32768,16,100\n", "x.csv", {});
  ASSERT_EQ(score.skipped.size(), 1U);
  EXPECT_EQ(score.skipped[0].reason,
            "tensor x pipeline x data x context is 17179869184 GPUs, and dgx-a100-x2 has 2147483640; choose fewer");
}

TEST(Score, AModelOfMillionsOfLayersIsAFault) {
  const TableScore score = score_text(
      "# hardware: H100 SXM\nheads,hidden,layers,tp,pp,dp,batch,seq,vocab,tflops_per_gpu,mfu_pct\n"
      "64,8192,16777216,8,2,48,384,4096,131072,419.7,42\n",
      "x.csv", {});
  ASSERT_EQ(score.faults.size(), 1U);
  EXPECT_EQ(score.faults[0].reason, "layers is 16777216; it must be between 1 and 10000");
}

TEST(Score, ABatchOrLayersThatNothingDividesAreSkipped) {
  const TableScore score = score_text(
      "# hardware: H100 SXM\nheads,hidden,layers,tp,pp,dp,batch,seq,vocab,tflops_per_gpu,mfu_pct\n"
      "32,4096,32,1,1,3,4,2048,32000,400,40\n32,4096,4,1,8,1,4,2048,32000,400,40\n",
      "x.csv", {});
  ASSERT_EQ(score.skipped.size(), 2U);
  EXPECT_EQ(score.skipped[0].reason,
            "global batch 4 is not a multiple of data parallelism x micro-batch 3; choose a multiple of it");
  EXPECT_EQ(score.skipped[1].reason,
            "4 layers of gpt of 4 x 4096 do not split into pipeline 8 x interleave 1 chunks; choose a number of chunks "
            "that divides 4 or 6");
}

TEST(Score, TheFirstOfTwoNumbersOfARecipeIsCheckedLikeASingleOne) {
  const TableScore score = score_text(
      "# hardware: H100 SXM\nmodel,gpus,gbs,mbs,seq_len,tp,pp,cp,vp,ep,tokens_s_gpu\n"
      "LLAMA3-8B,8,128,1,8192,1 (2),1,1,n/a,1,13000 (12000)\nLLAMA3-8B,8,128,1,8192,0 (1),1,1,n/a,1,13000\n"
      "LLAMA3-8B,8,128,1,8192,1,1.5 (2),1,n/a,1,13000\nLLAMA3-8B,8,128,1,8192,1,1,1,n/a,1,0 (1)\n",
      "x.csv", {});
  EXPECT_EQ(score.scored, 1);
  ASSERT_EQ(score.faults.size(), 3U);
  EXPECT_EQ(score.faults[0].reason, "tp is '0 (1)', whose first number is not a whole number from 1 to 32768");
  EXPECT_EQ(score.faults[1].reason, "pp is '1.5 (2)', whose first number is not a whole number from 1 to 32768");
  EXPECT_EQ(score.faults[2].reason, "tokens_s_gpu is '0 (1)'; a measurement must be a finite number above 0");
}

TEST(Score, TheFirstOfTwoNumbersSaysWhetherARecipeShardsWeights) {
  const auto scored = [](std::string_view fsdp) {
    return score_text(fmt::format("# hardware: H100 SXM\nmodel,gpus,gbs,mbs,seq_len,fsdp,tp,pp,cp,vp,ep,tokens_s_gpu\n"
                                  "LLAMA3-8B,8,128,1,8192,{},1,1,1,n/a,1,13000\n",
                                  fsdp),
                      "x.csv", {});
  };
  const auto predicted_us = [&](std::string_view fsdp) { return scored(fsdp).times.at(0).predicted_us; };
  ASSERT_NE(predicted_us("8"), predicted_us("0"));
  EXPECT_EQ(predicted_us("0 (8)"), predicted_us("0"));
  EXPECT_EQ(predicted_us("8 (0)"), predicted_us("8"));
  EXPECT_EQ(predicted_us("n/a"), predicted_us("0"));
  ASSERT_EQ(scored("yes").faults.size(), 1U);
  EXPECT_EQ(scored("yes").faults[0].reason, "fsdp is 'yes', which is not a whole number from 0 to 32768");
}

// 70B in fp8 on 64 GB300 needs 343 GB per GPU with the activations of all layers, and a GPU has 288 GB; the recipe
// offloads the activations of 20 layers.
TEST(Score, RecipesThatOffloadActivationsShowNoMemoryFact) {
  const auto scored = [](std::string_view precision) {
    return score_text(fmt::format("model,system,precision,gpus,gbs,mbs,seq_len,fsdp,tp,pp,cp,vp,ep,tokens_s_gpu\n"
                                  "LLAMA3_70B,DGX-GB300,{},64,256,2,8192,64,1,1,1,n/a,n/a,5248\n",
                                  precision),
                      "x.csv", {});
  };
  const TableScore offloading = scored("FP8");
  EXPECT_EQ(offloading.scored, 1);
  EXPECT_FALSE(offloading.memory.has_value());
  EXPECT_NE(offloading.remarks.at(0).find("in the host's memory"), std::string::npos) << offloading.remarks[0];
  const TableScore whole = scored("BF16");  // no known recipe
  ASSERT_TRUE(whole.memory.has_value());
  EXPECT_EQ(whole.memory->agreed, 0);
  EXPECT_EQ(whole.remarks.at(0).find("in the host's memory"), std::string::npos) << whole.remarks[0];
}

TEST(Score, UnknownModelsAreQuotedWithoutControlCharacters) {
  const TableScore recipe = score_text(
      "# hardware: H100 SXM\nmodel,gpus,gbs,mbs,seq_len,tp,pp,cp,vp,ep,tokens_s_gpu\n"
      "\x1b[2J,8,128,1,8192,1,1,1,n/a,1,13000\n",
      "x.csv", {});
  const TableScore prefill = score_text(
      "# hardware: H100 SXM\nmodel,tp,prompt_tokens,serial_ms,compute_only_ms,overlapped_ms\n\x1b[2J,8,4096,3,2,2.5\n",
      "x.csv", {});
  for (const TableScore& score : {recipe, prefill}) {
    ASSERT_EQ(score.skipped.size(), 1U);
    EXPECT_EQ(score.skipped[0].reason, "no model file is known as '\\x1b[2J'");
  }
}

TEST(Score, UnknownWordsOfSchedulesAreQuotedWithoutControlCharacters) {
  const auto reason = [](std::string_view scope, std::string_view dtype, std::string_view strategy,
                         std::string_view kernel) {
    const TableScore score =
        score_text(fmt::format("hw,model,scope,ranks,batch,seq,dtype,strategy,attention_kernel,time_us\n"
                               "h100-sxm,llama-3.1-70b,{},8,1,8192,{},{},{},3000\n",
                               scope, dtype, strategy, kernel),
                   "x.csv", {});
    return score.skipped.at(0).reason;
  };
  EXPECT_EQ(reason("\x1b[2J", "bf16", "serial", ""), "unknown scope '\\x1b[2J'");
  EXPECT_EQ(reason("mlp", "\x1b[2J", "serial", ""), "unknown dtype '\\x1b[2J'");
  EXPECT_EQ(reason("mlp", "bf16", "\x1b[2J", ""), "\\x1b[2J is not a strategy for mlp");
  EXPECT_EQ(reason("mlp", "bf16", "serial", "\x1b[2J"), "unknown kind of attention kernel '\\x1b[2J'");
}

TEST(Score, AModelOnOneStageIsOneChunkAndOnlyScoredRowsHaveAnMfu) {
  const std::string header = "model,gpus,tp,cp,pp,seq,batch_per_dp,tflops_per_gpu,bf16_mfu_pct,hardware\n8b,8,1,1,";
  const TableScore one_stage = score_text(header + "1,8192,16,400,40,H100-SXM\n", "x.csv", {});
  EXPECT_EQ(one_stage.scored, 1);
  EXPECT_TRUE(one_stage.mfu_distance.has_value());
  const TableScore three_stages = score_text(header + "3,8192,16,400,40,H100-SXM\n", "x.csv", {});
  EXPECT_EQ(three_stages.scored, 0);
  EXPECT_FALSE(three_stages.mfu_distance.has_value());
  ASSERT_EQ(three_stages.remarks.size(), 1U);
  EXPECT_EQ(three_stages.remarks[0].find("MFU"), std::string::npos);
}

TEST(Score, ScoresTheShippedTables) {
  const auto scores = score_tables(tables_in({published_tables().string()}), {});
  ASSERT_FALSE(scores.empty());
  for (const TableScore& score : scores) {
    EXPECT_GT(score.scored, 0) << score.table;
    EXPECT_EQ(score.fault_count, 0) << score.table;
  }
}

TEST(Score, MissingPathsAreUserErrors) { EXPECT_THROW(tables_in({"/nowhere/at/all"}), ConfigError); }

TEST(Score, ALinkToItselfIsNotATableOfItsFolder) {
  const OwnFolder folder;
  std::filesystem::create_directory("tables");
  std::ofstream("tables/a.csv") << gemm_header;
  std::filesystem::create_symlink("loop.csv", "tables/loop.csv");
  EXPECT_EQ(tables_in({"tables"}), std::vector<std::filesystem::path>{"tables/a.csv"});
}

// Checks that every row of the tables next to the project, if they exist, is scored, skipped with a reason or reported
// as faulty.
TEST(Score, EveryRowOfTheDataFolderIsAccountedFor) {
  const std::filesystem::path data = COMMFUSE_SOURCE_DIR "/../shared/data";
  if (!std::filesystem::is_directory(data)) {
    GTEST_SKIP() << "the measured tables are not in this repository; folder not found: " << data;
  }
  std::int64_t scored = 0;
  for (const TableScore& score : score_tables(tables_in({data.string()}), {})) {
    EXPECT_EQ(score.scored + score.skipped_rows() + score.fault_count, score.rows) << score.table;
    EXPECT_EQ(score.fault_count, 0) << score.table;
    scored += score.scored;
  }
  EXPECT_GT(scored, 100'000);
}

}  // namespace
}  // namespace commfuse::score
