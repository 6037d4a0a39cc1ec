// SPDX-License-Identifier: Apache-2.0
// Memory of the device and pinned memory of the host. A block ends where a page begins that nobody may touch, holds NaN
// at first, and its addresses are never given again.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "tests/software_gpu/handles.h"
#include "tests/software_gpu/misuse.h"

namespace software_gpu {

namespace {

constexpr std::uintptr_t page = 4096;
constexpr std::uintptr_t alignment = 256;
constexpr std::size_t most_poison = std::size_t{4} << 20U;  // at either end: pages of large blocks stay unused
constexpr int of_host = -1;

std::uintptr_t up(std::uintptr_t value, std::uintptr_t to) { return (value + to - 1) / to * to; }
std::uintptr_t number_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

struct Block {
  std::size_t bytes = 0;
  int device = of_host;
  bool freed = false;
};

class Memory {
 public:
  /// Null: there is not so much.
  void* allocate(std::size_t bytes, int device) {
    const std::uintptr_t room = up(std::max<std::size_t>(bytes, 1), alignment);
    const std::lock_guard lock(mutex_);
    if (device != of_host && used_[device] + room > settings().memory) {
      return nullptr;
    }
    const std::uintptr_t mapped = up(room, page) + page;
    void* at = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
      return nullptr;
    }
    auto* begin = static_cast<std::byte*>(at);
    std::byte* const end = begin + mapped - page;
    ::mprotect(end, page, PROT_NONE);
    begin = end - room;
    std::memset(begin, 0xff, std::min(room, most_poison));
    std::memset(end - std::min(room, most_poison), 0xff, std::min(room, most_poison));
    blocks_[number_of(begin)] = {bytes, device, false};
    used_[device] += room;
    return begin;
  }

  bool release(void* at, bool of_device) {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(number_of(at));
    if (block == blocks_.end() || block->second.freed || (block->second.device != of_host) != of_device) {
      return false;
    }
    block->second.freed = true;
    const std::uintptr_t room = up(std::max<std::size_t>(block->second.bytes, 1), alignment);
    used_[block->second.device] -= room;
    const std::uintptr_t first = block->first / page * page;
    // The addresses stay taken, so that who uses them later is noticed.
    auto* pages = reinterpret_cast<void*>(first);  // NOLINT(*-no-int-to-ptr)
    const std::size_t mapped = up(block->first + room, page) - first;
    ::mmap(pages, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return true;
  }

  [[nodiscard]] bool contains(const void* at, std::size_t bytes, int device) {
    const std::lock_guard lock(mutex_);
    const Block* block = find(at);
    return block != nullptr && !block->freed && block->device == device &&
           number_of(at) + bytes <= start_ + block->bytes;
  }
  /// Of any device, freed or not.
  [[nodiscard]] bool is_of_a_device(const void* at) {
    const std::lock_guard lock(mutex_);
    const Block* block = find(at);
    return block != nullptr && block->device != of_host;
  }

 private:
  const Block* find(const void* at) {
    auto after = blocks_.upper_bound(number_of(at));
    if (after == blocks_.begin()) {
      return nullptr;
    }
    --after;
    start_ = after->first;
    return number_of(at) < start_ + std::max<std::size_t>(after->second.bytes, 1) ? &after->second : nullptr;
  }

  std::mutex mutex_;
  std::map<std::uintptr_t, Block> blocks_;
  std::map<int, std::uintptr_t> used_;
  std::uintptr_t start_ = 0;  // of what find() found
};

Memory& memory() {
  static auto& one = *new Memory;
  return one;
}

/// A rectangle of bytes that lies in one piece of memory.
struct Side {
  const void* at = nullptr;
  std::size_t pitch = 0;
  bool on_device = false;
};

struct Copy {
  Side to, from;
  std::size_t width = 0, height = 0;
};

/// Whether a side lies where the copy says it does, as far as that is known.
bool is_there(const Side& side, const Copy& copy, int device) {
  const std::size_t bytes = copy.height == 0 ? 0 : (copy.height - 1) * side.pitch + copy.width;
  return side.on_device ? memory().contains(side.at, bytes, device) : !memory().is_of_a_device(side.at);
}

cudaError_t copy(const Copy& what, int device) {
  if (!is_there(what.to, what, device) || !is_there(what.from, what, device)) {
    return cudaErrorIllegalAddress;
  }
  for (std::size_t row = 0; row < what.height; ++row) {
    auto* to = static_cast<std::byte*>(const_cast<void*>(what.to.at)) + row * what.to.pitch;
    std::memmove(to, static_cast<const std::byte*>(what.from.at) + row * what.from.pitch, what.width);
  }
  return cudaSuccess;
}

cudaError_t enqueue_copy(const Copy& what, cudaMemcpyKind kind, cudaStream_t stream) {
  const int device = device_of(stream);
  if (device < 0) {
    return cudaErrorInvalidResourceHandle;
  }
  if (what.width > what.to.pitch || what.width > what.from.pitch) {
    return cudaErrorInvalidPitchValue;
  }
  if (!is_there(what.to, what, device) || !is_there(what.from, what, device)) {
    return cudaErrorInvalidValue;
  }
  return enqueue(stream, {.kind = WorkKind::copy, .name = "a copy", .direction = kind, .run = [what, device] {
                            return copy(what, device);
                          }});
}

Copy copy_of(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
             std::size_t height, cudaMemcpyKind kind) {
  return {.to = {to, to_pitch, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice},
          .from = {from, from_pitch, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice},
          .width = width,
          .height = height};
}

bool is_kind(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
}

}  // namespace

bool is_device_memory(const void* at, std::size_t bytes, int device) { return memory().contains(at, bytes, device); }

cudaError_t wait_to_allocate(const char* call) {
  return forbidden_by_capture() ? cudaErrorStreamCaptureUnsupported : wait_to_allocate_on(current_device(), call);
}

cudaError_t wait_to_allocate_on(int device, const char* call) {
  Device& here = software_gpu::device(device);
  if (here.error() != cudaSuccess) {
    return here.error();
  }
  if (here.wait_until_idle(settings().patience_ms)) {
    return cudaSuccess;
  }
  std::fprintf(stderr, "software GPU: %s waits for a device that stands still, as it does behind a gate\n", call);
  return cudaErrorMemoryAllocation;
}

}  // namespace software_gpu

using namespace software_gpu;  // NOLINT(google-build-using-namespace): this file defines its C interface

extern "C" {

cudaError_t cudaMalloc(void** at, std::size_t bytes) {
  if (const cudaError_t status = wait_to_allocate("cudaMalloc"); status != cudaSuccess) {
    return said(status);
  }
  *at = memory().allocate(bytes, current_device());
  return said(*at == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFree(void* at) {
  if (at == nullptr) {
    return cudaSuccess;
  }
  if (const cudaError_t status = wait_to_allocate("cudaFree"); status != cudaSuccess) {
    return said(status);
  }
  return said(memory().release(at, true) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void** at, std::size_t bytes, unsigned flags) {
  if ((flags & ~cudaHostAllocMapped) != 0) {
    return said(cudaErrorInvalidValue);
  }
  if (const cudaError_t status = wait_to_allocate("cudaHostAlloc"); status != cudaSuccess) {
    return said(status);
  }
  *at = memory().allocate(bytes, of_host);
  return said(*at == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFreeHost(void* at) {
  if (at == nullptr) {
    return cudaSuccess;
  }
  if (const cudaError_t status = wait_to_allocate("cudaFreeHost"); status != cudaSuccess) {
    return said(status);
  }
  return said(memory().release(at, false) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  if (flags != 0 || !memory().contains(host, 1, of_host)) {
    return said(cudaErrorInvalidValue);
  }
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (!is_kind(kind)) {
    return said(cudaErrorInvalidMemcpyDirection);
  }
  if (forbidden_by_capture()) {
    return said(cudaErrorStreamCaptureUnsupported);
  }
  const int device = current_device();
  if (const cudaError_t error = software_gpu::device(device).error(); error != cudaSuccess) {
    return said(error);
  }
  const cudaError_t status = copy(copy_of(to, bytes, from, bytes, bytes, 1, kind), device);
  return said(status == cudaSuccess ? status : cudaErrorInvalidValue);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, stream);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  if (!is_kind(kind)) {
    return said(cudaErrorInvalidMemcpyDirection);
  }
  return said(enqueue_copy(copy_of(to, to_pitch, from, from_pitch, width, height, kind), kind, stream));
}

cudaError_t cudaMemsetAsync(void* at, int value, std::size_t bytes, cudaStream_t stream) {
  const int device = device_of(stream);
  if (device < 0) {
    return said(cudaErrorInvalidResourceHandle);
  }
  if (!memory().contains(at, bytes, device)) {
    return said(cudaErrorInvalidValue);
  }
  return said(enqueue(stream, {.name = "a fill", .run = [=] {
                                 if (!memory().contains(at, bytes, device)) {
                                   return cudaErrorIllegalAddress;
                                 }
                                 std::memset(at, value, bytes);
                                 return cudaSuccess;
                               }}));
}

}  // extern "C"
