// SPDX-License-Identifier: Apache-2.0
// A program's commands and flags as data, from the one tree that parses them: manual pages, completions and the
// reference are made of it.
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
  std::vector<std::string> names;  ///< "-o", "--output"; of an argument by place what help calls it: "FILE".
  std::string value;               ///< What help calls its value: "FORMAT=table"; empty where it takes none.
  std::string doc;
  bool by_place = false;
  Offer offer{};  ///< Of its value, or of what stands in its place.
};

struct CommandEntry {
  std::vector<std::string> path;  ///< Of words: "commfuse-sim", "schedule", "show".
  std::string doc;
  std::string footer;  ///< Notes and examples.
  std::vector<OptionEntry> options;
  std::vector<CommandEntry> commands;
};

/// The whole tree; commands whose flags are added only when they are named get them first.
CommandEntry option_tree(CLI::App& app);

/// The command `pages FORM`, which prints what `render` makes of the tree in one of these forms, or for completion
/// scripts the words of a list.
void add_pages(CLI::App& app, int& status, std::vector<std::string> forms,
               std::function<std::string(const CommandEntry& program, const std::string& form)> render);

}  // namespace commfuse
