// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <stdexcept>
#include <system_error>

namespace commfuse::fuzz {

namespace {

/// A folder of this process, in memory if the process may write to /dev/shm.
class Folder {
 public:
  Folder() {
    std::error_code none;
    const std::filesystem::path memory = "/dev/shm";
    const auto parent = std::filesystem::is_directory(memory, none) && ::access(memory.c_str(), W_OK) == 0
                            ? memory
                            : std::filesystem::temp_directory_path();
    path_ = parent / fmt::format("commfuse-fuzz-{}", ::getpid());
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

std::filesystem::path input_file(std::string_view name, std::string_view bytes) {
  static const Folder folder;
  std::filesystem::path path = folder.path() / name;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);  // NOLINT(*-vararg)
  const bool written = file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  if (file >= 0) {
    ::close(file);
  }
  if (!written) {
    throw std::runtime_error(fmt::format("{} cannot be written", path.string()));
  }
  return path;
}

}  // namespace commfuse::fuzz
