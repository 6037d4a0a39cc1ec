// SPDX-License-Identifier: Apache-2.0
// Tests the assignment of kernels to operators in PyTorch traces, and the ranks of collectives, in the formats of
// versions from 2022 to 2026.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "sim/calibrate/calibrate.h"
#include "sim/calibrate/kineto.h"
#include "sim/calibrate/observations.h"
#include "tests/own_folder.h"

namespace commfuse::calibrate {
namespace {

using std::chrono::microseconds;
using Events = std::vector<std::string>;

/// Writes a trace. `keys` precede the events, such as R"("distributedInfo": {...}, )".
void write_trace(const std::string& path, const Events& events, const std::string& keys = "") {
  std::ofstream(path) << fmt::format(R"({{"schemaVersion": 1, "deviceProperties": [], {}"traceEvents": [{}]}})", keys,
                                     fmt::join(events, ",\n"));
}

Profile kineto_profile(const Events& events, const std::string& keys = "") {
  write_trace("trace.json", events, keys);
  return read_kineto("trace.json");
}

std::string op(const std::string& name, double begin, double duration, const std::string& args) {
  return fmt::format(
      R"({{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 9, "tid": 12, "ts": {}, "dur": {}, "args": {{{}}}}})", name,
      begin, duration, args);
}

std::string launch(const std::string& name, int correlation, double time) {
  return fmt::format(R"({{"ph": "X", "cat": "cuda_runtime", "name": "{}", "pid": 9, "tid": 12, "ts": {}, "dur": 2,
                         "args": {{"correlation": {}}}}})",
                     name, time, correlation);
}

std::string kernel(const std::string& name, double begin, double duration, const std::string& args) {
  return fmt::format(
      R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 7, "ts": {}, "dur": {}, "args": {{{}}}}})", name,
      begin, duration, args);
}

std::string mm(int id, double begin, int m) {
  return op("aten::mm", begin, 10.0,
            fmt::format(R"("External id": {}, "Input Dims": [[{}, 512], [512, 256]],
                           "Input type": ["c10::BFloat16", "c10::BFloat16"])",
                        id, m));
}

TEST(KinetoJoin, AKernelBelongsToTheOperatorAroundItsLaunch) {
  const OwnFolder folder;
  // The kernel's external id, 7, is its correlation, and also the id of another GEMM.
  const Profile profile = kineto_profile({mm(7, 100.0, 64), mm(8, 200.0, 128), launch("cudaLaunchKernel", 7, 203.0),
                                          kernel("nvjet_tst", 400.0, 30.0, R"("External id": 7, "correlation": 7)")});
  ASSERT_EQ(profile.gemms.size(), 1U);
  EXPECT_EQ(profile.gemms[0].size.m, 128);
  EXPECT_EQ(profile.gemms[0].time, microseconds(30));
  EXPECT_EQ(profile.skipped, (std::map<std::string, std::size_t>{{"GEMMs without a kernel", 1}}));
}

TEST(KinetoJoin, WithoutLaunchesACorrelationNamesNoOperator) {
  const OwnFolder folder;
  const Profile profile =
      kineto_profile({mm(7, 100.0, 64), kernel("nvjet_tst", 400.0, 30.0, R"("External id": 7, "correlation": 7)")});
  EXPECT_TRUE(profile.gemms.empty());
  EXPECT_EQ(profile.skipped, (std::map<std::string, std::size_t>{
                                 {"kernels that no operator of the trace launched (100% of the kernel time)", 1},
                                 {"GEMMs without a kernel", 1}}));
}

TEST(KinetoJoin, AFlowFromTheLaunchIsEnough) {
  const OwnFolder folder;
  const Profile profile = kineto_profile(
      {mm(1, 100.0, 64), R"({"ph": "s", "id": 7, "pid": 9, "tid": 12, "ts": 104.0, "cat": "ac2g", "name": "ac2g"})",
       kernel("nvjet_tst", 400.0, 30.0, R"("correlation": 7)"),
       R"({"ph": "f", "id": 7, "pid": 0, "tid": 7, "ts": 400.0, "cat": "ac2g", "name": "ac2g", "bp": "e"})"});
  ASSERT_EQ(profile.gemms.size(), 1U);
  EXPECT_EQ(profile.gemms[0].size.m, 64);
}

TEST(KinetoJoin, KernelsOfHipAreAssignedLikewise) {
  const OwnFolder folder;
  for (const char* name : {"hipLaunchKernel", "hipExtModuleLaunchKernel"}) {
    const Profile profile =
        kineto_profile({mm(1, 100.0, 64), launch(name, 5, 101.0),
                        kernel("Cijk_Ailk_Bljk_BBS_BH_MT256x256x64", 400.0, 30.0, R"("correlation": 5)")});
    EXPECT_EQ(profile.gemms.size(), 1U) << name;
  }
}

TEST(KinetoJoin, ACopyInsideAGemmIsNotTheGemm) {
  const OwnFolder folder;
  const Profile profile = kineto_profile(
      {mm(1, 100.0, 64), op("aten::copy_", 101.0, 3.0, R"("External id": 2, "Input Dims": [[64, 512], [64, 512]])"),
       launch("cudaLaunchKernel", 3, 102.0), launch("cuLaunchKernelEx", 4, 106.0),
       kernel("elementwise", 400.0, 10.0, R"("External id": 2, "correlation": 3)"),
       kernel("nvjet_tst", 410.0, 30.0, R"("External id": 1, "correlation": 4)")});
  ASSERT_EQ(profile.gemms.size(), 1U);
  EXPECT_EQ(profile.gemms[0].time, microseconds(30));
  EXPECT_EQ(profile.skipped, (std::map<std::string, std::size_t>{
                                 {"kernels of operators without a fit: aten::copy_ (25% of the kernel time)", 1}}));
}

TEST(KinetoJoin, SkipsKernelsConcurrentWithOthersOfTheirDevice) {
  const OwnFolder folder;
  const auto profile_with = [](const std::string& other) {
    return kineto_profile({mm(1, 100.0, 64), launch("cudaLaunchKernel", 3, 102.0), launch("cudaLaunchKernel", 4, 103.0),
                           kernel("nvjet_tst", 400.0, 30.0, R"("correlation": 3)"),
                           kernel("splitKreduce", 425.0, 10.0, R"("correlation": 4)"), other});
  };
  const std::string slowed = "GEMMs concurrent with another kernel on their device, which slows them";
  for (const char* name : {"kuserbuffers_pushrecv", "deep_ep::intranode::dispatch", "vllm::cross_device_reduce_2stage",
                           "nvshmemi_transfer", "memset"}) {
    EXPECT_EQ(profile_with(kernel(name, 410.0, 5.0, "")).skipped.at(slowed), 1U) << name;
    EXPECT_EQ(profile_with(kernel(name, 300.0, 102.0, "")).skipped.at(slowed), 1U) << name;
    EXPECT_EQ(profile_with(kernel(name, 300.0, 500.0, "")).skipped.at(slowed), 1U) << name;
    EXPECT_EQ(profile_with(kernel(name, 433.5, 9.0, "")).skipped.at(slowed), 1U) << name;
  }
  // The memset overlaps the kernels by 1 us, which is within the resolution of the clocks, so it counts as before or
  // after them. Kernels of the same call do not count as other work.
  for (const double begin : {371.0, 434.0}) {
    const Profile sequential = profile_with(kernel("memset", begin, 30.0, ""));
    EXPECT_EQ(sequential.skipped.count(slowed), 0U) << begin;
    ASSERT_EQ(sequential.gemms.size(), 1U) << begin;
    EXPECT_EQ(sequential.gemms[0].time, microseconds(40));
  }
  std::string other_device = kernel("memset", 410.0, 5.0, "");
  other_device.replace(other_device.find(R"("pid": 0)"), 8, R"("pid": 1)");
  EXPECT_EQ(profile_with(other_device).gemms.size(), 1U);
  EXPECT_EQ(profile_with(kernel("ncclDevKernel_AllGather", 410.0, 5.0, ""))
                .skipped.at("GEMMs concurrent with communication, which slows them"),
            1U);
}

TEST(KinetoJoin, TwoGemmsOfTwoStreamsSlowEachOther) {
  const OwnFolder folder;
  const Profile profile =
      kineto_profile({mm(1, 100.0, 64), mm(2, 200.0, 128), launch("cudaLaunchKernel", 3, 102.0),
                      launch("cudaLaunchKernel", 4, 203.0), kernel("nvjet_tst", 400.0, 30.0, R"("correlation": 3)"),
                      kernel("nvjet_tst", 410.0, 60.0, R"("correlation": 4)")});
  EXPECT_TRUE(profile.gemms.empty());
  EXPECT_EQ(profile.skipped, (std::map<std::string, std::size_t>{
                                 {"GEMMs concurrent with another kernel on their device, which slows them", 2}}));
}

TEST(KinetoJoin, TracesOf2022HaveOtherNamesAndCountFrom1970) {
  const OwnFolder folder;
  const Profile profile = kineto_profile(
      {R"({"ph": "X", "cat": "Operator", "name": "aten::addmm", "pid": "9", "tid": "12", "ts": "1665000000000100",
           "dur": "40", "args": {"External id": "3", "Input dims": [[256], [64, 512], [512, 256]],
           "Input type": ["c10::Half", "c10::Half", "c10::Half"]}})",
       R"({"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 12, "ts": 1665000000000110,
           "dur": 5, "args": {"cbid": 211, "correlation": 44, "external id": 3}})",
       R"({"ph": "X", "cat": "Kernel", "name": "ampere_fp16_s16816gemm", "pid": 0, "tid": "stream 7",
           "ts": 1665000000000200, "dur": 30.001, "args": {"stream": 7, "correlation": 44, "external id": 3}})",
       R"({"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": "stream 7", "ts": 1665000000000300,
           "dur": 3, "args": {"stream": 7, "correlation": 45}})"});
  ASSERT_EQ(profile.gemms.size(), 1U);
  EXPECT_EQ(profile.gemms[0].size.dtype, DType::fp16);
  // At so late a start, start + duration would be exact only to a quarter of a microsecond.
  EXPECT_EQ(profile.gemms[0].time, Duration{30'001'000});
  EXPECT_EQ(profile.skipped, (std::map<std::string, std::size_t>{
                                 {"copies and fills of memory (gpu_memcpy, gpu_memset), which no fit uses", 1}}));
}

TEST(KinetoJoin, KernelsOfAGraphAreNotAssignedToOperatorsAroundIt) {
  const OwnFolder folder;
  const Profile profile = kineto_profile({mm(1, 100.0, 64), launch("cudaGraphLaunch", 5, 101.0),
                                          kernel("nvjet_tst", 400.0, 30.0, R"("correlation": 5)"),
                                          kernel("norm", 430.0, 10.0, R"("correlation": 5)")});
  EXPECT_TRUE(profile.gemms.empty());
  EXPECT_EQ(profile.skipped.at("kernels of CUDA graphs, which no operator launches (100% of the kernel time)"), 2U);
}

TEST(KinetoJoin, ACollectiveMayBeDescribedByTheOperatorThatLaunchedIt) {
  const OwnFolder folder;
  const Profile profile =
      kineto_profile({op("record_param_comms", 100.0, 40.0,
                         R"("External id": 1, "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1000,
             "Out msg nelems": 1000, "Group size": 2, "Process Group Ranks": "[0, 1]")"),
                      op("nccl:all_reduce", 105.0, 30.0, R"("External id": 2, "Input Dims": [[1000]])"),
                      launch("cuLaunchKernelExC", 9, 110.0),
                      kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWork)", 400.0, 30.0,
                             R"("External id": 2, "correlation": 9)")});
  ASSERT_EQ(profile.collectives.size(), 1U);
  EXPECT_EQ(profile.collectives[0].op, "all_reduce");
  EXPECT_EQ(profile.collectives[0].bytes, 4000);
  EXPECT_EQ(profile.collectives[0].members, (std::vector<std::int64_t>{0, 1}));
}

std::string all_gather(int ranks, const std::string& extra_args, int elements = 65536, double begin = 0.0,
                       double duration = 50.0) {
  return kernel("ncclDevKernel_AllGather_RING_LL", begin, duration,
                fmt::format(R"("Collective name": "_allgather_base", "dtype": "BFloat16", "In msg nelems": {},
                               "Out msg nelems": {}, "Group size": {}{})",
                            elements / ranks, elements, ranks, extra_args));
}

/// Returns a list of more than 30 ranks as PyTorch shortens it.
std::string truncated_list(int first, int stride) {
  std::string list;
  for (int i = 0; i < 30; ++i) {
    list += fmt::format("{}, ", first + i * stride);
  }
  return fmt::format(R"(, "Process Group Name": "3", "Process Group Ranks": "[{}...]")", list);
}

TEST(KinetoJoin, ContinuesATruncatedListOfRanks) {
  const OwnFolder folder;
  const Profile regular = kineto_profile({all_gather(32, truncated_list(1, 8))});
  ASSERT_EQ(regular.collectives.size(), 1U);
  ASSERT_EQ(regular.collectives[0].members.size(), 32U);
  EXPECT_EQ(regular.collectives[0].members.back(), 1 + 31 * 8);
  // distributedInfo has the whole list.
  std::string whole = "0";
  for (int i = 1; i < 32; ++i) {
    whole += fmt::format(", {}", i < 16 ? i : 100 + i);
  }
  const Profile listed =
      kineto_profile({all_gather(32, truncated_list(0, 1))},
                     fmt::format(R"("distributedInfo": {{"backend": "nccl", "rank": 0, "world_size": 256, "pg_count": 1,
                          "pg_config": [{{"pg_name": "3", "pg_size": 32, "ranks": [{}]}}]}}, )",
                                 whole));
  EXPECT_EQ(listed.collectives[0].members.back(), 131);
  EXPECT_EQ(listed.collectives[0].world, 256);
  // This list is not evenly spaced and differs from the list of the job.
  std::string irregular = truncated_list(0, 1);
  irregular.replace(irregular.find("29"), 2, "77");
  EXPECT_TRUE(kineto_profile({all_gather(32, irregular)}).collectives[0].members.empty());
}

TEST(KinetoJoin, AGroupAcrossNodesIsNotMeasuredAsOneNode) {
  const OwnFolder folder;
  const Machine node = load_machine("h100-sxm");
  const Machine cluster = load_machine("dgx-h100-x2");
  const auto observed = [&](const std::string& ranks, int size, const Machine& base) {
    write_trace("trace.json", {all_gather(size, ranks)}, R"("distributedInfo": {"rank": 0, "world_size": 16}, )");
    return read_observations({"trace.json"}, std::nullopt, &base);
  };
  const std::string across_nodes = R"(, "Process Group Ranks": "[0, 8]")";
  EXPECT_TRUE(observed(across_nodes, 2, node).collectives.rows.empty());
  EXPECT_EQ(
      observed(across_nodes, 2, node).skipped,
      (std::vector<std::string>{"trace.json: all_gather on 2 nodes, but the base is a single node (name a cluster as "
                                "--base, such as dgx-h100-x2) (1 row)"}));
  EXPECT_EQ(observed(across_nodes, 2, cluster).skipped,
            (std::vector<std::string>{"trace.json: all_gather of 2 GPUs on 2 nodes; a fit needs whole nodes of 8 "
                                      "(1 row)"}));
  EXPECT_EQ(observed("", 16, cluster).network_collectives.rows.size(), 1U);  // The whole job is on both nodes.
  EXPECT_EQ(observed(R"(, "Process Group Ranks": "[8, 12]")", 2, cluster).collectives.rows.size(), 1U);
  // Nothing names the ranks: any two of 16 are possible.
  EXPECT_EQ(observed("", 2, node).skipped,
            (std::vector<std::string>{
                "trace.json: all_gather of 2 GPUs whose ranks the profile does not name, so they may be on any "
                "nodes (PyTorch 2.4 and later name them) (1 row)"}));
}

TEST(KinetoJoin, SkipsACollectiveWhoseSizesContradictItsRanks) {
  const OwnFolder folder;
  const auto profile_of = [](const char* name, std::int64_t in, std::int64_t out) {
    return kineto_profile({kernel("ncclDevKernel", 0.0, 50.0,
                                  fmt::format(R"("Collective name": "{}", "dtype": "BFloat16", "In msg nelems": {},
                           "Out msg nelems": {}, "Group size": 4, "Process Group Ranks": "[0, 1, 2, 3]")",
                                              name, in, out))});
  };
  using Skipped = std::map<std::string, std::size_t>;
  EXPECT_EQ(profile_of("_allgather_base", 1024, 4096).collectives.size(), 1U);
  EXPECT_EQ(profile_of("_reduce_scatter_base", 4096, 1024).collectives.size(), 1U);
  EXPECT_EQ(profile_of("allreduce", 1024, 1024).collectives.size(), 1U);
  EXPECT_EQ(profile_of("all_to_all", 1024, 1024).collectives.size(), 1U);
  for (const auto& [in, out] : {std::pair(1024, 8192), std::pair(4096, 1024), std::pair(1024, 4097)}) {
    const Profile gather = profile_of("_allgather_base", in, out);
    EXPECT_TRUE(gather.collectives.empty());
    EXPECT_EQ(gather.skipped, (Skipped{{"all_gather whose elements in and out do not agree with its ranks", 1}})) << in;
    EXPECT_EQ(profile_of("_reduce_scatter_base", out, in).skipped,
              (Skipped{{"reduce_scatter whose elements in and out do not agree with its ranks", 1}}))
        << in;
  }
  EXPECT_EQ(profile_of("allreduce", 1024, 4096).skipped,
            (Skipped{{"all_reduce whose elements in and out do not agree with its ranks", 1}}));
}

TEST(KinetoJoin, AFileOfTwoRanksIsAnError) {
  const OwnFolder folder;
  const auto of_rank = [](std::string event) {
    event.replace(event.find(R"("pid": 9)"), 8, R"("pid": 1009)");
    return event;
  };
  const auto error_of = [](const Events& events) -> std::string {
    try {
      kineto_profile(events);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  const std::string remedy =
      " of two processes, pid '9' and pid '1009', so kernels cannot be assigned to a process: it joins the traces of "
      "several ranks; give the trace of each rank as a separate file";
  const std::string kernel_event = kernel("nvjet_tst", 400.0, 30.0, R"("correlation": 3)");
  const std::string launch_event = launch("cudaLaunchKernel", 3, 102.0);
  EXPECT_EQ(error_of({mm(1, 100.0, 64), launch_event, of_rank(mm(2, 100.0, 128)), of_rank(launch_event), kernel_event}),
            "trace.json: correlation 3 belongs to launches" + remedy);
  EXPECT_EQ(error_of({mm(1, 100.0, 64), of_rank(mm(1, 100.0, 128)), kernel_event}),
            "trace.json: External id 1 belongs to operators" + remedy);
  // Within one process, several launches and their flow event may share a correlation.
  EXPECT_EQ(error_of({mm(1, 100.0, 64), launch_event, launch_event,
                      R"({"ph": "s", "id": 3, "pid": 9, "tid": 12, "ts": 102.0, "cat": "ac2g", "name": "ac2g"})",
                      kernel_event}),
            "");
  EXPECT_EQ(error_of({mm(1, 100.0, 64), launch_event, of_rank(mm(2, 100.0, 128)),
                      of_rank(launch("cudaLaunchKernel", 4, 102.0)), kernel_event}),
            "");
}

TEST(KinetoJoin, SkipsAttentionWithValuesOfAnotherWidth) {
  const OwnFolder folder;
  const auto profile_of = [](const std::string& value) {
    return kineto_profile(
        {op("aten::_scaled_dot_product_cudnn_attention", 0.0, 10.0,
            fmt::format(R"("External id": 1, "Input Dims": [[2, 16, 4096, 192], [2, 16, 4096, 192], {}],
                      "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"],
                      "Concrete Inputs": ["", "", "", "", "", "0.", "True"])",
                        value)),
         kernel("cudnn_generated_fort_native_sdpa", 100.0, 400.0, R"("External id": 1)")});
  };
  EXPECT_EQ(profile_of("[2, 16, 4096, 192]").attention.size(), 1U);
  using Skipped = std::map<std::string, std::size_t>;
  for (const auto& [value, reason] :
       {std::pair("[2, 16, 4096, 128]",
                  "attention calls whose values have another width than queries and keys (MLA), which no fit uses"),
        std::pair("[2, 8, 4096, 192]", "attention calls with different numbers of keys and values"),
        std::pair("[]", "attention calls whose queries, keys and values do not have four dimensions")}) {
    const Profile profile = profile_of(value);
    EXPECT_TRUE(profile.attention.empty()) << value;
    EXPECT_EQ(profile.skipped, (Skipped{{reason, 1}})) << value;
  }
}

TEST(KinetoJoin, SkipsAnAllToAllWithUnevenSplits) {
  const OwnFolder folder;
  const auto all_to_all = [](const std::string& splits) {
    return kernel("ncclDevKernel_SendRecv", 0.0, 50.0,
                  R"("Collective name": "all_to_allv", "dtype": "BFloat16", "In msg nelems": 4096,
                     "Out msg nelems": 4096, "Group size": 4, "In split size": ")" +
                      splits + R"(", "Out split size": "[]", "Process Group Ranks": "[0, 1, 2, 3]")");
  };
  EXPECT_EQ(kineto_profile({all_to_all("[1024, 1024, 1024, 1024]")}).collectives.size(), 1U);
  // The second list has a split above the largest number that a list of ranks may have.
  for (const char* splits : {"[1024, 1024, 1023, 1025]", "[1048576, 1024, 1024, 1024]"}) {
    const Profile profile = kineto_profile({all_to_all(splits)});
    EXPECT_TRUE(profile.collectives.empty()) << splits;
    EXPECT_EQ(
        profile.skipped,
        (std::map<std::string, std::size_t>{{"all-to-alls whose splits are uneven, or too many to be listed", 1}}));
  }
}

TEST(KinetoJoin, AttentionAndMemoryBoundKernelsAreRows) {
  const OwnFolder folder;
  const std::string types = R"("Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"])";
  const Profile profile = kineto_profile(
      {op("aten::_flash_attention_forward", 0.0, 10.0,
          R"("Input Dims": [[2, 4096, 32, 128], [2, 4096, 8, 128], [2, 4096, 8, 128], [], [], [], [], [], []], )" +
              types + R"(, "Concrete Inputs": ["", "", "", "", "", "4096", "4096", "0.", "True"], "External id": 1)"),
       op("aten::_efficient_attention_forward", 20.0, 10.0,
          R"("Input Dims": [[2, 512, 32, 128], [2, 512, 32, 128], [2, 512, 32, 128]], )" + types +
              R"(, "Concrete Inputs": ["", "", "", "", "", "", "", "", "0.", "0", "True"], "External id": 2)"),
       op("aten::_flash_attention_forward", 40.0, 10.0,
          R"("Input Dims": [[2, 1, 32, 128], [2, 4096, 8, 128], [2, 4096, 8, 128]], )" + types +
              R"(, "External id": 3)"),
       op("_C::rms_norm", 60.0, 10.0,
          R"("Input Dims": [[100, 8192], [100, 8192], [8192], []], )" + types + R"(, "External id": 4)"),
       op("aten::add", 80.0, 10.0,
          R"("Input Dims": [[10, 10, 8192], [10, 10, 8192], []], )" + types + R"(, "External id": 5)"),
       kernel("flash_fwd_kernel", 100.0, 400.0, R"("External id": 1)"),
       kernel("fmha_cutlassF", 500.0, 30.0, R"("External id": 2)"),
       kernel("flash_fwd_splitkv", 600.0, 20.0, R"("External id": 3)"),
       kernel("rms_norm_kernel", 700.0, 5.0, R"("External id": 4)"),
       kernel("vectorized_elementwise_kernel", 800.0, 6.0, R"("External id": 5)")});
  ASSERT_EQ(profile.attention.size(), 2U);
  EXPECT_EQ(profile.attention[0].size.seq, 4096);
  EXPECT_EQ(profile.attention[0].size.heads, 32);
  EXPECT_EQ(profile.attention[0].size.kv_heads, 8);
  EXPECT_TRUE(profile.attention[0].size.causal);
  EXPECT_EQ(profile.attention[0].time, microseconds(400));
  EXPECT_FALSE(profile.attention[1].size.causal);
  ASSERT_EQ(profile.kernels.size(), 2U);
  EXPECT_EQ(profile.kernels[0].size.kernel, FrameworkKernel::norm);
  EXPECT_EQ(profile.kernels[0].size.rows, 100);
  EXPECT_EQ(profile.kernels[0].size.traffic, Bytes{2 * 100 * 8192 * 2});
  EXPECT_EQ(profile.kernels[1].op, "add");
  EXPECT_EQ(profile.kernels[1].size.traffic, Bytes{3 * 100 * 8192 * 2});
  EXPECT_EQ(profile.skipped, (std::map<std::string, std::size_t>{
                                 {"attention calls with fewer queries than keys (decoding), which no fit uses", 1}}));
}

TEST(KinetoJoin, AttentionWithMoreQueriesThanKeysIsNotDecoding) {
  const OwnFolder folder;
  const Profile profile =
      kineto_profile({op("aten::_scaled_dot_product_flash_attention", 0.0, 10.0,
                         R"("External id": 1, "Input Dims": [[1, 32, 512, 128], [1, 32, 77, 128], [1, 32, 77, 128]],
                            "Input type": ["c10::Half", "c10::Half", "c10::Half"])"),
                      kernel("flash_fwd_kernel", 100.0, 40.0, R"("External id": 1)")});
  EXPECT_EQ(
      profile.skipped,
      (std::map<std::string, std::size_t>{{"attention calls with more queries than keys, which no fit uses", 1}}));
}

TEST(KinetoJoin, ScaledGemmsAreFp8AndBatchedGemmsAreSkipped) {
  const OwnFolder folder;
  const Profile profile = kineto_profile({op("aten::_scaled_mm", 0.0, 10.0,
                                             R"("Input Dims": [[64, 512], [512, 256], []], "External id": 1,
                  "Input type": ["c10::Float8_e4m3fn", "c10::Float8_e4m3fn", "float"])"),
                                          op("aten::bmm", 20.0, 10.0,
                                             R"("Input Dims": [[4, 64, 512], [4, 512, 256]], "External id": 2,
                  "Input type": ["c10::BFloat16", "c10::BFloat16"])"),
                                          kernel("nvjet_qqtst", 100.0, 40.0, R"("External id": 1)"),
                                          kernel("nvjet_tst", 200.0, 30.0, R"("External id": 2)")});
  ASSERT_EQ(profile.gemms.size(), 1U);
  EXPECT_EQ(profile.gemms[0].size.dtype, DType::fp8);
  EXPECT_EQ(profile.gemms[0].size.out, DType::bf16);
  EXPECT_EQ(profile.skipped, (std::map<std::string, std::size_t>{{"GEMMs in batches (bmm), which no fit uses", 1}}));
}

TEST(KinetoJoin, AFewSizesAdjustTheBase) {
  const OwnFolder folder;
  const Machine base = load_machine("h100-sxm");
  Events events;
  double begin = 0.0;
  // Five sizes, from 2 MB to 512 MB, at 250 GB/s with a latency of 25 us.
  for (int size = 1 << 20; size <= 1 << 28; size <<= 2) {
    const double time = 25.0 + size * 2.0 / 250e3;
    events.push_back(all_gather(8, R"(, "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]")", size, begin, time));
    begin += time + 10.0;
  }
  write_trace("trace.json", events);
  const Calibration calibration =
      calibrate(base, "h100-sxm", "mine", read_observations({"trace.json"}, std::nullopt, &base));
  ASSERT_EQ(calibration.parts.size(), 1U);
  EXPECT_EQ(calibration.parts[0].name, "collectives");
  EXPECT_EQ(calibration.parts[0].fitted.rows, 5);
  EXPECT_TRUE(calibration.parts[0].has_few);
  EXPECT_LT(calibration.parts[0].fitted.median, 0.05);
}

}  // namespace
}  // namespace commfuse::calibrate
