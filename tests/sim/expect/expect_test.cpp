// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "sim/expect/expected_rows.h"
#include "sim/expect/measured_nodes.h"
#include "sim/expect/nccl_version.h"
#include "sim/expect/thresholds.h"
#include "tests/sim/message_of.h"

namespace commfuse::expect {
namespace {

constexpr std::int64_t gib = std::int64_t{1} << 30U;

TEST(ExpectedRows, CoverEveryOpGpuCountAndSize) {
  const Expectation expectation(load_machine("dgx-h100-x2"));
  const std::vector<ExpectedRow> rows =
      expected_rows(expectation, {.ops = {LinkOp::all_reduce, LinkOp::send_recv}, .gpus = {8, 16}, .sizes = {{gib}}});
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].message.nodes, 1);
  EXPECT_EQ(rows[0].kernel, "NVLS");
  EXPECT_EQ(rows[1].message.nodes, 2);
  EXPECT_EQ(rows[1].message.gpus, 16);
  // Send-recv has one row for two GPUs of a node, and one for two GPUs on different nodes.
  EXPECT_EQ(rows[2].message.op, LinkOp::send_recv);
  EXPECT_EQ(rows[2].message.nodes, 1);
  EXPECT_EQ(rows[3].message.nodes, 2);
  for (const ExpectedRow& row : rows) {
    EXPECT_EQ(row.time, message_time(expectation.machine(), row.message));
    EXPECT_LT(row.range.fast, row.time);
    EXPECT_GT(row.range.slow, row.time);
  }
}

TEST(ExpectedRows, RefuseMoreGpusThanTheMachineHas) {
  const Expectation node(load_machine("h100-sxm"));
  const auto refusal = [](const Expectation& expectation, std::int64_t gpus) {
    return test::message_of(
        [&] { expected_rows(expectation, {.ops = {LinkOp::all_reduce}, .gpus = {gpus}, .sizes = {{gib}}}); });
  };
  EXPECT_EQ(refusal(node, 16),
            "--ranks: 16 GPUs do not fit h100-sxm, which has one node with 8 GPUs; use 2 to 8, or a cluster such as "
            "dgx-h100-x2");
  EXPECT_EQ(refusal(Expectation(load_machine("dgx-h100-x2")), 11),
            "--ranks: 11 GPUs do not fit dgx-h100-x2, which has 2 nodes with 8 GPUs each; use 2 to 8, or whole nodes "
            "up to 16");
}

TEST(ExpectedRows, ApplySetupsAndRefuseImpossibleOnes) {
  EXPECT_EQ(test::message_of([] { with_setup(load_machine("l40s-pcie"), {.nvls = false}); }),
            "--nvls: l40s-pcie has no sums in the switch (NVLS); remove --nvls");
  EXPECT_EQ(test::message_of([] { with_setup(load_machine("h100-sxm"), {.ctas = 0}); }),
            "--ctas: a kernel uses at least one CTA; use 1 or more");
  EXPECT_EQ(test::message_of([] { with_setup(load_machine("h100-sxm"), {.rails = 4}); }),
            "--rails: h100-sxm is one node; use a cluster such as dgx-h100-x2");
  EXPECT_EQ(test::message_of([] { with_setup(load_machine("dgx-h100-x2"), {.rails = 9}); }),
            "--rails: a node of dgx-h100-x2 has 8 NICs; use 1 to 8");
  EXPECT_EQ(test::message_of([] { with_setup(load_machine("azure-nc96ads-x2"), {.rails = 2}); }),
            "--rails: a node of azure-nc96ads-x2 has one NIC; use 1");
  const Machine machine = load_machine("h100-sxm");
  const Message message{.op = LinkOp::all_reduce, .gpus = 8, .nodes = 1, .bytes = {gib}};
  EXPECT_GT(message_time(with_setup(machine, {.nvls = false}), message), message_time(machine, message));
  EXPECT_EQ(message_time(with_setup(machine, {.nvls = true}), message), message_time(machine, message));
}

TEST(ExpectedRows, MayUseFewerGpusPerNodeThanTheNodeHas) {
  const Expectation expectation(load_machine("dgx-h100-x2"));
  const auto row_of = [&](std::int64_t gpus, std::int64_t gpus_per_node) {
    return expected_rows(
               expectation,
               {.ops = {LinkOp::all_gather}, .gpus = {gpus}, .sizes = {{gib}}, .gpus_per_node = gpus_per_node})
        .at(0);
  };
  EXPECT_EQ(row_of(8, 0).message.nodes, 1);
  EXPECT_EQ(row_of(8, 4).message.nodes, 2);
  EXPECT_EQ(row_of(2, 1).message.nodes, 2);
  EXPECT_EQ(row_of(8, 4).time, message_time(expectation.machine(), {LinkOp::all_gather, 8, 2, {gib}}));
  EXPECT_EQ(test::message_of([&] { row_of(8, 9); }), "--gpus-per-node: a node of dgx-h100-x2 has 8 GPUs; use 1 to 8");
  EXPECT_EQ(test::message_of([&] { row_of(16, 4); }),
            "--ranks: 16 GPUs do not fit dgx-h100-x2, which has 2 nodes with 4 GPUs each under --gpus-per-node 4; use "
            "2 to 4, or whole nodes up to 8");
  EXPECT_EQ(
      test::message_of([&] { row_of(3, 1); }),
      "--ranks: 3 GPUs do not fit dgx-h100-x2, which has 2 nodes with one GPU each under --gpus-per-node 1; use 2");
  EXPECT_EQ(test::message_of([&] { row_of(8, 2); }),
            "--ranks: 8 GPUs do not fit dgx-h100-x2, which has 2 nodes with 2 GPUs each under --gpus-per-node 2; use "
            "2, or whole nodes up to 4");
  const Expectation node(load_machine("h100-sxm"));
  EXPECT_EQ(test::message_of([&] {
              expected_rows(node, {.ops = {LinkOp::all_gather}, .gpus = {2}, .sizes = {{gib}}, .gpus_per_node = 1});
            }),
            "--ranks: 2 GPUs do not fit h100-sxm, which has one node with one GPU under --gpus-per-node 1; use a "
            "larger --gpus-per-node, or a cluster "
            "such as dgx-h100-x2");
}

TEST(ExpectedRows, AnotherVersionOfNcclWidensRangesAndMayLackNvls) {
  const Machine machine = load_machine("h100-sxm");
  EXPECT_EQ(fitted_version(machine), (NcclVersion{2, 29, 2}));
  EXPECT_EQ(fitted_version(load_machine("dgx-h100-x2")), (NcclVersion{2, 29, 2}));
  EXPECT_EQ(fitted_version(load_machine("h200-sxm")), std::nullopt);
  EXPECT_EQ(errors_of(machine, {2, 29, 7}).latency, 0.0);
  EXPECT_EQ(errors_of(machine, {2, 23, 0}).latency, between_versions.latency);
  EXPECT_EQ(errors_of(load_machine("h200-sxm"), {2, 29, 2}).bandwidth, between_versions.bandwidth);

  const Message large{.op = LinkOp::all_reduce, .gpus = 8, .nodes = 1, .bytes = {gib}};
  const Message small{.op = LinkOp::all_reduce, .gpus = 8, .nodes = 1, .bytes = {1024}};
  const Expectation same(machine);
  const Expectation other(machine, ParameterErrors::every, between_versions);
  EXPECT_EQ(other.of(large).time, same.of(large).time);
  EXPECT_NEAR(error_of(other.of(large)), std::hypot(error_of(same.of(large)), 0.03), 1e-12);
  EXPECT_NEAR(error_of(other.of(small)), std::hypot(error_of(same.of(small)), 0.07), 1e-12);

  const Machine old = with_setup(machine, {.nccl = NcclVersion{2, 16, 5}});
  EXPECT_EQ(message_time(old, large), message_time(with_setup(machine, {.nvls = false}), large));
  EXPECT_EQ(test::message_of([&] {
              with_setup(machine, {.nvls = true, .nccl = NcclVersion{2, 16, 5}});
            }),
            "--nvls: NCCL 2.16.5 does not support NVLS (2.17 and later do); remove --nvls");
  EXPECT_EQ(with_setup(load_machine("l40s-pcie"), {.nccl = NcclVersion{2, 16, 5}}).name, "l40s-pcie");
}

TEST(NcclVersions, AreTwoOrThreeNumbers) {
  EXPECT_EQ(nccl_version_named("2.23"), (NcclVersion{2, 23, 0}));
  EXPECT_EQ(nccl_version_named("2.28.9"), (NcclVersion{2, 28, 9}));
  EXPECT_EQ(name_of(NcclVersion{2, 28, 9}), "2.28.9");
  EXPECT_EQ(name_of(NcclVersion{2, 23, 0}), "2.23");
  for (const char* const text : {"", "2", "2.", ".23", "2.28.9.1", "2.28.9+cuda12.9", "two", "2.-1", "99999.1"}) {
    EXPECT_EQ(nccl_version_named(text), std::nullopt) << text;
  }
}

TEST(ExpectedRows, SizesGrowByTheFactor) {
  const std::vector<Bytes> sizes = sizes_between({1024}, {100'000}, 4);
  ASSERT_EQ(sizes.size(), 4U);
  EXPECT_EQ(sizes.back().count, 65536);
  EXPECT_EQ(sizes_between({1024}, {4096}, 2).size(), 3U);  // The range includes the largest size.
  for (const std::int64_t factor : {std::int64_t{1} << 54U, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(sizes_between({1024}, {100'000}, factor).size(), 1U);  // The second size would exceed 64 bits.
  }
  EXPECT_EQ(test::message_of([] { sizes_between({8}, {4}, 2); }),
            "sizes go from 8 B down to 4 B; write the smallest first, as in --sizes 1K..8G or -b 1K -e 8G");
  EXPECT_EQ(test::message_of([] { sizes_between({0}, {4}, 2); }),
            "sizes go from 0 B to 4 B; use a range from 1 B to 64 GiB, as in 1K..8G");
  EXPECT_EQ(test::message_of([] { sizes_between({1}, {4}, 1); }), "-f: 1 is not a step factor; use 2 or more");
}

/// Returns the floor of the message's bus bandwidth, divided by `divisor`, in GB/s with one decimal and rounded down,
/// as in most threshold formats.
std::string floor_text(const Expectation& expectation, const Message& message, double divisor = 1.0) {
  const double rate = bus_bandwidth(message, range_of(expectation.of(message), 0.01).slow).value / divisor;
  const auto tenths = static_cast<long long>(rate / 1e8);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

TEST(Thresholds, HaveTheFormatOfEachChecker) {
  const Expectation node(load_machine("h100-sxm"));
  const Message quarter_gib{.op = LinkOp::all_reduce, .gpus = 8, .nodes = 1, .bytes = {gib / 4}};
  const Message eight_gib{.op = LinkOp::all_reduce, .gpus = 8, .nodes = 1, .bytes = {8 * gib}};
  EXPECT_EQ(thresholds("nvsentinel", node, 0.01),
            "# commfuse-sim expect --hardware h100-sxm: one healthy measurement in 100 is below a floor\n"
            "# Helm replaces lists whole: merge these env entries into the initContainers of your values.\n"
            "initContainers:\n"
            "  - name: preflight-nccl-loopback\n"
            "    env:\n"
            "      - name: BW_THRESHOLD_GBPS\n"
            "        value: \"" +
                floor_text(node, quarter_gib) +
                "\"\n"
                "      - name: TEST_SIZE_MB\n"
                "        value: \"256\"\n");
  EXPECT_NE(thresholds("nccl-tests", node, 1e-6).find(": one healthy measurement in 1000000 is below a floor\n"),
            std::string::npos);
  EXPECT_NE(thresholds("nccl-tests", node, 0.01)
                .find("NCCL_TESTS_MIN_BW=" + floor_text(node, eight_gib, 0.9) + " all_reduce_perf -b 8G -e 8G -g 8\n"),
            std::string::npos);
  EXPECT_NE(thresholds("superbench", node, 0.01)
                .find("    nccl_allreduce_8589934592_rule:\n"
                      "      function: value\n"
                      "      criteria: 'lambda x:x<" +
                      floor_text(node, eight_gib) +
                      "'\n"
                      "      categories: NCCL\n"
                      "      metrics:\n"
                      "        - nccl-bw:*.*/allreduce_8589934592_busbw\n"),
            std::string::npos);
  const Message sixteen_gib{.op = LinkOp::all_reduce, .gpus = 8, .nodes = 1, .bytes = {16 * gib}};
  EXPECT_NE(thresholds("azure-nhc", node, 0.01)
                .find(" * || check_nccl_allreduce " + floor_text(node, sixteen_gib) + " 1 16G\n"),
            std::string::npos);
  EXPECT_NE(thresholds("azure-nhc", node, 0.01).find(" * || check_gpu_bw 4"), std::string::npos)
      << thresholds("azure-nhc", node, 0.01);
  // The floor over PCIe is 40 to 50 GB/s: the decimal point follows the two digits.
  const Expectation pcie(load_machine("pcie-rtx-pro-6000"));
  EXPECT_EQ(thresholds("azure-nhc", pcie, 0.01).find("check_gpu_bw 4") + 15,
            thresholds("azure-nhc", pcie, 0.01).find(".", thresholds("azure-nhc", pcie, 0.01).find("check_gpu_bw")));
  EXPECT_NE(thresholds("azure-nhc", Expectation(load_machine("gb200")), 0.01).find("# check_gpu_bw: "),
            std::string::npos);
  EXPECT_NE(thresholds("prometheus", node, 0.01).find("{collective=\"all_reduce\",ranks=\"8\",nodes=\"1\""),
            std::string::npos);
}

TEST(Thresholds, ForSeveralNodesNeedACluster) {
  const Expectation cluster(load_machine("dgx-h100-x2"));
  const Message message{.op = LinkOp::all_reduce, .gpus = 16, .nodes = 2, .bytes = {16 * gib}};
  EXPECT_NE(thresholds("aicr", cluster, 0.01)
                .find("    constraints:\n"
                      "      - name: nccl-all-reduce-bw\n"
                      "        value: \">= " +
                      floor_text(cluster, message) + "\"\n"),
            std::string::npos);
  EXPECT_NE(thresholds("nvsentinel", cluster, 0.01).find("preflight-nccl-allreduce"), std::string::npos);
  const Expectation node(load_machine("h100-sxm"));
  EXPECT_EQ(test::message_of([&] { thresholds("aicr", node, 0.01); }),
            "--thresholds aicr: its check needs two nodes, and h100-sxm is one; use a cluster such as dgx-h100-x2");
  EXPECT_EQ(
      test::message_of([&] { thresholds("nagios", node, 0.01); }),
      "--thresholds: unknown format 'nagios'; known formats: nccl-tests, nvsentinel, aicr, superbench, google-chs, "
      "azure-nhc, prometheus");
}

TEST(MeasuredNodes, AreHealthyDegradedOrUnknown) {
  EXPECT_EQ(health_of("nccl_h100sxm_1node_aic_v2", 8), NodeHealth::healthy);
  EXPECT_EQ(health_of("nccl_h100_ib400_2node_degraded_issue319", 16), NodeHealth::degraded);
  EXPECT_EQ(health_of("nccl_l40s_pcie_aic", 8), NodeHealth::degraded);
  EXPECT_EQ(health_of("nccl_l40s_pcie_aic", 4), NodeHealth::unknown);
  EXPECT_EQ(health_of("mine", 8), NodeHealth::unknown);
}

}  // namespace
}  // namespace commfuse::expect
