// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/max_min.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace commfuse {

namespace {

constexpr double unsettled = -1.0;

/// Orders a heap with the lowest rate on top.
constexpr auto later = [](const auto& a, const auto& b) {
  return a.rate != b.rate ? a.rate > b.rate : a.link > b.link;
};

}  // namespace

void MaxMin::list_members(std::span<const Flow> flows, std::span<const double> capacity) {
  shares_.resize(capacity.size());
  links_.clear();
  for (const Flow& flow : flows) {
    for (std::size_t link_index = 0; link_index < flow.links.size(); ++link_index) {
      const std::int32_t link = flow.links[link_index];
      Share& share = shares_[static_cast<std::size_t>(link)];
      if (share.flows == 0) {
        share.free_capacity = capacity[static_cast<std::size_t>(link)];
        share.members = 0;
        links_.push_back(link);
      }
      share.flows += flow.times_on(link_index);
      ++share.members;
    }
  }
  std::uint32_t next = 0;
  for (const std::int32_t link : links_) {
    Share& share = shares_[static_cast<std::size_t>(link)];
    share.first = next;
    next += std::exchange(share.members, 0U);
  }
  members_.resize(next);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    for (const std::int32_t link : flows[i].links) {
      Share& share = shares_[static_cast<std::size_t>(link)];
      members_[share.first + share.members++] = static_cast<std::uint32_t>(i);
    }
  }
}

void MaxMin::push(std::int32_t link) {
  const Share& share = shares_[static_cast<std::size_t>(link)];
  if (share.flows > 0) {
    levels_.push_back({share.free_capacity / share.flows, link, share.flows});
    std::push_heap(levels_.begin(), levels_.end(), later);
  }
}

const MaxMin::Level* MaxMin::first_full() {
  // A link only loses flows, so an entry with the current number of flows is the latest one.
  while (!levels_.empty() && shares_[static_cast<std::size_t>(levels_.front().link)].flows != levels_.front().flows) {
    pop();
  }
  return levels_.empty() ? nullptr : &levels_.front();
}

void MaxMin::pop() {
  std::pop_heap(levels_.begin(), levels_.end(), later);
  levels_.pop_back();
}

std::span<const double> MaxMin::rates(std::span<const Flow> flows, std::span<const double> capacity) {
  list_members(flows, capacity);
  rates_.assign(flows.size(), unsettled);
  by_cap_.resize(flows.size());
  std::iota(by_cap_.begin(), by_cap_.end(), 0U);
  const auto smaller = [&](std::uint32_t a, std::uint32_t b) { return flows[a].cap < flows[b].cap; };
  if (!std::is_sorted(by_cap_.begin(), by_cap_.end(), smaller)) {  // most caps are equal
    std::sort(by_cap_.begin(), by_cap_.end(), smaller);
  }
  levels_.clear();
  for (const std::int32_t link : links_) {
    push(link);
  }
  std::size_t next = 0;  // index into by_cap_
  for (;;) {
    while (next < by_cap_.size() && rates_[by_cap_[next]] >= 0.0) {
      ++next;
    }
    if (next == by_cap_.size()) {
      break;
    }
    const double cap = flows[by_cap_[next]].cap;
    const Level* first_to_fill = first_full();
    changed_.clear();
    if (first_to_fill == nullptr || cap <= first_to_fill->rate) {
      for (; next < by_cap_.size() && flows[by_cap_[next]].cap == cap; ++next) {
        if (rates_[by_cap_[next]] < 0.0) {
          settle(flows[by_cap_[next]], by_cap_[next], cap);
        }
      }
    } else {
      full_.clear();
      for (const double rate = first_to_fill->rate; first_to_fill != nullptr && first_to_fill->rate == rate;
           first_to_fill = first_full()) {
        full_.push_back(*first_to_fill);
        pop();
      }
      for (const Level& level : full_) {
        settle_link(flows, level);
      }
    }
    for (const std::int32_t link : changed_) {
      shares_[static_cast<std::size_t>(link)].changed = false;
      push(link);
    }
  }
  return rates_;
}

void MaxMin::settle_link(std::span<const Flow> flows, const Level& level) {
  const Share share = shares_[static_cast<std::size_t>(level.link)];
  for (std::uint32_t i = share.first; i < share.first + share.members; ++i) {
    if (rates_[members_[i]] < 0.0) {
      settle(flows[members_[i]], members_[i], level.rate);
    }
  }
}

void MaxMin::settle(const Flow& flow, std::size_t index, double rate) {
  rates_[index] = rate;
  for (std::size_t link_index = 0; link_index < flow.links.size(); ++link_index) {
    const std::int32_t link = flow.links[link_index];
    Share& share = shares_[static_cast<std::size_t>(link)];
    const std::int32_t times = flow.times_on(link_index);
    for (std::int32_t i = 0; i < times; ++i) {  // one multiplication would round differently from separate flows
      share.free_capacity = std::max(0.0, share.free_capacity - rate);
    }
    share.flows -= times;
    if (!share.changed) {
      share.changed = true;
      changed_.push_back(link);
    }
  }
}

}  // namespace commfuse
