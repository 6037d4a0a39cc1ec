// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/nccl_failures.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <thread>

namespace commfuse::validate {

void require_nccl(ncclResult_t status, ncclComm_t comm, const char* call) {
  if (status == ncclSuccess) {
    return;
  }
  const char* more = ncclGetLastError(comm);
  const std::string detail = more == nullptr || *more == '\0' ? "" : fmt::format(" ({})", more);
  throw std::runtime_error(fmt::format("{} failed: {}{}", call, ncclGetErrorString(status), detail));
}

void settle(ncclResult_t status, ncclComm_t comm, const char* call, Duration patience) {
  const auto latest = std::chrono::steady_clock::now() + std::chrono::ceil<std::chrono::nanoseconds>(patience);
  while (status == ncclInProgress) {
    if (std::chrono::steady_clock::now() > latest) {
      throw std::runtime_error(fmt::format(
          "{} did not come to its end within {:.0f} s; look whether all ranks are there", call, to_seconds(patience)));
    }
    std::this_thread::yield();
    require_nccl(ncclCommGetAsyncError(comm, &status), comm, "ncclCommGetAsyncError");
  }
  require_nccl(status, comm, call);
}

}  // namespace commfuse::validate
