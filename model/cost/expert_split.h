// SPDX-License-Identifier: Apache-2.0
// The experts among which the tokens of a site are split.
#pragma once

#include <cstdint>

namespace commfuse {

/// The extent of a weight that the ranks of a site share: the columns after an all-gather, the contraction before a
/// reduce-scatter.
enum class WeightCut : std::uint8_t { columns, contraction };

/// Experts of a site; `count` 0: the site has a single weight.
struct ExpertSplit {
  std::int64_t count = 0;
  std::int64_t active = 1;  ///< experts per token
  std::int64_t ranks = 1;   ///< ranks that share the experts; they divide `count` and the ranks of the site
  WeightCut cut = WeightCut::columns;
  friend bool operator==(const ExpertSplit&, const ExpertSplit&) = default;
};

}  // namespace commfuse
