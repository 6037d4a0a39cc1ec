// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/nccl_memory.h"

#include "validate/cuda/module/nccl_failures.h"

// The library that is there at run time may be older than the header; nccl_features.h keeps us from calling these then.
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
#pragma weak ncclMemAlloc
#pragma weak ncclMemFree
#pragma weak ncclCommRegister
#pragma weak ncclCommDeregister
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
#pragma weak ncclCommWindowRegister
#pragma weak ncclCommWindowDeregister
#endif

namespace commfuse::validate {

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)

void* NcclMemory::allocate(std::size_t bytes) {
  constexpr std::size_t page = 4096;  // what windows are aligned to
  const std::size_t whole = (bytes + page - 1) / page * page;
  void* at = nullptr;
  require_nccl(ncclMemAlloc(&at, whole), nullptr, "ncclMemAlloc");
  Block& block = blocks_[at];
  block.bytes = whole;
  for (ncclComm_t comm : comms_) {
    block.known.push_back(registered(comm, at, whole));
  }
  return at;
}

void NcclMemory::join(ncclComm_t comm) {
  comms_.push_back(comm);
  for (auto& [at, block] : blocks_) {
    block.known.push_back(registered(comm, at, block.bytes));
  }
}

void NcclMemory::release(void* at) {
  if (const auto block = blocks_.find(at); block != blocks_.end()) {
    deregister(block->second.known);
    blocks_.erase(block);
  }
  require_nccl(ncclMemFree(at), nullptr, "ncclMemFree");
}

void NcclMemory::deregister() {
  for (const auto& [at, block] : blocks_) {
    deregister(block.known);
  }
  abandon();
}

void NcclMemory::abandon() {
  blocks_.clear();
  comms_.clear();
}

NcclMemory::Registration NcclMemory::registered(ncclComm_t comm, void* at, std::size_t bytes) const {
  Registration one{.comm = comm};
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  if (symmetric_) {
    ncclWindow_t window = nullptr;
    settle(ncclCommWindowRegister(comm, at, bytes, &window, NCCL_WIN_COLL_SYMMETRIC), comm, "ncclCommWindowRegister",
           patience_);
    one.handle = window;
    return one;
  }
#endif
  settle(ncclCommRegister(comm, at, bytes, &one.handle), comm, "ncclCommRegister", patience_);
  return one;
}

void NcclMemory::deregister(const std::vector<Registration>& all) const {
  for (const Registration& one : all) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
    if (symmetric_) {
      settle(ncclCommWindowDeregister(one.comm, static_cast<ncclWindow_t>(one.handle)), one.comm,
             "ncclCommWindowDeregister", patience_);
      continue;
    }
#endif
    settle(ncclCommDeregister(one.comm, one.handle), one.comm, "ncclCommDeregister", patience_);
  }
}

#else

void* NcclMemory::allocate(std::size_t /*bytes*/) { throw std::runtime_error("this NCCL registers no memory"); }
void NcclMemory::release(void* /*at*/) {}
void NcclMemory::join(ncclComm_t /*comm*/) {}
void NcclMemory::deregister() {}
void NcclMemory::abandon() {}

#endif

}  // namespace commfuse::validate
