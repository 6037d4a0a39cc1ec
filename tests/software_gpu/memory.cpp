// SPDX-License-Identifier: Apache-2.0
// Memory of the device and pinned memory of the host. A block ends at a protected page, holds NaN at first, and its
// addresses are never reused. A kernel that touches freed memory, or memory beyond a block's end, ends the process with
// an error.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "tests/software_gpu/handles.h"
#include "tests/software_gpu/misuse.h"
#include "tests/software_gpu/sharing.h"

namespace software_gpu {

namespace {

constexpr std::uintptr_t alignment = 256;
// Bytes filled with NaN at either end of a block; pages in the middle of large blocks stay unused.
constexpr std::size_t max_poison = std::size_t{4} << 20U;
constexpr int host_memory = -1;

std::uintptr_t rounded_up(std::uintptr_t value, std::uintptr_t to) { return (value + to - 1) / to * to; }
std::uintptr_t number_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

struct MemoryBlock {
  std::size_t bytes = 0;
  int device = host_memory;
  bool freed = false;
  Ledger* ledger = nullptr;  // ledger of the memory that processes share
  bool opened = false;       // the memory belongs to another process

  /// True if the owner has freed the block, or if this process has closed it.
  [[nodiscard]] bool is_gone() const { return freed || (ledger != nullptr && ledger->freed != 0); }
};

class Memory {
 public:
  /// Returns null if there is not enough memory.
  void* allocate(std::size_t bytes, int device) {
    const std::uintptr_t aligned_bytes = rounded_up(std::max<std::size_t>(bytes, 1), alignment);
    const std::lock_guard lock(mutex_);
    if (device != host_memory && used_[device] + aligned_bytes > settings().memory) {
      return nullptr;
    }
    const std::uintptr_t mapped = rounded_up(aligned_bytes, page_bytes) + page_bytes;
    void* at = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
      return nullptr;
    }
    auto* begin = static_cast<std::byte*>(at);
    std::byte* const end = begin + mapped - page_bytes;
    ::mprotect(end, page_bytes, PROT_NONE);
    begin = end - aligned_bytes;
    std::memset(begin, 0xff, std::min(aligned_bytes, max_poison));
    std::memset(end - std::min(aligned_bytes, max_poison), 0xff, std::min(aligned_bytes, max_poison));
    blocks_[number_of(begin)] = {bytes, device, false};
    used_[device] += aligned_bytes;
    return begin;
  }

  /// Frees a block; returns false if there is none at this address. Ends the block's sharing while `mutex_` is not
  /// held, because handles are issued under a separate lock that must be taken first.
  bool release(void* at, bool of_device) {
    Ledger* ledger = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto block = blocks_.find(number_of(at));
      if (block == blocks_.end() || block->second.freed || block->second.opened ||
          (block->second.device != host_memory) != of_device) {
        return false;
      }
      block->second.freed = true;
      ledger = block->second.ledger;
    }
    if (ledger != nullptr) {
      end_sharing(*ledger);
    }
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(number_of(at));
    const std::uintptr_t aligned_bytes = rounded_up(std::max<std::size_t>(block->second.bytes, 1), alignment);
    used_[block->second.device] -= aligned_bytes;
    take_pages(block->first, aligned_bytes);
    return true;
  }

  /// Returns the pages of the block that begins at this address; nothing if it does not belong to this device.
  std::optional<Pages> pages_of(const void* at, int device) {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(number_of(at));
    if (block == blocks_.end() || block->second.freed || block->second.opened || block->second.device != device) {
      return std::nullopt;
    }
    const std::uintptr_t first = block->first / page_bytes * page_bytes;
    const std::uintptr_t end =
        rounded_up(block->first + rounded_up(std::max<std::size_t>(block->second.bytes, 1), alignment), page_bytes);
    return Pages{.first = reinterpret_cast<std::byte*>(first),  // NOLINT(*-no-int-to-ptr): host pages
                 .bytes = end - first,
                 .offset = block->first - first,
                 .block_bytes = block->second.bytes,
                 .ledger = block->second.ledger};
  }
  void set_ledger(const void* at, Ledger* ledger) {
    const std::lock_guard lock(mutex_);
    blocks_[number_of(at)].ledger = ledger;
  }
  void add_opened(const void* at, std::size_t bytes, int device, Ledger* ledger) {
    const std::lock_guard lock(mutex_);
    blocks_[number_of(at)] = {.bytes = bytes, .device = device, .freed = false, .ledger = ledger, .opened = true};
  }
  /// Closes memory of another process; returns null if it is not open in this process.
  Ledger* close(const void* at) {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(number_of(at));
    if (block == blocks_.end() || block->second.freed || !block->second.opened) {
      return nullptr;
    }
    block->second.freed = true;
    take_pages(block->first, rounded_up(std::max<std::size_t>(block->second.bytes, 1), alignment));
    return block->second.ledger;
  }

  /// Describes an address that a kernel may not touch; false if it is outside this memory. The calling thread is about
  /// to end the process, so this gives up if another thread holds the lock.
  [[nodiscard]] bool describe(const void* at, std::array<char, 160>& words) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
      return false;
    }
    auto block = blocks_.upper_bound(number_of(at));
    if (block == blocks_.begin()) {
      return false;
    }
    --block;
    const std::uintptr_t offset = number_of(at) - block->first;
    const std::size_t bytes = block->second.bytes;
    if (offset > rounded_up(std::max<std::size_t>(bytes, 1), alignment) + page_bytes) {
      return false;
    }
    const char* const where = block->second.device == host_memory ? "of pinned memory" : "of device memory";
    if (block->second.freed) {
      std::snprintf(words.data(), words.size(), "byte %zu of a block of %zu bytes %s that was freed", offset, bytes,
                    where);
    } else {
      std::snprintf(words.data(), words.size(), "%zu bytes beyond the end of a block of %zu bytes %s", offset - bytes,
                    bytes, where);
    }
    return true;
  }

  [[nodiscard]] bool contains(const void* at, std::size_t bytes, int device) {
    const std::lock_guard lock(mutex_);
    const MemoryBlock* block = find(at);
    return block != nullptr && !block->is_gone() && block->device == device &&
           number_of(at) + bytes <= start_ + block->bytes;
  }
  /// True for memory of another process, which is memory of another GPU.
  [[nodiscard]] bool is_opened(const void* at) {
    const std::lock_guard lock(mutex_);
    const MemoryBlock* block = find(at);
    return block != nullptr && block->opened;
  }
  /// True for memory of any device, freed or not.
  [[nodiscard]] bool is_of_a_device(const void* at) {
    const std::lock_guard lock(mutex_);
    const MemoryBlock* block = find(at);
    return block != nullptr && block->device != host_memory;
  }

 private:
  /// The addresses stay reserved, so that a later use is detected.
  static void take_pages(std::uintptr_t block, std::uintptr_t aligned_bytes) {
    const std::uintptr_t first = block / page_bytes * page_bytes;
    auto* pages = reinterpret_cast<void*>(first);  // NOLINT(*-no-int-to-ptr): host pages
    ::mmap(pages, rounded_up(block + aligned_bytes, page_bytes) - first, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }

  const MemoryBlock* find(const void* at) {
    auto block = blocks_.upper_bound(number_of(at));
    if (block == blocks_.begin()) {
      return nullptr;
    }
    --block;
    start_ = block->first;
    return number_of(at) < start_ + std::max<std::size_t>(block->second.bytes, 1) ? &block->second : nullptr;
  }

  std::mutex mutex_;
  std::map<std::uintptr_t, MemoryBlock> blocks_;
  std::map<int, std::uintptr_t> used_;
  std::uintptr_t start_ = 0;  // start of the last block that find() examined
};

Memory& memory() {
  static auto& process_memory = *new Memory;
  return process_memory;
}

thread_local const char* running_kernel = nullptr;

struct sigaction& action_before() {
  static struct sigaction before {};
  return before;
}

/// Reports only faults of kernels in memory of these doubles; the previous handler gets every other fault.
void report_fault(int signal, siginfo_t* about, void* context) {
  std::array<char, 160> words{};
  if (running_kernel != nullptr && memory().describe(about->si_addr, words)) {
    std::array<char, 320> sentence{};
    const int length = std::snprintf(sentence.data(), sentence.size(), "software GPU: the kernel '%s' touches %s\n",
                                     running_kernel, words.data());
    static_cast<void>(!::write(STDERR_FILENO, sentence.data(), static_cast<std::size_t>(std::max(length, 0))));
    std::abort();
  }
  const struct sigaction& before = action_before();
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
    before.sa_sigaction(signal, about, context);
    return;
  }
  ::signal(signal, SIG_DFL);  // the instruction runs again, and now ends the process
}

void listen_for_faults() {
  static const bool listening = [] {
    struct sigaction action {};
    action.sa_sigaction = report_fault;
    action.sa_flags = SA_SIGINFO;
    ::sigemptyset(&action.sa_mask);
    return ::sigaction(SIGSEGV, &action, &action_before()) == 0;
  }();
  static_cast<void>(listening);
}

/// Source or target of a copy: rows of bytes, `pitch` apart, whose extents are in Copy.
struct Side {
  const void* at = nullptr;
  std::size_t pitch = 0;
  bool on_device = false;
};

struct Copy {
  Side to, from;
  std::size_t width = 0, height = 0;
};

/// True if a side is in the kind of memory that the copy states, as far as that is known.
bool is_in_stated_memory(const Side& side, const Copy& copy, int device) {
  const std::size_t bytes = copy.height == 0 ? 0 : (copy.height - 1) * side.pitch + copy.width;
  return side.on_device ? memory().contains(side.at, bytes, device) : !memory().is_of_a_device(side.at);
}

cudaError_t copy(const Copy& request, int device) {
  if (!is_in_stated_memory(request.to, request, device) || !is_in_stated_memory(request.from, request, device)) {
    return cudaErrorIllegalAddress;
  }
  for (std::size_t row = 0; row < request.height; ++row) {
    auto* to = static_cast<std::byte*>(const_cast<void*>(request.to.at)) + row * request.to.pitch;
    std::memmove(to, static_cast<const std::byte*>(request.from.at) + row * request.from.pitch, request.width);
  }
  return cudaSuccess;
}

/// Copies wait here while a test holds them, as on a GPU whose copy engine has failed.
class Hold {
 public:
  void set(bool is_closed) {
    const std::lock_guard lock(mutex_);
    is_closed_ = is_closed;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !is_closed_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_closed_ = false;
};

Hold& hold() {
  static auto& process_hold = *new Hold;
  return process_hold;
}

cudaError_t enqueue_copy(const Copy& request, cudaMemcpyKind kind, cudaStream_t stream) {
  const int device = device_of(stream);
  if (device < 0) {
    return cudaErrorInvalidResourceHandle;
  }
  if (request.width > request.to.pitch || request.width > request.from.pitch) {
    return cudaErrorInvalidPitchValue;
  }
  if (!is_in_stated_memory(request.to, request, device) || !is_in_stated_memory(request.from, request, device)) {
    return cudaErrorInvalidValue;
  }
  const auto run = [request, device] {
    hold().wait();
    return copy(request, device);
  };
  return enqueue(stream, {.kind = WorkKind::copy,
                          .name = "a copy",
                          .direction = kind,
                          .between_gpus = memory().is_opened(request.to.at) || memory().is_opened(request.from.at),
                          .run = run});
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

std::optional<Pages> pages_of(const void* at, int device) { return memory().pages_of(at, device); }
void set_ledger(const void* at, Ledger* ledger) { memory().set_ledger(at, ledger); }
void add_opened(const void* at, std::size_t bytes, int device, Ledger* ledger) {
  memory().add_opened(at, bytes, device, ledger);
}
Ledger* close_opened(const void* at) { return memory().close(at); }

void set_running_kernel(const char* name) {
  listen_for_faults();
  running_kernel = name;
}

bool is_device_memory(const void* at, std::size_t bytes, int device) { return memory().contains(at, bytes, device); }

cudaError_t wait_to_allocate(const char* call) {
  return forbidden_by_capture() ? cudaErrorStreamCaptureUnsupported : wait_to_allocate_on(current_device(), call);
}

cudaError_t wait_to_allocate_on(int device, const char* call) {
  Device& state = software_gpu::device(device);
  if (state.error() != cudaSuccess) {
    return state.error();
  }
  if (state.wait_until_idle(settings().patience_ms)) {
    return cudaSuccess;
  }
  std::fprintf(stderr, "software GPU: %s waits for a device that makes no progress, for example behind a gate\n", call);
  return cudaErrorMemoryAllocation;
}

}  // namespace software_gpu

using namespace software_gpu;  // NOLINT(google-build-using-namespace): this file defines its C interface

extern "C" {

void software_gpu_hold_copies(int close) { hold().set(close != 0); }

cudaError_t cudaMalloc(void** at, std::size_t bytes) {
  if (const cudaError_t status = wait_to_allocate("cudaMalloc"); status != cudaSuccess) {
    return reported(status);
  }
  *at = memory().allocate(bytes, current_device());
  return reported(*at == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFree(void* at) {
  if (at == nullptr) {
    return cudaSuccess;
  }
  if (const cudaError_t status = wait_to_allocate("cudaFree"); status != cudaSuccess) {
    return reported(status);
  }
  return reported(memory().release(at, true) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void** at, std::size_t bytes, unsigned flags) {
  if ((flags & ~cudaHostAllocMapped) != 0) {
    return reported(cudaErrorInvalidValue);
  }
  if (const cudaError_t status = wait_to_allocate("cudaHostAlloc"); status != cudaSuccess) {
    return reported(status);
  }
  *at = memory().allocate(bytes, host_memory);
  return reported(*at == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFreeHost(void* at) {
  if (at == nullptr) {
    return cudaSuccess;
  }
  if (const cudaError_t status = wait_to_allocate("cudaFreeHost"); status != cudaSuccess) {
    return reported(status);
  }
  return reported(memory().release(at, false) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  if (flags != 0 || !memory().contains(host, 1, host_memory)) {
    return reported(cudaErrorInvalidValue);
  }
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (!is_kind(kind)) {
    return reported(cudaErrorInvalidMemcpyDirection);
  }
  if (forbidden_by_capture()) {
    return reported(cudaErrorStreamCaptureUnsupported);
  }
  const int device = current_device();
  if (const cudaError_t error = software_gpu::device(device).error(); error != cudaSuccess) {
    return reported(error);
  }
  const cudaError_t status = copy(copy_of(to, bytes, from, bytes, bytes, 1, kind), device);
  return reported(status == cudaSuccess ? status : cudaErrorInvalidValue);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, stream);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  if (!is_kind(kind)) {
    return reported(cudaErrorInvalidMemcpyDirection);
  }
  return reported(enqueue_copy(copy_of(to, to_pitch, from, from_pitch, width, height, kind), kind, stream));
}

cudaError_t cudaMemsetAsync(void* at, int value, std::size_t bytes, cudaStream_t stream) {
  const int device = device_of(stream);
  if (device < 0) {
    return reported(cudaErrorInvalidResourceHandle);
  }
  if (!memory().contains(at, bytes, device)) {
    return reported(cudaErrorInvalidValue);
  }
  return reported(enqueue(stream, {.name = "a fill", .run = [=] {
                                     if (!memory().contains(at, bytes, device)) {
                                       return cudaErrorIllegalAddress;
                                     }
                                     std::memset(at, value, bytes);
                                     return cudaSuccess;
                                   }}));
}

}  // extern "C"
