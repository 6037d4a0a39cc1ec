// SPDX-License-Identifier: Apache-2.0
// Runs one of the built programs as a user would, and keeps all its output.
#pragma once

#include <sys/wait.h>

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/contents_of.h"

namespace commfuse::test {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

/// The folder of the project.
inline const std::filesystem::path project_folder = COMMFUSE_SOURCE_DIR;

/// Returns whether golden files should be renewed, which COMMFUSE_RENEW_GOLDEN requests.
inline bool renews() { return std::getenv("COMMFUSE_RENEW_GOLDEN") != nullptr; }  // NOLINT(concurrency-mt-unsafe)

/// Runs `command` through the shell: "commfuse-sim run --seq 8K". The programs come from this build, or from the
/// folder PROGRAMS_UNDER_TEST if that variable is set (tests/software_gpu/faults.sh).
inline Outcome run_program(const std::string& command) {
  static int count = 0;
  const std::filesystem::path base = std::filesystem::temp_directory_path() /
                                     ("commfuse-cli-" + std::to_string(getpid()) + "-" + std::to_string(count++));
  const std::string out = base.string() + ".out";
  const std::string err = base.string() + ".err";
  const std::string line = "PATH=\"${PROGRAMS_UNDER_TEST:-" COMMFUSE_BIN_DIR
                           "}:$PATH\" COMMFUSE_CONFIG_DIR=\"" COMMFUSE_SOURCE_DIR "/configs\" " +
                           command + " >" + out + " 2>" + err + " </dev/null";
  const int status = std::system(line.c_str());  // NOLINT(concurrency-mt-unsafe,cert-env33-c): a test of a command line
  Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents_of(out), contents_of(err)};
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  return outcome;
}

}  // namespace commfuse::test
