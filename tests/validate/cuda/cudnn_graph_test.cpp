// SPDX-License-Identifier: Apache-2.0
// Checks that the real cuDNN accepts our graphs: for a described device its heuristics return engines, which choose and
// write kernels but cannot load them. Skipped without cuDNN.
#include <gtest/gtest.h>

#ifdef COMMFUSE_WITH_CUDNN

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "validate/cuda/module/cudnn_graph.h"

namespace commfuse::validate {
namespace {

/// Returns cuDNN's description of a device. The parameters are the properties that matter to engines and differ between
/// the two devices below.
std::string described(int capability, int multiprocessors, int shared_memory) {
  return fmt::format(
      R"({{"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
      R"("multiProcessorCount":{},"warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":{},)"
      R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)"
      R"("maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":85029158912,)"
      R"("smClockRateKHz":1980000,"memClockRateKHz":2619000,"l2CacheSize":52428800,"cudaDeviceId":0,)"
      R"("deviceVer":{},"driverVer":13000,"deviceName":"described"}})",
      multiprocessors, shared_memory, capability * 10);
}

std::string a100() { return described(80, 108, 166912); }
std::string h100_description() { return described(90, 132, 232448); }

/// Returns attention from the last `queries` of `keys` positions, in a matrix with q, k and v side by side.
AttentionPieceShape slice(std::int64_t queries, std::int64_t keys, bool causal, std::int64_t batch = 1) {
  constexpr std::int64_t head = 128;
  AttentionPieceShape shape{.sequences = batch,
                            .batch = batch,
                            .heads = 8,
                            .kv_heads = 2,
                            .head = head,
                            .queries = queries,
                            .keys = keys,
                            .causal = causal};
  shape.query_stride = shape.key_stride = (shape.heads + 2 * shape.kv_heads) * head;
  shape.out_stride = shape.heads * head;
  return shape;
}

AttentionGraph without_statistics(AttentionGraph graph) {
  std::erase_if(graph.operations, [&](const GraphOperation& operation) {
    return operation.function == GraphFunction::logarithm ||
           (operation.function == GraphFunction::add &&
            graph.tensors[static_cast<std::size_t>(operation.out)].extents[3] == 1);
  });
  return graph;
}

/// Counts engines in a separate process: cuDNN requires a libcuda, and if there is none the toolkit's stub replaces it,
/// which must not affect other tests.
class RealCudnn : public testing::Test {
 protected:
  void SetUp() override {
    if (library_.version() < 90800) {
      GTEST_SKIP() << "cuDNN " << cudnn_in_words(library_.version())
                   << " does not support described devices; 9.8 and later do";
    }
    if (!has_driver() && std::string(COMMFUSE_CUDA_STUB).empty()) {
      GTEST_SKIP() << "there is neither libcuda.so.1 nor the toolkit's stub of it";
    }
  }
  static bool has_driver() { return ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) != nullptr; }

  /// Ends the process with the number of engines.
  [[noreturn]] void count_engines(const AttentionGraph& graph, const std::string& device) const {
    if (!has_driver() && ::dlopen(COMMFUSE_CUDA_STUB, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
      std::abort();
    }
    std::_Exit(static_cast<int>(CudnnGraph(library_, graph, {.properties = device}).engines().size()));
  }
  void expect_engines(const AttentionPieceShape& shape, const std::string& device) const {
    const auto has_engines = [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) > 0; };
    EXPECT_EXIT(count_engines(attention_graph(shape), device), has_engines, "") << shape.queries << ' ' << shape.keys;
  }

  const CudnnLibrary library_;
};

TEST_F(RealCudnn, HasAnEngineForCausalSlicesOnAmpereAndHopper) {
  expect_engines(slice(1024, 8192, true), h100_description());
  expect_engines(slice(8192, 8192, true), h100_description());
  expect_engines(slice(1024, 8192, true), a100());
}

TEST_F(RealCudnn, HasAnEngineForFullAttentionSequencesAndOddLengths) {
  expect_engines(slice(1024, 8192, false), h100_description());
  expect_engines(slice(1000, 3000, true, 2), h100_description());
  expect_engines(slice(1, 4096, true), h100_description());
}

TEST_F(RealCudnn, HasNoEngineForAnotherFormOfTheSameGraph) {
  EXPECT_EXIT(count_engines(without_statistics(attention_graph(slice(1024, 1024, true))), h100_description()),
              testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace commfuse::validate

#else

TEST(RealCudnn, IsTestedWhereItsHeadersExist) { GTEST_SKIP() << "this build was made without the headers of cuDNN"; }

#endif
