// SPDX-License-Identifier: Apache-2.0
#include "sim/schema/shape.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace commfuse::schema {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kinds{
    FileKind{"model", "commfuse.model/1", "A transformer's shape", model_shape},
    FileKind{"hardware", "commfuse.hardware/1", "One node: accelerators and their links", hardware_shape},
    FileKind{"cluster", "commfuse.cluster/1", "Equal nodes and the network that joins them", cluster_shape},
    FileKind{"jitter", "commfuse.jitter/1", "Jitter of op times", jitter_shape},
    FileKind{"faults", "commfuse.faults/1", "Faults during a run", faults_shape},
    FileKind{"lab", "commfuse.lab/1", "Lab workload for comparing the speed of simulators", lab_shape},
    FileKind{"implementation", "commfuse.implementation/1", "Implementation: kernels in use, and their costs",
             implementation_shape},
    FileKind{"framework", "commfuse.framework/1", "Framework: costs of a step in addition to its kernels",
             framework_shape},
    FileKind{"schedule", "commfuse.schedule/1", "Hand-written schedule", schedule_shape}};

constexpr const char* plain_number = R"(^[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)? ?)";

Shape quantity(const char* units) { return pattern(std::string(plain_number) + units + "$"); }

Json json_of(const Shape& shape);

/// Writes whole numbers as integers, without ".0".
Json limit(double value) {
  constexpr double exact = 1e15;
  const bool is_whole = value <= exact && value == static_cast<double>(static_cast<std::int64_t>(value));
  return is_whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

Json number_json(const Shape& shape, const char* type) {
  return {{"type", type}, {"minimum", limit(shape.least)}, {"maximum", limit(shape.largest)}};
}

Json map_json(const Shape& shape) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const ShapeKey& key : shape.keys) {
    Json value = json_of(key.shape);
    if (!key.doc.empty()) {
      value["description"] = key.doc;
    }
    properties[key.name] = std::move(value);
    if (key.required) {
      required.push_back(key.name);
    }
  }
  Json json{{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) {
    json["required"] = std::move(required);
  }
  return json;
}

Json choice_json(const Shape& shape) {
  Json shapes = Json::array();
  for (const Shape& part : shape.of) {
    shapes.push_back(json_of(part));
  }
  return {{"anyOf", std::move(shapes)}};
}

Json json_of(const Shape& shape) {
  switch (shape.kind) {
    case ShapeKind::text: return {{"type", "string"}, {"minLength", 1}};
    case ShapeKind::word: return {{"enum", shape.words}};
    case ShapeKind::pattern: return {{"type", "string"}, {"pattern", shape.pattern}};
    case ShapeKind::boolean: return {{"type", "boolean"}};
    case ShapeKind::count:
      return {{"anyOf",
               Json::array({number_json(shape, "integer"), Json{{"type", "string"}, {"pattern", "^[0-9.]+[KMG]?$"}}})}};
    case ShapeKind::number: return number_json(shape, "number");
    case ShapeKind::list: return {{"type", "array"}, {"items", json_of(shape.of.front())}};
    case ShapeKind::map: return map_json(shape);
    case ShapeKind::table:
      return {{"type", "object"},
              {"patternProperties", {{shape.pattern, json_of(shape.of.front())}}},
              {"additionalProperties", false}};
    case ShapeKind::one_of: return choice_json(shape);
    case ShapeKind::anything: break;
  }
  return Json::object();
}

}  // namespace

std::span<const FileKind> file_kinds() { return kinds; }

Shape text() { return {.kind = ShapeKind::text}; }
Shape word(std::vector<std::string> words) { return {.kind = ShapeKind::word, .words = std::move(words)}; }
Shape pattern(std::string pattern) { return {.kind = ShapeKind::pattern, .pattern = std::move(pattern)}; }
Shape boolean() { return {.kind = ShapeKind::boolean}; }
Shape count(double least, double largest) { return {.kind = ShapeKind::count, .least = least, .largest = largest}; }
Shape number(double least, double largest) { return {.kind = ShapeKind::number, .least = least, .largest = largest}; }
Shape duration() { return quantity("(ps|ns|us|ms|s)"); }
Shape size() { return quantity("([KMGT]i?B?|kB|B)"); }
Shape bandwidth() { return quantity("([kMGT]?B|[KMG]iB|[MG]bit)/s"); }
Shape compute_rate() { return quantity("[MGTP]?FLOP/s"); }
Shape list(Shape item) { return {.kind = ShapeKind::list, .of = {std::move(item)}}; }
Shape map(std::vector<ShapeKey> keys) { return {.kind = ShapeKind::map, .keys = std::move(keys)}; }
Shape one_of(std::vector<Shape> shapes) { return {.kind = ShapeKind::one_of, .of = std::move(shapes)}; }

Shape table(std::string pattern, Shape value) {
  return {.kind = ShapeKind::table, .pattern = std::move(pattern), .of = {std::move(value)}};
}

Shape sourced(Shape value) {
  return map(
      {{"value", std::move(value)},
       optional({"error", number(0, 10), "Relative standard error"}),
       {"provenance", pattern("^(prior|published|fitted|measured): .+"), "Source of the value, as in 'prior: why'"}});
}

ShapeKey optional(ShapeKey key) {
  key.required = false;
  return key;
}

Shape partial(Shape shape) {
  for (ShapeKey& key : shape.keys) {
    key = optional({key.name, partial(std::move(key.shape)), key.doc});
  }
  for (Shape& part : shape.of) {
    part = partial(std::move(part));
  }
  return shape;
}

std::string to_json_schema(const Shape& shape) { return json_of(shape).dump(); }

}  // namespace commfuse::schema
