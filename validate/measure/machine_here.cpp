// SPDX-License-Identifier: Apache-2.0
// Describes the machine that this program runs on, and the precision of its timers.
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <latch>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "model/build_info.h"
#include "validate/cpu/wall_clock.h"
#include "validate/measure/protocol.h"

namespace commfuse::validate {

namespace {

using namespace std::chrono_literals;

/// Returns the value of the first line "model name" of /proc/cpuinfo.
std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

std::string kernel() {
  utsname name{};
  return ::uname(&name) == 0 ? std::string(name.sysname) + " " + name.release : "unknown";
}

/// Returns the time until the last of `threads` simultaneous waits is over.
std::chrono::nanoseconds longest_of(int threads, std::chrono::nanoseconds wait) {
  std::latch ready(threads);
  std::latch gate(1);
  WallTime release;
  std::vector<WallTime> ends(static_cast<std::size_t>(threads));
  {
    std::vector<std::jthread> waiters;
    waiters.reserve(ends.size());
    try {
      for (WallTime& end : ends) {
        waiters.emplace_back([&] {
          ask_for_sharp_timers();
          ready.count_down();
          gate.wait();
          std::this_thread::sleep_until(release + wait);
          end = WallClock::now();
        });
      }
    } catch (const std::system_error& error) {
      gate.count_down();  // Otherwise the threads that started would wait forever, and so would their destructors.
      throw std::runtime_error(too_few_threads({.started = waiters.size(), .wanted = ends.size()}, error.what()));
    }
    ready.wait();
    release = WallClock::now();
    gate.count_down();
  }
  return *std::ranges::max_element(ends) - release;
}

}  // namespace

NoiseFloor noise_floor(int threads) {
  constexpr int samples = 21;
  NoiseFloor noise{.stated = 1ms, .threads = threads};
  for (int sample = 0; sample < samples; ++sample) {
    noise.samples.push_back(shortened(longest_of(threads, 1ms), 1.0));
  }
  return noise;
}

Environment this_environment() {
  return {.cpu = cpu_model(),
          .cores = static_cast<std::int64_t>(std::thread::hardware_concurrency()),
          .os = kernel(),
          .compiler = std::string(build_info().compiler),
          .build = std::string(build_info().build_type)};
}

}  // namespace commfuse::validate
