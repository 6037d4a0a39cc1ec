// SPDX-License-Identifier: Apache-2.0
// Makes the calls of several streams, whose scratch memory depends on the calls.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "validate/cuda/calls.h"
#include "validate/cuda/device.h"

namespace commfuse::validate {

/// Calls make(scratch) twice, with a scratch for each stream: first to measure how much memory each stream needs, then
/// with the addresses of that memory, allocated in `room`. Frees the former memory of `room` first. Throws as
/// Driver::allocate() does.
template <class Make>
void make_with_scratch(Driver& driver, std::size_t streams, std::optional<ScratchRoom>& room, const Make& make) {
  room.reset();
  std::vector<Scratch> measured(streams, Scratch(0));
  make(measured);
  std::vector<Bytes> sizes;
  for (const Scratch& scratch : measured) {
    sizes.push_back(scratch.highest());
  }
  room.emplace(driver, sizes);
  std::vector<Scratch> placed;
  for (const Address base : room->bases()) {
    placed.emplace_back(base);
  }
  make(placed);
}

}  // namespace commfuse::validate
