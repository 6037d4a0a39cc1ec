// SPDX-License-Identifier: Apache-2.0
// Runs our programs as processes of mpirun, even as root in a bare container, without ssh and with too few cores.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "model/build_info.h"
#include "tests/cli/program.h"

namespace commfuse::test {

/// Lets Open MPI run as root, with more processes than cores and without ssh. Without /sys its hwloc would complain on
/// stderr.
inline const std::string mpirun_environment =
    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 HWLOC_HIDE_ERRORS=2 ASAN_OPTIONS=detect_leaks=0 "
    "OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_plm=isolated OMPI_MCA_btl=self,vader "
    "OMPI_MCA_btl_vader_single_copy_mechanism=none ";

/// Returns "VARIABLES mpirun FLAGS -np 4 ", to put before a command.
inline std::string mpirun(int processes, const std::string& flags = "") {
  return mpirun_environment + "mpirun " + flags + " -np " + std::to_string(processes) + " ";
}

/// Returns whether this build supports MPI and this machine has mpirun.
inline bool has_mpi() {
  const bool built = build_info().mpi != "off" && build_info().mpi != "not found";
  return built && run_program(mpirun(1) + "true").code == 0;
}

/// Runs a command under mpirun, and sends `signal` to process `target` as soon as all processes are working.
inline Outcome run_and_disturb(int processes, const std::string& command, int target, int signal) {
  // Each process first writes its process id to a file that is named after its number.
  const std::string notes = std::filesystem::temp_directory_path() / ("commfuse-mpi-" + std::to_string(getpid()));
  const auto note = [&](int process) { return notes + "." + std::to_string(process); };
  Outcome outcome;
  std::jthread run([&] {
    outcome =
        run_program(mpirun(processes) + "sh -c 'echo $$ > " + notes + ".new.$OMPI_COMM_WORLD_RANK && mv " + notes +
                    ".new.$OMPI_COMM_WORLD_RANK " + notes + ".$OMPI_COMM_WORLD_RANK && exec " + command + "'");
  });
  // A process that has used 0.5 s of CPU time, which /proc counts in ticks of 10 ms, has started MPI and is running a
  // schedule.
  const auto is_at_work = [](pid_t process) {
    const std::string stat = contents_of("/proc/" + std::to_string(process) + "/stat");
    const std::size_t name = stat.rfind(')');
    if (name == std::string::npos || stat.find("(commfuse") == std::string::npos) {
      return false;
    }
    std::istringstream rest(stat.substr(name + 2));
    std::vector<std::string> fields{std::istream_iterator<std::string>(rest), {}};
    return fields.size() > 12 && std::stol(fields[11]) + std::stol(fields[12]) >= 50;
  };
  std::vector<pid_t> ids(static_cast<std::size_t>(processes), 0);
  const auto all_at_work = [&] {
    for (int process = 0; process < processes; ++process) {
      const std::string id = contents_of(note(process));
      ids[static_cast<std::size_t>(process)] = id.empty() ? 0 : std::stoi(id);
    }
    return std::ranges::all_of(ids, [&](pid_t id) { return id != 0 && is_at_work(id); });
  };
  while (!all_at_work()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(ids[static_cast<std::size_t>(target)], signal);
  run.join();
  for (int process = 0; process < processes; ++process) {
    std::filesystem::remove(note(process));
  }
  return outcome;
}

}  // namespace commfuse::test
