// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/max_min.h"

#include <algorithm>
#include <limits>

namespace commfuse {

std::span<const double> MaxMin::rates(std::span<const Flow> flows, std::span<const double> capacity) {
  constexpr double open = -1.0;
  shares_.resize(capacity.size());
  links_.clear();
  for (const Flow& flow : flows) {
    for (const std::int32_t link : flow.links) {
      Share& share = shares_[static_cast<std::size_t>(link)];
      if (share.flows++ == 0) {
        share.left = capacity[static_cast<std::size_t>(link)];
        links_.push_back(link);
      }
    }
  }
  std::sort(links_.begin(), links_.end());
  rates_.assign(flows.size(), open);
  for (std::size_t settled = 0; settled < flows.size();) {
    double level = std::numeric_limits<double>::infinity();  // at which a cap or a link stops the next flows
    std::int32_t full = -1;
    for (const std::int32_t link : links_) {
      const Share& share = shares_[static_cast<std::size_t>(link)];
      if (share.flows > 0 && share.left / share.flows < level) {
        level = share.left / share.flows;
        full = link;
      }
    }
    double cap = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < flows.size(); ++i) {
      cap = rates_[i] < 0.0 ? std::min(cap, flows[i].cap) : cap;
    }
    const bool capped = cap <= level;
    level = std::min(cap, level);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const auto& links = flows[i].links;
      if (rates_[i] < 0.0 &&
          (capped ? flows[i].cap == level : std::find(links.begin(), links.end(), full) != links.end())) {
        settle(flows[i], i, level);
        ++settled;
      }
    }
  }
  return rates_;
}

void MaxMin::settle(const Flow& flow, std::size_t index, double rate) {
  rates_[index] = rate;
  for (const std::int32_t link : flow.links) {
    Share& share = shares_[static_cast<std::size_t>(link)];
    share.left = std::max(0.0, share.left - rate);
    --share.flows;
  }
}

}  // namespace commfuse
