// SPDX-License-Identifier: Apache-2.0
// A link between virtual ranks that is real: down into pinned host memory by one copy engine and up again by another.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "validate/cuda/driver.h"
#include "validate/cuda/module/handles.h"

namespace commfuse::validate {

/// The way of one stream. Chunks follow each other, so that both directions are busy at a time.
class Bounce {
 public:
  static constexpr std::int64_t chunk_bytes = std::int64_t{4} << 20;

  Bounce();
  /// In the order of `stream`. What changes its dtype is packed to the wire's before and unpacked behind by kernels of
  /// so many CTAs, in device memory that `room` gives.
  void run(cudaStream_t stream, const MoveCall& call, int ctas, const std::function<void*(std::size_t)>& room);

 private:
  struct Slot {
    PinnedMemory bytes = new_pinned_memory(static_cast<std::size_t>(chunk_bytes));
    OwnedEvent filled = new_event(false);
    OwnedEvent emptied = new_event(false);
  };
  /// Equal rows of bytes.
  struct Rows {
    Address from = 0, to = 0;
    std::int64_t rows = 0, bytes = 0;
    std::int64_t from_pitch = 0, to_pitch = 0;
  };

  void bounce(const std::vector<MoveCall::Part>& parts, cudaStream_t stream);
  void bounce(const Rows& rows);
  void chunk(const Rows& rows);

  std::array<Slot, 4> slots_;
  std::size_t chunks_ = 0;  // of this run
  OwnedStream down_;
  OwnedStream up_;
  OwnedEvent begin_ = new_event(false);
  OwnedEvent end_ = new_event(false);
};

}  // namespace commfuse::validate
