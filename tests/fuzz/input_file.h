// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace commfuse::fuzz {

/// A file with these bytes in a folder of this process that goes when the program ends; the one before is overwritten.
/// Throws std::runtime_error when it cannot be written.
std::filesystem::path input_file(std::string_view name, std::string_view bytes);

}  // namespace commfuse::fuzz
