// SPDX-License-Identifier: Apache-2.0
// The registry of formats that `commfuse-sim import` reads. A new format needs a reader and an entry in formats.cpp;
// help, completion and the command follow.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/import/imported.h"
#include "sim/import/options.h"

namespace commfuse::import {

/// A flag of a format that takes a value. All formats also have --name and --out.
struct FormatOption {
  std::string_view flag;  ///< "--gpus"; a name without dashes denotes the words after the file.
  std::string_view type;  ///< Placeholder of the value in --help: "NAME".
  std::string_view doc;
};

struct Format {
  std::string_view name;     ///< Name of the subcommand; default of --name.
  std::string_view summary;  ///< One line.
  std::string_view file;     ///< Description of FILE in --help.
  std::string_view about;    ///< Help text about what is read, one or two lines.
  std::string_view example;  ///< Example commands, indented by two spaces.
  std::span<const FormatOption> options;
  Imported (*read)(const Source& source);  ///< Reader; throws ConfigError if the file has another format.
  bool (*is)(std::string_view text);       ///< Returns true only if a string unmistakably has this format.
};

/// Returns the formats in the order in which they are listed.
std::span<const Format> formats();

/// Returns the format that recognizes the text. Throws ConfigError if no format or several formats do; for a model's
/// config.json, the message names the flag that reads it.
const Format& format_of(std::string_view text, const std::string& path);

/// Returns "megatron, torchtitan, ...".
std::string format_names();

}  // namespace commfuse::import
