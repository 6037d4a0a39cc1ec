// SPDX-License-Identifier: Apache-2.0
// The way to the GPU: whether the module is there, the driver, a device; and if not, why, in one sentence.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "validate/cuda/cuda_module.h"

namespace commfuse::validate {

/// `module` is there when it was loaded; `missing` is empty when it finds a device, too.
struct CudaPlugin {
  std::unique_ptr<CudaModule> module;
  std::string missing;

  [[nodiscard]] bool usable() const { return missing.empty(); }
};

/// From the file that COMMFUSE_CUDA_PLUGIN names, else from ../lib/commfuse beside the program, where the build and the
/// installation put it.
CudaPlugin load_cuda_plugin();
/// From a file of the user's, or of a test's.
CudaPlugin load_cuda_plugin(const std::filesystem::path& path);

}  // namespace commfuse::validate
