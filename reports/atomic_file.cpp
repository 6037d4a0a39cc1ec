// SPDX-License-Identifier: Apache-2.0
#include "reports/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "model/config_error.h"
#include "model/text/files.h"

namespace fs = std::filesystem;

namespace commfuse::reports {

namespace {

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw ConfigError(fmt::format("{} cannot be written: {}", path.string(), why));
}

fs::path folder_of(const fs::path& target) { return target.has_parent_path() ? target.parent_path() : fs::path("."); }

/// Returns the path to which symbolic links lead, even if no file exists at that path.
fs::path end_of_links(fs::path path) {
  constexpr int max_links = 40;  // the limit of Linux
  std::error_code error;
  for (int links = 0; links < max_links && fs::is_symlink(fs::symlink_status(path, error)); ++links) {
    path = folder_of(path) / fs::read_symlink(path, error);
  }
  return path;
}

/// Returns a name to which no other process and no other thread writes.
fs::path temporary_next_to(const fs::path& target) {
  static std::atomic<unsigned> files{0};
  return folder_of(target) / fmt::format(".{}.{}-{}.part", target.filename().string(), ::getpid(), files++);
}

void require_place(const fs::path& path, const fs::path& target) {
  std::error_code error;
  if (!target.has_filename() || fs::is_directory(target, error)) {
    refuse(path, "it is a folder; add a file name");
  }
  const fs::path folder = folder_of(target);
  if (const bool is_present = fs::exists(folder, error); error) {  // no permission, a cycle of links, a long name
    refuse(path, fmt::format("folder {}: {}; choose another path", folder.string(), error.message()));
  } else if (!is_present) {
    refuse(path, fmt::format("folder {} does not exist; create it or choose another path", folder.string()));
  }
  if (!fs::is_directory(folder, error)) {
    refuse(path, fmt::format("{} is not a folder; choose another path", folder.string()));
  }
}

/// Opens an output stream that a shell appends to a file (>>), so that the file keeps its text. Returns -1 for other
/// paths and other streams.
int open_appended(const fs::path& path) {
  const int stream = path == "/dev/stdout" ? STDOUT_FILENO : path == "/dev/stderr" ? STDERR_FILENO : -1;
  const int flags = ::fcntl(stream, F_GETFL);
  return flags >= 0 && (flags & O_APPEND) != 0 ? ::fcntl(stream, F_DUPFD_CLOEXEC, 0) : -1;
}

/// Throws ConfigError for a named pipe, because opening it would wait for a reader.
void refuse_pipe(const fs::path& path) {
  if (is_named_pipe(path)) {
    refuse(path, "named pipes are not supported; give a file, or /dev/stdout");
  }
}

}  // namespace

bool is_output_stream(const fs::path& path) { return path == "/dev/stdout" || path == "/dev/stderr"; }

bool is_database(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) {
    return false;  // A pipe cannot be read twice.
  }
  constexpr std::string_view begins = "SQLite format 3";
  std::array<char, begins.size()> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  return std::string_view(head.data(), head.size()) == begins;
}

void require_no_input(const fs::path& out, std::span<const std::string> inputs) {
  refuse_pipe(out);
  std::error_code ignored;
  if (!fs::is_regular_file(out, ignored)) {
    return;
  }
  for (const std::string& input : inputs) {
    if (input.empty()) {
      continue;
    }
    if (fs::equivalent(out, input, ignored) || fs::equivalent(out, fs::path(input) / "results.sqlite", ignored)) {
      refuse(out, "the command reads this file; choose another path");
    }
  }
}

AtomicFile::AtomicFile(const fs::path& path, Links links) : path_(path), target_(path) {
  std::error_code error;
  const bool follows = links == Links::followed;
  descriptor_ = follows ? open_appended(path) : -1;
  if (descriptor_ >= 0) {
    return;
  }
  const fs::file_status status = follows ? fs::status(path, error) : fs::symlink_status(path, error);
  if (const fs::path real = fs::canonical(path, error); !error && follows && fs::is_regular_file(status)) {
    target_ = real;
  } else if (follows && !fs::exists(status)) {
    target_ = end_of_links(path);
  }
  require_place(path_, target_);
  const bool replaces = fs::is_regular_file(status);
  if (replaces && is_database(target_)) {
    refuse(path_, "it is a database, which would be overwritten; choose another path");
  }
  if (follows) {
    refuse_pipe(path_);
  }
  const bool direct = follows && fs::exists(status) && !fs::is_regular_file(status);
  if (!direct) {
    temporary_ = temporary_next_to(target_);
  }
  const auto mode = replaces ? static_cast<mode_t>(status.permissions() & fs::perms::all) : mode_t{0666};
  const int flags = O_WRONLY | O_CLOEXEC | (direct ? 0 : O_CREAT | O_EXCL);
  descriptor_ = ::open((direct ? target_ : temporary_).c_str(), flags, mode);
  if (descriptor_ < 0) {
    const int reason = errno;
    refuse(path_, fmt::format("{}; choose a {}", std::strerror(reason),
                              reason == ENAMETOOLONG ? "shorter name" : "folder you may write to"));
  }
  if (replaces) {
    ::fchmod(descriptor_, mode);  // The umask has removed some permissions of the new file.
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    if (!temporary_.empty()) {
      ::unlink(temporary_.c_str());
    }
  }
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      fail(errno);
    }
    bytes.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (!temporary_.empty()) {
    if (::fsync(descriptor_) != 0 || ::rename(temporary_.c_str(), target_.c_str()) != 0) {
      fail(errno);
    }
    temporary_.clear();
  }
  const int closing = descriptor_;
  descriptor_ = -1;
  if (::close(closing) != 0) {
    fail(errno);
  }
}

void AtomicFile::fail(int error) const {
  const char* remedy = error == ENOSPC || error == EDQUOT ? "free some space or choose another disk"
                                                          : "choose another path and run again";
  throw std::runtime_error(
      fmt::format("{} could not be written completely: {}; {}", path_.string(), std::strerror(error), remedy));
}

void require_writable(const fs::path& path) {
  const AtomicFile unwritten(path);  // Without commit() no file remains.
}

void atomic_write(const fs::path& path, std::string_view text, Links links) {
  AtomicFile file(path, links);
  file.write(text);
  file.commit();
}

}  // namespace commfuse::reports
