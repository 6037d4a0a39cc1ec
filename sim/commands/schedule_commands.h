// SPDX-License-Identifier: Apache-2.0
// The subcommands of `commfuse-sim schedule`, one file each, and their shared functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/config/field.h"
#include "model/strategies/scope.h"

namespace CLI {
class App;
}

namespace commfuse::sim {

void add_schedule_show(CLI::App& schedule, int& status);
void add_schedule_check(CLI::App& schedule, int& status);
void add_schedule_export(CLI::App& schedule, int& status);
void add_schedule_mutate(CLI::App& schedule, int& status);

/// Returns whether a setting selects a program: strategy, variants, a strategy option, model, ranks, scope or dtype.
bool selects_a_schedule(const Field& field);

/// Throws ConfigError for more than 4,096 ranks, because each rank has a separate listing. `use` names the action in
/// the message, as in "to show".
void require_few_ranks(std::int32_t ranks, std::string_view use);

/// Throws ConfigError if the ops of all ranks access more than `max_blocks` blocks. `use` names the action in the
/// message, as in "to mutate".
void require_small(const Program& program, std::int64_t max_blocks, std::string_view use);

/// Returns a generated schedule on a mesh of `ranks` ranks.
Program program_of(Scope scope, bool gated_mlp, std::int32_t ranks, const Strategy& strategy,
                   const StrategyOptions& options);

}  // namespace commfuse::sim
