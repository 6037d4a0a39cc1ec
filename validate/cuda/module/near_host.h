// SPDX-License-Identifier: Apache-2.0
// Allocates host memory near a GPU: while it allocates, the thread runs on the processors next to the GPU. On a host
// with two sockets, a copy through the other socket is up to a third slower.
#pragma once

#include <sched.h>

#include <cctype>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse::validate {

/// Returns the numbers of a list such as "0-2,8"; empty if the text is not a list.
inline std::vector<int> processors_in(std::string_view list) {
  constexpr int last_processor = CPU_SETSIZE - 1;
  std::vector<int> processors;
  const char* next = list.data();
  const char* const end = next + list.size();
  while (next != end) {
    int first = 0;
    const auto read_first = std::from_chars(next, end, first);
    int last = first;
    next = read_first.ptr;
    const bool is_range = read_first.ec == std::errc{} && next != end && *next == '-';
    const auto read_last = is_range ? std::from_chars(next + 1, end, last) : read_first;
    next = read_last.ptr;
    const bool is_wrong = read_first.ec != std::errc{} || read_last.ec != std::errc{} || first < 0 || last < first ||
                          last > last_processor || (next != end && *next != ',');
    if (is_wrong) {
      return {};
    }
    for (int processor = first; processor <= last; ++processor) {
      processors.push_back(processor);
    }
    next += next != end ? 1 : 0;
  }
  return processors;
}

/// Returns the processors near the device with this address on the bus, "0000:1B:00.0"; none if the system does not
/// report them.
inline std::vector<int> processors_near(std::string bus_address, const std::string& root = "/sys/bus/pci/devices/") {
  for (char& letter : bus_address) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  std::ifstream file(root + bus_address + "/local_cpulist");
  std::string list;
  std::getline(file, list);
  return processors_in(list);
}

/// Restricts the calling thread to some processors during the object's lifetime. Does nothing if the list is empty, or
/// if the process may use none of them.
class OnProcessors {
 public:
  explicit OnProcessors(const std::vector<int>& processors) {
    if (processors.empty() || ::sched_getaffinity(0, sizeof before_, &before_) != 0) {
      return;
    }
    cpu_set_t usable;
    CPU_ZERO(&usable);
    for (const int processor : processors) {
      if (CPU_ISSET(static_cast<std::size_t>(processor), &before_)) {
        CPU_SET(static_cast<std::size_t>(processor), &usable);
      }
    }
    moved_ = CPU_COUNT(&usable) > 0 && ::sched_setaffinity(0, sizeof usable, &usable) == 0;
  }
  OnProcessors(const OnProcessors&) = delete;
  OnProcessors& operator=(const OnProcessors&) = delete;
  ~OnProcessors() {
    if (moved_) {
      static_cast<void>(::sched_setaffinity(0, sizeof before_, &before_));
    }
  }
  [[nodiscard]] bool moved() const { return moved_; }

 private:
  cpu_set_t before_{};
  bool moved_ = false;
};

}  // namespace commfuse::validate
