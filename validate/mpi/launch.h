// SPDX-License-Identifier: Apache-2.0
// Whether this process is one of several that mpirun or srun started, and its way in and out of MPI.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "model/process/mpi.h"
#include "validate/mpi/crew.h"

namespace commfuse::validate {

inline constexpr std::chrono::nanoseconds default_patience = std::chrono::seconds(60);

/// Throws ConfigError when there are fewer processes than ranks.
void require_processes(int ranks, const Crew& crew);

class Launch {
 public:
  /// Looks at the environment, and does nothing.
  Launch();
  /// One of several processes that have met already.
  explicit Launch(std::unique_ptr<World> world);

  /// Whether there are several processes, or one that mpirun started.
  [[nodiscard]] bool under_mpi() const { return started_.has_value(); }
  [[nodiscard]] int processes() const { return started_ ? started_->processes : 1; }
  /// Of several processes one prints.
  [[nodiscard]] bool speaks() const { return !started_ || started_->process == 0; }

  /// Starts MPI, the first time. Throws std::runtime_error when it is missing or counts other processes than there are,
  /// ConfigError when nobody started this as a process of several.
  Crew& crew(std::chrono::nanoseconds patience);

  /// The same where there is no MPI, but a launcher that rendezvous_in() knows: then the processes meet over TCP.
  /// Throws as crew(), and std::runtime_error when they do not meet within a minute.
  Crew& crew_anyhow(std::chrono::nanoseconds patience);

  /// The last thing a program does: all processes end with the same exit code, once the first has printed what was
  /// wrong. `message` is what this process would have printed.
  int leave(int code, const std::string& message);

 private:
  void open();
  [[nodiscard]] bool open_for_the_end();

  bool tried_ = false;  // to start MPI
  std::optional<Started> started_;
  std::unique_ptr<World> world_;
  std::unique_ptr<Crew> crew_;
};

}  // namespace commfuse::validate
