// SPDX-License-Identifier: Apache-2.0
// Settings of the double of NCCL, and its observations. The double is a shared library in place of libnccl.so.2: it
// moves no data, but launches, waits and fails on the same threads and in the same order as NCCL.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace commfuse::validate::test {

/// A group, or a call outside a group, as it arrived at the device.
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

/// State of the double. Lock `mutex` to read it while calls are in progress.
struct NcclDouble {
  std::mutex mutex;

  // Settings of its behaviour.
  std::chrono::milliseconds slowness{5};  ///< Duration of calls on communicators that do not block.
  bool hangs_in_init = false;             ///< One rank never arrives.
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

/// Name of the function of the double that returns its state, and the function's type.
inline constexpr auto nccl_double_entry = "commfuse_nccl_double";
using NcclDoubleEntry = NcclDouble& (*)();

}  // namespace commfuse::validate::test
