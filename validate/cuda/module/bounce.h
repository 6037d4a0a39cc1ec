// SPDX-License-Identifier: Apache-2.0
// A real link between virtual ranks: down into pinned host memory by one copy engine and up again by another.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "validate/cuda/driver.h"
#include "validate/cuda/module/handles.h"

namespace commfuse::validate {

/// The link of one stream. One chunk goes down while the previous one goes up, so both directions are busy.
class Bounce {
 public:
  static constexpr std::int64_t chunk_bytes = std::int64_t{4} << 20;

  Bounce();
  /// Runs in the order of `stream`. For data that changes its dtype, kernels of `ctas` CTAs convert it to the wire's
  /// dtype before the link, and from that dtype afterwards. `room` returns the device memory for the converted data.
  void run(cudaStream_t stream, const MoveCall& call, int ctas, const std::function<void*(std::size_t)>& room);

 private:
  struct Slot {
    PinnedMemory bytes = new_pinned_memory(static_cast<std::size_t>(chunk_bytes));
    OwnedEvent filled = new_event(false);
    OwnedEvent emptied = new_event(false);
  };
  /// Rows of bytes, all of equal length.
  struct Rows {
    Address from = 0, to = 0;
    std::int64_t rows = 0, bytes = 0;
    std::int64_t from_pitch = 0, to_pitch = 0;
  };

  void bounce(const std::vector<MoveCall::Part>& parts, cudaStream_t stream);
  void bounce(const Rows& rows);
  void chunk(const Rows& rows);

  std::array<Slot, 4> slots_;
  std::size_t chunks_ = 0;  // chunks of this run
  OwnedStream down_;
  OwnedStream up_;
  OwnedEvent begin_ = new_event(false);
  OwnedEvent end_ = new_event(false);
};

}  // namespace commfuse::validate
