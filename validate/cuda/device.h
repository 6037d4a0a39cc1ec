// SPDX-License-Identifier: Apache-2.0
// A device with its streams and events, which executors use one after another; and the buffers of some ranks in memory.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/program/lower.h"
#include "model/program/sizes.h"
#include "validate/cuda/driver.h"
#include "validate/cuda/panels.h"
#include "validate/values/matrix.h"

namespace commfuse::validate {

/// Lends streams and events by number. They are made on first use and kept.
class Device {
 public:
  /// `driver` must outlive the device.
  explicit Device(Driver& driver) : driver_(driver) {}

  [[nodiscard]] Driver& driver() { return driver_; }
  StreamId stream(std::size_t number, bool urgent);
  /// Returns a stream on partition(multiprocessors).
  StreamId stream_on_partition(std::size_t number, int multiprocessors);
  /// Returns the partition for this many multiprocessors, which is reserved on first use and kept. Throws
  /// std::runtime_error if too few multiprocessors are left.
  const Partition& partition(int multiprocessors);
  EventId event(std::size_t number);
  EventId timed_event(std::size_t number);
  /// Fills twice as much memory as the second-level cache holds, so that the next work finds none of its data there.
  /// The memory is allocated on first use and kept. Does nothing if the device has no such cache.
  void overwrite_level2(StreamId stream);

 private:
  struct StreamsOnPartition {
    Partition partition;
    std::vector<StreamId> streams{};
  };
  StreamsOnPartition& streams_on_partition(int multiprocessors);

  Driver& driver_;
  std::vector<StreamId> streams_, urgent_;
  std::map<int, StreamsOnPartition> partitions_;  // by requested number of multiprocessors
  std::vector<EventId> events_, timed_;
  struct Room;
  std::shared_ptr<Room> level2_;  // memory whose writes evict the cache
};

/// A gate that holds a stream back until open() is called. The destructor opens it too, because a gate left closed
/// would block every later call.
class ClosedGate {
 public:
  ClosedGate(Driver& driver, StreamId stream);
  ClosedGate(const ClosedGate&) = delete;
  ClosedGate& operator=(const ClosedGate&) = delete;
  ~ClosedGate() { open(); }
  void open();

 private:
  Driver& driver_;
  bool closed_ = true;
};

/// A capture that the destructor ends if end() was not called. A capture left open would forbid every later allocation.
class Capture {
 public:
  Capture(Driver& driver, StreamId origin) : driver_(driver) { driver_.begin_capture(origin); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture();
  [[nodiscard]] GraphId end();

 private:
  Driver& driver_;
  bool open_ = true;
};

/// A trace that the destructor drops if end() was not called. A trace left open would slow down later measurements.
class Trace {
 public:
  explicit Trace(Driver& driver) : driver_(driver) { driver_.begin_trace(); }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace();
  [[nodiscard]] std::vector<DeviceSpan> end();

 private:
  Driver& driver_;
  bool open_ = true;
};

/// Device memory that the destructor frees.
class Allocation {
 public:
  Allocation(Driver& driver, Bytes bytes) : driver_(driver), at_(driver.allocate(bytes)) {}
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation();
  [[nodiscard]] Address at() const { return at_; }

 private:
  Driver& driver_;
  Address at_;
};

/// Contiguous scratch memory of several streams.
class ScratchRoom {
 public:
  /// Allocates the given number of bytes for each stream.
  ScratchRoom(Driver& driver, std::span<const Bytes> bytes_by_stream);
  /// Returns the address of each stream's scratch.
  [[nodiscard]] std::span<const Address> bases() const { return bases_; }

 private:
  std::optional<Allocation> allocation_;
  std::vector<Address> bases_;
};

/// The buffers of some ranks: the i-th of `ranks` is at place i. Program, sizes and driver must outlive this object.
class DeviceMemory {
 public:
  /// Uses the caller's memory at `at`, which must be large enough; without `at`, allocates its own.
  DeviceMemory(const Program& program, const Sizes& sizes, Driver& driver, std::vector<Rank> ranks,
               std::optional<Address> at = {});

  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] bool holds(Rank rank) const;
  /// Fills the buffers as Executor::prepare() does.
  void fill(std::span<const Matrix<float>> tensors);
  /// Writes random values everywhere, for timed runs whose results are not used.
  void randomize(Device& device);
  [[nodiscard]] Matrix<float> read(Rank rank, const Rectangle& area) const;
  /// Returns the bytes of all buffers, for restore(). Requires that no stream has work left.
  [[nodiscard]] std::vector<std::byte> snapshot() const;
  void restore(std::span<const std::byte> bytes);

 private:
  [[nodiscard]] std::size_t place_of(Rank rank) const;

  const Program& program_;
  const Sizes& sizes_;
  Driver& driver_;
  std::vector<Rank> ranks_;
  std::optional<Allocation> allocation_;  // empty if the caller owns the memory
  Address base_;
  Layout layout_;
};

}  // namespace commfuse::validate
