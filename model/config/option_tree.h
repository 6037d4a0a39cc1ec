// SPDX-License-Identifier: Apache-2.0
// A program's commands and flags as data, read from the tree that parses them. Manual pages, completions and the
// reference are generated from them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/config/option_marks.h"

namespace CLI {
class App;
}

namespace commfuse {

struct OptionEntry {
  std::vector<std::string> names;  ///< "-o", "--output"; for a positional argument its name in help, "FILE"
  std::string value;               ///< name of its value in help, "FORMAT=table"; empty when the option takes no value
  std::string doc;
  bool by_place = false;  ///< positional argument
  Offer offer{};          ///< completions of its value, or of the positional argument
};

struct CommandEntry {
  std::vector<std::string> path;  ///< words of the command: "commfuse-sim", "schedule", "show"
  std::string doc;
  std::string footer;  ///< notes and examples
  std::vector<OptionEntry> options;
  std::vector<CommandEntry> commands;
};

/// Returns the whole tree. Some commands add their flags only when the command line names them; this function adds
/// those flags before it reads the tree.
CommandEntry option_tree(CLI::App& app);

/// Adds the command `pages FORMAT [LIST]`. FORMAT is one of `formats`, in which `render` writes the tree, or "names",
/// which prints the words of the completion list LIST.
void add_pages(CLI::App& app, int& status, std::vector<std::string> formats,
               std::function<std::string(const CommandEntry& program, const std::string& format)> render);

}  // namespace commfuse
