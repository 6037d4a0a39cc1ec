// SPDX-License-Identifier: Apache-2.0
// Arguments of Megatron-LM by flag, from any source: command-line flags, or keys of a NeMo or Megatron-Bridge file.
// import_of() converts both to a training step.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/import/imported.h"
#include "sim/import/step_settings.h"

namespace commfuse::import {

struct Argument {
  std::string text;      ///< Value as written; empty if the argument has none.
  std::string where;     ///< "train.sh:3"
  std::string spelling;  ///< "--hidden-size", "model.hidden_size"
};

/// The differences between sources: words for messages, frameworks, and the expansion of variables.
struct Dialect {
  std::string origin;                              ///< First line of the output: "From a command line of ...".
  std::string missing;                             ///< Remedy for a missing required argument.
  std::string processes;                           ///< Arguments that set the number of processes.
  std::string noun;                                ///< "flags"
  std::string known_as;                            ///< "a flag of Megatron-LM"
  std::string (*spelling)(std::string_view flag);  ///< Spelling of a missing argument.
  std::string overlap_flag{};            ///< Flag without which gradients overlap only under FSDP2; if empty, always.
  std::string framework{};               ///< Framework in configs/frameworks without --tp-comm-overlap.
  std::string framework_with_overlap{};  ///< Framework with --tp-comm-overlap.
  /// Returns a value with its variables expanded; nothing if a variable is unknown.
  std::function<std::optional<std::string>(const std::string&)> expand;
};

class Arguments {
 public:
  Arguments(std::string path, Dialect dialect) : path_(std::move(path)), dialect_(std::move(dialect)) {}

  /// Adds an argument, or replaces the flag's argument.
  void set(const std::string& flag, Argument argument) { flags_[flag] = std::move(argument); }

  [[nodiscard]] const Dialect& dialect() const { return dialect_; }
  [[nodiscard]] bool has(std::string_view flag) const { return flags_.find(flag) != flags_.end(); }
  [[nodiscard]] const Argument* find(std::string_view flag) const;
  [[nodiscard]] const std::map<std::string, Argument, std::less<>>& flags() const { return flags_; }

  /// Returns the spelling in the source, or the dialect's spelling of a missing flag.
  [[nodiscard]] std::string spelled(std::string_view flag) const;

  /// These throw ConfigError if the value is unknown, not a number or out of range; required() also if it is missing.
  [[nodiscard]] std::optional<std::string> text(std::string_view flag) const;
  [[nodiscard]] std::optional<std::int64_t> count(std::string_view flag, Counts range) const;
  [[nodiscard]] std::int64_t required(std::string_view flag, Counts range) const;

  /// Checks and returns a value that follows from other arguments. Throws ConfigError with `remedy` if the value is out
  /// of range.
  [[nodiscard]] std::int64_t derived(std::string_view what, std::int64_t value, Counts range,
                                     std::string_view remedy) const;

  [[noreturn]] void wrong(std::string_view flag, std::string_view sentence) const;

 private:
  std::string path_;
  Dialect dialect_;
  std::map<std::string, Argument, std::less<>> flags_;
};

/// Returns the model, named `name`, and the training step. Throws ConfigError for missing and impossible arguments.
Imported import_of(const Arguments& arguments, const std::string& name);

}  // namespace commfuse::import
