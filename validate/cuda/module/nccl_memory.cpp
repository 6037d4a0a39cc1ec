// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/nccl_memory.h"

#include <algorithm>

namespace commfuse::validate {

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)

void* NcclMemory::allocate(std::size_t bytes) {
  constexpr std::size_t page = 4096;  // the alignment of windows
  Block block{.bytes = (bytes + page - 1) / page * page};
  require_nccl(calls_->nccl(), calls_->nccl().mem_alloc(&block.at, block.bytes), nullptr, "ncclMemAlloc");
  blocks_.push_back(block);
  for (ncclComm_t comm : comms_) {
    add_registration(blocks_.back(), comm);
  }
  return block.at;
}

void NcclMemory::join(ncclComm_t comm) {
  comms_.push_back(comm);
  for (Block& block : blocks_) {
    add_registration(block, comm);
  }
}

void NcclMemory::release(void* at) {
  const auto block = std::ranges::find(blocks_, at, &Block::at);
  if (block != blocks_.end()) {
    deregister(*block);
    blocks_.erase(block);
  }
  require_nccl(calls_->nccl(), calls_->nccl().mem_free(at), nullptr, "ncclMemFree");
}

NcclMemory::InWindow NcclMemory::in_window(ncclComm_t comm, const void* at, std::size_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(at);
  for (const Block& block : blocks_) {
    const auto* first = static_cast<const std::byte*>(block.at);
    const auto known = std::ranges::find(block.registrations, comm, &Registration::comm);
    if (begin >= first && begin + bytes <= first + block.bytes && known != block.registrations.end()) {
      return {known->handle, static_cast<std::size_t>(begin - first)};
    }
  }
  throw std::runtime_error("the target of a put into another rank's memory is in no window of its communicator");
}

void NcclMemory::deregister() {
  for (const Block& block : blocks_) {
    deregister(block);
  }
  abandon();
}

void NcclMemory::forget(ncclComm_t comm) {
  std::erase(comms_, comm);
  for (Block& block : blocks_) {
    std::erase_if(block.registrations, [&](const Registration& registration) { return registration.comm == comm; });
  }
}

void NcclMemory::abandon() {
  blocks_.clear();
  comms_.clear();
}

void NcclMemory::add_registration(Block& block, ncclComm_t comm) const {
  if (calls_->is_aborted(comm)) {
    return;
  }
  const NcclLibrary& nccl = calls_->nccl();
  Registration registration{.comm = comm};
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  if (symmetric_) {
    ncclWindow_t window = nullptr;
    calls_->run(comm, "ncclCommWindowRegister", [&] {
      return nccl.comm_window_register(comm, block.at, block.bytes, &window, NCCL_WIN_COLL_SYMMETRIC);
    });
    registration.handle = window;
    block.registrations.push_back(registration);
    return;
  }
#endif
  calls_->run(comm, "ncclCommRegister",
              [&] { return nccl.comm_register(comm, block.at, block.bytes, &registration.handle); });
  block.registrations.push_back(registration);
}

void NcclMemory::deregister(const Block& block) const {
  const NcclLibrary& nccl = calls_->nccl();
  for (const Registration& registration : block.registrations) {
    if (calls_->is_aborted(registration.comm)) {
      continue;
    }
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
    if (symmetric_) {
      calls_->run(registration.comm, "ncclCommWindowDeregister", [&] {
        return nccl.comm_window_deregister(registration.comm, static_cast<ncclWindow_t>(registration.handle));
      });
      continue;
    }
#endif
    calls_->run(registration.comm, "ncclCommDeregister",
                [&] { return nccl.comm_deregister(registration.comm, registration.handle); });
  }
}

#else

void* NcclMemory::allocate(std::size_t /*bytes*/) { throw std::runtime_error("this NCCL cannot register memory"); }
void NcclMemory::release(void* /*at*/) {}
void NcclMemory::join(ncclComm_t /*comm*/) {}
NcclMemory::InWindow NcclMemory::in_window(ncclComm_t /*comm*/, const void* /*at*/, std::size_t /*bytes*/) const {
  throw std::runtime_error("this NCCL cannot register memory");
}
void NcclMemory::deregister() {}
void NcclMemory::forget(ncclComm_t /*comm*/) {}
void NcclMemory::abandon() {}

#endif

}  // namespace commfuse::validate
