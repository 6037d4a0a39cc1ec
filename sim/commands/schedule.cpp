// SPDX-License-Identifier: Apache-2.0
// commfuse-sim schedule: lists schedules. Its subcommands, such as show and check, have separate files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/command_line.h"
#include "model/config/load_model.h"
#include "model/config_error.h"
#include "model/program/sizes.h"
#include "model/proof/effort.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"
#include "model/wrapped.h"
#include "sim/commands/commands.h"
#include "sim/commands/schedule_commands.h"

namespace commfuse::sim {

namespace {

/// With this many ranks, distinct() reduces no parameter of a strategy.
constexpr std::int32_t max_ranks = 1 << 20;

/// Returns the scopes for which a strategy has schedules.
std::vector<Scope> scopes_of(const Strategy& strategy) {
  std::vector<Scope> scopes;
  std::copy_if(all_scopes.begin(), all_scopes.end(), std::back_inserter(scopes),
               [&](Scope scope) { return applies(strategy, kinds_of(scope)); });
  return scopes;
}

/// Returns, in words, the memory per rank for all buffers of a strategy's default schedule. Model, ranks and tokens are
/// the same for all strategies, and so is the scope where it can be `mlp`.
std::string memory_in_words(const Strategy& strategy, const Transformer& model, const std::vector<Scope>& scopes) {
  constexpr std::int32_t ranks = 8;
  const bool has_mlp = std::find(scopes.begin(), scopes.end(), Scope::mlp) != scopes.end();
  const Scope scope = has_mlp ? Scope::mlp : scopes.front();
  const Program program = program_of(scope, model.gated_mlp, ranks, strategy, {});
  const Bytes peak = bytes_per_rank(program, bind_sizes(program, quantities_of(model, {.batch = 1, .seq = 4096})));
  return fmt::format("{:.1f} MB per rank ({} of {}, {} ranks, 4K tokens)", static_cast<double>(peak.count) / 1e6,
                     name_of(scope), model.name, ranks);
}

/// Returns the parameters of the distinct schedules of a strategy; empty for a strategy without parameters.
std::string schedules_in_words(const Strategy& strategy) {
  std::vector<std::string> schedules;
  constexpr std::array gemm_sites{SiteKind::ag_gemm, SiteKind::gemm_rs};
  for (const StrategyOptions& options : distinct(strategy, gemm_sites, strategy.variants({}), max_ranks)) {
    if (std::string parameters = parameters_of(strategy, gemm_sites, options); !parameters.empty()) {
      schedules.push_back(std::move(parameters));
    }
  }
  return fmt::format("{}", fmt::join(schedules, "; "));
}

/// Prints a line, unless `words` is empty.
void print_line(std::string_view label, std::string_view words) {
  if (!words.empty()) {
    fmt::print("{}", wrapped(fmt::format("{}{}", label, words), "  ", "     "));
  }
}

void list() {
  const Transformer model = load_model("llama-3.1-70b");
  for (const Strategy& strategy : strategies()) {
    const std::vector<Scope> scopes = scopes_of(strategy);
    std::vector<std::string_view> names;
    std::transform(scopes.begin(), scopes.end(), std::back_inserter(names), [](Scope scope) { return name_of(scope); });
    fmt::print("{}\n", strategy.name);
    print_line("", strategy.summary);
    print_line("leaves exposed: ", strategy.exposed);
    print_line("source: ", strategy.source);
    print_line("applies to: ", fmt::format("{}", fmt::join(names, ", ")));
    print_line("peak memory: ", memory_in_words(strategy, model, scopes));
    print_line("schedules: ", schedules_in_words(strategy));
    if (strategy.takes(Option::attention)) {
      print_line("attention core: ", fmt::format("{}", fmt::join(words_of(Option::attention), "; ")));
    }
  }
}

}  // namespace

bool selects_a_schedule(const Field& field) { return field.uses.has(Use::schedule); }

void require_few_ranks(std::int32_t ranks, std::string_view use) {
  constexpr std::int32_t max_ranks = 4096;  // Keeps the tags of exports within 31 bits.
  if (ranks > max_ranks) {
    throw ConfigError(fmt::format("{} ranks are too many {}; choose at most {} ranks", ranks, use, max_ranks));
  }
}

void require_small(const Program& program, std::int64_t max_blocks, std::string_view use) {
  if (!all_ranks_within(program, max_blocks)) {
    throw ConfigError(fmt::format("{} on {} ranks goes through more than {} blocks, too many {}; choose fewer ranks",
                                  program.name, program.mesh.ranks(), max_blocks, use));
  }
}

Program program_of(Scope scope, bool gated_mlp, std::int32_t ranks, const Strategy& strategy,
                   const StrategyOptions& options) {
  return generate(operation_of(scope, gated_mlp), ranks, strategy, options);
}

void add_schedule(CLI::App& app, int& status) {
  add_verb(app, "schedule", "List, show, prove, mutate and export schedules", [&status](CLI::App& command) {
    command.require_subcommand(1);
    add_verb(command, "list", "List the strategies: what each does and what it leaves exposed",
             [&status](CLI::App& verb) {
               verb.callback([&status] {
                 list();
                 status = exit_code::done;
               });
             });
    add_schedule_show(command, status);
    add_schedule_check(command, status);
    add_schedule_export(command, status);
    add_schedule_mutate(command, status);
  });
}

}  // namespace commfuse::sim
