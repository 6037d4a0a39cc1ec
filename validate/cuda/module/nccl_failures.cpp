// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/nccl_failures.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <thread>

namespace commfuse::validate {

void require_nccl(const NcclLibrary& nccl, ncclResult_t status, ncclComm_t comm, const char* call) {
  if (status == ncclSuccess) {
    return;
  }
  const char* last_error = nccl.get_last_error(comm);
  const std::string detail = last_error == nullptr || *last_error == '\0' ? "" : fmt::format(" ({})", last_error);
  throw std::runtime_error(fmt::format("{} failed: {}{}", call, nccl.get_error_string(status), detail));
}

void settle(const NcclLibrary& nccl, ncclResult_t status, ncclComm_t comm, const char* call, Duration patience) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::ceil<std::chrono::nanoseconds>(patience);
  while (status == ncclInProgress) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error(
          fmt::format("{} did not end within {:.3g} s; check that all ranks are running", call, to_seconds(patience)));
    }
    std::this_thread::yield();
    require_nccl(nccl, nccl.comm_get_async_error(comm, &status), comm, "ncclCommGetAsyncError");
  }
  require_nccl(nccl, status, comm, call);
}

void NcclCalls::refuse(const char* what, Duration patience) {
  throw std::runtime_error(fmt::format(
      "{} did not return within {:.3g} s, so its communicator was aborted; check that all ranks are running", what,
      to_seconds(patience)));
}

}  // namespace commfuse::validate
