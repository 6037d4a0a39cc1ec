// SPDX-License-Identifier: Apache-2.0
// The library libcudnn, which is loaded at run time and never linked.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <span>
#include <string>

#include "validate/cuda/module/shared_library.h"

namespace commfuse::validate {

/// Functions of cuDNN that the plugin calls.
class CudnnLibrary {
 public:
  CudnnLibrary();
  CudnnLibrary(const CudnnLibrary&) = delete;
  CudnnLibrary& operator=(const CudnnLibrary&) = delete;
  ~CudnnLibrary() = default;

  /// Returns the version in the form of CUDNN_VERSION; 0 without the library.
  [[nodiscard]] int version() const { return version_; }
  /// Returns why the library is absent, as the end of a sentence; empty if it is present.
  [[nodiscard]] const std::string& absence() const { return library_.absence(); }
  /// Throws std::runtime_error with the call and cuDNN's error if the call failed.
  void require(cudnnStatus_t status, const char* call) const;

  // Functions of cudnn.h; null without the library.
  decltype(&::cudnnCreate) create = nullptr;
  decltype(&::cudnnDestroy) destroy = nullptr;
  decltype(&::cudnnSetStream) set_stream = nullptr;
  decltype(&::cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&::cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&::cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&::cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&::cudnnBackendFinalize) finalize = nullptr;
  decltype(&::cudnnBackendExecute) execute = nullptr;

 private:
  decltype(&::cudnnGetErrorString) error_string_ = nullptr;
  decltype(&::cudnnGetLastErrorString) last_error_string_ = nullptr;
  SharedLibrary library_;
  int version_ = 0;
};

/// A descriptor of cuDNN. The descriptors to which it refers must outlive it.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const CudnnLibrary& library, cudnnBackendDescriptorType_t type);
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;
  CudnnDescriptor(CudnnDescriptor&& other) noexcept : library_(other.library_), handle_(other.handle_) {
    other.handle_ = nullptr;
  }
  CudnnDescriptor& operator=(CudnnDescriptor&&) = delete;
  ~CudnnDescriptor();

  [[nodiscard]] cudnnBackendDescriptor_t handle() const { return handle_; }

  template <class Value>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       std::span<const Value> values) {
    library_->require(
        library_->set_attribute(handle_, name, type, static_cast<std::int64_t>(values.size()), values.data()),
        "cudnnBackendSetAttribute");
    return *this;
  }
  template <class Value>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const Value& value) {
    return set(name, type, std::span<const Value>(&value, 1));
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const CudnnDescriptor& other) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.handle_);
  }
  /// Makes the descriptor usable.
  CudnnDescriptor& finish() {
    library_->require(library_->finalize(handle_), "cudnnBackendFinalize");
    return *this;
  }

 private:
  const CudnnLibrary* library_;
  cudnnBackendDescriptor_t handle_ = nullptr;
};

}  // namespace commfuse::validate
