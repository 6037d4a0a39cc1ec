// SPDX-License-Identifier: Apache-2.0
// Finds mistakes in the paths of output files before minutes of measuring, whose results would be lost.
#pragma once

#include <initializer_list>
#include <string>

namespace commfuse::validate {

struct OutputFile {
  std::string flag;  ///< "--out"
  std::string path;  ///< Empty if the flag was not given.
};

/// Throws ConfigError if a file cannot be written, or if two flags name the same file, which the second would replace.
void require_outputs(std::initializer_list<OutputFile> outputs);

}  // namespace commfuse::validate
