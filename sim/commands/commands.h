// SPDX-License-Identifier: Apache-2.0
// The subcommands of commfuse-sim. Each function adds a subcommand, which runs if the user chooses it and stores its
// exit code in `status`. Subcommands with a `caller` also work for programs that call them as a library. `status` and
// `caller` must outlive the parsing.
#pragma once

namespace CLI {
class App;
}

namespace commfuse::sim {

class Caller;

void add_best(CLI::App& app, int& status);
void add_calibrate(CLI::App& app, Caller& caller);
void add_config(CLI::App& app, int& status);
void add_diff(CLI::App& app, int& status);
void add_expect(CLI::App& app, Caller& caller);
void add_import(CLI::App& app, int& status);
void add_plan(CLI::App& app, Caller& caller);
void add_list(CLI::App& app, int& status);
void add_merge(CLI::App& app, int& status);
void add_plot(CLI::App& app, int& status);
void add_report(CLI::App& app, int& status);
void add_results(CLI::App& app, int& status);
void add_run(CLI::App& app, Caller& caller);
void add_schedule(CLI::App& app, int& status);
void add_schema(CLI::App& app, int& status);
void add_score(CLI::App& app, Caller& caller);
void add_sweep(CLI::App& app, Caller& caller);
void add_tune(CLI::App& app, Caller& caller);
void add_version(CLI::App& app, int& status);
void add_why(CLI::App& app, int& status);

}  // namespace commfuse::sim
