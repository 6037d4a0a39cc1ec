// SPDX-License-Identifier: Apache-2.0
// What a test tells the double of NCCL, and what the double tells the test. The double is a shared library that stands
// in for libnccl.so.2: it moves no data, but launches, waits and fails on the same threads and in the same order as
// NCCL.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace commfuse::validate::test {

/// A group, or a call outside one, as it reached the device.
struct NcclDoubleLaunch {
  int communicator = 0;
  std::thread::id thread;
  std::vector<std::string> operations;
};

struct NcclDoubleRegistration {
  int communicator = 0;
  std::size_t bytes = 0;
  bool window = false;
};

struct NcclDoubleCommunicator {
  int id = 0;
  bool is_child = false;
  bool blocks = false;
  bool shares = false;
};

/// Lock `mutex` to read while calls are under way.
struct NcclDouble {
  std::mutex mutex;

  // Behaviour.
  std::chrono::milliseconds slowness{5};  ///< How long calls on communicators that do not block stay in progress.
  bool hangs_in_init = false;             ///< A rank never comes.
  bool hangs_in_group = false;            ///< Groups on communicators that block hang until they are aborted.
  bool hangs_in_register = false;
  bool hangs_in_finalize = false;

  // Observations.
  std::vector<NcclDoubleCommunicator> communicators;
  std::vector<NcclDoubleLaunch> launches;
  std::vector<NcclDoubleRegistration> registrations;
  std::vector<std::thread::id> aborts;
  int destroyed = 0;
  /// Calls that the real library answers with an error, a crash or a hang.
  std::vector<std::string> misuses;
};

/// The name of a function of the double, of the type below.
inline constexpr auto nccl_double_entry = "commfuse_nccl_double";
using NcclDoubleEntry = NcclDouble& (*)();

}  // namespace commfuse::validate::test
