// SPDX-License-Identifier: Apache-2.0
// Flags of a command as keyword arguments, read from the program that also parses the command line.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace commfuse::sim {
class Caller;
}

namespace commfuse::python {

struct Keyword {
  std::vector<std::string> flags;  ///< "--hardware", "--cluster", without one-letter flags; also a positional name.
  std::string doc;                 ///< One line, with the unit and the words that the flag accepts.
  std::string group;               ///< Heading in --help.
  std::string value;               ///< "COUNT"; empty for a flag without a value.
  std::string preset;              ///< The default as people write it; empty if there is none.
  std::vector<std::string> words;  ///< Allowed words, if the value is one word of a list.
  bool by_place = false;
  bool is_required = false;
  bool repeats = false;  ///< The flag may be given several times.
};

struct Command {
  std::string doc;     ///< One line.
  std::string footer;  ///< Notes and examples.
  std::vector<Keyword> keywords;
};

/// Returns the names of the commands of commfuse-sim that Python offers.
const std::vector<std::string>& command_names();

/// Adds the commands of command_names() to a program. `caller` must outlive the program.
void add_commands(CLI::App& program, sim::Caller& caller);

/// Returns the description and the flags of a command. Throws ConfigError for an unknown command.
Command command_of(const std::string& name);

}  // namespace commfuse::python
