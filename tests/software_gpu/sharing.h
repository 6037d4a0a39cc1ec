// SPDX-License-Identifier: Apache-2.0
// Device memory that processes share. Its pages are in an unnamed file, which other processes open by its number in the
// owner's process; the page after them (the ledger) lists the processes that have the memory open.
#pragma once

#include <cuda.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>

namespace software_gpu {

constexpr std::size_t max_openers = 64;

struct Ledger {
  std::atomic<int> freed = 0;
  std::array<std::atomic<pid_t>, max_openers> openers{};  // 0: free
};

/// The pages that contain a block.
struct Pages {
  std::byte* first = nullptr;
  std::size_t bytes = 0;
  std::size_t offset = 0;  // offset of the block
  std::size_t block_bytes = 0;
  Ledger* ledger = nullptr;  // null: not shared yet
};

/// Returns the pages of the block that begins at this address and belongs to the device; nothing if there is none.
std::optional<Pages> pages_of(const void* at, int device);
void set_ledger(const void* at, Ledger* ledger);
/// Adds memory of another process, open for a device of this process.
void add_opened(const void* at, std::size_t bytes, int device, Ledger* ledger);
/// Closes memory of another process and returns its ledger; null if it is not open in this process.
Ledger* close_opened(const void* at);
/// Must be called before the owner frees shared memory. Ends the process if another living process has it open.
void end_sharing(Ledger& ledger);

// Functions that the driver provides by name.

CUresult write_value(CUstream stream, CUdeviceptr at, unsigned value, unsigned flags);
CUresult wait_value(CUstream stream, CUdeviceptr at, unsigned value, unsigned flags);

}  // namespace software_gpu
