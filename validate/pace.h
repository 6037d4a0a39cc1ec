// SPDX-License-Identifier: Apache-2.0
// A link that is as slow as stated, even if the machine could move data faster, so that its transfers have a known
// price.
#pragma once

#include "model/units.h"

namespace commfuse::validate {

/// A link of a stated latency and bandwidth.
struct Pace {
  Duration latency{};
  BytesPerSecond bandwidth{};
  friend bool operator==(const Pace&, const Pace&) = default;
};

/// Returns the time of a collective in a ring of `members` with such links: N - 1 steps for N members, each of which
/// takes one latency and the time of an N-th of `whole`, the larger of input and output. `twice` doubles the time, as
/// for an all-reduce.
Duration ring_time(const Pace& pace, Bytes whole, int members, bool twice);

}  // namespace commfuse::validate
