// SPDX-License-Identifier: Apache-2.0
// Tests that the list of schemas equals the schemas that the sources write and read.
#include "model/record/versions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "model/build_info.h"
#include "model/record/model_version.h"
#include "tests/contents_of.h"

namespace commfuse {
namespace {

namespace fs = std::filesystem;

/// Returns every schema between double quotes in the sources of these folders, except in the files of the list itself,
/// and commfuse.version/1, which only those files contain.
std::set<std::string> schemas_in_sources() {
  static const std::regex schema(R"re(\\?"(commfuse\.[a-z_]+/[0-9]+)\\?")re");
  std::set<std::string> schemas{"commfuse.version/1"};
  for (const char* const folder : {"model", "sim", "validate", "reports"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(COMMFUSE_SOURCE_DIR) / folder)) {
      const std::string extension = entry.path().extension().string();
      if ((extension != ".cpp" && extension != ".h") || entry.path().stem() == "versions") {
        continue;
      }
      const std::string text = test::contents_of(entry.path());
      for (std::sregex_iterator at(text.begin(), text.end(), schema), end; at != end; ++at) {
        schemas.insert((*at)[1].str());
      }
    }
  }
  return schemas;
}

TEST(Versions, TheSchemasMatchTheSources) {
  std::set<std::string> listed(written_schemas().begin(), written_schemas().end());
  EXPECT_EQ(listed.size(), written_schemas().size());
  EXPECT_TRUE(std::is_sorted(written_schemas().begin(), written_schemas().end()));
  for (const std::string_view schema : read_schemas()) {
    EXPECT_TRUE(listed.insert(std::string(schema)).second) << schema << " is read and written";
  }
  EXPECT_EQ(listed, schemas_in_sources());
}

TEST(Versions, JsonListsEverythingThatHasAVersion) {
  const auto json = nlohmann::json::parse(versions_as_json("commfuse-sim"));
  EXPECT_EQ(json.at("schema"), "commfuse.version/1");
  EXPECT_EQ(json.at("program"), "commfuse-sim");
  EXPECT_EQ(json.at("version"), build_info().version);
  EXPECT_EQ(json.at("model_version"), model_version);
  EXPECT_EQ(json.at("schemas").size(), written_schemas().size());
}

TEST(Versions, TextNamesEverySchemaInLinesOfUpTo80Columns) {
  const std::string text = versions_as_text("commfuse-sim");
  EXPECT_EQ(text.find("commfuse-sim " + std::string(build_info().version) + " ("), 0U);
  for (const std::string_view schema : written_schemas()) {
    EXPECT_NE(text.find(" " + std::string(schema.substr(9))), std::string::npos) << schema;
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
  }
}

}  // namespace
}  // namespace commfuse
