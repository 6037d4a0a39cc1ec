// SPDX-License-Identifier: Apache-2.0
#include "validate/mpi/launch.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <thread>
#include <utility>

#include "model/build_info.h"
#include "model/config/command_line.h"
#include "model/config/quantity.h"
#include "model/config_error.h"
#include "validate/mpi/module/mpi_module.h"

namespace commfuse::validate {

namespace {

constexpr auto remedy = "install an Open MPI (Debian: libopenmpi-dev openmpi-bin) and build again";
/// Processes whose run was given up wait so long for the first to end them all.
constexpr std::chrono::nanoseconds longest_wait = std::chrono::seconds(10);

std::filesystem::path module_path() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  return program / "../lib/commfuse/commfuse-mpi.so";
}

}  // namespace

std::optional<Started> started_by_mpi(const std::function<const char*(const char*)>& variable) {
  struct Names {
    const char* process;
    const char* processes;
  };
  constexpr std::array launchers{Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, Names{"PMI_RANK", "PMI_SIZE"},
                                 Names{"PMIX_RANK", "SLURM_STEP_NUM_TASKS"}};
  for (const Names& names : launchers) {
    const char* process = variable(names.process);
    const char* processes = variable(names.processes);
    if (process == nullptr || processes == nullptr) {
      continue;
    }
    const std::optional<std::int64_t> which = parse_integer(process);
    const std::optional<std::int64_t> count = parse_integer(processes);
    if (which && count && *which >= 0 && *which < *count) {
      return Started{static_cast<int>(*which), static_cast<int>(*count)};
    }
  }
  return std::nullopt;
}

MpiModule load_mpi_module() {
  const std::filesystem::path path = module_path();
  if (!std::filesystem::exists(path)) {
    return {.missing = fmt::format("this build has no MPI ({}); {}", build_info().mpi, remedy)};
  }
  // Open MPI loads modules of its own, which look for its symbols among all there are.
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) {
    return {.missing = fmt::format("MPI cannot be loaded: {}; {}", ::dlerror(), remedy)};
  }
  void* entry = ::dlsym(module, mpi_module_entry);
  if (entry == nullptr) {
    return {.missing = fmt::format("{} is of another version of this program; install both anew", path.string())};
  }
  return {.open = reinterpret_cast<OpenMpiWorld>(entry)};  // NOLINT(*-reinterpret-cast): what dlsym() is for
}

Launch::Launch()
    : started_(started_by_mpi([](const char* name) { return std::getenv(name); })) {}  // NOLINT(concurrency-mt-unsafe)

void require_processes(int ranks, const Crew& crew) {
  if (ranks > crew.processes()) {
    throw ConfigError(fmt::format("{} ranks need {} processes, but there are {}; start more, as in mpirun -np {}",
                                  ranks, ranks, crew.processes(), ranks));
  }
}

void Launch::open() {
  const MpiModule module = load_mpi_module();
  if (module.open == nullptr) {
    throw std::runtime_error(module.missing);
  }
  world_.reset(module.open());
  if (world_->processes() != started_->processes) {
    const std::string sentence =
        fmt::format("{} processes were started, but {} counts {}; start them with the mpirun of that MPI",
                    started_->processes, world_->library(), world_->processes());
    world_->close();
    world_.reset();
    throw std::runtime_error(sentence);
  }
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

int Launch::leave(int code, const std::string& message) {
  if (!started_ || (code == exit_code::done && !crew_)) {
    return code;
  }
  if (!crew_) {
    try {
      open();
    } catch (const std::exception&) {  // all find it missing, and the first has said so
      if (!speaks()) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
      }
      return code;
    }
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
    if (ending.process != 0 && ending.message != message) {
      fmt::print(stderr, "process {}: {}\n", ending.process, ending.message);
    }
  }
  std::fflush(nullptr);
  world_->close();
  return agreement->code;
}

}  // namespace commfuse::validate
