// SPDX-License-Identifier: Apache-2.0
// Splits tables of topologies, as terminals, issues and logs show them, into words with their places.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/text/yaml_document.h"

namespace commfuse {

struct TextWord {
  std::string_view text;  ///< Part of the text that was read.
  YamlPlace place;
};

/// Returns the words of every line. Words are separated by blanks, the bars of a Markdown table, the mark of a quoted
/// line (> or #), and the escapes with which a terminal underlines the header line. Escapes are also recognized if a
/// page has dropped or spelt out the escape character ("[4mGPU0", "^[[0m").
std::vector<std::vector<TextWord>> words_of_lines(std::string_view text);

/// Throws ConfigError for a string without a known table. The message names the tool that wrote the text, if it is
/// known, and the command that prints the links between the GPUs.
[[noreturn]] void refuse_unknown_text(const std::string& path, const std::vector<std::vector<TextWord>>& lines);

/// Throws ConfigError if the text shows slices of a GPU (MIG), which have no links to each other.
void refuse_slices(const std::string& path, const std::vector<std::vector<TextWord>>& lines);

}  // namespace commfuse
