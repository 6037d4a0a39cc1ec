// SPDX-License-Identifier: Apache-2.0
// Who gets how much of shared links: max-min fair, by progressive filling.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace commfuse {

/// Goes over all its links at one rate, and never faster than `cap`.
struct Flow {
  double cap = 0.0;                     // above 0
  std::span<const std::int32_t> links;  // distinct
};

/// All rates grow together; a flow stops at its cap, or when one of its links is full. So no flow can be given more
/// without taking it from one that has no more than it has (Bertsekas and Gallager, Data Networks, 6.5.2).
class MaxMin {
 public:
  /// Rates by flow, which are in the unit of the caps and of `capacity`, which is by link and above 0. Does not
  /// depend on the order of the flows, to the last bit. Valid until the next call.
  std::span<const double> rates(std::span<const Flow> flows, std::span<const double> capacity);

 private:
  struct Share {
    double left = 0.0;       // capacity that no settled flow uses
    std::int32_t flows = 0;  // not settled
  };
  void settle(const Flow& flow, std::size_t index, double rate);

  std::vector<Share> shares_;        // by link; all zero between calls
  std::vector<std::int32_t> links_;  // in use, sorted
  std::vector<double> rates_;        // by flow; below 0: not settled
};

}  // namespace commfuse
