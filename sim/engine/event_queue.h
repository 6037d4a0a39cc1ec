// SPDX-License-Identifier: Apache-2.0
// What is going to happen in a run, in order of time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace commfuse {

enum class EventKind : std::uint8_t { post, end, half_end, collective_end };

struct TimedEvent {
  std::int64_t when = 0;   // picoseconds
  std::uint32_t tie = 0;   // lower first among simultaneous events
  std::uint32_t what = 0;  // slot and kind

  [[nodiscard]] std::uint32_t slot() const { return what >> 2; }
  [[nodiscard]] EventKind kind() const { return static_cast<EventKind>(what & 3U); }
  friend bool operator<(const TimedEvent& a, const TimedEvent& b) {
    return a.when != b.when ? a.when < b.when : a.tie < b.tie;
  }
};

/// A heap. Simultaneous events come out in the order in which they were pushed, or shuffled by a seed: no pointer or
/// hash table ever decides.
class EventQueue {
 public:
  static constexpr std::uint32_t most_slots = 1U << 30;

  /// Forgets everything, keeps the memory.
  void start(std::optional<std::uint64_t> shuffle_ties) {
    heap_.clear();
    pushed_ = 0;
    shuffle_ = shuffle_ties;
  }

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] const TimedEvent& next() const { return heap_.front(); }

  void push(std::int64_t when, EventKind kind, std::uint32_t slot) {
    const TimedEvent event{when, tie(), slot << 2 | static_cast<std::uint32_t>(kind)};
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), [](const TimedEvent& a, const TimedEvent& b) { return b < a; });
  }

  TimedEvent pop() {
    std::pop_heap(heap_.begin(), heap_.end(), [](const TimedEvent& a, const TimedEvent& b) { return b < a; });
    const TimedEvent first = heap_.back();
    heap_.pop_back();
    return first;
  }

 private:
  /// After 2^32 events the order among simultaneous ones is another, still always the same one.
  std::uint32_t tie() {
    const std::uint32_t number = pushed_++;
    if (!shuffle_) {
      return number;
    }
    std::uint64_t mixed = (number + *shuffle_) * 0x9e3779b97f4a7c15ULL;  // splitmix64
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    return static_cast<std::uint32_t>((mixed ^ (mixed >> 27)) >> 16);
  }

  std::vector<TimedEvent> heap_;
  std::uint32_t pushed_ = 0;
  std::optional<std::uint64_t> shuffle_;
};

}  // namespace commfuse
