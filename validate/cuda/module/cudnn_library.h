// SPDX-License-Identifier: Apache-2.0
// libcudnn, looked for at run time: nothing is linked with it.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <span>
#include <string>

#include "validate/cuda/module/shared_library.h"

namespace commfuse::validate {

/// The functions that are needed of it.
class CudnnLibrary {
 public:
  CudnnLibrary();
  CudnnLibrary(const CudnnLibrary&) = delete;
  CudnnLibrary& operator=(const CudnnLibrary&) = delete;
  ~CudnnLibrary() = default;

  /// As CUDNN_VERSION counts; 0: there is none.
  [[nodiscard]] int version() const { return version_; }
  /// Why there is none, as the end of a sentence; empty where there is one.
  [[nodiscard]] const std::string& absence() const { return library_.absence(); }
  /// Throws std::runtime_error with the call and what cuDNN says, unless all is well.
  void require(cudnnStatus_t status, const char* call) const;

  // Those of cudnn.h; null where there is none.
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

/// One of cuDNN's descriptors. Those that it refers to have to outlive it.
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
  /// From here on it can be used.
  CudnnDescriptor& finish() {
    library_->require(library_->finalize(handle_), "cudnnBackendFinalize");
    return *this;
  }

 private:
  const CudnnLibrary* library_;
  cudnnBackendDescriptor_t handle_ = nullptr;
};

}  // namespace commfuse::validate
