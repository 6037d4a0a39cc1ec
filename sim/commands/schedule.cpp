// SPDX-License-Identifier: Apache-2.0
// commfuse-sim schedule: what schedules there are; show, check and the others are files of their own.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "model/config/command_line.h"
#include "model/schedule/strategies.h"
#include "sim/commands/commands.h"
#include "sim/commands/schedule_commands.h"

namespace commfuse::sim {

namespace {

/// More than any parameter is capped by.
constexpr std::int32_t most_ranks = 1 << 20;

constexpr std::array<std::string_view, 3> schedule_settings{"model", "ranks", "scope"};

void list() {
  for (const Strategy& strategy : strategies()) {
    fmt::print("{}\n  {}\n  leaves exposed: {}\n  source: {}\n", strategy.name, strategy.summary, strategy.exposed,
               strategy.source);
    std::string schedules;
    constexpr std::array products{SiteKind::ag_gemm, SiteKind::gemm_rs};
    for (const StrategyOptions& options : distinct(strategy, products, strategy.variants({}), most_ranks)) {
      const std::string parameters = parameters_of(strategy, products, options);
      if (!parameters.empty()) {
        schedules += (schedules.empty() ? "" : "; ") + parameters;
      }
    }
    fmt::print("{}", schedules.empty() ? "" : fmt::format("  schedules: {}\n", schedules));
    if (strategy.uses.has(Option::attention)) {
      fmt::print("  attention core: {}\n", fmt::join(words_of(Option::attention), "; "));
    }
  }
}

}  // namespace

bool selects_a_schedule(const Field& field) {
  return field.key.starts_with("strategy.") || field.key == "dtype" ||
         std::find(schedule_settings.begin(), schedule_settings.end(), field.key) != schedule_settings.end();
}

Program program_of(Scope scope, bool gated_mlp, std::int32_t ranks, const Strategy& strategy,
                   const StrategyOptions& options) {
  return generate(operation_of(scope, gated_mlp), ranks, strategy, options);
}

void add_schedule(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("schedule", "List, show, prove, mutate and export schedules");
  command->require_subcommand(1);
  command->add_subcommand("list", "The strategies: what each does and what it leaves exposed")->callback([&status] {
    list();
    status = exit_code::done;
  });
  add_schedule_show(*command, status);
  add_schedule_check(*command, status);
  add_schedule_export(*command, status);
  add_schedule_mutate(*command, status);
}

}  // namespace commfuse::sim
