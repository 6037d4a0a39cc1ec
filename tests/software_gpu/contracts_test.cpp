// SPDX-License-Identifier: Apache-2.0
// Contracts of the test doubles of CUDA, cuBLASLt and NCCL: what they guarantee and what they refuse. A broken contract
// could hide a bug in the plugin.
#include <cublasLt.h>
#include <cudaTypedefs.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <software_gpu.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "validate/cuda/module/numbers.cuh"
#include "validate/reference/rounding.h"

namespace software_gpu {
namespace {

using namespace std::chrono_literals;

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0), cudaSuccess);
  return stream;
}

cudaEvent_t new_event(unsigned flags = cudaEventDefault) {
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&event, flags), cudaSuccess);
  return event;
}

template <class Element>
Element* new_memory(std::size_t count) {
  void* at = nullptr;
  EXPECT_EQ(cudaMalloc(&at, count * sizeof(Element)), cudaSuccess);
  return static_cast<Element*>(at);
}

cudaError_t run(cudaStream_t stream, const KernelShape& shape, std::function<void()> body) {
  static const int kernel = 0;
  launch(&kernel, "a test", shape, stream, std::move(body));
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? cudaStreamSynchronize(stream) : status;
}

/// A kernel that waits for the test.
class Gate {
 public:
  explicit Gate(cudaStream_t stream) {
    launch(this, "gate", {.grid = 1, .block = 1}, stream, [this] {
      while (!open_) {
        __nanosleep(1000);
      }
    });
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { open_ = true; }
  void open() { open_ = true; }

 private:
  std::atomic<bool> open_ = false;
};

TEST(SoftwareGpuPeers, ReachEachOtherOnceEnabled) {
  int can_access = -1;
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can_access, 0, 1), cudaSuccess);
  EXPECT_EQ(can_access, 1);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can_access, 1, 1), cudaSuccess);
  EXPECT_EQ(can_access, 0);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can_access, 0, 3), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);  // a device cannot be its own peer
  EXPECT_EQ(cudaDeviceEnablePeerAccess(2, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(2, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(2, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_EQ(cudaGetLastError(), cudaErrorPeerAccessAlreadyEnabled);  // a later launch does not report it
}

TEST(SoftwareGpuPeers, CopiesRequireMemoryOfTheNamedGpu) {
  cudaStream_t stream = new_stream();
  int* const from = new_memory<int>(4);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  int* const to = new_memory<int>(4);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  const std::array values{1, 2, 3, 4};
  std::array<int, 4> got{};
  ASSERT_EQ(cudaMemcpy(from, values.data(), sizeof values, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpyPeerAsync(to, 1, from, 0, sizeof values, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(got.data(), to, sizeof got, cudaMemcpyDeviceToHost), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(got, values);
  EXPECT_EQ(cudaMemcpyPeerAsync(to, 2, from, 0, sizeof values, stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyPeerAsync(to, 1, from, 0, sizeof values + 1, stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyPeerAsync(to, 1, from, 7, sizeof values, stream), cudaErrorInvalidDevice);
  std::array<char, 16> bus{};
  EXPECT_EQ(cudaDeviceGetPCIBusId(bus.data(), 16, 2), cudaSuccess);
  EXPECT_STREQ(bus.data(), "FFFF:02:00.0");
  EXPECT_EQ(cudaDeviceGetPCIBusId(bus.data(), 8, 2), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST(SoftwareGpuKernels, ThreadsMeetAtABarrierInRandomOrders) {
  cudaStream_t stream = new_stream();
  std::vector<int> before(96);
  std::vector<int> sums(96);
  std::vector<unsigned> order;
  EXPECT_EQ(run(stream, {.grid = 1, .block = 96},
                [&] {
                  order.push_back(threadIdx.x);
                  before[threadIdx.x] = static_cast<int>(threadIdx.x);
                  __syncthreads();
                  sums[threadIdx.x] = std::accumulate(before.begin(), before.end(), 0);
                }),
            cudaSuccess);
  EXPECT_EQ(sums, std::vector<int>(96, 95 * 96 / 2));
  EXPECT_FALSE(std::ranges::is_sorted(order));
}

TEST(SoftwareGpuKernels, LanesOfAWarpExchangeTheirValues) {
  cudaStream_t stream = new_stream();
  std::vector<float> got(64);
  EXPECT_EQ(run(stream, {.grid = 1, .block = 64},
                [&] { got[threadIdx.x] = __shfl_xor_sync(~0U, static_cast<float>(threadIdx.x), 5); }),
            cudaSuccess);
  for (unsigned i = 0; i < 64; ++i) {
    EXPECT_EQ(got[i], static_cast<float>(i ^ 5U));
  }
}

TEST(SoftwareGpuKernels, EveryBlockRunsOnceWithItsOwnSharedMemory) {
  cudaStream_t stream = new_stream();
  std::vector<int> runs(12);
  EXPECT_EQ(run(stream, {.grid = {3, 4}, .block = 8, .shared_bytes = 8 * sizeof(int)},
                [&] {
                  int* const shared = static_cast<int*>(dynamic_shared_memory());
                  shared[threadIdx.x] = static_cast<int>(blockIdx.x + 3 * blockIdx.y);
                  __syncthreads();
                  if (threadIdx.x == 0) {
                    ++runs[static_cast<std::size_t>(shared[7])];
                  }
                }),
            cudaSuccess);
  EXPECT_EQ(runs, std::vector<int>(12, 1));
}

TEST(SoftwareGpuKernels, RefuseImpossibleLaunches) {
  cudaStream_t stream = new_stream();
  const auto nothing = [] {};
  EXPECT_EQ(run(stream, {.grid = 1, .block = 1025}, nothing), cudaErrorInvalidConfiguration);
  EXPECT_EQ(run(stream, {.grid = 0, .block = 1}, nothing), cudaErrorInvalidConfiguration);
  EXPECT_EQ(run(stream, {.grid = {1, 65536}, .block = 1}, nothing), cudaErrorInvalidConfiguration);
  EXPECT_EQ(run(stream, {.grid = 1, .block = 1, .shared_bytes = 48 * 1024 + 1}, nothing), cudaErrorInvalidValue);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(run(stream, {.grid = 1, .block = 1}, nothing), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST(SoftwareGpuKernels, ABarrierThatSomeThreadsSkipEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(run(new_stream(), {.grid = 1, .block = 64},
                   [] {
                     if (threadIdx.x < 32) {
                       __syncthreads();
                     } else if (threadIdx.x < 48) {
                       static_cast<void>(__shfl_xor_sync(~0U, 1.0F, 1));
                       __syncthreads();
                     } else {
                       __syncthreads();
                     }
                   }),
               "wait for each other at different barriers");
}

TEST(SoftwareGpuNumbers, Bf16AndFp16MatchTheReference) {
  using commfuse::DType;
  std::uint32_t bits = 1;
  for (int i = 0; i < 2'000'000; ++i) {
    bits = bits * 1664525U + 1013904223U;
    const float value = std::bit_cast<float>(bits);
    if (!std::isnan(value)) {
      ASSERT_EQ(__bfloat162float(__float2bfloat16_rn(value)), commfuse::validate::stored(DType::bf16, value)) << value;
      ASSERT_EQ(__half2float(__float2half_rn(value)), commfuse::validate::stored(DType::fp16, value)) << value;
    }
  }
  for (unsigned i = 0; i < 65536; ++i) {
    const auto pattern = static_cast<unsigned short>(i);
    if (!std::isnan(__half2float({pattern}))) {
      ASSERT_EQ(__float2half_rn(__half2float({pattern})).bits, pattern);
    }
    if (!std::isnan(__bfloat162float({pattern}))) {
      ASSERT_EQ(__float2bfloat16_rn(__bfloat162float({pattern})).bits, pattern);
    }
  }
}

TEST(SoftwareGpuNumbers, DivisorsDivideByMultiplicationAndShift) {
  constexpr std::uint32_t largest = (std::uint32_t{1} << 31) - 1;
  for (const std::uint32_t by : {1U, 2U, 3U, 7U, 28672U, 53248U, (1U << 30) + 1, largest - 1, largest}) {
    const commfuse::validate::Divisor divisor(by);
    EXPECT_EQ(divisor.by(), by);
    for (const std::uint32_t near : {0U, by, 2 * std::min(by, largest / 2), largest / by * by, largest}) {
      for (const std::uint32_t number : {near - (near > 0 ? 1 : 0), near, near + (near < largest ? 1 : 0)}) {
        EXPECT_EQ(divisor.quotient(number), number / by) << number << " / " << by;
      }
    }
  }
}

TEST(SoftwareGpuNumbers, ThreadsOfAGridVisitEveryElementOnce) {
  cudaStream_t stream = new_stream();
  constexpr unsigned threads = 64;
  for (const auto& [rows, columns] : {std::pair{1, 5}, std::pair{3, 8}, std::pair{70, 33}, std::pair{2, 5000}}) {
    const commfuse::validate::Tiles tiles = commfuse::validate::tiles_of(rows, columns, threads);
    for (const std::int64_t max_blocks : {1, 3, 1000}) {
      std::vector<int> visits(static_cast<std::size_t>(rows * columns));
      const dim3 grid = commfuse::validate::grid_of(tiles, threads, max_blocks);
      EXPECT_LE(grid.x * grid.y, max_blocks);
      EXPECT_EQ(run(stream, {.grid = grid, .block = threads},
                    [&, width = columns] {
                      tiles.for_each(commfuse::validate::blocks_of_grid(), threads,
                                     [&](std::int64_t row, std::int64_t column, int count) {
                                       for (int i = 0; i < count; ++i) {
                                         __atomic_fetch_add(&visits[static_cast<std::size_t>(row * width + column + i)],
                                                            1, __ATOMIC_RELAXED);
                                       }
                                     });
                    }),
                cudaSuccess);
      EXPECT_EQ(visits, std::vector<int>(visits.size(), 1)) << rows << " x " << columns << ", " << max_blocks;
    }
  }
}

TEST(SoftwareGpuMemory, HoldsNanAtFirstAndIsRefusedOnceFreed) {
  float* const at = new_memory<float>(10);
  std::array<float, 10> values{};
  ASSERT_EQ(cudaMemcpy(values.data(), at, sizeof values, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_TRUE(std::ranges::all_of(values, [](float value) { return std::isnan(value); }));
  EXPECT_EQ(cudaMemcpy(values.data(), at + 1, sizeof values, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(at, at, sizeof values, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  ASSERT_EQ(cudaFree(at), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(values.data(), at, sizeof values, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(at), cudaErrorInvalidValue);
  EXPECT_NE(new_memory<float>(10), at);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST(SoftwareGpuMemory, IsRefusedOnAnotherDevice) {
  float* const at = new_memory<float>(4);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(at, 0, 16, new_stream()), cudaErrorInvalidValue);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST(SoftwareGpuMemory, AKernelThatUsesFreedMemoryEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        float* const at = new_memory<float>(4);
        static_cast<void>(cudaFree(at));
        static_cast<void>(run(new_stream(), {.grid = 1, .block = 1}, [at] { *at = 1.0F; }));
      },
      "the kernel 'a test' touches byte 0 of a block of 16 bytes of device memory that was freed");
  EXPECT_DEATH(
      {
        float* const at = new_memory<float>(64);
        static_cast<void>(run(new_stream(), {.grid = 1, .block = 1}, [at] { at[64] = 1.0F; }));
      },
      "the kernel 'a test' touches 0 bytes beyond the end of a block of 256 bytes of device memory");
}

TEST(SoftwareGpuMemory, IsNotAllocatedBehindAGate) {
  cudaStream_t stream = new_stream();
  Gate gate(stream);
  void* at = nullptr;
  EXPECT_EQ(cudaMalloc(&at, 16), cudaErrorMemoryAllocation);
  gate.open();
  EXPECT_EQ(cudaMalloc(&at, 16), cudaSuccess);
}

TEST(SoftwareGpuStreams, BlockTheHostWhenTheirQueueIsFull) {
  cudaStream_t stream = new_stream();
  Gate gate(stream);
  std::atomic<int> issued = 0;
  std::thread host([&] {
    for (int i = 0; i < 1200; ++i) {
      launch(&issued, "a test", {.grid = 1, .block = 1}, stream, [] {});
      ++issued;
    }
  });
  std::this_thread::sleep_for(300ms);
  EXPECT_LE(issued, 1000);
  gate.open();
  host.join();
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

TEST(SoftwareGpuStreams, AreUsedOnlyByTheirOwnersAndWhileTheyExist) {
  cudaStream_t stream = new_stream();
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  cudaEvent_t elsewhere = new_event();
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(elsewhere, stream), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
  cudaStream_t other = nullptr;
  EXPECT_EQ(cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, 1), cudaErrorInvalidValue);
}

TEST(SoftwareGpuStreams, EventsOrderWorkAndMeasureTime) {
  cudaStream_t first = new_stream();
  cudaStream_t second = new_stream();
  cudaEvent_t begin = new_event();
  cudaEvent_t end = new_event();
  cudaEvent_t untimed = new_event(cudaEventDisableTiming);
  float milliseconds = 0.0F;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorInvalidResourceHandle);
  int value = 0;
  Gate gate(first);
  ASSERT_EQ(cudaEventRecord(begin, first), cudaSuccess);
  launch(&value, "a test", {.grid = 1, .block = 1}, first, [&] { value = 1; });
  ASSERT_EQ(cudaEventRecord(untimed, first), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second, untimed, 0), cudaSuccess);
  launch(&value, "a test", {.grid = 1, .block = 1}, second, [&] { value *= 2; });
  ASSERT_EQ(cudaEventRecord(end, second), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorNotReady);
  gate.open();
  ASSERT_EQ(cudaStreamSynchronize(second), cudaSuccess);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, untimed), cudaErrorInvalidResourceHandle);
}

class SoftwareGpuGraphs : public testing::Test {
 protected:
  void SetUp() override {
    static_cast<void>(cudaGetLastError());  // clears errors of earlier tests
    ASSERT_EQ(cudaStreamBeginCapture(origin_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  }
  void add(cudaStream_t stream, std::function<void()> body) {
    launch(this, "a test", {.grid = 1, .block = 1}, stream, std::move(body));
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  void fork() {
    ASSERT_EQ(cudaEventRecord(event_, origin_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(other_, event_, 0), cudaSuccess);
  }
  cudaError_t end() { return cudaStreamEndCapture(origin_, &graph_); }

  cudaStream_t origin_ = new_stream();
  cudaStream_t other_ = new_stream();
  cudaEvent_t event_ = new_event();
  cudaGraph_t graph_ = nullptr;
};

TEST_F(SoftwareGpuGraphs, RunTheCapturedWorkAtEveryLaunch) {
  int value = 1;
  add(origin_, [&] { value += 2; });
  fork();
  add(other_, [&] { value *= 3; });
  ASSERT_EQ(cudaEventRecord(event_, other_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(origin_, event_, 0), cudaSuccess);
  add(origin_, [&] { value -= 1; });
  ASSERT_EQ(end(), cudaSuccess);
  EXPECT_EQ(value, 1);
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph_, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(executable, origin_), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(executable, other_), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(value, ((1 + 2) * 3 - 1 + 2) * 3 - 1);
  ASSERT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, origin_), cudaErrorInvalidValue);
}

TEST_F(SoftwareGpuGraphs, RequireThatEveryStreamIsJoined) {
  fork();
  add(other_, [] {});
  EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph_, nullptr);
}

TEST_F(SoftwareGpuGraphs, ANodeAfterTheLastRecordIsUnjoined) {
  fork();
  ASSERT_EQ(cudaEventRecord(event_, other_), cudaSuccess);
  ASSERT_EQ(cudaEventRecordWithFlags(new_event(), other_, cudaEventRecordExternal), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(origin_, event_, 0), cudaSuccess);
  EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);
}

TEST_F(SoftwareGpuGraphs, DoNotWaitForUncapturedWork) {
  cudaEvent_t before = new_event();
  ASSERT_EQ(cudaEventRecord(before, other_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(origin_, before, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(SoftwareGpuGraphs, AllocateNothingAndDoNotSynchronize) {
  void* at = nullptr;
  EXPECT_EQ(cudaStreamQuery(origin_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaMalloc(&at, 16), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(SoftwareGpuGraphs, AnotherThreadMayAllocateButNotEndTheCapture) {
  std::thread([&] {
    void* at = nullptr;
    EXPECT_EQ(cudaMalloc(&at, 16), cudaSuccess);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(origin_, &graph), cudaErrorStreamCaptureWrongThread);
  }).join();
  EXPECT_EQ(end(), cudaSuccess);
}

template <class Function>
Function driver(const char* name, unsigned version) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &result), cudaSuccess);
  return reinterpret_cast<Function>(address);
}

CUdevResource whole_device() {
  CUdevResource whole{};
  EXPECT_EQ(
      driver<PFN_cuDeviceGetDevResource_v12040>("cuDeviceGetDevResource", 12040)(0, &whole, CU_DEV_RESOURCE_TYPE_SM),
      CUDA_SUCCESS);
  return whole;
}

CUgreenCtx context_of(unsigned multiprocessors) {
  const CUdevResource whole = whole_device();
  CUdevResource part{};
  CUdevResource rest{};
  unsigned groups = 1;
  EXPECT_EQ(driver<PFN_cuDevSmResourceSplitByCount_v12040>("cuDevSmResourceSplitByCount", 12040)(
                &part, &groups, &whole, &rest, 0, multiprocessors),
            CUDA_SUCCESS);
  CUdevResourceDesc description = nullptr;
  EXPECT_EQ(driver<PFN_cuDevResourceGenerateDesc_v12040>("cuDevResourceGenerateDesc", 12040)(&description, &part, 1),
            CUDA_SUCCESS);
  CUgreenCtx context = nullptr;
  EXPECT_EQ(driver<PFN_cuGreenCtxCreate_v12040>("cuGreenCtxCreate", 12040)(&context, description, 0,
                                                                           CU_GREEN_CTX_DEFAULT_STREAM),
            CUDA_SUCCESS);
  return context;
}

TEST(SoftwareGpuContexts, MultiprocessorsComeInGroupsOfEight) {
  const CUdevResource whole = whole_device();
  const auto split = driver<PFN_cuDevSmResourceSplitByCount_v12040>("cuDevSmResourceSplitByCount", 12040);
  CUdevResource part{};
  CUdevResource rest{};
  unsigned groups = 1;
  ASSERT_EQ(split(&part, &groups, &whole, &rest, 0, 17), CUDA_SUCCESS);
  EXPECT_EQ(part.sm.smCount, 24U);
  EXPECT_EQ(rest.sm.smCount, 132U - 24U);
  EXPECT_EQ(split(&part, &groups, &whole, &rest, 0, 133), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  EXPECT_EQ(driver<PFN_cuGreenCtxStreamCreate_v12050>("cuGreenCtxStreamCreate", 12040), nullptr)
      << "added in CUDA 12.5";
}

TEST(SoftwareGpuContexts, AreDestroyedBeforeTheProcessEndsAndAfterTheirStreams) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        static_cast<void>(context_of(8));
        std::exit(0);  // NOLINT(concurrency-mt-unsafe)
      },
      testing::ExitedWithCode(98), "1 green contexts that were not given back");
  EXPECT_DEATH(
      {
        CUgreenCtx context = context_of(8);
        CUstream stream = nullptr;
        static_cast<void>(driver<PFN_cuGreenCtxStreamCreate_v12050>("cuGreenCtxStreamCreate", 12050)(
            &stream, context, CU_STREAM_NON_BLOCKING, 0));
        static_cast<void>(driver<PFN_cuGreenCtxDestroy_v12040>("cuGreenCtxDestroy", 12040)(context));
      },
      "a green context is destroyed that still has a stream");
}

/// A GEMM of 8 x 8 matrices by the first usable algorithm that cuBLASLt's double offers.
class Gemm {
 public:
  Gemm() {
    EXPECT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulDescInit_internal(&description_, sizeof description_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutInit_internal(&layout_, sizeof layout_, CUDA_R_32F, 8, 8, 8), CUBLAS_STATUS_SUCCESS);
    cublasLtMatmulPreferenceOpaque_t preference{};
    EXPECT_EQ(cublasLtMatmulPreferenceInit_internal(&preference, sizeof preference), CUBLAS_STATUS_SUCCESS);
    const std::uint64_t bytes = workspace_bytes;
    EXPECT_EQ(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                                   sizeof bytes),
              CUBLAS_STATUS_SUCCESS);
    std::array<cublasLtMatmulHeuristicResult_t, 8> results{};
    int count = 0;
    EXPECT_EQ(cublasLtMatmulAlgoGetHeuristic(handle_, &description_, &layout_, &layout_, &layout_, &layout_,
                                             &preference, 8, results.data(), &count),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(results[0].state, CUBLAS_STATUS_NOT_SUPPORTED) << "callers must check the state";
    algorithm_ = results[1].algo;
    needed_ = results[1].workspaceSize;
  }

  cublasStatus_t run(cudaStream_t stream, void* workspace, std::size_t bytes, std::size_t shift = 0) {
    const float alpha = 1.0F;
    const float zero = 0.0F;
    return cublasLtMatmul(handle_, &description_, &alpha, a_ + shift, &layout_, b_, &layout_, &zero, d_, &layout_, d_,
                          &layout_, &algorithm_, workspace, bytes, stream);
  }

  static constexpr std::size_t workspace_bytes = 4096;
  [[nodiscard]] std::size_t needed() const { return needed_; }

 private:
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDescOpaque_t description_{};
  cublasLtMatrixLayoutOpaque_t layout_{};
  cublasLtMatmulAlgo_t algorithm_{};
  std::size_t needed_ = 0;
  float* a_ = new_memory<float>(80);
  float* b_ = new_memory<float>(64);
  float* d_ = new_memory<float>(64);
};

TEST(SoftwareGpuGemms, AreRefusedWithoutTheirWorkspace) {
  Gemm gemm;
  cudaStream_t stream = new_stream();
  float* const workspace = new_memory<float>(1024);
  ASSERT_GT(gemm.needed(), 0U);
  EXPECT_EQ(gemm.run(stream, workspace, gemm.needed() - 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm.run(stream, workspace, Gemm::workspace_bytes), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

TEST(SoftwareGpuGemms, BeyondTheirMemoryReportAnIllegalAddress) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // the error stays with the process
  EXPECT_EXIT(
      {
        Gemm gemm;
        cudaStream_t stream = new_stream();
        float* const workspace = new_memory<float>(1024);
        static_cast<void>(gemm.run(stream, workspace, Gemm::workspace_bytes, 20));
        const bool first = cudaStreamSynchronize(stream) == cudaErrorIllegalAddress;
        void* at = nullptr;
        std::_Exit(first && cudaMalloc(&at, 16) == cudaErrorIllegalAddress ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

constexpr ncclConfig_t blocking = [] {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  return config;
}();

/// Runs threads, each with its own device, stream and communicator.
template <class Body>
void on_ranks(int ranks, const Body& body) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ASSERT_EQ(cudaSetDevice(rank), cudaSuccess);
      ncclConfig_t config = blocking;
      ncclComm_t comm = nullptr;
      ASSERT_EQ(ncclCommInitRankConfig(&comm, ranks, id, rank, &config), ncclSuccess);
      body(rank, comm, new_stream());
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

unsigned short bf16(float value) { return __float2bfloat16_rn(value).bits; }

TEST(SoftwareGpuNccl, SumsInBf16AreRoundedAtEveryHopOfTheRing) {
  // Chunk 0 begins at rank 1: (1 + 2^-8) rounds to 1, twice; a sum that begins at rank 2 would count 2^-8 + 2^-8.
  const std::array<float, 3> values{0x1p-8F, 1.0F, 0x1p-8F};
  on_ranks(3, [&](int rank, ncclComm_t comm, cudaStream_t stream) {
    auto* const from = new_memory<unsigned short>(3);
    auto* const to = new_memory<unsigned short>(1);
    const std::array<unsigned short, 3> mine{bf16(values[static_cast<std::size_t>(rank)]), bf16(0.0F), bf16(0.0F)};
    ASSERT_EQ(cudaMemcpy(from, mine.data(), sizeof mine, cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(ncclReduceScatter(from, to, 1, ncclBfloat16, ncclSum, comm, stream), ncclSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    unsigned short sum = 0;
    ASSERT_EQ(cudaMemcpy(&sum, to, sizeof sum, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(sum, bf16(rank == 0 ? 1.0F : 0.0F));
    EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(SoftwareGpuNccl, CommunicatorsInDifferentOrdersWaitUntilTheyAreAborted) {
  std::atomic<int> stuck = 0;
  on_ranks(2, [&](int rank, ncclComm_t parent, cudaStream_t stream) {
    std::array<ncclComm_t, 2> comms{};
    auto* const at = new_memory<float>(4);
    for (ncclComm_t& comm : comms) {
      ncclConfig_t config = blocking;
      ASSERT_EQ(ncclCommSplit(parent, 0, rank, &comm, &config), ncclSuccess);
      ASSERT_EQ(ncclAllReduce(at, at, 4, ncclFloat32, ncclSum, comm, stream), ncclSuccess);  // the first call connects
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    }
    const auto first = static_cast<std::size_t>(rank);
    for (const std::size_t index : {first, 1 - first}) {
      ASSERT_EQ(ncclAllReduce(at, at, 4, ncclFloat32, ncclSum, comms[index], stream), ncclSuccess);
    }
    std::this_thread::sleep_for(300ms);
    stuck += cudaStreamQuery(stream) == cudaErrorNotReady ? 1 : 0;
    for (ncclComm_t comm : comms) {
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    }
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  });
  EXPECT_EQ(stuck, 2);
}

TEST(SoftwareGpuNccl, ANonblockingGroupContinuesInAnotherThread) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclConfig_t config = blocking;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInProgress);
  const auto settle = [&] {
    for (ncclResult_t status = ncclInProgress; status == ncclInProgress;) {
      ASSERT_EQ(ncclCommGetAsyncError(comm, &status), ncclSuccess);
    }
  };
  settle();
  auto* const at = new_memory<float>(4);
  cudaStream_t stream = new_stream();
  EXPECT_EQ(ncclAllReduce(at, at, 4, ncclFloat32, ncclSum, comm, stream), ncclInProgress);
  settle();
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(ncclCommFinalize(comm), ncclInProgress);
  settle();
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

/// Returns a graph that holds one all-reduce, whose communicator is connected before the capture.
cudaGraphExec_t graph_of_all_reduce(ncclComm_t comm, cudaStream_t stream) {
  auto* const at = new_memory<float>(4);
  const auto issue = [&] { EXPECT_EQ(ncclAllReduce(at, at, 4, ncclFloat32, ncclSum, comm, stream), ncclSuccess); };
  issue();
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  issue();
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  return executable;
}

TEST(SoftwareGpuNccl, ACommunicatorEndsAfterTheGraphsThatHoldItsOperations) {
  on_ranks(1, [](int /*rank*/, ncclComm_t comm, cudaStream_t stream) {
    cudaGraphExec_t graph = graph_of_all_reduce(comm, stream);
    std::atomic<bool> is_destroyed = false;
    std::thread destroyer([&] {
      std::this_thread::sleep_for(100ms);
      is_destroyed = true;
      EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
    });
    EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess);
    EXPECT_TRUE(is_destroyed.load());
    destroyer.join();
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(SoftwareGpuNccl, AnAbortWhileAGraphHoldsAnOperationEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(on_ranks(1,
                        [](int /*rank*/, ncclComm_t comm, cudaStream_t stream) {
                          static_cast<void>(graph_of_all_reduce(comm, stream));
                          static_cast<void>(ncclCommAbort(comm));
                        }),
               "a communicator ends before a graph that holds its operations");
}

/// Memory of one page that is a window of the communicator.
struct Window {
  ncclComm_t comm;
  unsigned char* at = nullptr;
  ncclWindow_t window = nullptr;

  explicit Window(ncclComm_t communicator) : comm(communicator) {
    void* memory = nullptr;
    EXPECT_EQ(ncclMemAlloc(&memory, 4096), ncclSuccess);
    at = static_cast<unsigned char*>(memory);
    EXPECT_EQ(ncclCommWindowRegister(comm, at, 4096, &window, NCCL_WIN_COLL_SYMMETRIC), ncclSuccess);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() {
    EXPECT_EQ(ncclCommWindowDeregister(comm, window), ncclSuccess);
    EXPECT_EQ(ncclMemFree(at), ncclSuccess);
  }
};

void end(ncclComm_t comm) {
  EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(SoftwareGpuNccl, APutHasArrivedOnceItsSignalHas) {
  on_ranks(3, [&](int rank, ncclComm_t comm, cudaStream_t stream) {
    {
      const Window window(comm);
      const int next = (rank + 1) % 3;
      const int previous = (rank + 2) % 3;
      ASSERT_EQ(cudaMemsetAsync(window.at, rank + 1, 64, stream), cudaSuccess);
      ASSERT_EQ(ncclSignal(next, 0, 0, 0, comm, stream), ncclSuccess);
      ASSERT_EQ(ncclPutSignal(window.at, 64, ncclUint8, next, window.window, 128, 0, 0, 0, comm, stream), ncclSuccess);
      ncclWaitSignalDesc_t two_signals{.opCnt = 2, .peer = previous, .sigIdx = 0, .ctx = 0};
      ASSERT_EQ(ncclWaitSignal(1, &two_signals, comm, stream), ncclSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      std::array<unsigned char, 64> got{};
      ASSERT_EQ(cudaMemcpy(got.data(), window.at + 128, got.size(), cudaMemcpyDeviceToHost), cudaSuccess);
      for (const unsigned char byte : got) {
        ASSERT_EQ(byte, previous + 1);
      }
    }
    end(comm);
  });
}

TEST(SoftwareGpuNccl, PutsAndSignalsThatNcclWouldRefuseAreRefused) {
  on_ranks(1, [&](int /*rank*/, ncclComm_t comm, cudaStream_t stream) {
    EXPECT_EQ(ncclSignal(0, 0, 0, 0, comm, stream), ncclInvalidUsage);  // before any window
    {
      const Window window(comm);
      auto* const outside = new_memory<unsigned char>(64);
      const auto put = [&](const void* from, std::size_t offset, int peer, int signal, unsigned flags) {
        return ncclPutSignal(from, 64, ncclUint8, peer, window.window, offset, signal, 0, flags, comm, stream);
      };
      EXPECT_EQ(put(outside, 0, 0, 0, 0), ncclInvalidArgument);
      EXPECT_EQ(put(window.at, 4090, 0, 0, 0), ncclInvalidArgument);
      EXPECT_EQ(put(window.at, 0, 1, 0, 0), ncclInvalidArgument);
      EXPECT_EQ(put(window.at, 0, 0, 1, 0), ncclInvalidArgument);
      EXPECT_EQ(put(window.at, 0, 0, 0, 1), ncclInvalidArgument);
      ncclWaitSignalDesc_t nothing{.opCnt = 0, .peer = 0, .sigIdx = 0, .ctx = 0};
      EXPECT_EQ(ncclWaitSignal(1, &nothing, comm, stream), ncclInvalidArgument);
      EXPECT_EQ(put(window.at, 256, 0, 0, 0), ncclSuccess);
      ncclWaitSignalDesc_t mine{.opCnt = 1, .peer = 0, .sigIdx = 0, .ctx = 0};
      EXPECT_EQ(ncclWaitSignal(1, &mine, comm, stream), ncclSuccess);
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    }
    end(comm);
  });
}

TEST(SoftwareGpuNccl, UnconsumedSignalsEndTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(on_ranks(1,
                        [](int /*rank*/, ncclComm_t comm, cudaStream_t stream) {
                          {
                            const Window window(comm);
                            static_cast<void>(ncclSignal(0, 0, 0, 0, comm, stream));
                            static_cast<void>(cudaStreamSynchronize(stream));
                          }
                          end(comm);
                        }),
               "a communicator is destroyed with signals that nobody waited for");
  EXPECT_DEATH(
      {
        ::setenv("SOFTWARE_GPU_NCCL", "2.28.9", 1);  // NOLINT(concurrency-mt-unsafe)
        static_cast<void>(ncclSignal(0, 0, 0, 0, nullptr, nullptr));
      },
      "ncclSignal is called, which NCCL 22809 lacks");
}

TEST(SoftwareGpuNccl, TwoRanksOnOneGpuAreRefused) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      ncclConfig_t config = blocking;
      ncclComm_t comm = nullptr;
      EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, rank, &config), ncclInvalidUsage);
      EXPECT_STREQ(ncclGetLastError(comm), "Duplicate GPU detected");
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(SoftwareGpuNccl, MessagesOfUnequalSizesAndMissingCallsEndTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(on_ranks(2,
                        [](int rank, ncclComm_t comm, cudaStream_t stream) {
                          auto* const at = new_memory<float>(8);
                          static_cast<void>(rank == 0 ? ncclSend(at, 4, ncclFloat32, 1, comm, stream)
                                                      : ncclRecv(at, 8, ncclFloat32, 0, comm, stream));
                          static_cast<void>(cudaStreamSynchronize(stream));
                        }),
               "rank 0 sends 16 bytes to rank 1, which receives 32");
  EXPECT_DEATH(
      {
        ::setenv("SOFTWARE_GPU_NCCL", "2.18.5", 1);  // NOLINT(concurrency-mt-unsafe)
        void* at = nullptr;
        static_cast<void>(ncclMemAlloc(&at, 16));
      },
      "ncclMemAlloc is called, which NCCL 21805 lacks");
}

}  // namespace
}  // namespace software_gpu

int main(int argc, char** argv) {
  // NOLINTBEGIN(concurrency-mt-unsafe): no other threads run yet
  ::setenv("SOFTWARE_GPU_DEVICES", "3", 1);
  ::setenv("SOFTWARE_GPU_PATIENCE_MS", "200", 1);
  // NOLINTEND(concurrency-mt-unsafe)
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
