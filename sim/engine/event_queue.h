// SPDX-License-Identifier: Apache-2.0
// The queue of future events of a run, in order of time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace commfuse {

enum class EventKind : std::uint8_t { post, end, half_end, own_half_end, collective_end, wake };

struct TimedEvent {
  std::int64_t when = 0;            // picoseconds
  std::uint32_t tie = 0;            // lower first among simultaneous events
  std::uint32_t slot_and_kind = 0;  // slot * 8 + kind

  [[nodiscard]] std::uint32_t slot() const { return slot_and_kind >> 3; }
  [[nodiscard]] EventKind kind() const { return static_cast<EventKind>(slot_and_kind & 7U); }
  friend bool operator<(const TimedEvent& a, const TimedEvent& b) {
    return a.when != b.when ? a.when < b.when : a.tie < b.tie;
  }
};

/// Events in order of time: appends later events and removes the first event, both in constant time.
class EventRun {
 public:
  void clear() { first_ = end_ = 0; }
  [[nodiscard]] bool empty() const { return first_ == end_; }
  [[nodiscard]] const TimedEvent& front() const { return ring_[first_ & mask_]; }
  [[nodiscard]] const TimedEvent& back() const { return ring_[(end_ - 1) & mask_]; }
  void pop() { ++first_; }
  void push(const TimedEvent& event) {
    if (end_ - first_ == ring_.size()) {
      grow();
    }
    ring_[end_++ & mask_] = event;
  }

 private:
  void grow() {
    std::vector<TimedEvent> larger(std::max<std::size_t>(16, 2 * ring_.size()));
    for (std::size_t i = first_; i < end_; ++i) {
      larger[i - first_] = ring_[i & mask_];
    }
    ring_.swap(larger);
    mask_ = ring_.size() - 1;
    end_ -= first_;
    first_ = 0;
  }

  std::vector<TimedEvent> ring_;  // its size is a power of 2
  std::size_t mask_ = 0;
  std::size_t first_ = 0;
  std::size_t end_ = 0;
};

/// Simultaneous events come out in the order in which they were pushed, or shuffled by a seed: the order never depends
/// on a pointer or a hash table.
///
/// Ops of one lane often take equally long on all ranks, so their ends are pushed in order of time. Events pushed in
/// order of time are kept in the run of their lane, the rest in a heap.
class EventQueue {
 public:
  static constexpr std::uint32_t max_slots = 1U << 29;

  /// Removes all events and keeps the memory.
  void start(std::optional<std::uint64_t> shuffle_ties) {
    heap_.clear();
    for (EventRun& run : runs_) {
      run.clear();
    }
    pushed_ = 0;
    shuffle_ = shuffle_ties;
  }

  /// The slot and the lane of an event.
  struct Place {
    std::uint32_t slot = 0;
    std::uint32_t lane = 0;
  };

  void push(std::int64_t when, EventKind kind, const Place& place) {
    const TimedEvent event{when, tie(), place.slot << 3 | static_cast<std::uint32_t>(kind)};
    EventRun& run = runs_[place.lane % runs_.size()];
    if (run.empty() || run.back() < event) {
      run.push(event);
    } else {
      heap_.push_back(event);
      std::push_heap(heap_.begin(), heap_.end(), is_later);
    }
  }

  /// Returns the time of the first event; nothing when the queue is empty.
  [[nodiscard]] std::optional<std::int64_t> next() const {
    std::optional<std::int64_t> first;
    for (const EventRun& run : runs_) {
      if (!run.empty() && (!first || run.front().when < *first)) {
        first = run.front().when;
      }
    }
    return heap_.empty() || (first && *first < heap_.front().when) ? first : heap_.front().when;
  }

  /// Removes the first event and stores it in `first`. Returns false if the queue is empty.
  bool pop(TimedEvent& first) {
    EventRun* first_run = nullptr;
    for (EventRun& run : runs_) {
      if (!run.empty() && (first_run == nullptr || run.front() < first)) {
        first_run = &run;
        first = run.front();
      }
    }
    if (!heap_.empty() && (first_run == nullptr || heap_.front() < first)) {
      std::pop_heap(heap_.begin(), heap_.end(), is_later);
      first = heap_.back();
      heap_.pop_back();
      return true;
    }
    if (first_run != nullptr) {
      first_run->pop();
    }
    return first_run != nullptr;
  }

 private:
  static bool is_later(const TimedEvent& a, const TimedEvent& b) { return b < a; }

  /// Returns the number that orders the next event among simultaneous events. After 2^32 events the counter starts
  /// again at 0, so a later event may come first, but the order is still deterministic.
  std::uint32_t tie() {
    const std::uint32_t number = pushed_++;
    if (!shuffle_) {
      return number;
    }
    std::uint64_t mixed = (number + *shuffle_) * 0x9e3779b97f4a7c15ULL;  // splitmix64
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    return static_cast<std::uint32_t>((mixed ^ (mixed >> 27)) >> 16);
  }

  std::array<EventRun, 4> runs_;  // by lane modulo 4
  std::vector<TimedEvent> heap_;
  std::uint32_t pushed_ = 0;
  std::optional<std::uint64_t> shuffle_;
};

}  // namespace commfuse
