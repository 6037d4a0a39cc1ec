// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace commfuse::fuzz {

/// Writes `bytes` to a file in this process's temporary folder. The next call overwrites the file, and the folder is
/// removed when the program ends. Throws std::runtime_error if the file cannot be written.
std::filesystem::path input_file(std::string_view name, std::string_view bytes);

}  // namespace commfuse::fuzz
