// SPDX-License-Identifier: Apache-2.0
// Files for the results of minutes of measuring, which must not be lost: a wrong path is reported before anything is
// measured, and a file that cannot be written does not prevent the results from being printed.
#pragma once

#include <exception>
#include <functional>
#include <initializer_list>
#include <string>

namespace commfuse::validate {

struct OutputFile {
  std::string flag;  ///< "--out"
  std::string path;  ///< Empty if the flag was not given.
};

/// Throws ConfigError if a file cannot be written, or if two flags name the same file, which the second would replace.
void require_outputs(std::initializer_list<OutputFile> outputs);

/// Writes the text that `text` returns, if a path is given. Returns the exception if that fails, as exception_of()
/// does.
std::exception_ptr exception_of_writing(const std::string& path, const std::function<std::string()>& text);
/// Calls `write`. Returns what it throws, for rethrow() after the results are printed; null if it throws nothing.
std::exception_ptr exception_of(const std::function<void()>& write);
/// Throws the failure, if there is one.
void rethrow(const std::exception_ptr& failure);

}  // namespace commfuse::validate
