// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "model/build_info.h"
#include "model/config/command_line.h"
#include "model/record/result.h"
#include "sim/commands/commands.h"

namespace commfuse::sim {

void add_version(CLI::App& app, int&) {
  add_verb(app, "version", "Show version, compiler and detected libraries", [](CLI::App& command) {
    command.callback([] {
      const BuildInfo& info = build_info();
      fmt::print("commfuse-sim {} ({}), model version {}\n", info.version, info.git_revision, model_version);
      fmt::print("{:<10} {}\n{:<10} {}\n", "compiler", info.compiler, "build", info.build_type);
      fmt::print("{:<10} {}\n{:<10} {}\n{:<10} {}\n", "CUDA", info.cuda, "NCCL", info.nccl, "MPI", info.mpi);
    });
  });
}

}  // namespace commfuse::sim
