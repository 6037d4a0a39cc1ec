// SPDX-License-Identifier: Apache-2.0
// Generated schedules by the dozen: --strategy, --ranks and --scope as lists, for commands that prove and mutate.
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

/// The choice must outlive the parsing.
void add_choice_flags(CLI::App& command, GeneratedChoice& choice);

/// Throws ConfigError where such a flag was given beside files, about which it says nothing.
void require_no_choice(const CLI::App& command, const std::vector<std::string>& files);

/// visit(program) for every schedule of every strategy, scope by scope and rank count by rank count. Throws ConfigError
/// for a word or number that is not known.
void for_each_generated(const GeneratedChoice& choice, const std::function<void(Program)>& visit);

}  // namespace commfuse::sim
