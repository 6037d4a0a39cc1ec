// SPDX-License-Identifier: Apache-2.0
// Implements the interface of the plugin.
#include "validate/cuda/cuda_module.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "validate/cuda/build_id.h"
#include "validate/cuda/module/cuda_copier.h"
#include "validate/cuda/module/cuda_driver.h"
#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/peer_memory.h"
#include "validate/cuda/module/versions.h"
#ifdef COMMFUSE_WITH_NCCL
#include "validate/cuda/module/nccl_library.h"
#include "validate/cuda/module/nccl_network.h"
#endif

namespace commfuse::validate {

namespace {

/// Sets variables that the driver reads before it creates a context. Lanes need separate hardware queues, but an
/// environment for Megatron allows only one. Kernels are loaded at the start, because loading one behind a closed gate
/// would block the host, which could then not open the gate.
void prepare_environment() {
  // NOLINTBEGIN(concurrency-mt-unsafe): no other threads run yet
  constexpr long queues = 32;
  const char* chosen = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  if (chosen == nullptr || std::strtol(chosen, nullptr, 10) < queues) {
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(queues).c_str(), 1);
  }
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  // NOLINTEND(concurrency-mt-unsafe)
}

class Module final : public CudaModule {
 public:
  [[nodiscard]] const char* build_id() const override { return id_.c_str(); }

  [[nodiscard]] int devices() const override {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaErrorNoDevice) {
      return 0;
    }
    if (status == cudaErrorInsufficientDriver) {
      refuse_driver();
    }
    require(status, "looking for GPUs");
    return count;
  }

  [[nodiscard]] std::unique_ptr<Driver> open(int device) const override { return std::make_unique<CudaDriver>(device); }
  [[nodiscard]] std::unique_ptr<Copier> make_copier(Duration patience) const override {
    return make_cuda_copier(devices(), patience);
  }

  [[nodiscard]] std::unique_ptr<Peers> peers(Driver& driver) const override {
    return make_peers(static_cast<CudaDriver&>(driver));  // all drivers of this process come from open()
  }

#ifdef COMMFUSE_WITH_NCCL
  [[nodiscard]] std::string nccl_absence() const override { return NcclLibrary::instance().absence(); }
  [[nodiscard]] NetworkKey make_key() const override { return make_nccl_key(NcclLibrary::instance()); }
  [[nodiscard]] std::unique_ptr<Network> connect(Driver& driver, const NetworkKey& key, int rank, int ranks,
                                                 const NetworkOptions& options) const override {
    // All drivers of this process come from open().
    return connect_nccl(NcclLibrary::instance(), static_cast<CudaDriver&>(driver), key, {rank, ranks}, options);
  }
#else
  [[nodiscard]] std::string nccl_absence() const override {
    return "this build has no NCCL; install NCCL 2.18 or later and build again";
  }
  [[nodiscard]] NetworkKey make_key() const override { refuse(); }
  [[nodiscard]] std::unique_ptr<Network> connect(Driver& /*driver*/, const NetworkKey& /*key*/, int /*rank*/,
                                                 int /*ranks*/, const NetworkOptions& /*options*/) const override {
    refuse();
  }
#endif

 private:
#ifndef COMMFUSE_WITH_NCCL
  [[noreturn]] void refuse() const { throw std::runtime_error(nccl_absence()); }
#endif

  /// Distinguishes two causes for which CUDA reports the same error.
  [[noreturn]] static void refuse_driver() {
    int version = 0;
    if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) {
      throw std::runtime_error("no NVIDIA driver is installed; install it, or run on a machine with a GPU");
    }
    throw std::runtime_error("the driver supports CUDA " + cuda_version_in_words(version) +
                             ", but this build needs CUDA " + cuda_version_in_words(CUDART_VERSION) +
                             "; install a newer driver");
  }

  std::string id_ = build_id_in_words();
};

}  // namespace

}  // namespace commfuse::validate

/// The function whose name is cuda_module_entry; the caller owns the result.
extern "C" commfuse::validate::CudaModule* commfuse_cuda_module_5() {
  commfuse::validate::prepare_environment();
  return new commfuse::validate::Module;
}
