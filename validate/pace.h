// SPDX-License-Identifier: Apache-2.0
// A link with a stated pace, however fast the machine could move data, so that transfers over it have a known price.
#pragma once

#include "model/units.h"

namespace commfuse::validate {

/// A link of a stated latency and bandwidth.
struct Pace {
  Duration latency{};
  BytesPerSecond bandwidth{};
  friend bool operator==(const Pace&, const Pace&) = default;
};

/// Returns the time of a collective over such links in a ring of `members`: N - 1 steps, each a latency and an N-th of
/// `whole`, the larger of its input and output; an all-reduce takes twice that.
Duration ring_time(const Pace& pace, Bytes whole, int members, bool twice);

}  // namespace commfuse::validate
