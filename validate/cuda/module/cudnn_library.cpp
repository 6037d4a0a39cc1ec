// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/cudnn_library.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

namespace commfuse::validate {

CudnnLibrary::CudnnLibrary()
    : library_({.product = "cuDNN", .sonames = {"libcudnn.so.9"}, .remedy = "install cuDNN 9.8 or later"}) {
  decltype(&::cudnnGetVersion) get_version = nullptr;
  library_.require(get_version, "cudnnGetVersion");
  library_.require(create, "cudnnCreate");
  library_.require(destroy, "cudnnDestroy");
  library_.require(set_stream, "cudnnSetStream");
  library_.require(create_descriptor, "cudnnBackendCreateDescriptor");
  library_.require(destroy_descriptor, "cudnnBackendDestroyDescriptor");
  library_.require(set_attribute, "cudnnBackendSetAttribute");
  library_.require(get_attribute, "cudnnBackendGetAttribute");
  library_.require(finalize, "cudnnBackendFinalize");
  library_.require(execute, "cudnnBackendExecute");
  library_.require(error_string_, "cudnnGetErrorString");
  library_.require(last_error_string_, "cudnnGetLastErrorString");
  if (library_.loaded()) {
    version_ = static_cast<int>(get_version());
  }
}

void CudnnLibrary::require(cudnnStatus_t status, const char* call) const {
  if (status == CUDNN_STATUS_SUCCESS) {
    return;
  }
  std::array<char, 512> last{};
  last_error_string_(last.data(), last.size());
  throw std::runtime_error(fmt::format("{} failed: {} {}", call, error_string_(status), last.data()));
}

CudnnDescriptor::CudnnDescriptor(const CudnnLibrary& library, cudnnBackendDescriptorType_t type) : library_(&library) {
  library.require(library.create_descriptor(type, &handle_), "cudnnBackendCreateDescriptor");
}

CudnnDescriptor::~CudnnDescriptor() {
  if (handle_ != nullptr) {
    static_cast<void>(library_->destroy_descriptor(handle_));
  }
}

}  // namespace commfuse::validate
