// SPDX-License-Identifier: Apache-2.0
// Former names of settings and flags. A name that changes with a minor release is taken under its former name through
// that release, with one warning on stderr, and is refused with its new name from the next minor release on.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace commfuse {

/// A setting's key ("strategy.slices", whose variable follows) or a flag ("--slices").
struct Rename {
  std::string_view before;
  std::string_view now;
  int major = 0;  ///< The release with the new name is major.minor.
  int minor = 0;
};

/// A former name that somebody used: what it is called now, and what to say. A warning where the former name is still
/// taken, else a mistake.
struct FormerName {
  std::string_view now;
  bool is_taken = false;
  std::string sentence;
};

class Renames {
 public:
  /// Requires a version such as "0.1.0", and a table that outlives it.
  Renames(std::span<const Rename> table, std::string_view version);

  /// Returns the former name that a key is; nothing if it is none.
  [[nodiscard]] std::optional<FormerName> key(std::string_view typed) const;
  /// Returns the same for a flag with its dashes.
  [[nodiscard]] std::optional<FormerName> flag(std::string_view typed) const;
  /// Returns the same for a variable such as COMMFUSE_STRATEGY_SLICES. `now` is the key.
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
