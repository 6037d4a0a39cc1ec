// SPDX-License-Identifier: Apache-2.0
// The program commfuse-sim, which makes predictions. Each subcommand has one file in sim/commands/.
#include <CLI/CLI.hpp>
#include <initializer_list>

#include "model/config/command_line.h"
#include "model/config/option_tree.h"
#include "model/process/heap.h"
#include "reports/pages.h"
#include "sim/commands/commands.h"
#include "sim/commands/terminal.h"

namespace {

/// Puts commands under a heading of --help.
void group(CLI::App& app, const char* heading, std::initializer_list<const char*> commands) {
  for (const char* const command : commands) {
    app.get_subcommand(command)->group(heading);
  }
}

}  // namespace

int main(int argc, char** argv) {
  commfuse::use_large_pages();
  CLI::App app{"Predicts how fast LLM layers run when communication hides under computation.", "commfuse-sim"};
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  commfuse-sim run --model llama-3.1-70b --hardware h100-sxm --ranks 8 --seq 32K\n"
      "  commfuse-sim run --model llama-3.1-8b --axis seq=1K..128K --axis ranks=2,4,8\n"
      "  commfuse-sim sweep configs/sweeps/llama-mlp.yaml --out out/llama-mlp\n"
      "  commfuse-sim why --model llama-3.1-70b --seq 8K\n"
      "  commfuse-sim config explain strategy.name\n\n" +
      commfuse::exit_codes_in_words());
  int status = commfuse::exit_code::done;
  commfuse::sim::Terminal terminal(status);
  commfuse::sim::add_run(app, terminal);
  commfuse::sim::add_sweep(app, terminal);
  commfuse::sim::add_why(app, status);
  commfuse::sim::add_tune(app, terminal);
  commfuse::sim::add_plan(app, terminal);
  commfuse::sim::add_merge(app, status);
  commfuse::sim::add_report(app, status);
  commfuse::sim::add_plot(app, status);
  commfuse::sim::add_results(app, status);
  commfuse::sim::add_best(app, status);
  commfuse::sim::add_diff(app, status);
  commfuse::sim::add_score(app, terminal);
  commfuse::sim::add_calibrate(app, terminal);
  commfuse::sim::add_expect(app, terminal);
  commfuse::sim::add_import(app, status);
  commfuse::sim::add_schedule(app, status);
  commfuse::sim::add_schema(app, status);
  commfuse::sim::add_list(app, status);
  commfuse::sim::add_config(app, status);
  commfuse::sim::add_version(app, status);
  commfuse::add_pages(app, status, {commfuse::page_formats.begin(), commfuse::page_formats.end()},
                      commfuse::render_page);
  group(app, "Predictions", {"run", "sweep", "why", "tune", "plan"});
  group(app, "Results", {"merge", "report", "plot", "results", "best", "diff"});
  group(app, "Measurements and inputs",
        {"expect", "score", "calibrate", "import", "schedule", "schema", "list", "config"});
  group(app, "This program", {"version", "pages"});
  return commfuse::run_command_line(app, argc, argv, status);
}
