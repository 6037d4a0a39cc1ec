// SPDX-License-Identifier: Apache-2.0
// Whether this process is one of several that mpirun or srun started, and its way in and out of MPI.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "validate/mpi/crew.h"

namespace commfuse::validate {

/// Which of how many processes this is.
struct Started {
  int process = 0;
  int processes = 1;
  friend bool operator==(const Started&, const Started&) = default;
};

/// By what launchers of MPI leave in the environment: Open MPI's mpirun; PMI (MPICH, Intel MPI, srun --mpi=pmi2); PMIx
/// under Slurm (srun --mpi=pmix). Nothing where none did, as in a Slurm job's plain shell. `variable` is getenv().
std::optional<Started> started_by_mpi(const std::function<const char*(const char*)>& variable);

/// The module that knows MPI, if it lies where it belongs and this machine has the library it needs; else why not, and
/// what to do.
struct MpiModule {
  World* (*open)() = nullptr;
  std::string missing{};
};
MpiModule load_mpi_module();

inline constexpr std::chrono::nanoseconds default_patience = std::chrono::seconds(60);

/// Throws ConfigError when there are fewer processes than ranks.
void require_processes(int ranks, const Crew& crew);

class Launch {
 public:
  /// Looks at the environment, and does nothing.
  Launch();

  /// Whether there are several processes, or one that mpirun started.
  [[nodiscard]] bool under_mpi() const { return started_.has_value(); }
  [[nodiscard]] int processes() const { return started_ ? started_->processes : 1; }
  /// Of several processes one prints.
  [[nodiscard]] bool speaks() const { return !started_ || started_->process == 0; }

  /// Starts MPI, the first time. Throws std::runtime_error when it is missing or counts other processes than there are,
  /// ConfigError when nobody started this as a process of several.
  Crew& crew(std::chrono::nanoseconds patience);

  /// The last thing a program does: all processes end with the same exit code, once the first has printed what was
  /// wrong. `message` is what this process would have printed.
  int leave(int code, const std::string& message);

 private:
  void open();

  std::optional<Started> started_;
  std::unique_ptr<World> world_;
  std::unique_ptr<Crew> crew_;
};

}  // namespace commfuse::validate
