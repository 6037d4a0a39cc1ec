// SPDX-License-Identifier: Apache-2.0
// A time limit for calls that block and accept no time limit.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "model/units.h"

namespace commfuse::validate {

/// Watches one call at a time; all calls come from one thread. A call that ends in time costs two uncontended locks.
class Watchdog {
 public:
  Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  /// Runs `call`, which must not throw. If `call` takes longer than `patience`, runs `rescue` in another thread;
  /// `rescue` must make `call` return. Returns whether `rescue` was run; if so, it has ended.
  template <class Call>
  [[nodiscard]] bool watch(Duration patience, std::function<void()> rescue, const Call& call) {
    begin(patience, std::move(rescue));
    call();
    return end();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void begin(Duration patience, std::function<void()> rescue);
  bool end();
  void guard();

  std::mutex mutex_;
  std::condition_variable changed_;  // wakes the guard
  std::condition_variable rescued_;  // wakes the watched thread
  std::function<void()> rescue_;
  Clock::time_point deadline_;
  Clock::time_point asleep_until_ = Clock::time_point::max();
  bool watching_ = false;
  bool rescuing_ = false;
  bool stopping_ = false;
  std::thread guard_;
};

}  // namespace commfuse::validate
