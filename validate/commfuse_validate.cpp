// SPDX-License-Identifier: Apache-2.0
// commfuse-validate: runs the schedules of commfuse-sim on real data. Each subcommand has one file in
// validate/commands/.
#include <CLI/CLI.hpp>

#include "model/config/command_line.h"
#include "model/config/option_tree.h"
#include "model/process/heap.h"
#include "reports/pages.h"
#include "validate/commands/commands.h"
#include "validate/mpi/launch.h"

int main(int argc, char** argv) {
  commfuse::use_large_pages();
  CLI::App app{"Runs the schedules that commfuse-sim predicts on real data, and checks them.", "commfuse-validate"};
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  commfuse-validate check --strategy all --ranks 1..8\n"
      "  commfuse-validate check --strategy commfuse --scope mlp --ranks 8 --dtype fp32\n"
      "  commfuse-validate check --executor cpu --scope ag_gemm,gemm_rs --ranks 4\n"
      "  mpirun -np 4 commfuse-validate check --scope mlp\n"
      "  commfuse-validate run --seq 8K --ranks 4 --out record.json\n"
      "  commfuse-validate compare record.json\n"
      "  commfuse-validate calibrate --out my-cpu.yaml\n"
      "  commfuse-validate compare --hardware ./my-cpu.yaml\n"
      "  mpirun -np 8 commfuse-validate links\n"
      "  commfuse-validate check --executor cuda-virtual --ranks 2,4,8\n"
      "  commfuse-validate probe --out probes.csv\n"
      "  commfuse-validate verdict logs/ --expect h100-sxm\n"
      "  commfuse-validate doctor\n"
      "  commfuse-validate version\n\n" +
      commfuse::exit_codes_in_words());
  commfuse::validate::Launch launch;
  int status = commfuse::exit_code::done;
  commfuse::validate::add_check(app, launch, status);
  commfuse::validate::add_run(app, launch, status);
  commfuse::validate::add_bench(app, launch, status);
  commfuse::validate::add_calibrate(app, launch, status);
  commfuse::validate::add_compare(app, status);
  commfuse::validate::add_links(app, launch, status);
  commfuse::validate::add_probe(app, status);
  commfuse::validate::add_doctor(app, launch, status);
  commfuse::validate::add_verdict(app, status);
  commfuse::validate::add_version(app, status);
  commfuse::add_pages(app, status, {commfuse::page_formats.begin(), commfuse::page_formats.end()},
                      commfuse::render_page);
  const commfuse::LastWords words = commfuse::run_quietly(app, argc, argv, status);
  return launch.leave(launch.speaks() ? commfuse::say(words) : words.code, words.sentence);
}
