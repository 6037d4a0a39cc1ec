// SPDX-License-Identifier: Apache-2.0
#include "bench/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string_view>

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves the declaration to the program

namespace commfuse::bench {

namespace {

constexpr const char* flag = "--launch";

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

[[noreturn]] void fail(const std::string& program) {
  throw std::runtime_error(program + ": not found or failed; build it next to commfuse-bench");
}

/// Reads until the other end is closed.
std::string contents_of(int pipe) {
  std::string text;
  std::array<char, 256> part{};
  for (ssize_t count = 0; (count = ::read(pipe, part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace

Usage usage_of(const std::vector<std::string>& words) {
  std::vector<std::string> command{"/proc/self/exe", flag};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : command) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    fail(words.front());
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int failed = posix_spawn(&child, pointers.front(), &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  const std::string text = contents_of(ends[0]);
  ::close(ends[0]);
  int status = 0;
  Usage usage;
  std::istringstream output(text);
  if (failed != 0 || ::waitpid(child, &status, 0) != child || status != 0 || !(output >> usage.seconds >> usage.mib)) {
    fail(words.front());
  }
  return usage;
}

bool is_launch(int argc, char** argv) { return argc > 2 && std::string_view(argv[1]) == flag; }

int launch(char** argv) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = posix_spawn(&child, argv[2], &actions, nullptr, argv + 2, environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  rusage usage{};
  if (failed != 0 || ::wait4(child, &status, 0, &usage) != child || status != 0) {
    return EXIT_FAILURE;
  }
  fmt::print("{} {}\n", seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime),
             static_cast<double>(usage.ru_maxrss) / 1024.0);
  return EXIT_SUCCESS;
}

}  // namespace commfuse::bench
