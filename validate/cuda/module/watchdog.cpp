// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/watchdog.h"

#include <utility>

namespace commfuse::validate {

Watchdog::Watchdog() : guard_([this] { guard(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  guard_.join();
}

void Watchdog::begin(Duration patience, std::function<void()> rescue) {
  const std::lock_guard lock(mutex_);
  deadline_ = Clock::now() + std::chrono::ceil<std::chrono::nanoseconds>(patience);
  rescue_ = std::move(rescue);
  watching_ = true;
  // Waking the guard for every call would cost microseconds, so it is woken only if it would sleep past this deadline.
  if (deadline_ < asleep_until_) {
    changed_.notify_one();
  }
}

bool Watchdog::end() {
  std::unique_lock lock(mutex_);
  if (watching_) {
    watching_ = false;
    return false;
  }
  rescued_.wait(lock, [this] { return !rescuing_; });
  return true;
}

void Watchdog::guard() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!watching_) {
      asleep_until_ = Clock::time_point::max();
      changed_.wait(lock);
    } else if (Clock::now() < deadline_) {
      asleep_until_ = deadline_;
      changed_.wait_until(lock, asleep_until_);
    } else {
      watching_ = false;
      rescuing_ = true;
      lock.unlock();
      rescue_();  // end() waits, so no other thread changes rescue_ during the call
      lock.lock();
      rescuing_ = false;
      rescued_.notify_one();
    }
  }
}

}  // namespace commfuse::validate
