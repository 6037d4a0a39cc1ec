// SPDX-License-Identifier: Apache-2.0
// Compares commfuse-sim schema with the loaders: shipped files fit, misspelt keys do not, and every map has the keys
// that its loader accepts.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
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

/// Converts by the rules of YAML 1.2: a value other than a number, boolean or null is text.
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

/// Returns the value of a keyword in a part of a schema; an empty list if the part lacks the keyword.
const Json& keyword_of(const Json& schema, const char* key) {
  static const Json nothing = Json::array();
  const auto entry = schema.find(key);
  return entry == schema.end() ? nothing : *entry;
}

Json schema_of_kind(const std::string& kind = "") {
  return Json::parse(run_program("commfuse-sim schema " + kind).out);
}

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

/// Returns the tokens of a JSON pointer in their order.
std::vector<std::string> tokens_of(Json::json_pointer place) {
  std::vector<std::string> tokens;
  for (; !place.empty(); place.pop_back()) {
    tokens.insert(tokens.begin(), place.back());
  }
  return tokens;
}

/// Runs misfits.py, which needs Python's jsonschema.
class SchemaFiles : public testing::Test {
 protected:
  void SetUp() override {
    if (run_program("python3 -c 'import jsonschema; jsonschema.Draft202012Validator'").code != 0) {
      GTEST_SKIP() << "python3 with jsonschema is not installed";
    }
  }

  /// Returns the answers of misfits.py, one per value, then one per place.
  static Json misfits(const Json& schema, const Json& values, const Json& places = Json::array()) {
    const OwnFolder folder;
    std::ofstream("question.json") << Json{{"schema", schema}, {"values", values}, {"places", places}}.dump();
    const Outcome outcome = run_program("python3 " COMMFUSE_SOURCE_DIR "/tests/cli/misfits.py question.json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    Json answers = Json::array();
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) {
      answers.push_back(Json::parse(line));
    }
    EXPECT_EQ(answers.size(), values.size() + places.size());
    return answers;
  }

  /// Returns the place in a file that breaks a kind's schema, and the broken keyword; empty if the file fits.
  static std::string misfit(const std::string& kind, const std::string& yaml) {
    return misfits(schema_of_kind(kind), Json::array({json_of(YAML::Load(yaml))})).at(0).get<std::string>();
  }
};

TEST_F(SchemaFiles, EveryShippedFileFits) {
  const std::vector<ConfigFile> files = shipped_files();
  EXPECT_GT(files.size(), 80U);
  Json values = Json::array();
  for (const ConfigFile& file : files) {
    values.push_back(file.value);
  }
  const Json answers = misfits(schema_of_kind(), values);
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(answers.at(i), "") << files[i].path;
  }
}

TEST_F(SchemaFiles, AMisspeltKeyIsRefusedAnywhere) {
  const std::vector<ConfigFile> files = shipped_files();
  Json values = Json::array();
  Json places = Json::array();
  for (const ConfigFile& file : files) {
    for_each_map(file.value, Json::json_pointer(), [&](const Json::json_pointer& place) {
      places.push_back(Json::array({values.size(), tokens_of(place)}));
    });
    values.push_back(file.value);
  }
  EXPECT_GT(places.size(), 3000U);
  const Json answers = misfits(schema_of_kind(), values, places);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const ConfigFile& file = files[places[i].at(0).get<std::size_t>()];
    const Json& tokens = places[i].at(1);
    // Names of axes, dimensions, tensors and buffers are chosen by the author.
    const bool is_free = file.value.at("schema") == "commfuse.schedule/1" &&
                         (tokens == Json::array({"mesh"}) || tokens == Json::array({"dimensions"}));
    EXPECT_EQ(answers.at(values.size() + i), is_free) << file.path << tokens;
  }
}

TEST_F(SchemaFiles, ValuesWithoutUnitSourceOrMeaningAreRefused) {
  const std::string lab = "schema: commfuse.lab/1\nname: a\npattern: all_gather\nranks: 4\nrate: 1 GB/s\n";
  EXPECT_EQ(misfit("lab", lab + "chunk: 1 KiB\nlatency: 5 us\n"), "");
  EXPECT_EQ(misfit("lab", lab + "chunk: 1 KiB\nlatency: 5\n"), "$.latency type");
  EXPECT_EQ(misfit("lab", lab + "chunk: 1 KiB\n"), "$ required");
  EXPECT_EQ(misfit("lab", lab + "chunk: 1 us\nlatency: 5 us\n"), "$.chunk pattern");
  const std::string faults = "schema: commfuse.faults/1\nname: a\n";
  EXPECT_EQ(misfit("faults", faults + "slow_links: {0-1: 2}\n"), "$.slow_links additionalProperties");
  EXPECT_EQ(misfit("faults", faults + "slow_ranks: {1: 0.5}\n"), "$.slow_ranks.1 minimum");
  const std::string framework =
      "schema: commfuse.framework/1\nname: a\nsummary: b\nhost: {runs_ahead: true}\n"
      "kernels: {fused_accumulation: true, loss_bytes: 14}\n"
      "tensor_parallel: {overlap: none, backward_beside_products: false}\n";
  EXPECT_EQ(misfit("framework", framework), "");
  EXPECT_EQ(misfit("framework", framework + "settings: {step.gradient_dtype: bf16, parallel.zero: 3}\n"), "");
  EXPECT_EQ(misfit("framework", framework + "settings: {seq: 4096}\n"), "$.settings additionalProperties");
  EXPECT_EQ(misfit("framework", framework + "selective_recompute: [norms, every_second_gemm]\n"), "");
  EXPECT_NE(misfit("framework", framework + "selective_recompute: [scores]\n"), "");
  const auto with_loss_memory = [&](const std::string& value) {
    return std::string(framework).insert(framework.find("loss_bytes"), "loss_memory: " + value + ", ");
  };
  EXPECT_EQ(misfit("framework", with_loss_memory("{value: 12, provenance: 'prior: b'}")), "");
  EXPECT_NE(misfit("framework", with_loss_memory("12")), "");
  const std::string jitter = "schema: commfuse.jitter/1\nname: a\nrank: {sigma: {value: 0.1, provenance: ";
  EXPECT_EQ(misfit("jitter", jitter + "guess}}\n"), "$ required");
}

TEST_F(SchemaFiles, ValuesOfSettingsPassWhereTheLoaderReadsThem) {
  const std::string run = "schema: commfuse.run/1\n";
  EXPECT_EQ(misfit("run", run + "model: 8192x28672\n"), "");
  EXPECT_EQ(misfit("run", run + "model: 8192x8192-e32-top4-ep2\n"), "");
  EXPECT_NE(misfit("run", run + "model: 8192x\n"), "");
  EXPECT_EQ(misfit("run", run + "hardware: dgx-h100-x16\n"), "");
  EXPECT_NE(misfit("run", run + "hardware: h100-sxm-x16\n"), "");
  for (const char* rate : {"x0.5", "x1e-1", "450GB/s", "400 Gbit/s", "56 GiB/s", "900000 kB/s"}) {
    EXPECT_EQ(misfit("run", run + "link_bandwidth: " + rate + "\n"), "") << rate;
  }
  EXPECT_EQ(misfit("run", run + "link_bandwidth: 400 Gbps\n"), "$.link_bandwidth pattern");
  EXPECT_EQ(misfit("sweep", "schema: commfuse.sweep/1\naxes: [{price: 2.5}]\n"), "");
  const std::string plan =
      "schema: commfuse.plan/1\ntokens: 1T\ndeadline: 1 day\nset: {model: llama-3.1-8b, parallel.zero: 1}\n"
      "gpus: {h: {hardware: dgx-h100-x4, price: $2.80, price_date: \"2026-05-04\", count: 64}}\n";
  EXPECT_EQ(misfit("plan", plan), "");
  EXPECT_NE(misfit("plan", plan + "budget: much\n"), "");
}

TEST_F(SchemaFiles, TextsOfASchedulePassWhereTheLoaderReadsThem) {
  const std::string schedule =
      "schema: commfuse.schedule/1\nname: a\nmesh: {tp: 2}\ndimensions: {t.local: 2, h: 1}\ntensors: {}\n"
      "buffers:\n  x: {rows: t.local*2, columns: \"h  *  1\"}\n  y: {rows: t.local*2, columns: h*1}\n"
      "initial: []\nfinal: []\nunfused: []\nops:\n- {id: 0, op: elementwise, lane: comm1, function: copy, ";
  const std::string stacked = schedule + "in: \"x[0]; x[1]\", out: y}\n";
  const std::string listed = schedule + "in: x, out: [\"y[0]\", \"y[1]\"]}\n";
  {
    const OwnFolder folder;
    std::ofstream("stacked.yaml") << stacked;
    std::ofstream("listed.yaml") << listed;
    load_schedule("./stacked.yaml");
    EXPECT_THROW(load_schedule("./listed.yaml"), ConfigError);
  }
  EXPECT_EQ(misfit("schedule", stacked), "");
  EXPECT_NE(misfit("schedule", listed), "");
}

/// Returns the keys that a loader accepts in the map at `place`, from its message about an unknown key.
std::set<std::string> keys_accepted_at(const Json& file, const Json::json_pointer& place,
                                       const std::function<void(const std::string&)>& load) {
  Json changed = file;
  changed[place]["qqqqzzzz"] = 1;
  std::ofstream("a.yaml") << changed.dump();
  std::string message;
  try {
    load("./a.yaml");
  } catch (const ConfigError& error) {
    message = error.what();
  }
  const std::string intro = "unknown key 'qqqqzzzz'; known keys: ";
  const std::size_t begin = message.find(intro);
  std::set<std::string> keys;
  if (begin != std::string::npos) {
    const std::size_t end = message.find('\n', begin);
    std::istringstream names(message.substr(begin + intro.size(), end - begin - intro.size()));
    for (std::string name; std::getline(names, name, ',');) {
      keys.insert(name.substr(name.find_first_not_of(' ')));
    }
  }
  return keys;
}

/// Adds the keys in a map's part of the schema, which may allow several maps.
void add_keys(const Json& part, std::set<std::string>& keys) {
  for (const auto& [key, value] : keyword_of(part, "properties").items()) {
    keys.insert(key);
  }
  for (const Json& alternative : keyword_of(part, "anyOf")) {
    add_keys(alternative, keys);
  }
}

/// Returns the parts of the schema for `place`: several if the place may be one of several maps.
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
  for (const Json& alternative : keyword_of(part, "anyOf")) {
    go(alternative, 0);
  }
  return objects;
}

/// Compares loaders with a kind's schema, over all files of that kind.
class KeysOfKind {
 public:
  KeysOfKind(const std::string& kind, std::function<void(const std::string&)> load)
      : schema_(schema_of_kind(kind)), load_(std::move(load)) {}

  void compare(const ConfigFile& file) {
    for_each_map(file.value, Json::json_pointer(), [&](const Json::json_pointer& place) {
      std::set<std::string> schema_keys;
      const std::vector<const Json*> parts = parts_at(schema_, tokens_of(place));
      for (const Json* part : parts) {
        add_keys(*part, schema_keys);
      }
      if (const auto seen = known_.find(parts); seen != known_.end() && seen->second == schema_keys) {
        return;  // Other files have already shown that the loader accepts all of these keys.
      }
      const std::set<std::string> known = keys_accepted_at(file.value, place, load_);
      for (const std::string& key : known) {
        EXPECT_TRUE(schema_keys.contains(key)) << file.path << place.to_string() << ": the loader accepts " << key;
      }
      if (!known.empty()) {
        schema_keys_.emplace(parts, std::pair(place.to_string(), schema_keys));
        known_[parts].insert(known.begin(), known.end());
      }
    });
  }

  /// Expects that the schema has no additional keys. A loader accepts some keys only together with others, but all
  /// files together show every key.
  void expect_no_other_keys() const {
    EXPECT_FALSE(schema_keys_.empty());
    for (const auto& [parts, schema_keys] : schema_keys_) {
      for (const std::string& key : schema_keys.second) {
        EXPECT_TRUE(known_.at(parts).contains(key)) << schema_keys.first << ": no loader accepts " << key;
      }
    }
  }

 private:
  Json schema_;
  std::function<void(const std::string&)> load_;
  using Parts = std::vector<const Json*>;  // Parts of the schema for one map.
  // Maps parts to an example of their place, and to their keys.
  std::map<Parts, std::pair<std::string, std::set<std::string>>> schema_keys_;
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

/// Returns files with parts that no shipped file has: wires from a file, a network inside a hardware file, ops of every
/// kind.
std::vector<ConfigFile> constructed_files() {
  const ConfigFile hardware = shipped("hardware/h100-sxm.yaml");
  const ConfigFile cluster =
      changed(shipped("clusters/dgx-h100-x2.yaml"), nlohmann::json::parse(R"({"network": {"fabric": "rails"}})"));
  std::vector<ConfigFile> files{
      cluster, changed(hardware, {{"nodes", 2}, {"network", cluster.value.at("network")}}),
      // A mistake elsewhere keeps the loader from opening the named file.
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

TEST(SchemaKeys, AreThoseThatTheLoaderOfEachMapAccepts) {
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
  const std::vector<ConfigFile> constructed = constructed_files();
  files.insert(files.end(), constructed.begin(), constructed.end());
  for (const auto& [kind, load] : loaders) {
    KeysOfKind keys(kind, load);
    for (const ConfigFile& file : files) {
      if (file.value.at("schema") == "commfuse." + kind + "/1" && !file.value.contains("extends")) {
        keys.compare(file);
      }
    }
    keys.expect_no_other_keys();
  }
}

}  // namespace
}  // namespace commfuse::test
