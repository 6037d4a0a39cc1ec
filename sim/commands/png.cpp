// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/png.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "model/config_error.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX requires users to declare it

namespace commfuse::sim {

namespace {

/// A temporary file without a name, which is deleted when its descriptor is closed.
class Scratch {
 public:
  Scratch() {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
    if (error) {
      throw ConfigError("--out: PNG needs a folder for temporary files; set TMPDIR to one, or write .svg");
    }
    std::string path = (folder / "commfuse-XXXXXX").string();
    descriptor_ = ::mkstemp(path.data());
    if (descriptor_ < 0) {
      throw std::runtime_error(fmt::format("no temporary file in {}: {}", path, std::strerror(errno)));
    }
    ::unlink(path.c_str());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { ::close(descriptor_); }

  [[nodiscard]] int descriptor() const { return descriptor_; }
  void write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0) {
        throw std::runtime_error(fmt::format("a temporary file cannot be written: {}", std::strerror(errno)));
      }
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    ::lseek(descriptor_, 0, SEEK_SET);
  }
  [[nodiscard]] std::string contents() const {
    ::lseek(descriptor_, 0, SEEK_SET);
    std::string bytes;
    std::array<char, 65536> piece{};
    for (ssize_t got = 0; (got = ::read(descriptor_, piece.data(), piece.size())) > 0;) {
      bytes.append(piece.data(), static_cast<std::size_t>(got));
    }
    return bytes;
  }

 private:
  int descriptor_ = -1;
};

/// Runs the converter and returns its exit code. Throws HardwareAbsent if it is not installed.
int run_converter(const Scratch& in, const Scratch& out) {
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  std::string name = "rsvg-convert";
  std::string zoom_flag = "--zoom=2";
  const std::array<char*, 3> arguments{name.data(), zoom_flag.data(), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, name.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw HardwareAbsent(
        "--out: PNG needs rsvg-convert, which is not installed; install it (Debian: librsvg2-bin), or write .svg");
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

std::string png_of(std::string_view svg) {
  const Scratch in;
  const Scratch out;
  in.write(svg);
  if (const int code = run_converter(in, out); code != 0) {
    throw std::runtime_error(fmt::format("rsvg-convert could not draw the figure (exit code {})", code));
  }
  return out.contents();
}

}  // namespace commfuse::sim
