// SPDX-License-Identifier: Apache-2.0
// Interface of the module that uses CUDA. The program loads the module only when it is needed, so the program starts,
// and even runs, without CUDA.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

#include "validate/cuda/copier.h"
#include "validate/cuda/driver.h"
#include "validate/cuda/peers.h"

namespace commfuse::validate {

/// The number at the end of the name changes with the layout of CudaModule and of everything that it returns.
inline constexpr const char* cuda_module_entry = "commfuse_cuda_module_5";

/// A key that processes share to communicate by NCCL.
using NetworkKey = std::array<std::byte, 128>;

/// Every failure throws std::runtime_error with what failed.
class CudaModule {
 public:
  CudaModule() = default;
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;
  virtual ~CudaModule() = default;

  /// Returns the version and revision of the module's sources; the program refuses a module whose id differs from its
  /// own.
  [[nodiscard]] virtual const char* build_id() const = 0;
  /// Returns the number of devices that the driver shows. Throws if there is no driver, or if it is too old.
  [[nodiscard]] virtual int devices() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Driver> open(int device) const = 0;
  /// Returns access from the driver's device to devices of other processes of this machine, which need not be visible
  /// to this process. `driver` must outlive the returned object.
  [[nodiscard]] virtual std::unique_ptr<Peers> peers(Driver& driver) const = 0;
  /// Returns true if the module was built with NCCL and finds the library, which make_key() and connect() require.
  [[nodiscard]] bool has_nccl() const { return nccl_absence().empty(); }
  /// Returns why NCCL cannot be used, in one line with a remedy; empty if it can.
  [[nodiscard]] virtual std::string nccl_absence() const = 0;
  [[nodiscard]] virtual NetworkKey make_key() const = 0;
  /// Connects to the other processes. All of them must call it, each with its own device open. `driver` must outlive
  /// the network.
  [[nodiscard]] virtual std::unique_ptr<Network> connect(Driver& driver, const NetworkKey& key, int rank, int ranks,
                                                         const NetworkOptions& options) const = 0;
  /// Returns a copier for all GPUs that devices() counts. The copier waits up to `patience` for copies to end. Plugins
  /// of tests may lack it.
  [[nodiscard]] virtual std::unique_ptr<Copier> make_copier(Duration /*patience*/) const {
    throw std::runtime_error("this plugin cannot time copies between GPUs");
  }
};

using OpenCudaModule = CudaModule* (*)();

}  // namespace commfuse::validate
