// SPDX-License-Identifier: Apache-2.0
// commfuse-sim sweep: runs the points of a sweep file and writes the results to a folder.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "sim/commands/commands.h"
#include "sim/commands/render.h"
#include "sim/commands/sweep_run.h"

namespace commfuse::sim {

void add_sweep(CLI::App& app, Caller& caller) {
  add_verb(app, "sweep", "Predict the points of a sweep file and save the results", [&caller](CLI::App& command) {
    const auto request = std::make_shared<SweepRequest>();
    offers_names(
        command.add_option("FILE", request->file, "Sweep file in YAML, or a name in configs/sweeps, such as llama-mlp")
            ->required(),
        Catalogue::sweeps);
    const std::string group = "Grid and output";
    usual(command
              .add_option("--out", request->out, "Folder for results and settings (default: out/ and the sweep's name)")
              ->group(group)
              ->type_name("FOLDER"));
    command.add_flag("--force", request->force, "Write into a folder that contains other files")->group(group);
    offers_words(command
                     .add_option("--progress", request->progress,
                                 "Progress on stderr: auto (a bar on a terminal), plain, json, none")
                     ->group(group)
                     ->type_name("FORMAT")
                     ->capture_default_str()
                     ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast),
                 {"auto", "plain", "json", "none"});
    command
        .add_option("--shard", request->shard,
                    "Run only part i of N, for example 3/7; auto: from the scheduler's environment")
        ->group(group)
        ->type_name("i/N")
        ->capture_default_str();
    usual(command
              .add_flag("--dry-run", request->dry_run,
                        "Print the number of points, the time and the disk space, and stop")
              ->group(group));
    add_output_flag(command, request->format);
    add_axis_flag(command, request->settings);
    add_setting_flags(command, request->settings);
    command.footer(
        "The file holds settings, axes and constraints; flags add to them or override\n"
        "them. A point that cannot be run becomes a row with its reason; the exit code is\n"
        "then 3. Every point is stored in results.sqlite when it is done; the same\n"
        "command resumes a stopped sweep. Under mpirun -np N, processes share the points,\n"
        "each on one core or on --threads; docs/sweeps.md covers clusters. Sweeps of\n"
        "several strategies write map.csv (who wins at which point, and by how much),\n"
        "crossovers.csv (where the winner changes along an axis) and map.json (both).\n"
        "\n"
        "Examples:\n"
        "  commfuse-sim sweep configs/sweeps/llama-mlp.yaml --out out/llama-mlp\n"
        "  commfuse-sim sweep configs/sweeps/training-plans.yaml --out out/plans\n"
        "  commfuse-sim sweep configs/sweeps/crossover.yaml --out out/crossover -o map\n"
        "  commfuse-sim sweep mine.yaml --out out/mine --axis ranks=2,4,8 -o csv");
    command.callback([request, &caller] {
      if (request->out.empty()) {
        request->out = (std::filesystem::path("out") / std::filesystem::path(request->file).stem()).string();
      }
      caller.take(run_sweep(*request, caller));
    });
  });
}

}  // namespace commfuse::sim
