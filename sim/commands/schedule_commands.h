// SPDX-License-Identifier: Apache-2.0
// The subcommands of `commfuse-sim schedule`, one file each, and what they share.
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

/// True for settings that select a program: the strategy's own, model, ranks, scope and dtype.
bool selects_a_schedule(const Field& field);

/// Throws ConfigError if `ranks` are too many to `use`, as in "to show", because each rank has a listing of its own.
void require_few_ranks(std::int32_t ranks, std::string_view use);

/// Throws ConfigError if the ops of all ranks go through more blocks than `use` has memory for.
void require_small(const Program& program, std::int64_t most_blocks, std::string_view use);

/// Returns one schedule on a mesh of `ranks` ranks.
Program program_of(Scope scope, bool gated_mlp, std::int32_t ranks, const Strategy& strategy,
                   const StrategyOptions& options);

}  // namespace commfuse::sim
