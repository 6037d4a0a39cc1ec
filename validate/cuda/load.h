// SPDX-License-Identifier: Apache-2.0
// Loads the plugin for GPUs: says if the module, the driver and a device exist, and if not, why, in one sentence.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "validate/cuda/cuda_module.h"

namespace commfuse::validate {

/// `module` is set if it was loaded; `missing` is empty if it also finds a device.
struct CudaPlugin {
  std::unique_ptr<CudaModule> module;
  std::string missing;

  [[nodiscard]] bool usable() const { return missing.empty(); }
};

/// Loads the file that COMMFUSE_CUDA_PLUGIN names, else the one in ../lib/commfuse beside the program, where the build
/// and the installation put it.
CudaPlugin load_cuda_plugin();
/// Loads a file of the user's, or of a test's.
CudaPlugin load_cuda_plugin(const std::filesystem::path& path);

}  // namespace commfuse::validate
