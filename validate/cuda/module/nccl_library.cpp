// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/nccl_library.h"

#include <stdexcept>
#include <utility>

namespace commfuse::validate {

NcclLibrary::NcclLibrary(SharedLibrary library) : library_(std::move(library)) {
  decltype(&::ncclGetVersion) get_version = nullptr;
  library_.require(get_version, "ncclGetVersion");
  library_.require(get_unique_id, "ncclGetUniqueId");
  library_.require(comm_init_rank_config, "ncclCommInitRankConfig");
  library_.require(comm_finalize, "ncclCommFinalize");
  library_.require(comm_destroy, "ncclCommDestroy");
  library_.require(comm_abort, "ncclCommAbort");
  library_.require(comm_count, "ncclCommCount");
  library_.require(comm_get_async_error, "ncclCommGetAsyncError");
  library_.require(get_error_string, "ncclGetErrorString");
  library_.require(get_last_error, "ncclGetLastError");
  library_.require(group_start, "ncclGroupStart");
  library_.require(group_end, "ncclGroupEnd");
  library_.require(send, "ncclSend");
  library_.require(recv, "ncclRecv");
  library_.require(all_gather, "ncclAllGather");
  library_.require(reduce_scatter, "ncclReduceScatter");
  library_.require(all_reduce, "ncclAllReduce");
  // Older libraries may lack the functions below. nccl_features.h states which versions are refused.
  library_.find(comm_split, "ncclCommSplit");
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
  library_.find(mem_alloc, "ncclMemAlloc");
  library_.find(mem_free, "ncclMemFree");
  library_.find(comm_register, "ncclCommRegister");
  library_.find(comm_deregister, "ncclCommDeregister");
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  library_.find(comm_window_register, "ncclCommWindowRegister");
  library_.find(comm_window_deregister, "ncclCommWindowDeregister");
  library_.find(put_signal, "ncclPutSignal");
  library_.find(signal, "ncclSignal");
  library_.find(wait_signal, "ncclWaitSignal");
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 3)
  library_.find(all_to_all, "ncclAlltoAll");
#endif
  if (library_.loaded() && get_version(&version_) != ncclSuccess) {
    version_ = 0;
  }
}

const NcclLibrary& NcclLibrary::instance() {
  static const NcclLibrary library(
      SharedLibrary({.product = "NCCL", .sonames = {"libnccl.so.2"}, .remedy = "install NCCL 2.18 or later"}));
  return library;
}

void NcclLibrary::require_loaded() const {
  if (!absence().empty()) {
    throw std::runtime_error(absence());
  }
}

}  // namespace commfuse::validate
