// SPDX-License-Identifier: Apache-2.0
// GPU memory that the processes of one machine share without NCCL: each process opens the memory of the others, copies
// to and from it, and synchronizes by flags in it. The plugin implements this with CUDA.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "validate/cuda/driver.h"

namespace commfuse::validate {

/// Identifies memory of a device for other processes (cudaIpcMemHandle_t).
using MemoryKey = std::array<std::byte, 64>;

/// A number in shared memory that only grows, until it wraps around: a wait ends once the flag is 0 to 2^31 - 1 beyond
/// the awaited value.
using FlagValue = std::uint32_t;
inline constexpr std::int64_t flag_bytes = sizeof(FlagValue);

/// Access to devices of other processes. Only one thread may use it. Every failure throws std::runtime_error with what
/// failed.
class Peers {
 public:
  Peers() = default;
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;
  virtual ~Peers() = default;

  struct Shared {
    Address at = 0;
    MemoryKey key{};
  };
  /// Allocates memory of this device that other processes may open. Unless unshare() frees it, the memory stays until
  /// the process ends.
  virtual Shared share(Bytes bytes) = 0;
  /// Requires that every process that opened the memory has closed it.
  virtual void unshare(Address at) = 0;
  /// Opens memory that another process shares. Requires that this device can access the device of that memory.
  virtual Address open(const MemoryKey& key) = 0;
  virtual void close(Address at) = 0;

  /// Sets flags of this device immediately, whatever its streams do, so that waits for them end.
  virtual void set(Address flags, std::size_t count, FlagValue value) = 0;

  // Work in the order of a stream.

  /// Writes a flag of any device, once all earlier work of the stream is done and visible there.
  virtual void signal(StreamId stream, Address flag, FlagValue value) = 0;
  /// Holds the stream until the flag, in memory of this device, has reached the value. Other streams continue.
  virtual void await(StreamId stream, Address flag, FlagValue value) = 0;
  /// Copies bytes between panels of equal rows, columns and dtype, on any two devices.
  virtual void copy(StreamId stream, const Panel& from, const Panel& to) = 0;
};

}  // namespace commfuse::validate
