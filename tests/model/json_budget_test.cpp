// SPDX-License-Identifier: Apache-2.0
#include "model/json_budget.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "model/config_error.h"
#include "tests/refusal.h"

namespace commfuse {
namespace {

using nlohmann::json;

template <class Json = json>
std::string json_refusal(const std::string& text) {
  return test::refusal_of([&] { parse_json<Json>(text, "a.json"); });
}

std::string nested(int levels) {
  return std::string(static_cast<std::size_t>(levels), '[') + std::string(static_cast<std::size_t>(levels), ']');
}

TEST(JsonBudget, AcceptsOrdinaryDocuments) {
  EXPECT_EQ(parse_json<json>(R"({"a": [1, -2, 3.5, "b", true, null], "c": {"d": {}}})", "a.json").dump(),
            R"({"a":[1,-2,3.5,"b",true,null],"c":{"d":{}}})");
}

TEST(JsonBudget, AHundredLevelsAreTheLimit) {
  EXPECT_EQ(json_refusal(nested(100)), "accepted");
  EXPECT_EQ(json_refusal(nested(101)), "a.json: more than 100 levels of nesting; use the unmodified file");
}

/// Returns an object of `keys` keys, nested in an array and in two objects of one key each.
std::string object_of(int keys) {
  std::string text = R"({"a": {"b": [{)";
  for (int i = 0; i < keys; ++i) {
    text += fmt::format("{}\"{}\": 1", i == 0 ? "" : ", ", i);
  }
  return text + "}]}}";
}

TEST(JsonBudget, AThousandKeysAreTheLimitOfAnOrderedObject) {
  using nlohmann::ordered_json;
  EXPECT_NO_THROW(parse_json<ordered_json>(object_of(1000), "a.json"));
  EXPECT_EQ(json_refusal<ordered_json>(object_of(1001)),
            "a.json: more than 1000 keys in one object; use the unmodified file");
  EXPECT_EQ(json_refusal(object_of(1001)), "accepted") << "keys of unordered objects are found without a search";
  const auto take = [](ordered_json::parse_event_t /*event*/, const ordered_json& /*value*/) {};
  EXPECT_NO_THROW(take_and_forget<ordered_json>("a.json", 1, take, object_of(1000)));
  EXPECT_THROW(take_and_forget<ordered_json>("a.json", 1, take, object_of(1001)), ConfigError);
}

TEST(JsonBudget, KeysOfSiblingObjectsDoNotAddUp) {
  std::string array = "[";
  for (int i = 0; i < 3; ++i) {
    array += object_of(600) + ",";
  }
  EXPECT_EQ(json_refusal<nlohmann::ordered_json>(array + "0]"), "accepted");
}

TEST(JsonBudget, LeavesInvalidJsonToTheParser) { EXPECT_THROW(parse_json<json>("[1, ", "a.json"), json::parse_error); }

TEST(JsonBudget, DoesNotCountDiscardedValues) {
  JsonBudget budget("a.json", {.objects = 2});
  budget.begin_object(0);
  for (int i = 0; i < 10; ++i) {
    const JsonBudget::Taken before = budget.taken();
    budget.begin_object(1);
    budget.forget_since(before);
  }
  budget.begin_object(1);
  EXPECT_THROW(budget.begin_object(1), ConfigError);
}

TEST(JsonBudget, BytesAreCounted) {
  JsonBudget budget("a.json", {});
  budget.text(JsonBudget::max_bytes / 2);
  EXPECT_THROW(budget.key(JsonBudget::max_bytes / 2), ConfigError);
}

TEST(JsonBudget, PlacesAreLinesAndColumnsFrom1) {
  EXPECT_EQ(line_and_column("ab\ncd", 1), "1:1");
  EXPECT_EQ(line_and_column("ab\ncd", 5), "2:2");
  EXPECT_EQ(line_and_column("ab\ncd", 99), "2:3");
  EXPECT_EQ(line_and_column("", 0), "1:1");
}

}  // namespace
}  // namespace commfuse
