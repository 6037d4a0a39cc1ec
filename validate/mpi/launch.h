// SPDX-License-Identifier: Apache-2.0
// Detects whether this process is one of several that a launcher started, and opens and closes MPI or TCP.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "model/process/mpi.h"
#include "validate/mpi/crew.h"

namespace commfuse::validate {

inline constexpr std::chrono::nanoseconds default_patience = std::chrono::seconds(60);

/// Throws ConfigError if there are fewer processes than ranks.
void require_processes(int ranks, const Crew& crew);

class Launch {
 public:
  /// Reads the environment, and does nothing else.
  Launch();
  /// Wraps one of several processes that are already connected.
  explicit Launch(std::unique_ptr<World> world);

  /// Returns whether there are several processes, or one that mpirun started.
  [[nodiscard]] bool under_mpi() const { return started_.has_value(); }
  [[nodiscard]] int processes() const { return started_ ? started_->processes : 1; }
  /// Returns whether this process prints; of several processes only one does.
  [[nodiscard]] bool speaks() const { return !started_ || started_->process == 0; }

  /// Returns whether this process is the one that does the work. The others end without starting MPI, so leave() does
  /// not start it on this process either.
  [[nodiscard]] bool works_alone() {
    is_alone_ = true;
    return speaks();
  }

  /// Starts MPI on the first call. Throws std::runtime_error if MPI is missing or its number of processes differs from
  /// the launcher's, and ConfigError if this process was not started as one of several.
  Crew& crew(std::chrono::nanoseconds patience);

  /// Starts as crew() does. Without MPI, but under a launcher that rendezvous_in() supports, the processes connect over
  /// TCP. Throws as crew() does, and std::runtime_error if they do not connect within a minute.
  Crew& crew_anyhow(std::chrono::nanoseconds patience);

  /// Disconnects the processes after process 0 has printed the errors. Returns the exit code, which is the same on all
  /// processes that could agree on one. Does not return, but ends this process, if the processes have lost contact.
  /// `message` is the text that this process would have printed.
  int leave(int code, const std::string& message);

 private:
  void open();
  [[nodiscard]] bool open_for_the_end();

  bool tried_ = false;     // true once a start of MPI was tried
  bool is_alone_ = false;  // true once works_alone() was called
  std::optional<Started> started_;
  std::unique_ptr<World> world_;
  std::unique_ptr<Crew> crew_;
};

}  // namespace commfuse::validate
