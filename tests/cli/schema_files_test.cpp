// SPDX-License-Identifier: Apache-2.0
// What commfuse-sim schema says and what loaders do are the same: shipped files fit, misspelt keys do not, and every
// map has the keys that its loader knows.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/schedule/load_schedule.h"
#include "sim/engine/load_faults.h"
#include "sim/lab/lab.h"
#include "tests/cli/json_schema.h"
#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;
using namespace nlohmann::literals;

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

/// Calls visit(place) for every map in it, by JSON pointer.
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
  const Json all = schema();
  const SchemaCheck check(all);
  const std::vector<ConfigFile> files = shipped_files();
  EXPECT_GT(files.size(), 80U);
  for (const ConfigFile& file : files) {
    EXPECT_EQ(check.misfit(file.value).value_or("fits"), "fits") << file.path;
  }
}

TEST(SchemaFiles, AMisspeltKeyIsRefusedWhereverItStands) {
  const Json all = schema();
  const SchemaCheck check(all);
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
  const std::string jitter = "schema: commfuse.jitter/1\nname: a\nrank: {sigma: {value: 0.1, provenance: ";
  EXPECT_EQ(refusal("jitter", jitter + "guess}}\n"), "$ lacks compute");
}

/// The keys that a loader says it knows in the map at `place`: what it answers to one that nobody knows.
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

/// The keys in a map's part of the schema, whichever of several maps it may be.
void add_keys(const Json& part, std::set<std::string>& keys) {
  for (const auto& [key, value] : said_under(part, "properties").items()) {
    keys.insert(key);
  }
  for (const Json& one : said_under(part, "anyOf")) {
    add_keys(one, keys);
  }
}

/// Parts of the schema for what stands at `place`: several where it may be one of several maps.
std::vector<const Json*> parts_at(const Json& part, const std::vector<std::string>& place, std::size_t depth = 0) {
  if (depth == place.size()) {
    return {&part};
  }
  std::vector<const Json*> found;
  const auto go = [&](const Json& next, std::size_t by) {
    const std::vector<const Json*> below = parts_at(next, place, depth + by);
    found.insert(found.end(), below.begin(), below.end());
  };
  const std::string& key = place[depth];
  if (part.contains("properties") && part.at("properties").contains(key)) {
    go(part.at("properties").at(key), 1);
  } else if (part.contains("patternProperties")) {
    go(part.at("patternProperties").begin().value(), 1);
  } else if (part.contains("items")) {
    go(part.at("items"), 1);
  }
  for (const Json& one : said_under(part, "anyOf")) {
    go(one, 0);
  }
  return found;
}

std::vector<std::string> tokens_of(const Json::json_pointer& place) {
  std::vector<std::string> tokens;
  for (Json::json_pointer rest = place; !rest.empty(); rest.pop_back()) {
    tokens.insert(tokens.begin(), rest.back());
  }
  return tokens;
}

/// Holds loaders against a kind's schema, over all files of that kind.
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

  /// Some keys a loader asks for only beside others: all files together show them all.
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
  using Parts = std::vector<const Json*>;                                // of the schema, for one map
  std::map<Parts, std::pair<std::string, std::set<std::string>>> told_;  // by parts: where one stands, its keys
  std::map<Parts, std::set<std::string>> known_;
};

/// As it is, but for what stands at some places.
ConfigFile changed(ConfigFile file, const Json& patch) {
  file.value.merge_patch(patch);
  return file;
}

ConfigFile shipped(const char* path) {
  return {path, json_of(YAML::LoadFile(COMMFUSE_SOURCE_DIR "/configs/" + std::string(path)))};
}

/// Files with what no shipped one has: wires from a file, a network inside a hardware file, ops of every kind.
std::vector<ConfigFile> made_files() {
  const ConfigFile hardware = shipped("hardware/h100-sxm.yaml");
  const ConfigFile cluster = changed(shipped("clusters/dgx-h100-x2.yaml"), R"({"network": {"fabric": "rails"}})"_json);
  std::vector<ConfigFile> files{
      cluster, changed(hardware, {{"nodes", 2}, {"network", cluster.value.at("network")}}),
      // A mistake elsewhere keeps the loader from looking for the file.
      changed(hardware, R"({"gpus_per_node": 0, "topology": {"kind": null, "file": "wires.xml"}})"_json),
      changed(hardware, R"({"link": {"collective": {"nccl": {"wire": "network"}}}})"_json)};
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
