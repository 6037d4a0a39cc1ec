// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/calibrate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/cost/attention.h"
#include "model/cost/communication.h"
#include "model/cost/custom_all_reduce.h"
#include "model/cost/decode_attention.h"
#include "model/cost/expert_layer.h"
#include "model/cost/framework_kernel.h"
#include "model/cost/gemm.h"
#include "model/cost/memory_bound.h"
#include "model/cost/quantization.h"
#include "model/fit/holdout.h"
#include "sim/calibrate/observations.h"
#include "sim/calibrate/residual_plot.h"
#include "tests/noise.h"
#include "tests/sim/message_of.h"

namespace commfuse::calibrate {
namespace {

namespace fs = std::filesystem;

class Calibrate : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  [[nodiscard]] static Machine base() { return load_machine("h100-sxm"); }

  fs::path folder_ = fs::temp_directory_path() / ("commfuse-calibrate-" + std::to_string(getpid()));
};

/// Returns the output of nccl-tests on a hypothetical machine.
std::string nccl_output(const CollectiveParameters& machine, CollectiveKind kind, const std::string& program, int ranks,
                        Noise& noise) {
  std::string text =
      fmt::format("# nccl-tests version 2.17.6\n# Collective test starting: {}_perf\n# Using devices\n", program);
  for (int rank = 0; rank < ranks; ++rank) {
    text += fmt::format("#  Rank {:>2} Group  0 Pid  {} on  made-up device {:>2} [0x07] NVIDIA H100 80GB HBM3\n", rank,
                        4000 + rank, rank);
  }
  text +=
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
      "#wrong\n";
  for (std::int64_t bytes = 1 << 10; bytes <= std::int64_t{1} << 30; bytes *= 2) {
    const double time =
        collective_microseconds(machine, {.kind = kind, .ranks = ranks, .total = Bytes{bytes}}) * noise.factor();
    text += fmt::format("{:>12} {:>12} float none -1 {:8.4f} 0.00 0.00 0 {:8.4f} 0.00 0.00 0\n", bytes, bytes / 4, time,
                        time);
  }
  return text;
}

double value_of(double value) { return value; }
double value_of(Duration time) { return to_microseconds(time); }
double value_of(BytesPerSecond rate) { return rate.value; }

/// Returns the deviation of the fitted value in standard errors. A parameter that the rows determine has a standard
/// error below `max_error`.
template <class T>
double deviation(const Parameter<T>& fitted, const Parameter<T>& truth, double max_error = 0.25) {
  EXPECT_EQ(fitted.provenance, Provenance::fitted);
  EXPECT_GT(fitted.standard_error, 0.0);
  EXPECT_LT(fitted.standard_error, max_error);
  return std::abs(std::log(value_of(fitted.value) / value_of(truth.value))) / fitted.standard_error;
}

TEST_F(Calibrate, RecoversASyntheticMachineFromOutputOfNcclTests) {
  // The true machine has a lower rate and higher latencies than the base, for small and for large messages. The fit
  // does not know by how much.
  CollectiveParameters truth = base().link.collective;
  truth.rate.value.value *= 0.8;
  truth.base_latency.value = truth.base_latency.value * 5 / 4;
  truth.step_latency.value = truth.step_latency.value * 4 / 3;
  truth.forward_latency->value = truth.forward_latency->value * 4 / 3;
  NcclKernels kernels = *truth.nccl;
  kernels.ll.base_latency.value = kernels.ll.base_latency.value * 6 / 5;
  kernels.ll.step_latency.value = kernels.ll.step_latency.value * 3 / 2;
  truth.nccl = std::make_shared<const NcclKernels>(kernels);
  Noise noise;
  std::vector<fs::path> files;
  const std::vector<std::pair<CollectiveKind, std::string>> programs{{CollectiveKind::all_gather, "all_gather"},
                                                                     {CollectiveKind::reduce_scatter, "reduce_scatter"},
                                                                     {CollectiveKind::all_reduce, "all_reduce"},
                                                                     {CollectiveKind::all_to_all, "alltoall"}};
  for (const auto& [kind, program] : programs) {
    for (const int ranks : {2, 4, 8}) {
      files.push_back(write(fmt::format("{}-{}.txt", program, ranks), nccl_output(truth, kind, program, ranks, noise)));
    }
  }
  const Observations observations = read_observations(files, std::nullopt);
  EXPECT_EQ(observations.collectives.rows.size(), 4U * 3U * 21U);
  EXPECT_TRUE(observations.faults.empty());
  const Calibration calibration = calibrate(base(), "h100-sxm", "made-up", observations);
  ASSERT_EQ(calibration.parts.size(), 1U);
  EXPECT_LT(calibration.parts[0].held_out.median, 0.02);
  EXPECT_GT(calibration.parts[0].held_out.rows, 20U);

  // The machine is loaded from the file, as a user would load it.
  const Machine machine = load_machine(write("made-up.yaml", calibration.yaml).string());
  const CollectiveParameters& fitted = machine.link.collective;
  EXPECT_LT(deviation(fitted.rate, truth.rate), 3.0);
  EXPECT_LT(deviation(fitted.base_latency, truth.base_latency), 3.0);
  EXPECT_LT(deviation(*fitted.forward_latency, *truth.forward_latency), 3.0);
  EXPECT_LT(deviation(fitted.step_latency, truth.step_latency, 1.0), 3.0);  // These rows hardly determine it.
  EXPECT_LT(deviation(fitted.nccl->ll.base_latency, truth.nccl->ll.base_latency), 3.0);
  EXPECT_LT(deviation(fitted.nccl->ll.step_latency, truth.nccl->ll.step_latency), 3.0);
  EXPECT_EQ(machine.name, "made-up");
  EXPECT_EQ(machine.accelerator.name, base().accelerator.name);
  EXPECT_EQ(machine.link.peer.rate.value, base().link.peer.rate.value);
  EXPECT_TRUE(machine.known_as.empty());
}

TEST_F(Calibrate, ExchangesOfAPairAreFitted) {
  PeerParameters truth = base().link.peer;
  truth.rate.value.value *= 0.5;
  truth.latency.value = truth.latency.value * 2;
  Noise noise;
  std::string text = "device,op,ngpus,devices_per_node,bytes,median_us\n";
  for (std::int64_t bytes = 1 << 10; bytes <= std::int64_t{1} << 30; bytes = bytes * 3 / 2) {
    text += fmt::format("box,send_recv,2,2,{},{:.4f}\n", bytes,
                        to_microseconds(p2p_time(truth, Bytes{bytes})) * noise.factor());
  }
  const Observations observations = read_observations({write("p2p.csv", text)}, std::nullopt);
  const Calibration calibration = calibrate(base(), "h100-sxm", "box", observations);
  const Machine machine = load_machine(write("box.yaml", calibration.yaml).string());
  EXPECT_LT(deviation(machine.link.peer.rate, truth.rate), 3.0);
  EXPECT_LT(deviation(machine.link.peer.latency, truth.latency), 3.0);
}

TEST_F(Calibrate, RatesAboveTheWiresAreWrittenAsTheirLimit) {
  const auto fitted_rate = [&](const std::string& base_name, double gigabytes) {
    std::string text = "device,op,ngpus,devices_per_node,bytes,median_us\n";
    for (std::int64_t bytes = 1 << 10; bytes <= std::int64_t{1} << 30; bytes = bytes * 3 / 2) {
      text += fmt::format("box,send_recv,2,2,{},{:.4f}\n", bytes, 8.0 + static_cast<double>(bytes) / 1e3 / gigabytes);
    }
    const Machine base_machine = load_machine(base_name);
    const Calibration calibration =
        calibrate(base_machine, base_name, "box", read_observations({write("p2p.csv", text)}, std::nullopt));
    return load_machine(write("box.yaml", calibration.yaml).string()).link.peer.rate.value;
  };
  EXPECT_DOUBLE_EQ(fitted_rate("mi300x", 66.0).value, 64e9);  // one of seven wires of 448 GB/s
  const std::string odd = "schema: commfuse.hardware/1\nname: odd\nextends: h100-sxm\nlink: {nominal_rate: {value: ";
  EXPECT_DOUBLE_EQ(fitted_rate(write("odd.yaml", odd + "449.96 GB/s, provenance: 'prior: a test'}}\n"), 460.0).value,
                   449.9e9);
}

CustomAllReduce invented_kernels() {
  CustomAllReduce kernels;
  kernels.one_shot_latency.value = from_seconds(4e-6);
  kernels.one_shot_step.value = from_seconds(1e-7);
  kernels.one_shot_rate.value = {250e9};
  kernels.two_shot_latency.value = from_seconds(7e-6);
  kernels.two_shot_step.value = from_seconds(4e-7);
  kernels.two_shot_rate.value = {300e9};
  return kernels;
}

/// Returns rows of vLLM's all-reduce on two, four and eight GPUs, from 256 B to 64 MiB.
std::string all_reduce_rows(const CustomAllReduce& kernels, Noise& noise) {
  std::string text = "hw,kernel,ngpus,bytes,time_us\n";
  for (const int ranks : {2, 4, 8}) {
    for (std::int64_t bytes = 256; bytes <= std::int64_t{64} << 20; bytes *= 2) {
      const double time = to_microseconds(custom_all_reduce_time(kernels, ranks, Bytes{bytes})) * noise.factor();
      text += fmt::format("box,vLLM_custom_graph,{},{},{:.4f}\n", ranks, bytes, time);
    }
  }
  return text;
}

TEST_F(Calibrate, KernelsOfFrameworksAreFittedFromATable) {
  const CustomAllReduce truth = invented_kernels();
  Noise noise;
  const Machine base_machine = base();
  const Observations observations = read_observations(
      {write("sums.csv", all_reduce_rows(truth, noise) + "box,vLLM_custom_eager,8,1024,24\nbox,TRTLLM,16,1024,5\n"
                                                         "box,TRTLLM,8,0,5\nbox,TRTLLM,8,1024,-5\n")},
      std::nullopt, &base_machine);
  EXPECT_EQ(observations.skipped,
            (std::vector<std::string>{"sums.csv: 16 GPUs, where a node of the base has 8 (1 row)",
                                      "sums.csv: nothing is sent (1 row)",
                                      "sums.csv: vLLM_custom_eager: calls issued one at a time from Python; the time "
                                      "includes the cost of the call (1 "
                                      "row)",
                                      "sums.csv: vLLM_custom_graph: tensors above 8 MiB, which NCCL sums (9 rows)"}));
  EXPECT_EQ(observations.faults.size(), 1U);
  const Calibration calibration = calibrate(base_machine, "h100-sxm", "box", observations);
  ASSERT_EQ(calibration.parts.size(), 1U);
  const FittedPart& part = calibration.parts.front();
  EXPECT_EQ(part.name, "all-reduce of vllm");
  EXPECT_LT(part.held_out.median, 0.02);
  std::size_t held_out_count = 0;
  for (std::int64_t bytes = 256; bytes <= std::int64_t{8} << 20; bytes *= 2) {
    held_out_count += is_held_out(link_group("custom_all_reduce", "box", "vLLM_custom_graph", bytes)) ? 3 : 0;
  }
  EXPECT_EQ(part.held_out.rows, held_out_count);
  EXPECT_EQ(part.fitted.rows, 48U - held_out_count);

  const Machine machine = load_machine(write("box.yaml", calibration.yaml).string());
  const CustomAllReduce& fitted = machine.link.collective.custom_all_reduce->vllm.value();
  EXPECT_LT(deviation(fitted.one_shot_latency, truth.one_shot_latency), 3.0);
  EXPECT_LT(deviation(fitted.one_shot_step, truth.one_shot_step), 3.0);
  EXPECT_LT(deviation(fitted.one_shot_rate, truth.one_shot_rate), 3.0);
  EXPECT_LT(deviation(fitted.two_shot_latency, truth.two_shot_latency), 3.0);
  EXPECT_LT(deviation(fitted.two_shot_step, truth.two_shot_step), 3.0);
  EXPECT_LT(deviation(fitted.two_shot_rate, truth.two_shot_rate), 3.0);
  const CustomAllReduces& others = *base_machine.link.collective.custom_all_reduce;
  EXPECT_EQ(machine.link.collective.custom_all_reduce->sglang->one_shot_rate.value, others.sglang->one_shot_rate.value);
  EXPECT_EQ(machine.link.collective.rate.value, base_machine.link.collective.rate.value);
  EXPECT_EQ(machine.link.collective.fit, base_machine.link.collective.fit);
}

TEST_F(Calibrate, KernelsOfFrameworksAreFittedTogetherWithCollectives) {
  Noise noise;
  const CollectiveParameters truth = base().link.collective;
  std::vector<fs::path> files{write("sums.csv", all_reduce_rows(invented_kernels(), noise))};
  for (const int ranks : {2, 4, 8}) {
    files.push_back(write(fmt::format("ag-{}.txt", ranks),
                          nccl_output(truth, CollectiveKind::all_gather, "all_gather", ranks, noise)));
  }
  const Calibration calibration = calibrate(base(), "h100-sxm", "box", read_observations(files, std::nullopt));
  ASSERT_EQ(calibration.parts.size(), 2U);
  const Machine machine = load_machine(write("box.yaml", calibration.yaml).string());
  const CollectiveParameters& fitted = machine.link.collective;
  EXPECT_EQ(fitted.rate.provenance, Provenance::fitted);
  EXPECT_EQ(fitted.rate.source, "ag-2.txt, ag-4.txt, ag-8.txt");
  EXPECT_EQ(fitted.custom_all_reduce->vllm->one_shot_rate.source, "sums.csv");
  EXPECT_EQ(fitted.custom_all_reduce->trtllm->one_shot_rate.source,
            truth.custom_all_reduce->trtllm->one_shot_rate.source);
}

/// Expects parameters that are equal within a tenth of their standard error, because compilers round differently.
template <class T>
void expect_same(const Parameter<T>& fitted, const Parameter<T>& file) {
  EXPECT_LT(std::abs(std::log(value_of(fitted.value) / value_of(file.value))), 0.001 + 0.1 * file.standard_error);
  EXPECT_NEAR(fitted.standard_error / file.standard_error, 1.0, 0.1);
  EXPECT_EQ(file.provenance, Provenance::fitted);
  EXPECT_EQ(fitted.source, file.source);
}

TEST_F(Calibrate, ShippedKernelsFollowFromThePublicTables) {
  const fs::path data = COMMFUSE_SOURCE_DIR "/../shared/data/measured";
  const std::vector<fs::path> tables{data / "allreduce_custom_latency_aic.csv",
                                     data / "allreduce_custom_latency_aic_more.csv"};
  if (!fs::exists(tables[0]) || !fs::exists(tables[1])) {
    GTEST_SKIP() << "the public tables are not in " << data;
  }
  const std::vector<std::pair<const char*, const char*>> machines{
      {"a100-sxm-80", "A100"}, {"h100-sxm", "H100"}, {"b200-sxm", "B200"}, {"b300-sxm", "B300"}};
  for (const auto& [name, name_in_tables] : machines) {
    const Machine shipped = load_machine(name);
    const Calibration calibration =
        calibrate(shipped, name, "again", read_observations(tables, std::string(name_in_tables), &shipped));
    EXPECT_EQ(calibration.parts.size(), 3U);
    const Machine refitted = load_machine(write(fmt::format("{}-again.yaml", name), calibration.yaml).string());
    for (const AllReduceKernel framework : {AllReduceKernel::vllm, AllReduceKernel::sglang, AllReduceKernel::trtllm}) {
      SCOPED_TRACE(fmt::format("{}, {}", name, name_of(framework)));
      const CustomAllReduce& fitted = *kernels_of(*refitted.link.collective.custom_all_reduce, framework);
      const CustomAllReduce& file = *kernels_of(*shipped.link.collective.custom_all_reduce, framework);
      expect_same(fitted.one_shot_latency, file.one_shot_latency);
      expect_same(fitted.one_shot_step, file.one_shot_step);
      expect_same(fitted.one_shot_rate, file.one_shot_rate);
      expect_same(fitted.two_shot_latency, file.two_shot_latency);
      expect_same(fitted.two_shot_step, file.two_shot_step);
      expect_same(fitted.two_shot_rate, file.two_shot_rate);
    }
  }
}

TEST_F(Calibrate, TooFewRowsOfAFrameworkAreAnError) {
  std::string text = "hw,kernel,ngpus,bytes,time_us\n";
  for (std::int64_t bytes = 1024; bytes < std::int64_t{1024} << 11; bytes *= 2) {
    text += fmt::format("box,SGLang_CustomAllReduce_graph,8,{},5\n", bytes);
  }
  const Observations observations = read_observations({write("few.csv", text)}, std::nullopt);
  try {
    calibrate(base(), "h100-sxm", "few", observations);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()),
              "nothing can be fitted: all-reduce of sglang (few.csv): 11 rows, but a fit needs 12; measure more "
              "sizes");
  }
}

TEST_F(Calibrate, AttentionOfDecodingIsFittedFromATable) {
  Accelerator truth = base().accelerator;
  truth.decode_attention->hbm_efficiency.value = 0.7;
  truth.decode_attention_fp8->call.value = from_seconds(9e-6);
  Noise noise;
  std::string text = "hw,batch,kv_len,heads,kv_heads,head_dim,kv_dtype,time_us\n";
  for (const std::int64_t batch : {1, 8, 64, 256}) {
    for (const std::int64_t keys : {16, 512, 4096, 32768}) {
      for (const std::int64_t kv_heads : {1, 2, 4, 8}) {
        for (const std::int64_t shared : {1, 4, 8}) {
          for (const DType cache : {DType::bf16, DType::fp8}) {
            const AttentionSize size{.batch = batch,
                                     .seq = keys,
                                     .heads = kv_heads * shared,
                                     .kv_heads = kv_heads,
                                     .head_dim = 128,
                                     .dtype = cache};
            text += fmt::format("mine,{},{},{},{},128,{},{:.4f}\n", batch, keys, size.heads, kv_heads, name_of(cache),
                                to_microseconds(decode_attention_time(truth, size)) * noise.factor());
          }
        }
      }
    }
  }
  const Observations observations =
      read_observations({write("decode.csv", text + "mine,1,2,4,4,64,int4,5\n")}, std::nullopt);
  ASSERT_EQ(observations.skipped.size(), 1U);
  EXPECT_EQ(observations.skipped[0], "decode.csv: a cache in int4, a dtype that no setting can select (1 row)");
  const Calibration calibration = calibrate(base(), "h100-sxm", "mine", observations);
  ASSERT_EQ(calibration.parts.size(), 2U);
  EXPECT_EQ(calibration.parts[0].name, "decode attention");
  EXPECT_EQ(calibration.parts[1].name, "decode attention, cache in fp8");
  const Accelerator fitted = load_machine(write("mine.yaml", calibration.yaml).string()).accelerator;
  EXPECT_NEAR(fitted.decode_attention->hbm_efficiency.value, 0.7, 0.02);
  EXPECT_EQ(fitted.decode_attention->hbm_efficiency.source, "decode.csv");
  EXPECT_NEAR(to_microseconds(fitted.decode_attention_fp8->call.value), 9.0, 0.5);
  EXPECT_EQ(*fitted.decode_attention->fit.range(FitSize::seq), (SeenRange{16, 32768}));
}

TEST_F(Calibrate, GemmsAreFittedFromATable) {
  Accelerator truth = base().accelerator;
  GemmParameters& gemm = truth.matrix_units[index_of(DType::bf16)]->gemm;
  gemm.ramp.value = gemm.ramp.value * 3 / 2;
  gemm.burst_efficiency.value *= 0.8;
  Noise noise;
  std::string text = "hw,dtype,m,n,k,time_us\n";
  for (const std::int64_t n : {1024, 2048, 4096, 6144, 8192, 14336}) {
    for (const std::int64_t k : {1024, 2048, 4096, 5120, 8192}) {
      for (std::int64_t m = 16; m <= 16384; m *= 4) {
        const double time =
            to_microseconds(estimate_gemm(truth, {.m = m, .n = n, .k = k, .dtype = DType::bf16}, truth.sms).time);
        text += fmt::format("mine,bf16,{},{},{},{:.4f}\n", m, n, k, time * noise.factor());
      }
    }
  }
  const Observations observations =
      read_observations({write("gemm.csv", text + "mine,bf16,1,2,NaN,5\n")}, std::nullopt);
  ASSERT_EQ(observations.faults.size(), 1U);
  const Calibration calibration = calibrate(base(), "h100-sxm", "mine", observations);
  ASSERT_EQ(calibration.parts.size(), 1U);
  EXPECT_EQ(calibration.parts[0].name, "GEMMs in bf16");
  EXPECT_LT(calibration.parts[0].held_out.median, 0.02);
  const Machine machine = load_machine(write("mine.yaml", calibration.yaml).string());
  const GemmParameters& fitted = machine.accelerator.matrix_units[index_of(DType::bf16)]->gemm;
  EXPECT_NEAR(to_seconds(fitted.ramp.value) / to_seconds(gemm.ramp.value), 1.0, 0.05);
  EXPECT_NEAR(fitted.burst_efficiency.value / gemm.burst_efficiency.value, 1.0, 0.05);
}

TEST_F(Calibrate, MemoryBoundKernelsAreFittedFromATableOfLayers) {
  Accelerator truth = base().accelerator;
  FrameworkKernels& kernels = truth.framework_kernels.value();
  kernels.norm_step.value = kernels.norm_step.value * 2;
  kernels.activation_efficiency.value = 0.4;
  Noise noise;
  std::string text = "# software: fp16\nhw,op,tp,m,n,k,median_us\n";
  const auto add = [&](const char* op, std::int64_t tp, const FrameworkKernelSize& size) {
    text += fmt::format("mine,{},{},{},,,{:.4f}\n", op, tp, size.rows,
                        noise.factor() * to_microseconds(framework_kernel_time(truth, size)));
  };
  for (const std::int64_t tp : {1, 2, 4, 8}) {
    text += fmt::format("mine,attn_pre_proj,{0},64,{1},4096,20\nmine,attn_post_proj,{0},64,4096,{2},20\n", tp,
                        12288 / tp, 4096 / tp);
    text += fmt::format("mine,mlp_down_proj,{},64,4096,{},20\n", tp, 11008 / tp);
    for (std::int64_t m = 8; m <= 4096; m += 136) {
      const std::int64_t inner = 11008 / tp;
      const std::int64_t heads = 8192 / tp;  // queries and keys
      add("add", tp, {.rows = m, .width = 4096, .traffic = Bytes{6 * m * 4096}});
      add("input_layernorm", tp,
          {.kernel = FrameworkKernel::norm, .rows = m, .width = 4096, .traffic = Bytes{4 * m * 4096}});
      add("mlp_act", tp,
          {.kernel = FrameworkKernel::activation, .rows = m, .width = inner, .traffic = Bytes{6 * m * inner}});
      add("attn_rope", tp,
          {.kernel = FrameworkKernel::rotation, .rows = m, .width = heads, .traffic = Bytes{4 * m * heads}});
    }
  }
  const Calibration calibration =
      calibrate(base(), "h100-sxm", "mine", read_observations({write("layer.csv", text)}, std::nullopt));
  ASSERT_EQ(calibration.parts.size(), 1U);
  EXPECT_EQ(calibration.parts[0].name, "memory-bound kernels");
  EXPECT_GT(calibration.parts[0].held_out.rows, 0U);
  EXPECT_LT(calibration.parts[0].held_out.median, 0.02);
  const Machine machine = load_machine(write("mine.yaml", calibration.yaml).string());
  const FrameworkKernels& fitted = machine.accelerator.framework_kernels.value();
  EXPECT_NEAR(to_seconds(fitted.norm_step.value) / to_seconds(kernels.norm_step.value), 1.0, 0.05);
  EXPECT_NEAR(fitted.activation_efficiency.value, 0.4, 0.01);
}

TEST_F(Calibrate, HoldsOutTheSameGroupsAsScore) {
  std::string text = "hw,op,ngpus,bytes,time_us\n";
  std::size_t held_out_count = 0;
  for (std::int64_t bytes = 1 << 10; bytes <= std::int64_t{1} << 30; bytes = bytes * 5 / 4) {
    text += fmt::format("box,alltoall,8,{},{}\n", bytes, 20.0 + static_cast<double>(bytes) / 200e3);
    held_out_count += is_held_out(link_group("collective", "box", "alltoall", bytes)) ? 1 : 0;
  }
  const Calibration calibration =
      calibrate(base(), "h100-sxm", "box", read_observations({write("a2a.csv", text)}, std::nullopt));
  EXPECT_GT(held_out_count, 0U);
  EXPECT_EQ(calibration.parts.at(0).held_out.rows, held_out_count);
}

TEST_F(Calibrate, RowsOfAClusterAreHeldOutByTheNameOfItsNode) {
  std::string text = "op,ngpus,nodes,bytes,time_us\n";
  std::vector<bool> expected;
  std::vector<bool> by_cluster;
  for (std::int64_t bytes = 1 << 10; bytes <= std::int64_t{1} << 30; bytes = bytes * 5 / 4) {
    text += fmt::format("all_gather,16,2,{},{}\n", bytes, 60.0 + static_cast<double>(bytes) / 300e3);
    expected.push_back(is_held_out(link_group("collective", "h100-sxm", "all_gather", bytes)));
    by_cluster.push_back(is_held_out(link_group("collective", "dgx-h100-x2", "all_gather", bytes)));
  }
  const Machine cluster = load_machine("dgx-h100-x2");
  const Calibration calibration =
      calibrate(cluster, "dgx-h100-x2", "box", read_observations({write("ag.csv", text)}, std::nullopt, &cluster));
  std::vector<bool> held_out;
  for (const Residual& residual : calibration.parts.at(0).residuals) {
    held_out.push_back(residual.held_out);
  }
  EXPECT_EQ(held_out, expected);
  EXPECT_NE(held_out, by_cluster);
}

// `score` finds the machine of a table without a column `hw` by the table's comment, whatever other tables call the
// machine.
TEST_F(Calibrate, RowsWithoutAMachineAreHeldOutByTheNameOfTheBase) {
  std::string text = "op,ngpus,bytes,time_us\n";
  std::vector<bool> expected;
  std::vector<bool> by_other_table;
  for (std::int64_t bytes = 1 << 10; bytes <= std::int64_t{1} << 30; bytes = bytes * 5 / 4) {
    text += fmt::format("all_gather,8,{},{}\n", bytes, 30.0 + static_cast<double>(bytes) / 300e3);
    expected.push_back(is_held_out(link_group("collective", "h100-sxm", "all_gather", bytes)));
    by_other_table.push_back(is_held_out(link_group("collective", "H100-SXM5", "all_gather", bytes)));
  }
  const fs::path gemms = write("gemm.csv", "hw,dtype,m,n,k,time_us\nH100-SXM5,bf16,4096,4096,4096,230\n");
  const fs::path gathers = write("ag.csv", text);
  for (const std::optional<std::string>& machine :
       {std::optional<std::string>(), std::optional<std::string>("H100-SXM5")}) {
    const Calibration calibration = calibrate(base(), "h100-sxm", "box", read_observations({gemms, gathers}, machine));
    const auto part =
        std::ranges::find_if(calibration.parts, [](const FittedPart& fitted) { return fitted.residuals.size() > 1; });
    ASSERT_NE(part, calibration.parts.end());
    std::vector<bool> held_out;
    for (const Residual& residual : part->residuals) {
      held_out.push_back(residual.held_out);
    }
    EXPECT_EQ(held_out, expected);
    EXPECT_NE(held_out, by_other_table);
  }
}

TEST_F(Calibrate, SkipsAndCountsRowsOutsideTheFormulasOfOneNode) {
  const Observations observations = read_observations({write("more.csv",
                                                             "op,ngpus,bytes,time_us,nodes\n"
                                                             "broadcast,8,4096,9.5,1\n"
                                                             "all_gather,16,4096,9.5,2\n"
                                                             "all_gather,8,0,9.5,1\n"
                                                             "sendrecv,8,4096,9.5,1\n"
                                                             "sendrecv,2,4096,9.5,1\n")},
                                                      std::nullopt);
  EXPECT_EQ(observations.skipped,
            (std::vector<std::string>{
                "more.csv: all_gather on 2 nodes, but the base is a single node (name a cluster as --base, "
                "such as dgx-h100-x2) (1 row)",
                "more.csv: broadcast, which the model does not support (1 row)",
                "more.csv: exchanges of 8 GPUs that share wires; a fit needs exchanges between two GPUs (1 row)",
                "more.csv: nothing is sent (1 row)"}));
  EXPECT_EQ(observations.peers.rows.size(), 1U);
  EXPECT_TRUE(observations.collectives.rows.empty());
}

TEST_F(Calibrate, RowsOfTwoMachinesAreNotMixed) {
  const fs::path table = write("two.csv", "hw,dtype,m,n,k,time_us\nA,bf16,64,64,64,5\nB,bf16,64,64,64,5\n");
  try {
    read_observations({table}, std::nullopt);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()),
              table.string() + ":3: a row of 'B' after rows of 'A'; choose one with --machine");
  }
  const Observations observations = read_observations({table}, "B");
  EXPECT_EQ(observations.gemm[index_of(DType::bf16)].rows.size(), 1U);
  EXPECT_EQ(observations.skipped, std::vector<std::string>{"two.csv: rows of another machine (1 row)"});
}

TEST_F(Calibrate, TooFewRowsAreAnErrorWithTheNumberNeeded) {
  const Observations observations = read_observations(
      {write("few.csv", "device,op,ngpus,devices_per_node,bytes,median_us\nbox,send_recv,2,2,4096,12\n")},
      std::nullopt);
  try {
    calibrate(base(), "h100-sxm", "few", observations);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()),
              "nothing can be fitted: exchanges (few.csv): 1 row, but a fit needs 4; measure more sizes");
  }
}

TEST_F(Calibrate, AnImpossibleTimeIsAFaultOfItsRow) {
  const fs::path table = write("odd.csv",
                               "hw,dtype,m,n,k,time_us\nA,bf16,64,64,64,1e300\nA,bf16,64,64,64,1e-7\n"
                               "A,bf16,64,64,64,5\nA,bf16,64,64,64,1e-6\n");
  const Observations observations = read_observations({table}, std::nullopt);
  EXPECT_EQ(observations.faults,
            (std::vector<std::string>{
                table.string() + ":2: time_us is 1e300; a measured time must be between 1e-06 and 1e+11 us",
                table.string() + ":3: time_us is 1e-7; a measured time must be between 1e-06 and 1e+11 us"}));
  ASSERT_EQ(observations.gemm[index_of(DType::bf16)].rows.size(), 2U);
  EXPECT_EQ(observations.gemm[index_of(DType::bf16)].rows[1].time, Duration{1});
}

TEST_F(Calibrate, AGemmFasterThanThePeakOfTheBaseIsAFaultOfItsRow) {
  // 1024^3 takes 2.17 us at 989 TFLOP/s.
  const fs::path table = write("fast.csv",
                               "hw,dtype,m,n,k,time_us\nA,bf16,1024,1024,1024,2.1\nA,bf16,1024,1024,1024,2.0\n"
                               "A,bf16,1024,1024,1024,4\n");
  const Machine machine = base();
  const Observations observations = read_observations({table}, std::nullopt, &machine);
  EXPECT_EQ(observations.faults,
            (std::vector<std::string>{
                table.string() + ":3: a GEMM of 1024 x 1024 x 1024 ran at 1074 TFLOP/s, above the peak of h100-sxm in "
                                 "bf16, 989 TFLOP/s; check its time, or name another --base"}));
  EXPECT_EQ(observations.gemm[index_of(DType::bf16)].rows.size(), 2U);
}

TEST_F(Calibrate, AMessageFarAboveTheLinksOfTheBaseIsAFaultOfItsRow) {
  // 64 MiB on 8 GPUs, of which a GPU receives seven eighths, take 104.4 us at 1.25 times 450 GB/s.
  const fs::path table = write("fast.csv",
                               "hw,op,ngpus,bytes,time_us\nA,all_gather,8,67108864,104.3\n"
                               "A,all_gather,8,67108864,104.5\nA,all_gather,8,67108864,200\n");
  const Machine machine = base();
  const Observations observations = read_observations({table}, std::nullopt, &machine);
  EXPECT_EQ(
      observations.faults,
      (std::vector<std::string>{
          table.string() + ":2: all_gather of 67108864 bytes on 8 GPUs ran at 563 GB/s, above 1.25 times the 450 GB/s "
                           "of the links of h100-sxm; check its time, or name another --base"}));
  EXPECT_EQ(observations.collectives.rows.size(), 2U);
  EXPECT_EQ(read_observations({table}, std::nullopt).faults.size(), 0U) << "without a base there is no limit";
  const fs::path sendrecv = write("sendrecv.txt",
                                  "# Collective test starting: sendrecv_perf\n#  Rank 0 Pid 1 on n device 0\n"
                                  "#  Rank 1 Pid 2 on n device 1\n"
                                  "67108864 16777216 float none -1 1.0 1 1 0 1.0 1 1 0\n");
  const Observations faulty = read_observations({sendrecv}, std::nullopt, &machine);
  ASSERT_EQ(faulty.faults.size(), 1U);
  EXPECT_EQ(faulty.faults.front().find(sendrecv.string() + ":4: sendrecv of 67108864 bytes on 2 GPUs ran at "), 0U);
}

TEST_F(Calibrate, AnUnknownFormatListsTheKnownFormats) {
  const auto error_of_text = [&](const std::string& text) -> std::string {
    try {
      read_observations({write("file.txt", text)}, std::nullopt);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  const std::string remedy =
      "; give output of nccl-tests, a CSV of GEMMs (hw,dtype,m,n,k,time_us), attention "
      "(hw,batch,seqlen,heads,kv_heads,head_dim,time_us), layers (hw,op,tp,m,n,k,median_us), messages "
      "(op,ngpus,bytes,time_us) or another table of docs/machines.md (attention of decoding, latent attention, "
      "experts, quantization, all-reduces of frameworks, exchanges), a record of commfuse-validate bench, a trace of "
      "PyTorch's profiler, a Nsight Systems export, or a Chakra trace";
  const std::string file = write("file.txt", "").string();
  EXPECT_EQ(error_of_text(""), file + ": it is empty" + remedy);
  EXPECT_EQ(error_of_text("hello\n"), file + ": its format is not recognized" + remedy);
  EXPECT_EQ(error_of_text("[1, 2]\n"), file + ": its format is not recognized" + remedy);
  EXPECT_EQ(error_of_text("kernel,time_us\nmine,3.5\n"), file + ": its columns match no known table" + remedy);
  EXPECT_EQ(error_of_text("m,n,k,time_us\n64,64,64,3.5\n"), file + ": its columns match no known table" + remedy);
  EXPECT_EQ(error_of_text("m,n,k,time_ms\n64,64,64,3.5\n"), file + ": its columns match no known table" + remedy);
  EXPECT_EQ(error_of_text("hw,dtype,m,n,k,time_ms\nmine,bf16,64,64,64,3.5\n"),
            file + ":1: the header lacks only the column 'time_us' of kind gemm; is 'time_ms' a misspelling?");
  EXPECT_EQ(error_of_text("hw,dtype,m,n,time_us\nmine,bf16,64,64,3.5\n"),
            file + ":1: the header lacks only the column 'k' of kind gemm; add it");
}

TEST_F(Calibrate, NamesADuplicateColumn) {
  const fs::path table = write("two.csv", "# mine\nhw,dtype,m,n,k,m,time_us\nA,bf16,64,64,64,1,5\n");
  try {
    read_observations({table}, std::nullopt);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.what(), table.string() + ":2: the column 'm' is given twice; keep one of them");
  }
}

TEST_F(Calibrate, RowsThatNoFormulaFitsAreReportedWithTheirFile) {
  std::string text = "op,ngpus,bytes,time_us\n";
  for (const char* op : {"all_gather", "reduce_scatter", "all_reduce"}) {
    for (const int ranks : {2, 4, 8}) {
      for (std::int64_t bytes = 512; bytes <= std::int64_t{1} << 45; bytes *= 4) {
        text += fmt::format("{},{},{},1e11\n", op, ranks, bytes);
      }
    }
  }
  try {
    calibrate(base(), "h100-sxm", "slow", read_observations({write("slow.csv", text)}, std::nullopt));
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("slow.csv: no parameters fit its rows: a collective would take ")) << message;
    EXPECT_TRUE(message.ends_with(" s; check the times (the longest is 1e+05 s)")) << message;
  }
}

TEST_F(Calibrate, WithoutUsableRowsTheErrorNamesTheFirstFault) {
  const fs::path table = write("odd.csv", "hw,dtype,m,n,k,time_us\nA,bf16,64,64,64,1e300\nA,bf16,64,64,64,0\n");
  try {
    calibrate(base(), "h100-sxm", "odd", read_observations({table}, std::nullopt));
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "nothing can be fitted: " + table.string() +
            ":2: time_us is 1e300; a measured time must be between 1e-06 and 1e+11 us (the first of 2 faulty rows)");
  }
  const fs::path single = write("single.csv", "hw,dtype,m,n,k,time_us\nA,bf16,64,64,64,0\n");
  EXPECT_EQ(
      test::message_of([&] { calibrate(base(), "h100-sxm", "odd", read_observations({single}, std::nullopt)); }),
      "nothing can be fitted: " + single.string() + ":2: time_us is 0; a measurement must be a finite number above 0");
}

TEST_F(Calibrate, ReportsWhyEveryRowIsSkipped) {
  const auto error_of_text = [&](const std::string& row, const std::optional<std::string>& machine) -> std::string {
    const fs::path table = write("g.csv", "hw,dtype,m,n,k,time_us\n" + row + row);
    try {
      calibrate(base(), "h100-sxm", "odd", read_observations({table}, machine));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string remedy = "; give rows of this machine, with dtypes and ops that the model supports";
  EXPECT_EQ(error_of_text("h100,bf16,64,64,64,5\n", "h200"),
            "nothing can be fitted: skipped: g.csv: rows of another machine (2 rows)" + remedy);
  EXPECT_EQ(error_of_text("h100,fp3,64,64,64,5\n", std::nullopt),
            "nothing can be fitted: skipped: g.csv: GEMMs in fp3, which the model does not support (2 rows)" + remedy);
  Observations observations;
  observations.skipped = {"a", "b", "c", "d", "e", "f"};
  const auto fit = [&] { calibrate(base(), "h100-sxm", "odd", observations); };
  EXPECT_EQ(test::message_of(fit), "nothing can be fitted: skipped: a, b, c, d, e and 1 more such reason" + remedy);
}

TEST_F(Calibrate, ResidualsAreDrawnByDecadesOfTime) {
  const std::vector<Residual> residuals{{5.0, 5.5}, {5.0, 4.5}, {50.0, 50.0}, {2000.0, 4000.0}};
  EXPECT_EQ(residual_plot(residuals),
            "    measured         predicted / measured - 1: middle 90%        median   rows\n"
            "      1 us to 10 us                ------o------                   0.0%      2\n"
            "     10 us to 100 us                     o                         0.0%      1\n"
            "      1 ms to 10 ms                      |                   o  +100.0%      1\n"
            "                     -30%                0                +30%\n");
}

TEST_F(Calibrate, MistakesOfAnExtendedBaseAreReported) {
  EXPECT_EQ(load_machine(write("same.yaml", "schema: commfuse.hardware/1\nname: same\nextends: h100-sxm\n").string())
                .accelerator.sms,
            132);
  const auto error_of_text = [&](const std::string& text) {
    try {
      load_machine(write("bad.yaml", text).string());
    } catch (const ConfigError& error) {
      return std::string(error.what()).substr((folder_ / "bad.yaml").string().size());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error_of_text("schema: commfuse.hardware/1\nname: bad\nextends: bad.yaml\n"),
            ":3:10: the chain of 'extends' has a cycle or more than 8 files; name a file that extends none");
  EXPECT_EQ(error_of_text("schema: commfuse.hardware/1\nname: bad\nextends: h100-sxm\naccelerator: {sms: 8}\n"),
            ":3:10: 16 CTAs leave none of the 8 SMs for computation; choose 0 to 7\n" +
                (folder_ / "bad.yaml").string() +
                ":3:10: 24 CTAs leave none of the 8 SMs for computation; choose 0 to 7");
}

MicroBenchmark micro(std::string op, std::int64_t bytes, Duration time) {
  return {.op = std::move(op), .dtype = "bf16", .bytes = bytes, .ranks = 2, .samples = {time}};
}

/// Returns the record that `commfuse-validate bench` would write on the hypothetical machine `truth`, a variant of the
/// base `cpu`.
RunRecord record_of(const Machine& truth) {
  Noise noise;
  RunRecord record{.executor = "cpu", .compute = "real", .links = "copied", .environment = {.cpu = "on paper"}};
  const auto add = [&](MicroBenchmark benchmark) {
    benchmark.samples.front() = from_seconds(to_seconds(benchmark.samples.front()) * noise.factor());
    record.micro_benchmarks.push_back(std::move(benchmark));
  };
  for (const std::int64_t n : {256, 512, 768, 1024, 1600, 2048, 3200}) {
    for (const std::int64_t k : {256, 800, 1600}) {
      for (const std::int64_t m : {64, 128, 256, 512}) {
        const GemmSize size{.m = m, .n = n, .k = k, .dtype = DType::bf16};
        MicroBenchmark benchmark = micro("product", 0, estimate_gemm(truth.accelerator, size, 1).time);
        benchmark.m = m;
        benchmark.n = n;
        benchmark.k = k;
        add(benchmark);
      }
    }
  }
  for (std::int64_t bytes = 16 << 10; bytes <= 16 << 20; bytes = bytes * 3 / 2) {
    add(micro("copy", bytes, memory_bound_time(truth.accelerator, {bytes}, 1)));
    add(micro("exchange", bytes, p2p_time(truth.link.peer, {bytes})));
  }
  add(micro("gelu", 1 << 20, std::chrono::milliseconds(1)));
  record.micro_benchmarks.push_back(micro("next", 0, std::chrono::microseconds(2)));
  record.micro_benchmarks.push_back(micro("wake", 0, std::chrono::microseconds(9)));
  return record;
}

TEST_F(Calibrate, RecordsOfOneGpuMayDifferInTheirAttentionLibrary) {
  RunRecord record = record_of(load_machine("cpu"));
  record.environment.gpu = "a GPU";
  const fs::path first = write("one.json", to_json(record));
  record.environment.attention = "cuDNN 9.19.0";
  const fs::path other = write("other.json", to_json(record));
  EXPECT_EQ(load_run_record(other.string()).environment.attention, "cuDNN 9.19.0");
  EXPECT_EQ(read_observations({first, other}, std::nullopt).machine, "a GPU");
}

TEST_F(Calibrate, ARecordOfMicroBenchmarksBecomesAMachineOfItsExecutor) {
  Machine truth = load_machine("cpu");
  MatrixUnit& unit = *truth.accelerator.matrix_units[index_of(DType::bf16)];
  unit.dense_peak.value.value *= 1.5;
  truth.link.peer.rate.value.value *= 1.5;
  truth.accelerator.memory_bound_efficiency.value = 0.5;
  const fs::path file = write("bench.json", to_json(record_of(truth)));
  const Observations observations = read_observations({file}, std::nullopt);
  EXPECT_EQ(observations.gemm[index_of(DType::bf16)].rows.size(), 84U);
  EXPECT_EQ(observations.gemm[index_of(DType::bf16)].source, "bench.json");
  EXPECT_EQ(observations.machine, "on paper, links copied");
  const std::vector<std::string> skipped{"bench.json: copy of less than 256 KiB (7 rows)",
                                         "bench.json: gelu, whose arithmetic no price covers (1 row)"};
  EXPECT_EQ(observations.skipped, skipped);

  const Calibration calibration = calibrate(load_machine("cpu"), "cpu", "paper", observations);
  const Machine machine = load_machine(write("paper.yaml", calibration.yaml).string());
  EXPECT_EQ(machine.executor, "cpu");
  EXPECT_EQ(machine.accelerator.launch_cost.value, std::chrono::microseconds(2));
  EXPECT_EQ(machine.accelerator.event_cost.value, std::chrono::microseconds(7));
  EXPECT_EQ(machine.accelerator.matrix_unit(DType::bf16).dense_peak.provenance, Provenance::measured);
  EXPECT_LT(machine.accelerator.dense_peak(DType::bf16).value, unit.dense_peak.value.value * 1.05);
  EXPECT_LT(deviation(machine.link.peer.rate, truth.link.peer.rate), 3.0);
  const GemmSize unseen{.m = 384, .n = 1280, .k = 640, .dtype = DType::bf16};
  EXPECT_NEAR(to_seconds(estimate_gemm(machine.accelerator, unseen, 1).time) /
                  to_seconds(estimate_gemm(truth.accelerator, unseen, 1).time),
              1.0, 0.05);
  EXPECT_NEAR(to_seconds(memory_bound_time(machine.accelerator, {4 << 20}, 1)) /
                  to_seconds(memory_bound_time(truth.accelerator, {4 << 20}, 1)),
              1.0, 0.05);
}

std::string error_of(const std::vector<fs::path>& files) {
  return test::message_of([&] { (void)read_observations(files, std::nullopt); });
}

TEST_F(Calibrate, ARecordOfSchedulesAloneCannotBeFitted) {
  RunRecord record{.executor = "cpu", .compute = "real"};
  record.runs.push_back({.strategy = "serial", .makespans = {std::chrono::milliseconds(1)}});
  EXPECT_EQ(error_of({write("run.json", to_json(record))}),
            "run.json: it contains only times of schedules, and makespans are not fitted; give a record of "
            "commfuse-validate bench --out or run --spans --out");
  record.compute = "emulated";
  EXPECT_EQ(error_of({write("emulated.json", to_json(record))}),
            "emulated.json: its ops slept for their predicted times, so nothing can be fitted; give a record of "
            "commfuse-validate bench --out or run --compute real --spans");
}

TEST_F(Calibrate, OpsOfSchedulesAreRowsButOpsOfSingleRanksAreNot) {
  RunRecord bench = record_of(load_machine("cpu"));
  MicroBenchmark inside = micro("exchange", 5 << 10, std::chrono::microseconds(80));
  inside.beside = inside_schedule;
  MicroBenchmark transfer = micro("transfer", 8 << 10, std::chrono::microseconds(9));
  transfer.rank = 1;
  transfer.peer = 0;
  RunRecord run{.executor = "cpu", .compute = "real", .links = "copied", .environment = {.cpu = "on paper"}};
  run.micro_benchmarks = {inside, transfer};
  const Observations bench_only = read_observations({write("bench.json", to_json(bench))}, std::nullopt);
  const Observations bench_and_run =
      read_observations({write("bench.json", to_json(bench)), write("run.json", to_json(run))}, std::nullopt);
  ASSERT_EQ(bench_and_run.peers.rows.size(), bench_only.peers.rows.size() + 1);
  EXPECT_EQ(bench_and_run.peers.rows.back().row.bytes, Bytes{5 << 10});
  EXPECT_EQ(bench_and_run.peers.source, "bench.json, run.json");
  EXPECT_EQ(bench_and_run.next_op, bench_only.next_op);
  EXPECT_EQ(bench_and_run.skipped.back(),
            "run.json: ops of single ranks and links, which commfuse-validate links compares (1 row)");
}

TEST_F(Calibrate, SkipsCollectivesInPlace) {
  RunRecord record{.executor = "cpu", .compute = "real", .links = "copied", .environment = {.cpu = "on paper"}};
  record.micro_benchmarks = {micro("all_gather", 4096, std::chrono::microseconds(9))};
  record.micro_benchmarks.front().in_place = true;
  const Observations observations = read_observations({write("one.json", to_json(record))}, std::nullopt);
  EXPECT_TRUE(observations.collectives.rows.empty());
  EXPECT_EQ(
      observations.skipped,
      std::vector<std::string>{
          "one.json: collectives in place, which avoid the copy of a rank's own part that prices include (1 row)"});
}

TEST_F(Calibrate, SkipsACollectiveOfOneRankAndReportsAHugeSize) {
  RunRecord record{.executor = "cpu", .compute = "real", .links = "copied", .environment = {.cpu = "on paper"}};
  record.micro_benchmarks = {micro("all_gather", 4096, std::chrono::microseconds(9))};
  record.micro_benchmarks.front().ranks = 1;
  EXPECT_EQ(read_observations({write("one.json", to_json(record))}, std::nullopt).skipped,
            std::vector<std::string>{"one.json: collectives of one rank, which send nothing (1 row)"});
  record.micro_benchmarks.front() = micro("all_gather", std::int64_t{1} << 47, std::chrono::microseconds(9));
  EXPECT_EQ(error_of({write("far.json", to_json(record))}),
            "far.json: an op of size 140737488355328 was measured, and the limit is 70368744177664; measure again");
}

TEST_F(Calibrate, RecordsAreOfOneMachine) {
  RunRecord record = record_of(load_machine("cpu"));
  const fs::path first = write("one.json", to_json(record));
  record.links = "mpi";
  const fs::path other = write("other.json", to_json(record));
  EXPECT_EQ(error_of({first, other}), other.string() +
                                          ": measured on 'on paper, links mpi', but the previous record on 'on paper, "
                                          "links copied'; give records of one machine");
}

/// Returns rows of ten GEMM sizes, as one training step has them, with forty calls of each.
std::string step_of(const Accelerator& machine) {
  std::string text = "hw,dtype,m,n,k,time_us\n";
  Noise noise;
  for (int call = 0; call < 40; ++call) {
    for (const std::int64_t m : {4096, 8192}) {
      for (const auto& [n, k] : {std::pair(1280, 8192), {8192, 1024}, {7168, 8192}, {8192, 3584}, {4096, 4096}}) {
        const Duration time = estimate_gemm(machine, {.m = m, .n = n, .k = k}, machine.sms).time;
        text += fmt::format("box,bf16,{},{},{},{:.4f}\n", m, n, k, to_microseconds(time) * noise.factor());
      }
    }
  }
  return text;
}

TEST_F(Calibrate, TenSizesFitOnlyTheParametersTheyDetermine) {
  Machine truth = base();
  GemmParameters& true_gemm = truth.accelerator.matrix_units[index_of(DType::bf16)]->gemm;
  true_gemm.burst_efficiency.value *= 0.75;
  const Observations observations = read_observations({write("step.csv", step_of(truth.accelerator))}, std::nullopt);
  const Calibration calibration = calibrate(base(), "h100-sxm", "made-up", observations);
  ASSERT_EQ(calibration.parts.size(), 1U);
  const FittedPart& part = calibration.parts[0];
  EXPECT_TRUE(part.has_few);
  EXPECT_EQ(part.fitted.rows, 10U);
  EXPECT_EQ(part.held_out.rows, 0U);
  EXPECT_LT(part.fitted.median, 0.03);
  EXPECT_EQ(part.parameters.size() + part.unchanged.size(), 18U);
  EXPECT_NE(std::find(part.unchanged.begin(), part.unchanged.end(), "split_overhead"), part.unchanged.end());

  const Machine machine = load_machine(write("made-up.yaml", calibration.yaml).string());
  const MatrixUnit& unit = machine.accelerator.matrix_unit(DType::bf16);
  const Machine base_machine = base();
  const MatrixUnit& base_unit = base_machine.accelerator.matrix_unit(DType::bf16);
  EXPECT_LT(deviation(unit.gemm.burst_efficiency, true_gemm.burst_efficiency), 3.0);
  EXPECT_GT(unit.gemm.burst_efficiency.standard_error, 0.01);
  EXPECT_EQ(unit.gemm.split_overhead.value, base_unit.gemm.split_overhead.value);
  EXPECT_EQ(unit.gemm.split_overhead.source, base_unit.gemm.split_overhead.source);
  EXPECT_EQ(unit.gemm.hbm_efficiency.value, base_unit.gemm.hbm_efficiency.value);
  EXPECT_EQ(unit.dense_peak.value.value, base_unit.dense_peak.value.value);
  EXPECT_EQ(*unit.fit.range(FitSize::m), (SeenRange{4096, 8192}));
  EXPECT_EQ(*unit.fit.range(FitSize::k), (SeenRange{1024, 8192}));
  EXPECT_GT(unit.fit.residual, base_unit.fit.residual);
}

TEST_F(Calibrate, CorrectlyPricedRowsKeepTheParametersOfTheBase) {
  const Observations observations = read_observations({write("step.csv", step_of(base().accelerator))}, std::nullopt);
  const Calibration calibration = calibrate(base(), "h100-sxm", "same", observations);
  ASSERT_EQ(calibration.parts.size(), 1U);
  EXPECT_EQ(calibration.parts[0].distance, 0.0);
  for (const FittedParameter& parameter : calibration.parts[0].parameters) {  // The error of burst_time is 40%.
    EXPECT_NEAR(parameter.value / parameter.start, 1.0, 0.1) << parameter.name;
  }
  const Machine machine = load_machine(write("same.yaml", calibration.yaml).string());
  const Machine base_machine = base();
  const MatrixUnit& unit = machine.accelerator.matrix_unit(DType::bf16);
  EXPECT_EQ(unit.gemm.burst_efficiency.value,
            base_machine.accelerator.matrix_unit(DType::bf16).gemm.burst_efficiency.value);
  EXPECT_EQ(unit.fit.residual, base_machine.accelerator.matrix_unit(DType::bf16).fit.residual);
  EXPECT_EQ(*unit.fit.range(FitSize::m), (SeenRange{4096, 8192}));
}

TEST_F(Calibrate, OneGemmAdjustsABaseWhosePathHasAHash) {
  fs::create_directory(folder_ / "a #b");
  const fs::path own_base = write("a #b/own.yaml", "schema: commfuse.hardware/1\nname: own\nextends: h100-sxm\n");
  const fs::path table = write("one \"quoted\".csv", "hw,dtype,m,n,k,time_us\nx,bf16,4096,4096,4096,230\n");
  const Machine base = load_machine(own_base.string());
  const Calibration calibration = calibrate(base, own_base.string(), "mine", read_observations({table}, std::nullopt));
  EXPECT_NE(calibration.yaml.find("\nextends: \"" + own_base.string() + "\"\n"), std::string::npos) << calibration.yaml;
  EXPECT_NE(calibration.yaml.find("# Fitted to 1 row, with the base as the prior: "), std::string::npos);
  EXPECT_EQ(load_machine(write("mine.yaml", calibration.yaml).string()).accelerator.sms, 132);
}

TEST_F(Calibrate, OneAttentionCallAndOneKernelAreEnough) {
  Machine truth = base();
  truth.accelerator.attention.loop_efficiency.value *= 0.6;
  truth.accelerator.attention.exponentials.value.value *= 0.6;
  truth.accelerator.framework_kernels->norm_efficiency.value *= 0.6;
  Observations observations;
  const AttentionSize call{.batch = 2, .seq = 8192, .heads = 32, .kv_heads = 8, .head_dim = 128};
  observations.attention = {{{call, attention_time(truth.accelerator, call, truth.accelerator.sms)}}, "step.json"};
  const FrameworkKernelSize norm{
      .kernel = FrameworkKernel::norm, .rows = 8192, .width = 4096, .traffic = Bytes{4L * 8192 * 4096}};
  observations.kernels = {{{"norm", norm, framework_kernel_time(truth.accelerator, norm)}}, "step.json"};
  const Calibration calibration = calibrate(base(), "h100-sxm", "made-up", observations);
  ASSERT_EQ(calibration.parts.size(), 2U);
  const Machine machine = load_machine(write("made-up.yaml", calibration.yaml).string());
  const auto relative_error = [](Duration predicted, Duration measured) {
    return std::abs(to_seconds(predicted) / to_seconds(measured) - 1.0);
  };
  const Accelerator& fitted = machine.accelerator;
  const Accelerator base_accelerator = base().accelerator;
  EXPECT_LT(relative_error(attention_time(fitted, call, fitted.sms), observations.attention.rows[0].time), 0.1);
  EXPECT_LT(relative_error(framework_kernel_time(fitted, norm), observations.kernels.rows[0].time), 0.1);
  EXPECT_EQ(fitted.attention.overhead.value, base_accelerator.attention.overhead.value);
  EXPECT_EQ(fitted.framework_kernels->sum_efficiency.value, base_accelerator.framework_kernels->sum_efficiency.value);
  EXPECT_EQ(*fitted.attention_fit.range(FitSize::seq), (SeenRange{8192, 8192}));
}

// Copies show a memory half as fast as the base's, and the time of the attention call follows from this memory. So the
// file that is fitted to both must predict that time.
TEST_F(Calibrate, CallsAreFittedOnTheMemoryThatCopiesHaveMeasured) {
  Accelerator truth = base().accelerator;
  truth.hbm_bandwidth.value.value *= 0.5;
  truth.memory_bound_efficiency.value = 1.0;
  Observations observations;
  for (std::int64_t bytes = std::int64_t{1} << 24; bytes <= std::int64_t{1} << 34; bytes *= 4) {
    observations.traffic.rows.push_back({Bytes{bytes}, memory_bound_time(truth, Bytes{bytes}, truth.sms)});
  }
  observations.traffic.source = "copies.json";
  const AttentionSize call{.batch = 64, .seq = 8192, .heads = 32, .kv_heads = 8, .head_dim = 128};
  const Duration measured = decode_attention_time(truth, call);
  observations.decode_attention = {{{call, measured}}, "decode.csv"};
  const Calibration calibration = calibrate(base(), "h100-sxm", "made-up", observations);
  const Accelerator fitted = load_machine(write("made-up.yaml", calibration.yaml).string()).accelerator;
  EXPECT_NEAR(fitted.hbm_bandwidth.value.value / truth.hbm_bandwidth.value.value, 1.0, 0.01);
  EXPECT_NEAR(to_seconds(decode_attention_time(fitted, call)) / to_seconds(measured), 1.0, 0.05);
}

TEST_F(Calibrate, ALayerOfExpertsMovesTheParametersOfTheBase) {
  Machine truth = base();
  truth.accelerator.experts->hbm_efficiency.value = 0.6;
  const ExpertLayerSize size{.tokens = 256, .hidden = 4096, .ffn = 1536, .active = 8, .experts = 128};
  const fs::path table = write("moe.csv", fmt::format("hw,kernel,tokens,hidden,inter,topk,experts,tp,ep,distribution,"
                                                      "time_us\nx,trtllm_cutlass,256,4096,1536,8,128,1,1,balanced,{}\n"
                                                      "x,sglang_fused_moe_triton,256,4096,1536,8,128,1,1,balanced,9\n",
                                                      to_microseconds(expert_layer_time(truth.accelerator, size))));
  const Observations observations = read_observations({table}, std::nullopt);
  EXPECT_EQ(observations.experts.rows.size(), 1U);
  EXPECT_EQ(
      observations.skipped,
      (std::vector<std::string>{"moe.csv: experts of SGLang, whose rows do not tell which layers are gated (1 row)"}));
  const Calibration calibration = calibrate(base(), "h100-sxm", "made-up", observations);
  const Accelerator fitted = load_machine(write("made-up.yaml", calibration.yaml).string()).accelerator;
  EXPECT_LT(fitted.experts->hbm_efficiency.value, 0.8);
  EXPECT_EQ(fitted.experts->call.value, base().accelerator.experts->call.value);
  EXPECT_EQ(*fitted.experts->fit.range(FitSize::m), (SeenRange{2048, 2048}));
}

TEST_F(Calibrate, AQuantizationMovesTheParametersOfTheBase) {
  Machine truth = base();
  truth.accelerator.quantization->hbm_efficiency.value = 0.5;
  const QuantizationSize size{.rows = 32768, .width = 16384};
  const fs::path table =
      write("quantize.csv", fmt::format("hw,op,m,k,in_dtype,out_dtype,time_us\n"
                                        "x,scale_matrix,32768,16384,bfloat16,fp8,{}\n"
                                        "x,scale_matrix,32768,16384,bfloat16,nvfp4,9\n",
                                        to_microseconds(quantization_time(truth.accelerator, size))));
  const Observations observations = read_observations({table}, std::nullopt);
  EXPECT_EQ(observations.quantization.rows.size(), 1U);
  EXPECT_EQ(
      observations.skipped,
      (std::vector<std::string>{"quantize.csv: quantization from bfloat16 to nvfp4, which no fit covers (1 row)"}));
  const Calibration calibration = calibrate(base(), "h100-sxm", "made-up", observations);
  const Accelerator fitted = load_machine(write("made-up.yaml", calibration.yaml).string()).accelerator;
  EXPECT_LT(fitted.quantization->hbm_efficiency.value, 0.8);
  EXPECT_EQ(fitted.quantization->scale_call.value, base().accelerator.quantization->scale_call.value);
  EXPECT_EQ(*fitted.quantization->fit.range(FitSize::bytes), (SeenRange{1610612736, 1610612736}));
}

}  // namespace
}  // namespace commfuse::calibrate
