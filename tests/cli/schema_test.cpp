// SPDX-License-Identifier: Apache-2.0
// Tests that commfuse-sim schema agrees with the registry of settings, and covers every kind of shipped file.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "model/config/field.h"
#include "model/config/yaml_reader.h"
#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json printed_schema(const std::string& kind = "") {
  const Outcome outcome = run_program("commfuse-sim schema " + kind);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return json::parse(outcome.out);
}

/// Returns the part of the schema for the setting with this key.
const json& part_of(const json& properties, std::string_view key) {
  const std::size_t dot = key.find('.');
  return dot == std::string_view::npos
             ? properties.at(std::string(key))
             : properties.at(std::string(key.substr(0, dot))).at("properties").at(std::string(key.substr(dot + 1)));
}

TEST(Schema, HasEverySettingWithItsWordsAndLimits) {
  const json run = printed_schema("run");
  const json sweep = printed_schema("sweep");
  const json axis = sweep.at("properties").at("axes").at("items").at("properties");
  for (const Field& field : run_fields()) {
    const json& part = part_of(run.at("properties"), field.key);
    EXPECT_EQ(part_of(sweep.at("properties").at("set").at("properties"), field.key), part) << field.key;
    EXPECT_EQ(axis.contains(std::string(field.key)), field.of_point) << field.key;
    EXPECT_EQ(part.at("description").get<std::string>().find(field.doc), 0U);
    if (field.type == FieldType::choice) {
      EXPECT_EQ(part.at("enum"), json(field.choices())) << field.key;
    }
    if (field.type == FieldType::count) {
      EXPECT_EQ(part.at("anyOf").at(0).at("minimum"), field.least) << field.key;
      EXPECT_EQ(part.at("anyOf").at(0).at("maximum"), field.most) << field.key;
    }
  }
  EXPECT_EQ(run.at("additionalProperties"), false);
}

TEST(Schema, CoversEveryKindOfShippedFile) {
  std::set<std::string> known;
  const json root = printed_schema();
  for (const auto& [name, kind] : root.at("$defs").items()) {
    known.insert(kind.at("properties").at("schema").at("const").get<std::string>());
    EXPECT_EQ(printed_schema(name).at("properties"), kind.at("properties")) << name;
  }
  EXPECT_EQ(root.at("allOf").size(), known.size());
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(COMMFUSE_SOURCE_DIR "/configs")) {
    if (entry.path().extension() == ".yaml") {
      YamlFile file(entry.path());
      EXPECT_TRUE(known.contains(file.root().text("schema"))) << entry.path();
    }
  }
}

TEST(Schema, ReportsAnUnknownKind) {
  EXPECT_EQ(run_program("commfuse-sim schema sweeps").err, "KIND: unknown kind 'sweeps'; did you mean 'sweep'?\n");
}

}  // namespace
}  // namespace commfuse::test
