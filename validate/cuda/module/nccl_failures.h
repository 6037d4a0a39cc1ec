// SPDX-License-Identifier: Apache-2.0
// NCCL's errors as exceptions, and time limits for its calls.
#pragma once

#include <nccl.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "model/units.h"
#include "validate/cuda/module/nccl_library.h"
#include "validate/cuda/module/watchdog.h"

namespace commfuse::validate {

/// Throws std::runtime_error unless `status` is a success. `comm` may be null.
void require_nccl(const NcclLibrary& nccl, ncclResult_t status, ncclComm_t comm, const char* call);

/// Waits until a call on a non-blocking communicator has ended. Throws std::runtime_error if the call fails or takes
/// longer than `patience`.
void settle(const NcclLibrary& nccl, ncclResult_t status, ncclComm_t comm, const char* call, Duration patience);

/// Makes calls on communicators, with a time limit even if they block. Only one thread may use this object.
class NcclCalls {
 public:
  /// Runs `before_abort` before it aborts a communicator, in the thread that aborts.
  NcclCalls(const NcclLibrary& nccl, Duration patience, std::function<void()> before_abort)
      : nccl_(nccl), patience_(patience), before_abort_(std::move(before_abort)) {}

  [[nodiscard]] const NcclLibrary& nccl() const { return nccl_; }

  /// Throws std::runtime_error if the call fails or takes longer than `patience`. If the call has not even returned by
  /// then, aborts the communicator.
  template <class Call>
  void run(ncclComm_t comm, const char* what, const Call& call) {
    run(comm, what, patience_, call);
  }
  template <class Call>
  void run(ncclComm_t comm, const char* what, Duration patience, const Call& call) {
    ncclResult_t status = ncclSuccess;
    const auto abort = [this, comm] {
      before_abort_();
      static_cast<void>(nccl_.comm_abort(comm));
    };
    if (watchdog_.watch(patience, abort, [&] { status = call(); })) {
      aborted_.push_back(comm);
      refuse(what, patience);
    }
    settle(nccl_, status, comm, what, patience);
  }

  /// Returns the communicators that were aborted since forget_aborted(), and that NCCL has therefore freed.
  [[nodiscard]] const std::vector<ncclComm_t>& aborted() const { return aborted_; }
  [[nodiscard]] bool is_aborted(ncclComm_t comm) const {
    return std::find(aborted_.begin(), aborted_.end(), comm) != aborted_.end();
  }
  void forget_aborted() { aborted_.clear(); }

 private:
  [[noreturn]] static void refuse(const char* what, Duration patience);

  const NcclLibrary& nccl_;
  Duration patience_;
  std::function<void()> before_abort_;
  std::vector<ncclComm_t> aborted_;
  Watchdog watchdog_;
};

}  // namespace commfuse::validate
