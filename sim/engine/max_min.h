// SPDX-License-Identifier: Apache-2.0
// Divides shared links between flows: max-min fairness by progressive filling.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace commfuse {

/// A flow that uses all its links at one rate, which is at most `cap`.
struct Flow {
  double cap = 0.0;                     // above 0
  std::span<const std::int32_t> links;  // distinct
  /// For each link, the number of identical flows that this flow represents, itself included. Empty: 1 on every link.
  std::span<const std::int32_t> times{};
  [[nodiscard]] std::int32_t times_on(std::size_t link_index) const { return times.empty() ? 1 : times[link_index]; }
};

/// All rates grow together; a flow stops at its cap, or when one of its links is full. So no flow can get more without
/// taking it from a flow that is no faster (Bertsekas and Gallager, Data Networks, 6.5.2). Takes O(n log n) time for n
/// pairs of a flow and its link.
///
/// Links that fill up at the same rate are filled together. So the rates are bitwise independent of the order of flows
/// and links, and flows in the same position on identical links get the same rate: one of them can represent all.
class MaxMin {
 public:
  /// Returns the rates by flow, in the unit of the caps and of `capacity`. `capacity` is by link and above 0. The
  /// result is valid until the next call.
  std::span<const double> rates(std::span<const Flow> flows, std::span<const double> capacity);

 private:
  struct Share {
    double free_capacity = 0.0;  // capacity that no settled flow uses
    std::int32_t flows = 0;      // number of flows that are not settled
    std::uint32_t first = 0;     // index of its first flow in members_
    std::uint32_t members = 0;
    bool changed = false;  // listed in changed_
  };
  /// The rate at which a link fills up, as of the creation of this entry.
  struct Level {
    double rate = 0.0;
    std::int32_t link = 0;
    std::int32_t flows = 0;  // number of unsettled flows at that time; if it has changed, the link has a later entry
  };
  void list_members(std::span<const Flow> flows, std::span<const double> capacity);
  void push(std::int32_t link);
  /// Returns the link that fills up first; null when no unsettled flow uses a link.
  const Level* first_full();
  void pop();
  void settle_link(std::span<const Flow> flows, const Level& level);
  void settle(const Flow& flow, std::size_t index, double rate);

  std::vector<Share> shares_;           // by link
  std::vector<std::int32_t> links_;     // links in use
  std::vector<std::uint32_t> members_;  // flows by link, in order
  std::vector<std::uint32_t> by_cap_;   // flows, smallest cap first
  std::vector<Level> levels_;           // heap with the first to fill up on top
  std::vector<Level> full_;             // links that are filled in this round
  std::vector<std::int32_t> changed_;   // links of flows that were settled in this round
  std::vector<double> rates_;           // by flow; below 0: not settled
};

}  // namespace commfuse
