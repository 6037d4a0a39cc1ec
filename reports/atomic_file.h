// SPDX-License-Identifier: Apache-2.0
// Writes files completely or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace commfuse::reports {

/// Treatment of a symbolic link, pipe or device that stands where the file goes.
enum class Links : std::uint8_t {
  followed,  ///< The user named it: the program writes to its target.
  replaced,  ///< The program named it: the file replaces it, and its former target keeps its contents.
};

/// True if a file begins as files of SQLite do. This program writes no databases here, so it replaces none.
bool is_database(const std::filesystem::path& path);

/// Throws ConfigError if `out` is one of the input files of a command, by any path, also within a folder of a sweep.
/// Inputs that are not files are ignored. A named pipe is refused, too, before the work begins.
void require_no_input(const std::filesystem::path& out, std::span<const std::string> inputs);

/// Writes beside `path` and replaces it on commit(); without commit() no new file remains and an older file keeps its
/// contents. The file gets the permissions of the one that it replaces. If links are followed, a target that is not a
/// regular file (/dev/stdout, a device) is written directly.
class AtomicFile {
 public:
  /// Throws ConfigError naming the path and the remedy: no such folder, a folder itself, a database, a named pipe, no
  /// permission.
  explicit AtomicFile(const std::filesystem::path& path, Links links = Links::followed);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// Throws std::runtime_error when the disk refuses.
  void write(std::string_view bytes);
  /// Synchronises and renames. Throws std::runtime_error; call it once.
  void commit();

 private:
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_;       // the path that the user wrote, for messages
  std::filesystem::path target_;     // behind symbolic links
  std::filesystem::path temporary_;  // empty: written directly
  int descriptor_ = -1;
};

/// Writes a whole file at once; throws as AtomicFile does.
void atomic_write(const std::filesystem::path& path, std::string_view text, Links links = Links::followed);

}  // namespace commfuse::reports
