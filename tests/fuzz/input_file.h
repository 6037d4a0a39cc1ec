// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace commfuse::fuzz {

/// Writes these bytes to a file in a folder of this process, which is removed when the program ends; the next call
/// overwrites the file. Throws std::runtime_error if that fails.
std::filesystem::path input_file(std::string_view name, std::string_view bytes);

}  // namespace commfuse::fuzz
