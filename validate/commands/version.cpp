// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "model/build_info.h"
#include "validate/commands/commands.h"

namespace commfuse::validate {

void add_version(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand("version", "Version, compiler, and what the build found");
  command->callback([] {
    const BuildInfo& info = build_info();
    fmt::print("commfuse-validate {} ({})\n", info.version, info.git_revision);
    fmt::print("{:<10} {}\n{:<10} {}\n", "compiler", info.compiler, "build", info.build_type);
    fmt::print("{:<10} {}\n{:<10} {}\n{:<10} {}\n", "CUDA", info.cuda, "NCCL", info.nccl, "MPI", info.mpi);
  });
}

}  // namespace commfuse::validate
