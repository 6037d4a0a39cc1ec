// SPDX-License-Identifier: Apache-2.0
// Tables of topologies as words with their places, the way terminals, issues and logs show them.
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

/// The words of every line. Blanks, the bars of a Markdown table, the mark of a quoted line (> or #) and the escapes
/// that underline a terminal's head line stand between words; escapes also as pages show them that drop or spell out
/// the escape character ("[4mGPU0", "^[[0m").
std::vector<std::vector<TextWord>> words_of_lines(std::string_view text);

/// Refuses a text without a table that can be read. The ConfigError names the tool that wrote it, where it is a known
/// one, and the command that prints how GPUs are joined.
[[noreturn]] void refuse_unknown_text(const std::string& path, const std::vector<std::vector<TextWord>>& lines);

/// Throws ConfigError where the text shows slices of a GPU (MIG), which have no links among them.
void refuse_slices(const std::string& path, const std::vector<std::vector<TextWord>>& lines);

}  // namespace commfuse
