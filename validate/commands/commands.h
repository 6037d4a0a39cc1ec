// SPDX-License-Identifier: Apache-2.0
// The subcommands of commfuse-validate. Each function adds its subcommand, which sets `status` to its exit code when it
// has run.
#pragma once

namespace CLI {
class App;
}

namespace commfuse::validate {

class Launch;

void add_bench(CLI::App& app, Launch& launch, int& status);
void add_calibrate(CLI::App& app, Launch& launch, int& status);
void add_check(CLI::App& app, Launch& launch, int& status);
void add_compare(CLI::App& app, int& status);
void add_doctor(CLI::App& app, Launch& launch, int& status);
void add_links(CLI::App& app, Launch& launch, int& status);
void add_probe(CLI::App& app, int& status);
void add_run(CLI::App& app, Launch& launch, int& status);
void add_verdict(CLI::App& app, int& status);
void add_version(CLI::App& app, int& status);

}  // namespace commfuse::validate
