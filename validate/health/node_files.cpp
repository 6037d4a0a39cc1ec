// SPDX-License-Identifier: Apache-2.0
#include "validate/health/node_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace commfuse::validate {

namespace {

constexpr std::size_t max_text_bytes = std::size_t{64} << 10U;
constexpr std::string_view blanks = " \t\r\n";

class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)) {}  // NOLINT(*-vararg)
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
  }
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Returns at most `max_bytes` bytes, without waiting for more; nothing if it cannot be read.
std::optional<std::string> content_of(const OpenFile& file, std::size_t max_bytes) {
  std::string text;
  std::array<char, 8192> piece{};  // has room for a whole record of /dev/kmsg
  while (text.size() < max_bytes) {
    const ssize_t count = ::read(file.descriptor(), piece.data(), std::min(piece.size(), max_bytes - text.size()));
    if (count > 0) {
      text.append(piece.data(), static_cast<std::size_t>(count));
    } else if (count < 0 && (errno == EINTR || errno == EPIPE)) {
      continue;  // EPIPE: /dev/kmsg has overwritten records since the last call
    } else if (count < 0 && errno != EAGAIN && text.empty()) {
      return std::nullopt;
    } else {
      break;
    }
  }
  return text;
}

}  // namespace

std::optional<std::string> NodeFiles::bytes(const std::filesystem::path& path, std::size_t max_bytes) const {
  const OpenFile file(root_ / path);
  return file.descriptor() < 0 ? std::nullopt : content_of(file, max_bytes);
}

std::optional<std::string> NodeFiles::kernel_log(std::size_t max_bytes) const {
  const OpenFile file(root_ / "dev/kmsg");
  if (file.descriptor() < 0) {
    return std::nullopt;
  }
  // In /dev/kmsg, SEEK_DATA moves to where the log was last cleared; in a file, to the beginning.
  static_cast<void>(::lseek(file.descriptor(), 0, SEEK_DATA));
  return content_of(file, max_bytes);
}

std::optional<std::string> NodeFiles::text(const std::filesystem::path& path) const {
  std::optional<std::string> content = bytes(path, max_text_bytes);
  if (!content) {
    return std::nullopt;
  }
  const std::size_t first = content->find_first_not_of(blanks);
  if (first == std::string::npos) {
    return "";
  }
  return content->substr(first, content->find_last_not_of(blanks) - first + 1);
}

std::vector<std::string> NodeFiles::names(const std::filesystem::path& path) const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(root_ / path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool NodeFiles::exists(const std::filesystem::path& path) const {
  std::error_code error;
  return std::filesystem::exists(root_ / path, error);
}

std::optional<std::string> NodeFiles::link_name(const std::filesystem::path& path) const {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(root_ / path, error);
  return error ? std::nullopt : std::optional(target.filename().string());
}

std::filesystem::path NodeFiles::resolved(const std::filesystem::path& path) const {
  std::error_code error;
  const std::filesystem::path root = std::filesystem::canonical(root_, error);
  const std::filesystem::path canonical_path =
      error ? std::filesystem::path() : std::filesystem::canonical(root_ / path, error);
  if (error) {
    return path;
  }
  std::filesystem::path relative = canonical_path.lexically_relative(root);
  return relative.empty() || *relative.begin() == ".." ? path : relative;
}

}  // namespace commfuse::validate
