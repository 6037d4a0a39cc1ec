// SPDX-License-Identifier: Apache-2.0
// Sets of generated schedules, chosen by lists in --strategy, --ranks and --scope, for commands that prove or mutate
// schedules.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/program/program.h"

namespace CLI {
class App;
}

namespace commfuse::sim {

struct GeneratedChoice {
  std::string strategies = "all";
  std::string ranks;
  std::string scopes = "all";
};

/// Adds the flags. `choice` must outlive the parsing.
void add_choice_flags(CLI::App& command, GeneratedChoice& choice);

/// Throws ConfigError if one of these flags is given together with files, because the flags do not apply to files.
void require_no_choice(const CLI::App& command, const std::vector<std::string>& files);

/// Calls visit(program) for every schedule of every chosen strategy, scope by scope and rank count by rank count.
/// Throws ConfigError for an unknown word or number.
void for_each_generated(const GeneratedChoice& choice, const std::function<void(Program)>& visit);

}  // namespace commfuse::sim
