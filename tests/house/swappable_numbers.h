// SPDX-License-Identifier: Apache-2.0
// Finds adjacent number parameters in headers, which a caller can swap without a warning from the compiler.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace commfuse::house {

/// Returns, as `path:line: sentence`, every two adjacent parameters of one type of number in the headers below model,
/// sim, validate and reports, unless their names are in an order that every reader expects: "first, last", "rank,
/// ranks", "m, n, k". Numbers are the arithmetic types except bool, the units of model/units.h and Rank, also if
/// optional. A function pointer's parameters count; a parameter without a name does not.
std::vector<std::string> swappable_numbers(const std::filesystem::path& root);

}  // namespace commfuse::house
