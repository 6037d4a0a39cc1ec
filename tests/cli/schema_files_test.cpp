// SPDX-License-Identifier: Apache-2.0
// Compares commfuse-sim schema with the loaders: shipped files fit, misspelt keys do not, and every map has the keys
// that its loader knows.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/framework.h"
#include "model/config/implementation.h"
#include "model/config_error.h"
#include "model/program_text/load_schedule.h"
#include "sim/engine/load_faults.h"
#include "sim/lab/lab.h"
#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Converts by the rules of YAML 1.2: a value that is no number, boolean or null is a text.
Json json_of(const YAML::Node& node) {
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& field : node) {
      object[field.first.Scalar()] = json_of(field.second);
    }
    return object;
  }
  if (node.IsSequence()) {
    Json array = Json::array();
    for (const YAML::Node& item : node) {
      array.push_back(json_of(item));
    }
    return array;
  }
  static const std::regex number(R"(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?)");
  const std::string& text = node.Scalar();
  const bool is_plain = node.Tag() == "?";
  if (is_plain && (text == "true" || text == "false" || std::regex_match(text, number))) {
    return Json::parse(text);
  }
  return node.IsNull() ? Json() : Json(text);
}

bool matches(const std::string& text, const std::string& pattern) {
  static std::map<std::string, std::regex> compiled;  // Compiling them takes longer than everything else.
  auto known = compiled.find(pattern);
  if (known == compiled.end()) {
    known = compiled.emplace(pattern, std::regex(pattern)).first;
  }
  return std::regex_search(text, known->second);
}

/// Returns the value of a key in a part of a schema, for loops; empty if the part does not have the key.
const Json& said_under(const Json& schema, const char* key) {
  static const Json nothing = Json::array();
  const auto entry = schema.find(key);
  return entry == schema.end() ? nothing : *entry;
}

/// Returns where and why a value does not fit; nothing if it fits.
class SchemaCheck {
 public:
  explicit SchemaCheck(const Json& root) : root_(root) {}

  [[nodiscard]] std::optional<std::string> misfit(const Json& value) const { return misfit(value, root_, "$"); }

 private:
  using Misfit = std::optional<std::string>;

  [[nodiscard]] Misfit misfit(const Json& value, const Json& schema, const std::string& at) const {
    if (schema.contains("$ref")) {
      const std::string reference = schema.at("$ref").get<std::string>();
      return misfit(value, root_.at(Json::json_pointer(reference.substr(1))), at);
    }
    for (const auto& check :
         {&SchemaCheck::of_scalar, &SchemaCheck::of_array, &SchemaCheck::of_object, &SchemaCheck::of_choices}) {
      if (Misfit mistake = (this->*check)(value, schema, at)) {
        return mistake;
      }
    }
    return {};
  }

  static bool has_type(const Json& value, const std::string& type) {
    return type == "object"    ? value.is_object()
           : type == "array"   ? value.is_array()
           : type == "string"  ? value.is_string()
           : type == "integer" ? value.is_number_integer()
           : type == "number"  ? value.is_number()
                               : value.is_boolean();
  }

  [[nodiscard]] Misfit of_scalar(const Json& value, const Json& schema, const std::string& at) const {
    if (schema.contains("type")) {
      const Json& types = schema.at("type");
      const Json allowed = types.is_array() ? types : Json::array({types});
      if (std::none_of(allowed.begin(), allowed.end(), [&](const Json& type) { return has_type(value, type); })) {
        return at + " is no " + types.dump();
      }
    }
    if (schema.contains("const") && schema.at("const") != value) {
      return at + " is not " + schema.at("const").dump();
    }
    if (schema.contains("enum")) {
      const Json& words = schema.at("enum");
      if (std::find(words.begin(), words.end(), value) == words.end()) {
        return at + " is none of " + words.dump();
      }
    }
    if (value.is_string() && schema.contains("pattern") &&
        !matches(value.get<std::string>(), schema.at("pattern").get<std::string>())) {
      return at + " does not match " + schema.at("pattern").dump();
    }
    if (value.is_string() && value.get<std::string>().size() < schema.value("minLength", 0U)) {
      return at + " is empty";
    }
    if (value.is_number() && (value.get<double>() < schema.value("minimum", -1e300) ||
                              value.get<double>() > schema.value("maximum", 1e300))) {
      return at + " is out of range";
    }
    return {};
  }

  [[nodiscard]] Misfit of_array(const Json& value, const Json& schema, const std::string& at) const {
    if (!value.is_array()) {
      return {};
    }
    if (value.size() < schema.value("minItems", 0U)) {
      return at + " has too few items";
    }
    for (std::size_t i = 0; schema.contains("items") && i < value.size(); ++i) {
      if (Misfit of_item = misfit(value[i], schema.at("items"), at + "[" + std::to_string(i) + "]")) {
        return of_item;
      }
    }
    return {};
  }

  /// Checks a key by its name, by a pattern, as one of the others, or refuses it.
  [[nodiscard]] Misfit of_key(const Json& value, const std::string& key, const Json& schema,
                              const std::string& at) const {
    if (schema.contains("properties") && schema.at("properties").contains(key)) {
      return misfit(value, schema.at("properties").at(key), fmt::format("{}.{}", at, key));
    }
    if (schema.contains("patternProperties")) {
      for (const auto& [pattern, part] : schema.at("patternProperties").items()) {
        if (matches(key, pattern)) {
          return misfit(value, part, fmt::format("{}.{}", at, key));
        }
      }
    }
    const Json others = schema.value("additionalProperties", Json(true));
    if (others.is_object()) {
      return misfit(value, others, fmt::format("{}.{}", at, key));
    }
    return others.get<bool>() ? Misfit{} : at + " has no key " + key;
  }

  [[nodiscard]] Misfit of_object(const Json& value, const Json& schema, const std::string& at) const {
    if (!value.is_object()) {
      return {};
    }
    for (const Json& key : said_under(schema, "required")) {
      if (!value.contains(key.get<std::string>())) {
        return at + " lacks " + key.get<std::string>();
      }
    }
    if (value.size() < schema.value("minProperties", 0U) || value.size() > schema.value("maxProperties", 1000U)) {
      return at + " has too few or too many keys";
    }
    for (const auto& [key, part] : value.items()) {
      if (Misfit of_part = of_key(part, key, schema, at)) {
        return of_part;
      }
    }
    return {};
  }

  [[nodiscard]] Misfit of_choices(const Json& value, const Json& schema, const std::string& at) const {
    for (const Json& part : said_under(schema, "allOf")) {
      if (Misfit of_part = misfit(value, part, at)) {
        return of_part;
      }
    }
    if (schema.contains("not") && !misfit(value, schema.at("not"), at)) {
      return at + " is what it must not be";
    }
    if (schema.contains("if") && !misfit(value, schema.at("if"), at)) {
      return misfit(value, schema.at("then"), at);
    }
    Misfit last;
    for (const Json& part : said_under(schema, "anyOf")) {
      last = misfit(value, part, at);
      if (!last) {
        break;
      }
    }
    return last;
  }

  const Json& root_;
};

Json schema(const std::string& kind = "") { return Json::parse(run_program("commfuse-sim schema " + kind).out); }

struct ConfigFile {
  std::string path;
  Json value;
};

std::vector<ConfigFile> shipped_files() {
  std::vector<ConfigFile> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(COMMFUSE_SOURCE_DIR "/configs")) {
    if (entry.path().extension() == ".yaml") {
      files.push_back({entry.path(), json_of(YAML::LoadFile(entry.path()))});
    }
  }
  return files;
}

/// Calls visit(place) for every map in `value`, by JSON pointer.
void for_each_map(const Json& value, const Json::json_pointer& place,
                  const std::function<void(const Json::json_pointer&)>& visit) {
  if (value.is_object()) {
    visit(place);
    for (const auto& [key, part] : value.items()) {
      for_each_map(part, place / key, visit);
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      for_each_map(value[i], place / i, visit);
    }
  }
}

TEST(SchemaFiles, EveryShippedFileFits) {
  const Json root = schema();
  const SchemaCheck check(root);
  const std::vector<ConfigFile> files = shipped_files();
  EXPECT_GT(files.size(), 80U);
  for (const ConfigFile& file : files) {
    EXPECT_EQ(check.misfit(file.value).value_or("fits"), "fits") << file.path;
  }
}

TEST(SchemaFiles, AMisspeltKeyIsRefusedWhereverItStands) {
  const Json root = schema();
  const SchemaCheck check(root);
  std::size_t misspelt = 0;
  for (const ConfigFile& file : shipped_files()) {
    for_each_map(file.value, Json::json_pointer(), [&](const Json::json_pointer& place) {
      Json changed = file.value;
      changed[place]["nmae"] = 1;
      const bool names_are_free = check.misfit(changed) == std::nullopt;
      // Names of axes, dimensions, tensors and buffers are the author's.
      const bool is_free = file.value.at("schema") == "commfuse.schedule/1" &&
                           (place.to_string() == "/mesh" || place.to_string() == "/dimensions");
      EXPECT_EQ(names_are_free, is_free) << file.path << place.to_string();
      ++misspelt;
    });
  }
  EXPECT_GT(misspelt, 3000U);
}

TEST(SchemaFiles, ValuesWithoutUnitSourceOrSenseAreRefused) {
  const auto refusal = [](const std::string& kind, const std::string& yaml) {
    const Json of_kind = schema(kind);
    return SchemaCheck(of_kind).misfit(json_of(YAML::Load(yaml))).value_or("fits");
  };
  const std::string lab = "schema: commfuse.lab/1\nname: a\npattern: all_gather\nranks: 4\nrate: 1 GB/s\n";
  EXPECT_EQ(refusal("lab", lab + "chunk: 1 KiB\nlatency: 5 us\n"), "fits");
  EXPECT_EQ(refusal("lab", lab + "chunk: 1 KiB\nlatency: 5\n").substr(0, 17), "$.latency is no \"");
  EXPECT_EQ(refusal("lab", lab + "chunk: 1 KiB\n"), "$ lacks latency");
  EXPECT_NE(refusal("lab", lab + "chunk: 1 us\nlatency: 5 us\n").find("$.chunk does not match"), std::string::npos);
  EXPECT_EQ(refusal("faults", "schema: commfuse.faults/1\nname: a\nslow_links: {0-1: 2}\n"),
            "$.slow_links has no key 0-1");
  EXPECT_EQ(refusal("faults", "schema: commfuse.faults/1\nname: a\nslow_ranks: {1: 0.5}\n"),
            "$.slow_ranks.1 is out of range");
  const std::string framework =
      "schema: commfuse.framework/1\nname: a\nsummary: b\nhost: {runs_ahead: true}\n"
      "kernels: {fused_accumulation: true, loss_bytes: 14}\n"
      "tensor_parallel: {overlap: none, backward_beside_products: false}\n";
  EXPECT_EQ(refusal("framework", framework), "fits");
  EXPECT_EQ(refusal("framework", framework + "settings: {step.gradient_dtype: bf16, parallel.zero: 3}\n"), "fits");
  EXPECT_EQ(refusal("framework", framework + "settings: {seq: 4096}\n"), "$.settings has no key seq");
  const std::string jitter = "schema: commfuse.jitter/1\nname: a\nrank: {sigma: {value: 0.1, provenance: ";
  EXPECT_EQ(refusal("jitter", jitter + "guess}}\n"), "$ lacks compute");
}

/// Returns the keys that a loader knows in the map at `place`, from its message about an unknown key.
std::set<std::string> keys_known_at(const Json& file, const Json::json_pointer& place,
                                    const std::function<void(const std::string&)>& load) {
  Json changed = file;
  changed[place]["qqqqzzzz"] = 1;
  std::ofstream("a.yaml") << changed.dump();
  std::string said;
  try {
    load("./a.yaml");
  } catch (const ConfigError& error) {
    said = error.what();
  }
  const std::string intro = "unknown key 'qqqqzzzz'; known keys: ";
  const std::size_t begin = said.find(intro);
  std::set<std::string> keys;
  if (begin != std::string::npos) {
    const std::size_t end = said.find('\n', begin);
    std::istringstream names(said.substr(begin + intro.size(), end - begin - intro.size()));
    for (std::string name; std::getline(names, name, ',');) {
      keys.insert(name.substr(name.find_first_not_of(' ')));
    }
  }
  return keys;
}

/// Adds the keys in a map's part of the schema, which may allow several maps.
void add_keys(const Json& part, std::set<std::string>& keys) {
  for (const auto& [key, value] : said_under(part, "properties").items()) {
    keys.insert(key);
  }
  for (const Json& alternative : said_under(part, "anyOf")) {
    add_keys(alternative, keys);
  }
}

/// Returns the parts of the schema for `place`: several if it may be one of several maps.
std::vector<const Json*> parts_at(const Json& part, const std::vector<std::string>& place, std::size_t depth = 0) {
  if (depth == place.size()) {
    return {&part};
  }
  std::vector<const Json*> objects;
  const auto go = [&](const Json& next, std::size_t by) {
    const std::vector<const Json*> below = parts_at(next, place, depth + by);
    objects.insert(objects.end(), below.begin(), below.end());
  };
  const std::string& key = place[depth];
  if (part.contains("properties") && part.at("properties").contains(key)) {
    go(part.at("properties").at(key), 1);
  } else if (part.contains("patternProperties")) {
    go(part.at("patternProperties").begin().value(), 1);
  } else if (part.contains("items")) {
    go(part.at("items"), 1);
  }
  for (const Json& alternative : said_under(part, "anyOf")) {
    go(alternative, 0);
  }
  return objects;
}

std::vector<std::string> tokens_of(const Json::json_pointer& place) {
  std::vector<std::string> tokens;
  for (Json::json_pointer rest = place; !rest.empty(); rest.pop_back()) {
    tokens.insert(tokens.begin(), rest.back());
  }
  return tokens;
}

/// Compares loaders with a kind's schema, over all files of that kind.
class KeysOfKind {
 public:
  KeysOfKind(const std::string& kind, std::function<void(const std::string&)> load)
      : schema_(schema(kind)), load_(std::move(load)) {}

  void look_at(const ConfigFile& file) {
    for_each_map(file.value, Json::json_pointer(), [&](const Json::json_pointer& place) {
      std::set<std::string> told;
      const std::vector<const Json*> parts = parts_at(schema_, tokens_of(place));
      for (const Json* part : parts) {
        add_keys(*part, told);
      }
      if (const auto seen = known_.find(parts); seen != known_.end() && seen->second == told) {
        return;  // Other files have shown all of them.
      }
      const std::set<std::string> known = keys_known_at(file.value, place, load_);
      for (const std::string& key : known) {
        EXPECT_TRUE(told.contains(key)) << file.path << place.to_string() << ": the loader knows " << key;
      }
      if (!known.empty()) {
        told_.emplace(parts, std::pair(place.to_string(), told));
        known_[parts].insert(known.begin(), known.end());
      }
    });
  }

  /// A loader asks for some keys only beside others, but all files together show them all.
  void expect_nothing_more_is_told() const {
    EXPECT_FALSE(told_.empty());
    for (const auto& [parts, told] : told_) {
      for (const std::string& key : told.second) {
        EXPECT_TRUE(known_.at(parts).contains(key)) << told.first << ": no loader knows " << key;
      }
    }
  }

 private:
  Json schema_;
  std::function<void(const std::string&)> load_;
  using Parts = std::vector<const Json*>;  // Parts of the schema for one map.
  // By parts: an example of its place, and its keys.
  std::map<Parts, std::pair<std::string, std::set<std::string>>> told_;
  std::map<Parts, std::set<std::string>> known_;
};

/// Returns a file with `patch` merged into it.
ConfigFile changed(ConfigFile file, const Json& patch) {
  file.value.merge_patch(patch);
  return file;
}

ConfigFile shipped(const char* path) {
  return {path, json_of(YAML::LoadFile(COMMFUSE_SOURCE_DIR "/configs/" + std::string(path)))};
}

/// Returns files with parts that no shipped one has: wires from a file, a network inside a hardware file, ops of every
/// kind.
std::vector<ConfigFile> made_files() {
  const ConfigFile hardware = shipped("hardware/h100-sxm.yaml");
  const ConfigFile cluster =
      changed(shipped("clusters/dgx-h100-x2.yaml"), nlohmann::json::parse(R"({"network": {"fabric": "rails"}})"));
  std::vector<ConfigFile> files{
      cluster, changed(hardware, {{"nodes", 2}, {"network", cluster.value.at("network")}}),
      // A mistake elsewhere keeps the loader from looking for the file.
      changed(hardware,
              nlohmann::json::parse(R"({"gpus_per_node": 0, "topology": {"kind": null, "file": "wires.xml"}})")),
      changed(hardware, nlohmann::json::parse(R"({"link": {"collective": {"nccl": {"wire": "network"}}}})"))};
  for (const char* strategy : {"serial", "commfuse"}) {
    const Outcome shown = run_program("commfuse-sim schedule show --scope attention --ranks 2 -o yaml --strategy " +
                                      std::string(strategy));
    EXPECT_EQ(shown.code, 0) << shown.err;
    files.push_back({strategy, json_of(YAML::Load(shown.out))});
  }
  return files;
}

TEST(SchemaFiles, EveryMapHasTheKeysThatItsLoaderKnows) {
  const OwnFolder folder;
  const std::map<std::string, std::function<void(const std::string&)>> loaders{
      {"model", [](const std::string& path) { load_model(path); }},
      {"hardware", [](const std::string& path) { load_machine(path); }},
      {"cluster", [](const std::string& path) { load_machine(path); }},
      {"jitter", [](const std::string& path) { load_jitter(path); }},
      {"faults", [](const std::string& path) { load_faults(path); }},
      {"lab", [](const std::string& path) { load_lab(path); }},
      {"implementation", [](const std::string& path) { load_implementation(path); }},
      {"framework", [](const std::string& path) { load_framework(path); }},
      {"schedule", [](const std::string& path) { load_schedule(path); }}};
  std::vector<ConfigFile> files = shipped_files();
  const std::vector<ConfigFile> made = made_files();
  files.insert(files.end(), made.begin(), made.end());
  for (const auto& [kind, load] : loaders) {
    KeysOfKind keys(kind, load);
    for (const ConfigFile& file : files) {
      if (file.value.at("schema") == "commfuse." + kind + "/1" && !file.value.contains("extends")) {
        keys.look_at(file);
      }
    }
    keys.expect_nothing_more_is_told();
  }
}

TEST(SchemaFiles, AnotherValidatorSaysTheSame) {
  const char* const has_it = "python3 -c 'import jsonschema; jsonschema.Draft202012Validator'";
  if (run_program(has_it).code != 0) {
    GTEST_SKIP() << "there is no python3 with jsonschema on this machine";
  }
  const OwnFolder folder;
  std::ofstream("all.json") << schema().dump();
  Json files = Json::array();
  for (const ConfigFile& file : shipped_files()) {
    files.push_back(file.value);
  }
  files.push_back({{"schema", "commfuse.lab/1"}, {"nmae", "wrong"}});
  std::ofstream("files.json") << files.dump();
  const Outcome outcome = run_program(
      "python3 -c 'import json, jsonschema\n"
      "schema = json.load(open(\"all.json\"))\n"
      "jsonschema.Draft202012Validator.check_schema(schema)\n"
      "check = jsonschema.Draft202012Validator(schema)\n"
      "print([i for i, file in enumerate(json.load(open(\"files.json\"))) if not check.is_valid(file)])'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "[" + std::to_string(files.size() - 1) + "]\n");
}

}  // namespace
}  // namespace commfuse::test
