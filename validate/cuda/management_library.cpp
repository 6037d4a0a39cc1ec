// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/management_library.h"

#include <dlfcn.h>

namespace commfuse::validate {

ManagementLibrary::ManagementLibrary() : handle_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) {
    find_ = [this](const char* name) { return ::dlsym(handle_, name); };
  }
}

ManagementLibrary::~ManagementLibrary() {
  if (handle_ != nullptr) {
    ::dlclose(handle_);
  }
}

}  // namespace commfuse::validate
