// SPDX-License-Identifier: Apache-2.0
// NCCL's functions, loaded at run time.
#pragma once

#include <nccl.h>

#include <string>

#include "validate/cuda/module/shared_library.h"

namespace commfuse::validate {

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 2)
using NcclSignals = ncclWaitSignalDesc_t;
using NcclPutSignal = decltype(&::ncclPutSignal);
using NcclSignal = decltype(&::ncclSignal);
using NcclWaitSignal = decltype(&::ncclWaitSignal);
#elif NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
// nccl.h declares these since 2.29.2. They are repeated here, so that a plugin compiled with an older header can use
// them.
struct NcclSignals {
  int opCnt;
  int peer;
  int sigIdx;
  int ctx;
};
// Parameters in the order of NCCL's header: bytes, count, dtype, peer, window, offset, signal, context, flags,
// communicator, stream.
using NcclPutSignal = ncclResult_t (*)(const void*, size_t, ncclDataType_t, int, ncclWindow_t, size_t, int, int,
                                       unsigned int, ncclComm_t, cudaStream_t);
// Peer, signal, context, flags, communicator, stream.
using NcclSignal = ncclResult_t (*)(int, int, int, unsigned int, ncclComm_t, cudaStream_t);
using NcclWaitSignal = ncclResult_t (*)(int count, NcclSignals* signals, ncclComm_t comm, cudaStream_t stream);
#endif

/// Every function has the type of its declaration in nccl.h. Functions that version 2.18 or a later one added may be
/// null; nccl_features.h states which functions a version has.
class NcclLibrary {
 public:
  explicit NcclLibrary(SharedLibrary library);
  /// Loads the library on the first call.
  static const NcclLibrary& instance();

  /// Returns why NCCL cannot be used, in one line; empty if it can.
  [[nodiscard]] const std::string& absence() const { return library_.absence(); }
  /// Throws std::runtime_error with absence() unless it is empty.
  void require_loaded() const;
  /// Returns the version in the form of NCCL_VERSION_CODE; 0 if the library is absent.
  [[nodiscard]] int version() const { return version_; }

  decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&::ncclCommSplit) comm_split = nullptr;
  decltype(&::ncclCommFinalize) comm_finalize = nullptr;
  decltype(&::ncclCommDestroy) comm_destroy = nullptr;
  decltype(&::ncclCommAbort) comm_abort = nullptr;
  decltype(&::ncclCommCount) comm_count = nullptr;
  decltype(&::ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&::ncclGetErrorString) get_error_string = nullptr;
  decltype(&::ncclGetLastError) get_last_error = nullptr;
  decltype(&::ncclGroupStart) group_start = nullptr;
  decltype(&::ncclGroupEnd) group_end = nullptr;
  decltype(&::ncclSend) send = nullptr;
  decltype(&::ncclRecv) recv = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&::ncclAllReduce) all_reduce = nullptr;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
  decltype(&::ncclMemAlloc) mem_alloc = nullptr;
  decltype(&::ncclMemFree) mem_free = nullptr;
  decltype(&::ncclCommRegister) comm_register = nullptr;
  decltype(&::ncclCommDeregister) comm_deregister = nullptr;
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  decltype(&::ncclCommWindowRegister) comm_window_register = nullptr;
  decltype(&::ncclCommWindowDeregister) comm_window_deregister = nullptr;
  NcclPutSignal put_signal = nullptr;
  NcclSignal signal = nullptr;
  NcclWaitSignal wait_signal = nullptr;
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 3)
  decltype(&::ncclAlltoAll) all_to_all = nullptr;
#endif

 private:
  SharedLibrary library_;
  int version_ = 0;
};

}  // namespace commfuse::validate
