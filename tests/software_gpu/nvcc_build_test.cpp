// SPDX-License-Identifier: Apache-2.0
// The plugin as nvcc builds it, linked with the double of the runtime in place of NVIDIA's: the double has every
// function that the plugin calls, with the signatures of NVIDIA's headers, and every kernel is launched by a registered
// name. Skipped without nvcc.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "validate/cuda/cuda_module.h"

namespace commfuse::validate {
namespace {

#ifdef COMMFUSE_NVCC_BUILD

TEST(NvccBuild, CallsOnlyTheDoubleAndLaunchesItsKernels) {
  void* const loaded = ::dlopen(COMMFUSE_NVCC_BUILD, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(loaded, nullptr) << ::dlerror();
  // NOLINTBEGIN(*-reinterpret-cast): dlsym() needs the cast
  const auto registered = reinterpret_cast<int (*)(const char*)>(::dlsym(loaded, "software_gpu_registered"));
  const auto entry = reinterpret_cast<OpenCudaModule>(::dlsym(loaded, cuda_module_entry));
  // NOLINTEND(*-reinterpret-cast)
  ASSERT_NE(registered, nullptr);
  ASSERT_NE(entry, nullptr);
  for (const char* kernel : {"spin", "gate", "move", "randomize", "exact_product", "exact_attention"}) {
    EXPECT_GE(registered(kernel), 1) << kernel;
  }
  const std::unique_ptr<CudaModule> module(entry());
  ASSERT_GE(module->devices(), 1);
  const std::unique_ptr<Driver> driver = module->open(0);
  const StreamId stream = driver->make_stream(false);
  const Address at = driver->allocate({4096});
  const Panel panel{at, 2, 16, 16, DType::fp32};
  driver->randomize(stream, panel, 1);
  driver->spin(stream, std::chrono::microseconds(5));
  driver->move(stream, {.parts = {{panel, {at + 2048, 2, 16, 16, DType::fp32}}}, .wire = DType::fp32});
  EXPECT_TRUE(driver->finish(std::chrono::seconds(10)));
  driver->release(at);
}

#else

TEST(NvccBuild, NeedsNvcc) { GTEST_SKIP() << "this build has no CUDA Toolkit"; }

#endif

}  // namespace
}  // namespace commfuse::validate
