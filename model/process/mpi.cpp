// SPDX-License-Identifier: Apache-2.0
#include "model/process/mpi.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "model/build_info.h"
#include "model/process/mpi_module.h"
#include "model/text/quantity.h"

namespace commfuse {

namespace {

constexpr auto remedy = "install Open MPI (Debian: libopenmpi-dev openmpi-bin) and rebuild";

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
    const std::optional<std::int64_t> number = parse_integer(process);
    const std::optional<std::int64_t> count = parse_integer(processes);
    if (number && count && *number >= 0 && *number < *count) {
      return Started{static_cast<int>(*number), static_cast<int>(*count)};
    }
  }
  return std::nullopt;
}

MpiModule load_mpi_module() {
  const std::filesystem::path path = module_path();
  if (!std::filesystem::exists(path)) {
    return {.missing = fmt::format("this build has no MPI ({}); {}", build_info().mpi, remedy)};
  }
  // RTLD_GLOBAL is needed because Open MPI loads its own modules, which look for its symbols in the global scope.
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) {
    return {.missing = fmt::format("MPI cannot be loaded: {}; {}", ::dlerror(), remedy)};
  }
  void* entry = ::dlsym(module, mpi_module_entry);
  if (entry == nullptr) {
    return {.missing = fmt::format("{} belongs to another version of this program; reinstall both", path.string())};
  }
  return {.open = reinterpret_cast<OpenMpiWorld>(entry)};  // NOLINT(*-reinterpret-cast): dlsym() returns void*
}

std::unique_ptr<World> open_world(const Started& started) {
  const MpiModule module = load_mpi_module();
  if (module.open == nullptr) {
    throw std::runtime_error(module.missing);
  }
  std::unique_ptr<World> world(module.open());
  if (world->processes() != started.processes) {
    const std::string sentence =
        fmt::format("{} processes were started, but {} reports {}; use the mpirun of the same MPI", started.processes,
                    world->library(), world->processes());
    world->close();
    throw std::runtime_error(sentence);
  }
  return world;
}

}  // namespace commfuse
