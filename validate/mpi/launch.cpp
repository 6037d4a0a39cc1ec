// SPDX-License-Identifier: Apache-2.0
#include "validate/mpi/launch.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include "model/config/command_line.h"
#include "model/config_error.h"
#include "model/text/plain_text.h"
#include "validate/tcp/rendezvous.h"
#include "validate/tcp/tcp_world.h"

namespace commfuse::validate {

namespace {

/// Processes whose run was given up wait this long for the first process to end them all.
constexpr std::chrono::nanoseconds longest_wait = std::chrono::seconds(10);

/// Must be called before any thread is started that could change the environment.
const char* environment_variable(const char* name) { return std::getenv(name); }  // NOLINT(concurrency-mt-unsafe)

}  // namespace

Launch::Launch() : started_(started_by_mpi(environment_variable)) {}

Launch::Launch(std::unique_ptr<World> world)
    : tried_(true),
      started_(Started{world->process(), world->processes()}),
      world_(std::move(world)),
      crew_(std::make_unique<Crew>(*world_, default_patience)) {}

void require_processes(int ranks, const Crew& crew) {
  if (ranks > crew.processes()) {
    throw ConfigError(fmt::format("{} ranks need {} processes, but there are {}; start more, as in mpirun -np {}",
                                  ranks, ranks, crew.processes(), ranks));
  }
}

void Launch::open() {
  tried_ = true;
  world_ = open_world(*started_);
  crew_ = std::make_unique<Crew>(*world_, default_patience);
}

Crew& Launch::crew(std::chrono::nanoseconds patience) {
  if (!started_) {
    throw ConfigError("--executor mpi runs ranks as processes; start them, as in mpirun -np 4 commfuse-validate check");
  }
  if (!crew_) {
    open();
  }
  crew_->set_patience(patience);
  return *crew_;
}

Crew& Launch::crew_anyhow(std::chrono::nanoseconds patience) {
  if (crew_ || (started_ && load_mpi_module().open != nullptr)) {
    return crew(patience);
  }
  const std::optional<Rendezvous> where = rendezvous_in(environment_variable);
  if (!where) {
    throw ConfigError("each rank is a process, but only one was started; start more, as in mpirun -np 8 or torchrun");
  }
  if (where->process == 0) {
    const TcpDoor door(where->port);
    world_ = TcpWorld::lead(door, where->processes, default_patience);
  } else {
    world_ = TcpWorld::join(where->host, where->port, where->process, where->processes, default_patience);
  }
  started_ = Started{where->process, where->processes};
  crew_ = std::make_unique<Crew>(*world_, patience);
  return *crew_;
}

/// Starts MPI to report the end of the program. Returns false if that is impossible. MPI starts only once; if an
/// earlier start failed, it failed on all processes, and the first one has reported it.
bool Launch::open_for_the_end() {
  if (tried_) {
    return false;
  }
  try {
    open();
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

int Launch::leave(int code, const std::string& message) {
  if (!started_ || (!crew_ && (is_alone_ || code == exit_code::done))) {
    return code;
  }
  if (!crew_ && !open_for_the_end()) {
    if (!speaks()) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    return code;
  }
  const bool was_broken = crew_->broken().has_value();
  const std::optional<Crew::Agreement> agreement = crew_->agree(code, message);
  if (!agreement) {
    if (!speaks()) {
      std::this_thread::sleep_for(longest_wait);
      std::_Exit(exit_code::failed);
    }
    if (!was_broken && code == exit_code::done) {
      fmt::print(stderr, "{}\n", *crew_->broken());
    }
    std::fflush(nullptr);
    world_->abort(code == exit_code::done ? exit_code::failed : code);
  }
  for (const Ending& ending : agreement->endings) {
    if (ending.process != 0 && ending.message != with_escapes(message, "\t\n")) {
      fmt::print(stderr, "process {}: {}\n", ending.process, ending.message);
    }
  }
  std::fflush(nullptr);
  world_->close();
  return agreement->code;
}

}  // namespace commfuse::validate
