// SPDX-License-Identifier: Apache-2.0
// Copies between the GPUs of one process, and between its host and its GPUs, timed as nvbandwidth times them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/units.h"

namespace commfuse::validate {

/// The end of a copy in pinned memory of the host. Other ends are numbers of GPUs.
inline constexpr int host_end = -1;

enum class CopiedBy : std::uint8_t {
  copy_engine,  ///< The runtime's memcpy.
  kernel,       ///< A kernel of 512 threads on every SM.
};

struct TimedCopy {
  int issuer = 0;  ///< GPU whose stream runs the copy: one of the two ends.
  int from = 0;    ///< GPU or host_end.
  int to = 0;
  CopiedBy by = CopiedBy::copy_engine;
  Bytes bytes;
  int repetitions = 1;  ///< Copies of the same bytes, one after another; at most 100 fit behind the gate.
};

/// Times copies. Holds memory of all GPUs, and host memory near each of them, filled with hashes. Only one thread may
/// use it. Every failure throws std::runtime_error with what failed. Copies that do not finish in time throw Stuck: the
/// GPUs can no longer be used.
class Copier {
 public:
  Copier() = default;
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;
  virtual ~Copier() = default;

  [[nodiscard]] virtual int gpus() const = 0;
  /// Returns true if kernels and copies of one GPU may access the memory of another.
  [[nodiscard]] virtual bool reaches(int gpu, int other) const = 0;
  /// Allocates memory for copies of up to `bytes`, a multiple of 512. Must be called first, and only once.
  virtual void make_room(Bytes bytes) = 0;
  /// Runs all copies simultaneously, once each, without a gate. Throws if a byte did not arrive.
  virtual void check(std::span<const TimedCopy> copies) = 0;
  /// Issues all copies behind one gate, releases them at the same moment, and returns for each of them the time of one
  /// repetition. At most two copies may have the same issuer. Requires that check() ran the same copies.
  [[nodiscard]] virtual std::vector<Duration> time(std::span<const TimedCopy> copies) = 0;
};

}  // namespace commfuse::validate
