// SPDX-License-Identifier: Apache-2.0
#include "tests/software_gpu/sharing.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "tests/software_gpu/handles.h"
#include "tests/software_gpu/misuse.h"

namespace software_gpu {

namespace {

constexpr std::uint64_t magic = 0x736f667477617265;

/// Contents of a handle.
struct Name {
  std::uint64_t magic_number = 0;
  pid_t owner = 0;
  int file = -1;  ///< Number of the file in the owner's process.
  Pages pages;

  friend bool operator<(const Name& a, const Name& b) {
    return std::pair(a.owner, a.file) < std::pair(b.owner, b.file);
  }
};
static_assert(sizeof(Name) <= sizeof(cudaIpcMemHandle_t));
static_assert(sizeof(Ledger) <= page_bytes);

std::mutex& sharing_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}
/// Files of this process, by the ledger of the memory that they share.
std::map<const Ledger*, int>& files() {
  static auto& descriptors = *new std::map<const Ledger*, int>;
  return descriptors;
}
struct Opened {
  void* at = nullptr;
  int count = 0;
};
std::map<Name, Opened>& opened() {
  static auto& openings = *new std::map<Name, Opened>;
  return openings;
}

/// False for a process that has ended, even if no process has waited for it.
bool is_alive(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::stringstream text;
  text << file.rdbuf();
  const std::string words = text.str();
  const std::size_t state = words.rfind(')');
  return state != std::string::npos && state + 2 < words.size() && words[state + 2] != 'Z' && words[state + 2] != 'X';
}

/// Moves the pages of a block into a file; their addresses stay the same.
bool move_into_file(Pages& pages, int file) {
  if (::ftruncate(file, static_cast<off_t>(pages.bytes + page_bytes)) != 0) {
    return false;
  }
  static const std::array<std::byte, page_bytes> nothing{};
  for (std::size_t at = 0; at < pages.bytes; at += page_bytes) {  // unwritten pages stay unused
    if (std::memcmp(pages.first + at, nothing.data(), page_bytes) != 0 &&
        ::pwrite(file, pages.first + at, page_bytes, static_cast<off_t>(at)) != static_cast<ssize_t>(page_bytes)) {
      return false;
    }
  }
  void* ledger = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(pages.bytes));
  if (ledger == MAP_FAILED) {
    return false;
  }
  pages.ledger = new (ledger) Ledger;
  return ::mmap(pages.first, pages.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == pages.first;
}

/// Maps memory of another process, followed by a protected page. Returns null if that fails.
void* map_shared(const Name& name, Ledger** ledger) {
  const std::string path = "/proc/" + std::to_string(name.owner) + "/fd/" + std::to_string(name.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) {
    return nullptr;
  }
  const std::size_t bytes = name.pages.bytes;
  void* reserved_range =
      ::mmap(nullptr, bytes + page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void* at = ::mmap(reserved_range, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  void* ledger_page = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(bytes));
  ::close(file);
  if (reserved_range == MAP_FAILED || at == MAP_FAILED || ledger_page == MAP_FAILED) {
    return nullptr;
  }
  *ledger = static_cast<Ledger*>(ledger_page);
  return static_cast<std::byte*>(at) + name.pages.offset;
}

std::atomic_ref<unsigned> flag_at(unsigned long long at) {
  return std::atomic_ref<unsigned>(*reinterpret_cast<unsigned*>(at));  // NOLINT(*-no-int-to-ptr): device memory
}

/// Checks the requirements of both stream memory operations.
CUresult refusal(CUstream stream, unsigned long long at) {
  const int device = device_of(stream);
  if (device < 0) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  const auto* flag = reinterpret_cast<const void*>(at);  // NOLINT(*-no-int-to-ptr): device memory
  return at % sizeof(unsigned) == 0 && is_device_memory(flag, sizeof(unsigned), device) ? CUDA_SUCCESS
                                                                                        : CUDA_ERROR_INVALID_VALUE;
}

CUresult driver_result(cudaError_t status) { return status == cudaSuccess ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

bool is_reached(unsigned long long at, unsigned value) { return static_cast<int>(flag_at(at).load() - value) >= 0; }

}  // namespace

void end_sharing(Ledger& ledger) {
  for (const std::atomic<pid_t>& opener : ledger.openers) {
    if (const pid_t process = opener; process != 0 && is_alive(process)) {
      misuse("memory is freed that process " + std::to_string(process) + " has open; close it there first");
    }
  }
  ledger.freed = 1;
  const std::lock_guard lock(sharing_mutex());
  if (const auto file = files().find(&ledger); file != files().end()) {
    ::close(file->second);
    files().erase(file);
  }
}

CUresult write_value(CUstream stream, unsigned long long at, unsigned value, unsigned flags) {
  if (flags != CU_STREAM_WRITE_VALUE_DEFAULT) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult status = refusal(stream, at); status != CUDA_SUCCESS) {
    return status;
  }
  const auto write = [at, value, device = device_of(stream)] {
    const auto* flag = reinterpret_cast<const void*>(at);  // NOLINT(*-no-int-to-ptr): device memory
    if (!is_device_memory(flag, sizeof(unsigned), device)) {
      return cudaErrorIllegalAddress;
    }
    flag_at(at).store(value);
    return cudaSuccess;
  };
  return driver_result(enqueue(stream, {.name = "a flag", .run = write}));
}

CUresult wait_value(CUstream stream, unsigned long long at, unsigned value, unsigned flags) {
  if ((flags & ~unsigned{CU_STREAM_WAIT_VALUE_FLUSH}) != CU_STREAM_WAIT_VALUE_GEQ) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult status = refusal(stream, at); status != CUDA_SUCCESS) {
    return status;
  }
  const auto wait = [at, value, device = device_of(stream)] {
    constexpr std::chrono::microseconds pause{50};
    const auto* flag = reinterpret_cast<const void*>(at);  // NOLINT(*-no-int-to-ptr): device memory
    for (;; std::this_thread::sleep_for(pause)) {
      if (!is_device_memory(flag, sizeof(unsigned), device)) {
        return cudaErrorIllegalAddress;
      }
      if (is_reached(at, value) || software_gpu::device(device).error() != cudaSuccess) {
        return cudaSuccess;
      }
    }
  };
  return driver_result(enqueue(stream, {.name = "a wait for a flag", .run = wait}));
}

}  // namespace software_gpu

using namespace software_gpu;  // NOLINT(google-build-using-namespace): this file defines its C interface

extern "C" {

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* at) {
  if (const cudaError_t status = wait_to_allocate("cudaIpcGetMemHandle"); status != cudaSuccess) {
    return reported(status);
  }
  std::optional<Pages> pages = pages_of(at, current_device());
  if (!pages) {
    return reported(cudaErrorInvalidValue);
  }
  const std::lock_guard lock(sharing_mutex());
  if (pages->ledger == nullptr) {
    const int file = ::memfd_create("software GPU", MFD_CLOEXEC);
    if (file < 0 || !move_into_file(*pages, file)) {
      return reported(cudaErrorMapBufferObjectFailed);
    }
    files()[pages->ledger] = file;
    set_ledger(at, pages->ledger);
  }
  const Name name{.magic_number = magic, .owner = ::getpid(), .file = files()[pages->ledger], .pages = *pages};
  *handle = {};
  std::memcpy(handle->reserved, &name, sizeof name);
  return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void** at, cudaIpcMemHandle_t handle, unsigned flags) {
  Name name;
  std::memcpy(static_cast<void*>(&name), handle.reserved, sizeof name);
  if (flags != cudaIpcMemLazyEnablePeerAccess || name.magic_number != magic) {
    return reported(cudaErrorInvalidValue);
  }
  if (name.owner == ::getpid()) {  // CUDA's "invalid device context"
    return reported(cudaErrorDeviceUninitialized);
  }
  const std::lock_guard lock(sharing_mutex());
  if (const auto opening = opened().find(name); opening != opened().end()) {
    ++opening->second.count;
    *at = opening->second.at;
    return cudaSuccess;
  }
  Ledger* ledger = nullptr;
  void* mapped = map_shared(name, &ledger);
  if (mapped == nullptr || ledger->freed != 0) {
    return reported(cudaErrorMapBufferObjectFailed);
  }
  const auto slot = std::ranges::find_if(ledger->openers, [](std::atomic<pid_t>& opener) {
    pid_t nobody = 0;
    return opener.compare_exchange_strong(nobody, ::getpid());
  });
  if (slot == ledger->openers.end()) {
    return reported(cudaErrorTooManyPeers);
  }
  add_opened(mapped, name.pages.block_bytes, current_device(), ledger);
  opened()[name] = {mapped, 1};
  *at = mapped;
  return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void* at) {
  const std::lock_guard lock(sharing_mutex());
  const auto opening = std::ranges::find_if(opened(), [&](const auto& entry) { return entry.second.at == at; });
  if (opening == opened().end()) {
    return reported(cudaErrorInvalidValue);
  }
  if (--opening->second.count > 0) {
    return cudaSuccess;
  }
  opened().erase(opening);
  Ledger* ledger = close_opened(at);
  for (std::atomic<pid_t>& opener : ledger->openers) {
    if (pid_t mine = ::getpid(); opener.compare_exchange_strong(mine, 0)) {
      break;
    }
  }
  return cudaSuccess;
}

}  // extern "C"
