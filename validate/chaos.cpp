// SPDX-License-Identifier: Apache-2.0
#include "validate/chaos.h"

#include <chrono>
#include <thread>

namespace commfuse::validate {

namespace {

constexpr std::chrono::nanoseconds max_wait = std::chrono::microseconds(20);

}  // namespace

void Chaos::disturb() {
  if (!on_) {
    return;
  }
  const std::uint64_t draw = random_.next();
  if (draw % 4 == 0) {
    std::this_thread::yield();
  } else if (draw % 4 == 1) {
    const auto wait = static_cast<std::int64_t>((draw >> 8U) % static_cast<std::uint64_t>(max_wait.count()));
    const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(wait);
    while (std::chrono::steady_clock::now() < until) {
      std::this_thread::yield();
    }
  }
}

}  // namespace commfuse::validate
