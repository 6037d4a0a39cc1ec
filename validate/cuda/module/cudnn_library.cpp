// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/cudnn_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <stdexcept>

namespace commfuse::validate {

CudnnLibrary::CudnnLibrary() {
  void* const library = ::dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();  // NOLINT(concurrency-mt-unsafe): of this thread, in glibc
    absence_ = fmt::format("there is no libcudnn.so.9 here ({})", why == nullptr ? "unknown" : why);
    return;
  }
  const auto find = [&](auto& function, const char* name) {
    // NOLINTNEXTLINE(*-reinterpret-cast): what dlsym() is for
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr && absence_.empty()) {
      absence_ = fmt::format("libcudnn.so.9 has no {}", name);
    }
  };
  decltype(&::cudnnGetVersion) get_version = nullptr;
  find(get_version, "cudnnGetVersion");
  find(create, "cudnnCreate");
  find(destroy, "cudnnDestroy");
  find(set_stream, "cudnnSetStream");
  find(create_descriptor, "cudnnBackendCreateDescriptor");
  find(destroy_descriptor, "cudnnBackendDestroyDescriptor");
  find(set_attribute, "cudnnBackendSetAttribute");
  find(get_attribute, "cudnnBackendGetAttribute");
  find(finalize, "cudnnBackendFinalize");
  find(execute, "cudnnBackendExecute");
  find(error_string_, "cudnnGetErrorString");
  find(last_error_string_, "cudnnGetLastErrorString");
  if (absence_.empty()) {
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
