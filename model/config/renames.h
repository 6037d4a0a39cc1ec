// SPDX-License-Identifier: Apache-2.0
// Former names of settings and flags. If a minor release renames a setting or flag, that release accepts the former
// name, with one warning on stderr. Later releases refuse it with a message that gives the new name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace commfuse {

/// Rename of a setting's key ("strategy.slices"), and so of its environment variable, or of a flag ("--slices").
struct Rename {
  std::string_view before;
  std::string_view now;
  int major = 0;  ///< The release with the new name is major.minor.
  int minor = 0;
};

/// A former name in use: its current name, and a sentence that is a warning if the former name is still accepted, else
/// an error.
struct FormerName {
  std::string_view now;
  bool is_accepted = false;
  std::string sentence;
};

class Renames {
 public:
  /// Requires `version` to have the form "0.1.0". `table` must outlive this object.
  Renames(std::span<const Rename> table, std::string_view version);

  /// Returns the rename of a key that is a former name; nullopt for any other key.
  [[nodiscard]] std::optional<FormerName> key(std::string_view typed) const;
  /// Works like key() for a flag, dashes included.
  [[nodiscard]] std::optional<FormerName> flag(std::string_view typed) const;
  /// Works like key() for a variable such as COMMFUSE_STRATEGY_SLICES. `now` is the key.
  [[nodiscard]] std::optional<FormerName> variable(std::string_view typed) const;
  [[nodiscard]] std::span<const Rename> table() const { return table_; }

 private:
  [[nodiscard]] FormerName former(const Rename& rename, std::string_view typed, std::string_view now) const;

  std::span<const Rename> table_;
  int major_ = 0;
  int minor_ = 0;
};

/// Returns the renames of this program, at its version.
const Renames& program_renames();

/// Returns "COMMFUSE_STRATEGY_SLICES" for "strategy.slices".
std::string variable_of_key(std::string_view key);

}  // namespace commfuse
