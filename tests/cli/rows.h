// SPDX-License-Identifier: Apache-2.0
// The rows of commfuse-sim run, and the columns of CSV.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

namespace commfuse::test {

/// Returns the rows that `commfuse-sim run` prints; an empty list if it fails, which also fails the test.
nlohmann::json rows_of(const std::string& arguments);

/// Returns the names in the first line of CSV.
std::set<std::string> column_names_of(const std::string& csv);

}  // namespace commfuse::test
