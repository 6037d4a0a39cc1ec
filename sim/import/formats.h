// SPDX-License-Identifier: Apache-2.0
// The registry of formats that `commfuse-sim import` reads. A new one is its reader and an entry in formats.cpp; help,
// completion and the command follow.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/import/imported.h"
#include "sim/import/options.h"

namespace commfuse::import {

/// A flag of a format, beside --name and --out, that takes a value.
struct FormatOption {
  std::string_view flag;  ///< "--gpus"; without dashes: words that follow the file.
  std::string_view type;  ///< Of its value, in --help: "NAME".
  std::string_view doc;
};

struct Format {
  std::string_view name;     ///< Of the subcommand; default of --name.
  std::string_view summary;  ///< One line.
  std::string_view file;     ///< What FILE is.
  std::string_view about;    ///< What is read, as a line or two of help.
  std::string_view example;  ///< Commands, two blanks in.
  std::span<const FormatOption> options;
  Imported (*read)(const Source& source);  ///< Throws ConfigError where the file is none of its kind.
  bool (*is)(std::string_view text);       ///< Whether a text is certainly of this format.
};

/// In the order of every listing.
std::span<const Format> formats();

/// The format that a file certainly has. Throws ConfigError where none or several have its marks.
const Format& format_of(std::string_view text, const std::string& path);

/// "megatron, torchtitan, ..."
std::string format_names();

}  // namespace commfuse::import
