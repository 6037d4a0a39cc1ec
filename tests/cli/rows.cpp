// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/rows.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"

namespace commfuse::test {

nlohmann::json rows_of(const std::string& arguments) {
  const Outcome outcome = run_program("commfuse-sim run -o json " + arguments);
  EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.err;
  return outcome.code == 0 ? nlohmann::json::parse(outcome.out) : nlohmann::json::array();
}

std::set<std::string> column_names_of(const std::string& csv) {
  std::istringstream header(csv.substr(0, csv.find_first_of("\r\n")));
  std::set<std::string> names;
  for (std::string name; std::getline(header, name, ',');) {
    names.insert(name);
  }
  return names;
}

}  // namespace commfuse::test
