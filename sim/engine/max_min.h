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
  /// By link: how many such flows are on it, where one stands for many. Empty: this one alone.
  std::span<const std::int32_t> times{};
  [[nodiscard]] std::int32_t times_on(std::size_t place) const { return times.empty() ? 1 : times[place]; }
};

/// All rates grow together; a flow stops at its cap, or when one of its links is full. So no flow can be given more
/// without taking it from one that has no more than it has (Bertsekas and Gallager, Data Networks, 6.5.2). Takes
/// O(n log n) for n pairs of a flow and its link.
///
/// Links that are full at the same rate are filled together. So rates depend on the order of neither flows nor links,
/// to the last bit, and flows that have the same place on like links get the same rate: one of them can stand for all.
class MaxMin {
 public:
  /// Rates by flow, which are in the unit of the caps and of `capacity`, which is by link and above 0. Valid until the
  /// next call.
  std::span<const double> rates(std::span<const Flow> flows, std::span<const double> capacity);

 private:
  struct Share {
    double left = 0.0;        // capacity that no settled flow uses
    std::int32_t flows = 0;   // not settled
    std::uint32_t first = 0;  // of its flows in members_
    std::uint32_t members = 0;
    bool changed = false;  // is one of changed_
  };
  /// The rate at which a link is full, as it was when this was written down.
  struct Level {
    double rate = 0.0;
    std::int32_t link = 0;
    std::int32_t flows = 0;  // not settled then; a link that has others now has a later entry
  };
  void list_members(std::span<const Flow> flows, std::span<const double> capacity);
  void push(std::int32_t link);
  /// The link that is full first; null when no flow of any link is left to settle.
  const Level* first_full();
  void pop();
  void settle_link(std::span<const Flow> flows, const Level& level);
  void settle(const Flow& flow, std::size_t index, double rate);

  std::vector<Share> shares_;           // by link
  std::vector<std::int32_t> links_;     // in use
  std::vector<std::uint32_t> members_;  // flows by link, in order
  std::vector<std::uint32_t> by_cap_;   // flows, the least cap first
  std::vector<Level> levels_;           // a heap, the first to be full on top
  std::vector<Level> full_;             // those that are filled in this round
  std::vector<std::int32_t> changed_;   // links of flows that were settled in this round
  std::vector<double> rates_;           // by flow; below 0: not settled
};

}  // namespace commfuse
