// SPDX-License-Identifier: Apache-2.0
// What NCCL says went wrong, and waiting for what it does beside us.
#pragma once

#include <nccl.h>

#include "model/units.h"

namespace commfuse::validate {

/// Throws std::runtime_error unless `status` says that the call is done. `comm` may be null.
void require_nccl(ncclResult_t status, ncclComm_t comm, const char* call);

/// Communicators do not block: a call may go on when it returns. Waits for its end, for `patience` at most, beyond
/// which it throws as on any failure.
void settle(ncclResult_t status, ncclComm_t comm, const char* call, Duration patience);

}  // namespace commfuse::validate
