// SPDX-License-Identifier: Apache-2.0
// Contracts of the doubles for memory that processes share and for stream memory operations. The other process runs
// this same program: one of the disabled tests below, with a handle.
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace software_gpu {
namespace {

constexpr unsigned since = 11070;
constexpr std::size_t count = 3000;  // number of values, which is not a multiple of a page

template <class Function>
Function driver_entry(const char* name, unsigned version = since) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &result), cudaSuccess);
  return reinterpret_cast<Function>(address);
}

CUresult write_flag(cudaStream_t stream, const unsigned* flag, unsigned value) {
  return driver_entry<PFN_cuStreamWriteValue32_v11070>("cuStreamWriteValue32")(
      stream, reinterpret_cast<CUdeviceptr>(flag), value, CU_STREAM_WRITE_VALUE_DEFAULT);
}
CUresult wait_for_flag(cudaStream_t stream, const unsigned* flag, unsigned value) {
  return driver_entry<PFN_cuStreamWaitValue32_v11070>("cuStreamWaitValue32")(
      stream, reinterpret_cast<CUdeviceptr>(flag), value, CU_STREAM_WAIT_VALUE_GEQ | CU_STREAM_WAIT_VALUE_FLUSH);
}

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0), cudaSuccess);
  return stream;
}

unsigned* allocated_numbers(unsigned value) {
  void* at = nullptr;
  EXPECT_EQ(cudaMalloc(&at, count * sizeof(unsigned)), cudaSuccess);
  const std::vector<unsigned> values(count, value);
  EXPECT_EQ(cudaMemcpy(at, values.data(), count * sizeof(unsigned), cudaMemcpyHostToDevice), cudaSuccess);
  return static_cast<unsigned*>(at);
}

std::vector<unsigned> values_at(const void* at) {
  std::vector<unsigned> values(count);
  EXPECT_EQ(cudaMemcpy(values.data(), at, count * sizeof(unsigned), cudaMemcpyDeviceToHost), cudaSuccess);
  return values;
}

cudaIpcMemHandle_t handle_of(void* at) {
  cudaIpcMemHandle_t handle{};
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, at), cudaSuccess);
  return handle;
}

using Pipe = std::unique_ptr<FILE, decltype(&::pclose)>;

/// Starts a disabled test of this program in another process, whose output can be read.
Pipe started(const std::string& test, const cudaIpcMemHandle_t& handle) {
  std::string text;
  for (const char byte : handle.reserved) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  const std::string command = fmt::format(
      "SHARED_HANDLE={} /proc/{}/exe --gtest_also_run_disabled_tests --gtest_filter=OtherProcess.DISABLED_{}", text,
      ::getpid(), test);
  return Pipe(::popen(command.c_str(), "r"), &::pclose);
}

/// True if the test passed in the other process.
bool passes(const std::string& test, const cudaIpcMemHandle_t& handle) {
  Pipe pipe = started(test, handle);
  std::array<char, 256> line{};
  std::string text;
  while (std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    text += line.data();
  }
  const bool passed = ::pclose(pipe.release()) == 0;
  EXPECT_TRUE(passed) << text;
  return passed;
}

cudaIpcMemHandle_t handle_from_environment() {
  const std::string text = std::getenv("SHARED_HANDLE");  // NOLINT(concurrency-mt-unsafe): nobody changes it
  cudaIpcMemHandle_t handle{};
  for (std::size_t i = 0; i < sizeof handle.reserved; ++i) {
    handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return handle;
}

cudaError_t open_handle_from_environment(void** at) {
  return cudaIpcOpenMemHandle(at, handle_from_environment(), cudaIpcMemLazyEnablePeerAccess);
}

TEST(OtherProcess, DISABLED_AddsOne) {
  void* at = nullptr;
  ASSERT_EQ(open_handle_from_environment(&at), cudaSuccess);
  void* second = nullptr;
  EXPECT_EQ(open_handle_from_environment(&second),
            cudaSuccess);  // the second opening is counted and has the same address
  EXPECT_EQ(second, at);
  EXPECT_EQ(cudaIpcCloseMemHandle(second), cudaSuccess);
  EXPECT_EQ(values_at(at), std::vector<unsigned>(count, 7));
  cudaStream_t stream = new_stream();
  unsigned* eights = allocated_numbers(8);  // copies between two devices, as a copy engine does
  EXPECT_EQ(cudaMemcpyAsync(at, eights, count * sizeof(unsigned), cudaMemcpyDeviceToDevice, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaFree(at), cudaErrorInvalidValue) << "the memory belongs to another process";
  EXPECT_EQ(cudaIpcCloseMemHandle(at), cudaSuccess);
  EXPECT_EQ(cudaIpcCloseMemHandle(at), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(at, eights, sizeof(unsigned), cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
}

TEST(OtherProcess, DISABLED_FindsNothing) {
  void* at = nullptr;
  EXPECT_EQ(open_handle_from_environment(&at), cudaErrorMapBufferObjectFailed);
}

TEST(OtherProcess, DISABLED_SetsAFlag) {
  void* at = nullptr;
  ASSERT_EQ(open_handle_from_environment(&at), cudaSuccess);
  cudaStream_t stream = new_stream();
  EXPECT_EQ(write_flag(stream, static_cast<unsigned*>(at), 8), CUDA_SUCCESS);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaIpcCloseMemHandle(at), cudaSuccess);
}

TEST(OtherProcess, DISABLED_KeepsItOpen) {
  void* at = nullptr;
  ASSERT_EQ(open_handle_from_environment(&at), cudaSuccess);
  for (int i = 0; i < 300; ++i) {  // waits until the reader has ended
    std::printf("it is open\n");
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

TEST(SoftwareGpuSharing, AProcessReadsWhatAnotherWrites) {
  unsigned* owned = allocated_numbers(7);
  ASSERT_TRUE(passes("AddsOne", handle_of(owned)));
  EXPECT_EQ(values_at(owned), std::vector<unsigned>(count, 8));
  EXPECT_EQ(cudaFree(owned), cudaSuccess);  // the other process has closed it
}

TEST(SoftwareGpuSharing, AHandleIsOpenedInOtherProcessesWhileItsMemoryExists) {
  unsigned* owned = allocated_numbers(7);
  const cudaIpcMemHandle_t handle = handle_of(owned);
  void* at = nullptr;
  EXPECT_EQ(cudaIpcOpenMemHandle(&at, handle, cudaIpcMemLazyEnablePeerAccess), cudaErrorDeviceUninitialized);
  EXPECT_EQ(cudaIpcOpenMemHandle(&at, handle, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaIpcOpenMemHandle(&at, {}, cudaIpcMemLazyEnablePeerAccess), cudaErrorInvalidValue);
  cudaIpcMemHandle_t none{};
  // the address is not the beginning of a block
  EXPECT_EQ(cudaIpcGetMemHandle(&none, owned + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(owned), cudaSuccess);
  EXPECT_TRUE(passes("FindsNothing", handle));
  EXPECT_EQ(cudaIpcGetMemHandle(&none, owned), cudaErrorInvalidValue);
}

void free_memory_that_another_has_open() {
  unsigned* owned = allocated_numbers(7);
  const Pipe other = started("KeepsItOpen", handle_of(owned));
  std::array<char, 256> line{};
  while (std::strstr(line.data(), "it is open") == nullptr &&
         std::fgets(line.data(), line.size(), other.get()) != nullptr) {
  }
  cudaFree(owned);
}

TEST(SoftwareGpuSharing, DoesNotFreeMemoryThatAnotherProcessHasOpen) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(free_memory_that_another_has_open(), "memory is freed that process [0-9]+ has open");
}

TEST(SoftwareGpuSharing, AFlagBlocksOnlyItsOwnStream) {
  unsigned* flag = allocated_numbers(7);
  cudaStream_t waiting_stream = new_stream();
  cudaStream_t other_stream = new_stream();
  ASSERT_EQ(wait_for_flag(waiting_stream, flag, 8), CUDA_SUCCESS);
  ASSERT_EQ(cudaMemsetAsync(flag + 1, 0xff, sizeof(unsigned), waiting_stream), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(flag + 2, 0xff, sizeof(unsigned), other_stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(other_stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(waiting_stream), cudaErrorNotReady);
  EXPECT_EQ(values_at(flag)[1], 7U);
  EXPECT_EQ(values_at(flag)[2], ~0U);
  ASSERT_EQ(write_flag(other_stream, flag, 9), CUDA_SUCCESS);  // any value of at least 8 releases the wait
  EXPECT_EQ(cudaStreamSynchronize(waiting_stream), cudaSuccess);
  EXPECT_EQ(values_at(flag)[1], ~0U);
}

TEST(SoftwareGpuSharing, AnotherProcessUnblocksAStream) {
  unsigned* flag = allocated_numbers(7);
  cudaStream_t waiting_stream = new_stream();
  const cudaIpcMemHandle_t handle = handle_of(flag);
  ASSERT_EQ(wait_for_flag(waiting_stream, flag, 8), CUDA_SUCCESS);
  EXPECT_TRUE(passes("SetsAFlag", handle));
  EXPECT_EQ(cudaStreamSynchronize(waiting_stream), cudaSuccess);
}

TEST(SoftwareGpuSharing, FlagsWrapAround) {
  unsigned* flag = allocated_numbers(~0U);
  cudaStream_t stream = new_stream();
  cudaStream_t other_stream = new_stream();
  ASSERT_EQ(wait_for_flag(stream, flag, ~0U - 1), CUDA_SUCCESS);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  ASSERT_EQ(wait_for_flag(stream, flag, 1), CUDA_SUCCESS);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  ASSERT_EQ(write_flag(other_stream, flag, 1), CUDA_SUCCESS);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

TEST(SoftwareGpuSharing, FlagsAreInDeviceMemoryAtMultiplesOfFour) {
  unsigned* flag = allocated_numbers(7);
  cudaStream_t stream = new_stream();
  const auto inside = reinterpret_cast<const unsigned*>(reinterpret_cast<std::uintptr_t>(flag) + 2);
  const unsigned host_flag = 7;
  for (const unsigned* wrong : {inside, &host_flag, static_cast<const unsigned*>(flag) + count}) {
    EXPECT_EQ(wait_for_flag(stream, wrong, 7), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(write_flag(stream, wrong, 7), CUDA_ERROR_INVALID_VALUE);
  }
  EXPECT_EQ(wait_for_flag(nullptr, flag, 7), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(driver_entry<void*>("cuStreamWaitValue32", since - 1), nullptr);
}

}  // namespace
}  // namespace software_gpu
