// SPDX-License-Identifier: Apache-2.0
// Device memory that processes share. Its pages lie in a file without a name, which others open by the number that it
// has in the process of its owner; a page behind them tells who has it open.
#pragma once

#include <cuda.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>

namespace software_gpu {

constexpr std::size_t most_openers = 64;

struct Ledger {
  std::atomic<int> freed = 0;
  std::array<std::atomic<pid_t>, most_openers> openers{};  // 0: free
};

/// The whole pages that hold a block.
struct Pages {
  std::byte* first = nullptr;
  std::size_t bytes = 0;
  std::size_t offset = 0;  // of the block
  std::size_t block_bytes = 0;
  Ledger* ledger = nullptr;  // null: not shared so far
};

/// Of a block of the device's own that begins there; nothing: there is none.
std::optional<Pages> pages_of(const void* at, int device);
void set_ledger(const void* at, Ledger* ledger);
/// From now on that is memory of another process, open for a device of this one.
void add_opened(const void* at, std::size_t bytes, int device, Ledger* ledger);
/// Null: it is not open here.
Ledger* close_opened(const void* at);
/// Before the owner frees it. Ends the process where another one that is alive has it open.
void end_sharing(Ledger& ledger);

// What the driver gives by name.

CUresult write_value(CUstream stream, CUdeviceptr at, unsigned value, unsigned flags);
CUresult wait_value(CUstream stream, CUdeviceptr at, unsigned value, unsigned flags);

}  // namespace software_gpu
