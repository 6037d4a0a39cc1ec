// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/output_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "model/config_error.h"
#include "reports/atomic_file.h"

namespace commfuse::validate {

namespace {

namespace fs = std::filesystem;

/// Returns the canonical path, which all names of one file share; empty for a device or a pipe, because several outputs
/// may go there.
fs::path place_of(const std::string& path) {
  std::error_code error;
  if (path.empty() || (fs::exists(path, error) && !fs::is_regular_file(path, error))) {
    return {};
  }
  const fs::path place = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? fs::path() : place;
}

}  // namespace

void require_outputs(std::initializer_list<OutputFile> outputs) {
  for (const OutputFile& output : outputs) {
    if (output.path.empty()) {
      continue;
    }
    const fs::path place = place_of(output.path);
    for (const OutputFile* before = outputs.begin(); before != &output; ++before) {
      if (!place.empty() && place == place_of(before->path)) {
        throw ConfigError(
            fmt::format("{}: {} is also {}; choose another file", output.flag, output.path, before->flag));
      }
    }
    reports::require_writable(output.path);
  }
}

std::exception_ptr exception_of(const std::function<void()>& write) {
  try {
    write();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

std::exception_ptr exception_of_writing(const std::string& path, const std::function<std::string()>& text) {
  return path.empty() ? nullptr : exception_of([&] { reports::atomic_write(path, text()); });
}

void rethrow(const std::exception_ptr& failure) {
  if (failure != nullptr) {
    std::rethrow_exception(failure);
  }
}

}  // namespace commfuse::validate
