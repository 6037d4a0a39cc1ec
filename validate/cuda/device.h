// SPDX-License-Identifier: Apache-2.0
// A device with streams and events that its executors use in turns, and the buffers of some ranks in its memory.
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

/// Lends streams and events by number; they are made when first asked for, and kept.
class Device {
 public:
  /// The driver outlives it.
  explicit Device(Driver& driver) : driver_(driver) {}

  [[nodiscard]] Driver& driver() { return driver_; }
  StreamId stream(std::size_t number, bool urgent);
  /// Of those on multiprocessors set apart, at least so many; nothing else of these executors' keeps them busy.
  StreamId stream_apart(std::size_t number, int multiprocessors);
  /// Set apart when first asked for, and kept. Throws std::runtime_error where too few are left.
  const Partition& partition(int multiprocessors);
  EventId event(std::size_t number);
  EventId timed_event(std::size_t number);
  /// Fills twice as much memory as the second-level cache holds, so that what comes next finds nothing there. The
  /// memory is made when first asked for, and kept. Nothing where the device has no such cache.
  void overwrite_level2(StreamId stream);

 private:
  struct Apart {
    Partition partition;
    std::vector<StreamId> streams{};
  };
  Apart& apart(int multiprocessors);

  Driver& driver_;
  std::vector<StreamId> streams_, urgent_;
  std::map<int, Apart> apart_;  // by how many were asked for
  std::vector<EventId> events_, timed_;
  struct Room;
  std::shared_ptr<Room> level2_;  // what overwrites it
};

/// A gate that holds a stream back until open() is called, or until the object goes, on whatever way: a gate left
/// closed would make every later call wait for it.
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

/// Device memory that is given back in the end.
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

/// The scratch of several streams, one behind the other.
class ScratchRoom {
 public:
  /// `most`: what each stream needs.
  ScratchRoom(Driver& driver, std::span<const Bytes> most);
  /// Where that of each stream begins.
  [[nodiscard]] std::span<const Address> bases() const { return bases_; }

 private:
  std::optional<Allocation> allocation_;
  std::vector<Address> bases_;
};

/// The buffers of some ranks: the i-th of `ranks` stands at place i. Program, sizes and driver outlive it.
class DeviceMemory {
 public:
  /// `at`: memory of the caller's that is large enough; nothing: it allocates its own.
  DeviceMemory(const Program& program, const Sizes& sizes, Driver& driver, std::vector<Rank> ranks,
               std::optional<Address> at = {});

  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] bool holds(Rank rank) const;
  /// As Executor::prepare().
  void fill(std::span<const Matrix<float>> tensors);
  /// Random values everywhere: for times, where no result is looked at.
  void randomize(Device& device);
  [[nodiscard]] Matrix<float> read(Rank rank, const Rectangle& area) const;
  /// All of it, for restore(). Requires that no stream has work left.
  [[nodiscard]] std::vector<std::byte> snapshot() const;
  void restore(std::span<const std::byte> bytes);

 private:
  [[nodiscard]] std::size_t place_of(Rank rank) const;

  const Program& program_;
  const Sizes& sizes_;
  Driver& driver_;
  std::vector<Rank> ranks_;
  std::optional<Allocation> allocation_;  // none: the caller has it
  Address base_;
  Layout layout_;
};

}  // namespace commfuse::validate
