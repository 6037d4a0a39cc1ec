// SPDX-License-Identifier: Apache-2.0
// Loads the plugin for GPUs, and states in one sentence which of module, driver and device is missing, if any.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "validate/cuda/cuda_module.h"

namespace commfuse::validate {

/// `module` is set if it was loaded; `missing` is empty if the module also finds a device.
struct CudaPlugin {
  std::unique_ptr<CudaModule> module;
  std::string missing;

  [[nodiscard]] bool usable() const { return missing.empty(); }
};

/// Loads the file that COMMFUSE_CUDA_PLUGIN names; by default the file in ../lib/commfuse, relative to the program,
/// where the build and the installation put it.
CudaPlugin load_cuda_plugin();
/// Loads a given file, from the user or a test.
CudaPlugin load_cuda_plugin(const std::filesystem::path& path);

}  // namespace commfuse::validate
