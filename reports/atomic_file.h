// SPDX-License-Identifier: Apache-2.0
// Files that are there whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace commfuse::reports {

/// What becomes of a symbolic link, or of a pipe or device, that stands where the file goes.
enum class Links : std::uint8_t {
  followed,  ///< The user named it: what it leads to is written.
  replaced,  ///< The program named it: the file takes its place, and what it led to stays as it was.
};

/// Whether a file begins as those of SQLite do. No file that is written here is one, so none is put in its place.
bool is_database(const std::filesystem::path& path);

/// Throws ConfigError where `out` is one of the files that a command reads: by any path, also within a folder among
/// them that is a sweep's. Inputs that are no files are passed over. A named pipe is refused, too, before the work.
void require_no_input(const std::filesystem::path& out, std::span<const std::string> inputs);

/// Writes beside `path` and takes its place on commit(); without commit() nothing is left and an older file stays as it
/// was. It has the permissions of the one that it replaces. Where links are followed, what is no regular file
/// (/dev/stdout, a device) is written directly.
class AtomicFile {
 public:
  /// Throws ConfigError naming the path and the remedy: no such folder, a folder itself, a database, a named pipe, not
  /// permitted.
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

  std::filesystem::path path_;       // as the user wrote it, for messages
  std::filesystem::path target_;     // behind symbolic links
  std::filesystem::path temporary_;  // empty: written directly
  int descriptor_ = -1;
};

/// All of a file at once; throws as AtomicFile does.
void atomic_write(const std::filesystem::path& path, std::string_view text, Links links = Links::followed);

}  // namespace commfuse::reports
