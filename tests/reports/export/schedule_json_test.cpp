// SPDX-License-Identifier: Apache-2.0
#include "reports/export/schedule_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/program_text/text.h"
#include "tests/reports/export/exported.h"

namespace commfuse::test {
namespace {

using reports::schedule_json;

TEST(ScheduleJson, ParsesBackToTheSameProgram) {
  for (const Scope scope : all_scopes) {
    for (const std::int32_t ranks : {1, 2, 4}) {
      for (const Strategy& strategy : strategies()) {
        for (const StrategyOptions& options : schedules_to_try(strategy, kinds_of(scope), ranks)) {
          const Program program = generated(scope, ranks, strategy, options);
          EXPECT_EQ(parse_program(schedule_json(program), "schedule.json"), program) << program.name;
        }
      }
    }
  }
}

TEST(ScheduleJson, HasTheKeysOfTheText) {
  const Strategy& ring = commfuse_strategy;
  const Program program = generated(Scope::down, 4, ring, {});
  const auto json = nlohmann::ordered_json::parse(schedule_json(program));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) {
    keys.push_back(key);
  }
  EXPECT_EQ(keys, (std::vector<std::string>{"schema", "name", "mesh", "dimensions", "tensors", "buffers", "initial",
                                            "final", "unfused", "ops"}));
  EXPECT_EQ(json["schema"], "commfuse.schedule/1");
  EXPECT_EQ(json["mesh"]["tp"], 4);
  ASSERT_EQ(json["ops"].size(), program.ops.size());
  EXPECT_EQ(json["ops"][0]["id"], 0);
  EXPECT_EQ(json["initial"][0]["row"], "0");  // indices are text, even if they are numbers
}

TEST(ScheduleJson, NamesMayContainEscapedCharacters) {
  Program program = generated(Scope::qkv, 2, serial_strategy, {});
  program.name = "a \"quoted\" \\ name with \u00e9 and true";
  EXPECT_EQ(parse_program(schedule_json(program), "schedule.json"), program);
  program.name = "12";  // a name, not a number
  EXPECT_EQ(parse_program(schedule_json(program), "schedule.json"), program);
  EXPECT_EQ(nlohmann::json::parse(schedule_json(program))["name"], "12");
}

TEST(ScheduleJson, ErrorsInJsonNameTheirLine) {
  std::string text = schedule_json(generated(Scope::qkv, 2, serial_strategy, {}));
  const std::size_t at = text.find("\"op\":\"collective\"");
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, 17, "\"op\":\"colective\"");
  try {
    parse_program(text, "mine.json");
    FAIL() << "no error";
  } catch (const std::exception& error) {
    const std::string line =
        std::to_string(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1);
    EXPECT_EQ(std::string(error.what()).rfind("mine.json:" + line + ":", 0), 0U) << error.what();
    EXPECT_NE(std::string(error.what()).find("'colective' is not one of the op kinds; did you mean 'collective'?"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace commfuse::test
