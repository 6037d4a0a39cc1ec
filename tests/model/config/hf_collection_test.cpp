// SPDX-License-Identifier: Apache-2.0
// Reads every config.json of a collection in shared/ next to this checkout and compares the number of parameters with
// an independent count by the public modelling code. No key may remain unread. Skipped without the collection.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "model/config/hf_config.h"
#include "model/workload/parameters.h"

namespace commfuse {
namespace {

namespace fs = std::filesystem;

fs::path collection() { return fs::path(COMMFUSE_SOURCE_DIR).parent_path() / "shared" / "data" / "hf_configs"; }

struct ReferenceParameters {
  double total = 0.0;
  double active = 0.0;
  std::string confidence;
};

std::map<std::string, ReferenceParameters> references() {
  std::map<std::string, ReferenceParameters> by_model;
  std::ifstream file(collection() / "reference_params.csv");
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::stringstream cells(line);
    std::vector<std::string> row(8);
    for (std::string& cell : row) {
      std::getline(cells, cell, ',');
    }
    by_model[row[0]] = {std::stod(row[1]), std::stod(row[2]), row[6]};
  }
  return by_model;
}

TEST(HfCollection, HasTheParametersOfAnIndependentCount) {
  if (!fs::exists(collection() / "reference_params.csv")) {
    GTEST_SKIP() << "no collection of config.json files next to the checkout";
  }
  for (const auto& [name, reference] : references()) {
    const HfModel loaded = read_hf_config(collection() / name);
    const ModelParameters count = parameters_of(loaded.model);
    const double tolerance = reference.confidence == "high" ? 0.005 : 0.02;
    EXPECT_LE(std::abs(static_cast<double>(count.total()) / reference.total - 1.0), tolerance)
        << name << ": " << count.total() << ", counted " << reference.total;
    EXPECT_LE(std::abs(static_cast<double>(count.active()) / reference.active - 1.0), 0.01)
        << name << ": " << count.active() << " active, counted " << reference.active;
    EXPECT_TRUE(loaded.doubts.empty()) << name << ": " << (loaded.doubts.empty() ? "" : loaded.doubts.front());
    EXPECT_TRUE(loaded.unused.empty()) << name << ": " << (loaded.unused.empty() ? "" : loaded.unused.front());
  }
}

}  // namespace
}  // namespace commfuse
