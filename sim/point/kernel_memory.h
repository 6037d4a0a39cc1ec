// SPDX-License-Identifier: Apache-2.0
// Times of kernels at points that were priced before. Grids vary the rates of links in an outer loop and sequence
// lengths in an inner loop, so each kernel would be priced again for every rate, although no link affects it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/cost/price.h"
#include "model/program/sizes.h"
#include "sim/point/structure.h"

namespace commfuse {

/// Everything that the times of a program's kernels depend on: points with equal inputs have equal times, whatever else
/// differs between them.
struct KernelInputs {
  const Structure* structure = nullptr;  ///< must outlive the memory
  /// Number of the accelerator and of the settings that affect prices; equal numbers mean equal values.
  std::size_t priced_as = 0;
  /// Number of a list of raised parameters, for the times on one machine per parameter; 0: times on the machine itself.
  std::size_t raised = 0;
  int sms_beside_exchanges = 0;
  int sms_beside_collectives = 0;
  const Sizes* sizes = nullptr;
};

/// Finds times by their inputs, all of which it stores and compares. A grid that returns to points with the same
/// kernels usually visits them in the same order, so recall() tries the entry after the last one before it searches.
/// Keeps neither the times of attention nor those of transfers.
class KernelMemory {
 public:
  /// Fills in the times of all kernels on each machine and returns true if the inputs are known; otherwise clears the
  /// times. Requires the same number of machines for equal inputs.
  bool recall(const KernelInputs& inputs, std::span<KernelTimes> machines);
  /// Keeps the times of all kernels of the program. Requires recall() to have returned false for `inputs`.
  void keep(const KernelInputs& inputs, std::span<const KernelTimes> machines);

 private:
  /// Writes the inputs to key_, after their hash.
  void write_key(const KernelInputs& inputs);
  /// Returns whether the entry at this index of words_ has key_.
  [[nodiscard]] bool has_key(std::size_t entry) const;
  /// Returns the slot of key_, which is empty if the inputs are unknown. Requires slots_ to have an empty slot.
  [[nodiscard]] std::size_t find_slot() const;
  void add_slots();

  std::vector<std::int64_t> key_;
  std::vector<std::int64_t>
      words_;  // by entry: its key, then the times by machine. Keys with equal structures have equal lengths.
  std::vector<std::uint32_t> slots_;  // hash table: the index in words_ of an entry
  std::size_t entries_ = 0;
  std::size_t next_ = 0;  // index in words_ after the entry that was recalled or kept last
};

}  // namespace commfuse
