// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/load.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "model/build_info.h"
#include "validate/cuda/build_id.h"

namespace commfuse::validate {

namespace {

constexpr auto remedy = "install the CUDA Toolkit, 12.4 or later, and build again";

std::filesystem::path plugin_path() {
  const char* chosen = std::getenv("COMMFUSE_CUDA_PLUGIN");  // NOLINT(concurrency-mt-unsafe)
  if (chosen != nullptr && *chosen != '\0') {
    return chosen;
  }
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  return program / "../lib/commfuse/libcommfuse_cuda.so";
}

/// Returns why the module cannot be used; empty if it can.
std::string missing_device(const CudaModule& module) {
  try {
    return module.devices() > 0 ? "" : "no GPU: the driver shows none; check nvidia-smi and CUDA_VISIBLE_DEVICES";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

}  // namespace

CudaPlugin load_cuda_plugin(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) {
    return {.module = nullptr, .missing = fmt::format("this build has no CUDA ({}); {}", build_info().cuda, remedy)};
  }
  void* loaded = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    return {.module = nullptr, .missing = fmt::format("CUDA cannot be loaded: {}; {}", ::dlerror(), remedy)};
  }
  void* entry = ::dlsym(loaded, cuda_module_entry);
  if (entry == nullptr) {
    return {.module = nullptr,
            .missing = fmt::format("{} belongs to another version of this program; reinstall both", path.string())};
  }
  // NOLINTNEXTLINE(*-reinterpret-cast): what dlsym() is for
  std::unique_ptr<CudaModule> module(reinterpret_cast<OpenCudaModule>(entry)());
  if (module->build_id() != build_id_in_words()) {
    return {.module = nullptr,
            .missing = fmt::format("{} was built from {}, this program from {}; reinstall both", path.string(),
                                   module->build_id(), build_id_in_words())};
  }
  std::string missing = missing_device(*module);
  return {.module = std::move(module), .missing = std::move(missing)};
}

CudaPlugin load_cuda_plugin() { return load_cuda_plugin(plugin_path()); }

}  // namespace commfuse::validate
