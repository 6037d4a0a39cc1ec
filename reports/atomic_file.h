// SPDX-License-Identifier: Apache-2.0
// Writes files completely or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace commfuse::reports {

/// Treatment of a symbolic link, pipe or device at the path of the file.
enum class Links : std::uint8_t {
  followed,  ///< The user named the path: the program writes to the target.
  replaced,  ///< The program named the path: the file replaces the link, and the former target keeps its contents.
};

/// Returns whether the path names an output stream of this program, /dev/stdout or /dev/stderr, which a shell may have
/// redirected to a file.
bool is_output_stream(const std::filesystem::path& path);

/// Returns whether a file begins like a SQLite database. AtomicFile never replaces a database.
bool is_database(const std::filesystem::path& path);

/// Throws ConfigError if `out` is an input file of a command, by any path, the results.sqlite in an input folder, or a
/// named pipe. Ignores inputs that are not paths of files or folders.
void require_no_input(const std::filesystem::path& out, std::span<const std::string> inputs);

/// Writes a temporary file next to `path`; commit() replaces `path` by that file. Without commit() no new file remains,
/// and an older file keeps its contents. The file gets the permissions of the file that it replaces. If links are
/// followed, a target that is not a regular file (an unnamed pipe, a device) is written directly, and a file to which a
/// shell appends an output stream (>>) keeps its text.
class AtomicFile {
 public:
  /// Throws ConfigError, which names the path and the remedy, if the file cannot be opened: its folder does not exist,
  /// permission is missing, or the path is a folder, a database or, if links are followed, a named pipe.
  explicit AtomicFile(const std::filesystem::path& path, Links links = Links::followed);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// Throws std::runtime_error when writing fails.
  void write(std::string_view bytes);
  /// Synchronizes, renames and closes the file; only closes a target that is written directly. Throws
  /// std::runtime_error on failure. Call it once.
  void commit();

 private:
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_;       // the path as given, for messages
  std::filesystem::path target_;     // path after symbolic links
  std::filesystem::path temporary_;  // empty if the target is written directly
  int descriptor_ = -1;
};

/// Throws ConfigError, as AtomicFile does, if the file cannot be written. Call it before long work.
void require_writable(const std::filesystem::path& path);

/// Writes a whole file; throws as AtomicFile does.
void atomic_write(const std::filesystem::path& path, std::string_view text, Links links = Links::followed);

}  // namespace commfuse::reports
