// SPDX-License-Identifier: Apache-2.0
// The allowed contents of each kind of YAML file, as data that `commfuse-sim schema` prints for editors. Loaders read
// such files and report mistakes in values; a test compares the keys of every map with the keys that its loader
// accepts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse::schema {

enum class ShapeKind : std::uint8_t {
  text,
  word,     ///< one of `words`
  pattern,  ///< a string that matches `pattern`
  boolean,
  count,   ///< a whole number from `least` to `largest`, or a string such as "8K" with a binary K, M or G
  number,  ///< from `least` to `largest`
  list,    ///< a list whose items have the shape of[0]
  map,     ///< with `keys`
  table,   ///< a map whose keys match `pattern`, and whose values have the shape of[0]
  one_of,  ///< a value of any shape in `of`
  anything
};

struct ShapeKey;

struct Shape {
  ShapeKind kind = ShapeKind::anything;
  std::vector<std::string> words{};
  std::string pattern{};
  double least = 0.0, largest = 1e15;
  std::vector<ShapeKey> keys;
  std::vector<Shape> of;
};

struct ShapeKey {
  std::string name;
  Shape shape;
  std::string doc{};
  bool required = true;
};

Shape text();
Shape word(std::vector<std::string> words);
Shape pattern(std::string pattern);
Shape boolean();
Shape count(double least = 0.0, double largest = 1e15);
Shape number(double least = 0.0, double largest = 1e15);
Shape duration();      ///< "5 us"
Shape size();          ///< "32 KiB"
Shape bandwidth();     ///< "450 GB/s"
Shape compute_rate();  ///< "989 TFLOP/s"
Shape list(Shape item);
Shape map(std::vector<ShapeKey> keys);
Shape table(std::string pattern, Shape value);
Shape one_of(std::vector<Shape> shapes);
/// Returns the shape of `{value: ..., error: 0.05, provenance: "fitted: table"}`.
Shape sourced(Shape value);
/// Returns the key as an optional key.
ShapeKey optional(ShapeKey key);
/// Returns a shape for a file that another file completes: no key is required, at any depth.
Shape partial(Shape shape);

/// A kind of file.
struct FileKind {
  std::string_view name;    ///< "model"
  std::string_view schema;  ///< "commfuse.model/1"
  std::string_view doc;
  Shape (*shape)();  ///< The keys of a file, without `schema`.
};

/// Returns all kinds except run, sweep and plan. A new kind needs a line in `kinds` in shape.cpp, and its shape.
std::span<const FileKind> file_kinds();

Shape model_shape();
Shape hardware_shape();
Shape cluster_shape();
Shape jitter_shape();
Shape faults_shape();
Shape lab_shape();
Shape implementation_shape();
Shape framework_shape();
Shape schedule_shape();

/// Returns the shape as JSON Schema, draft 2020-12.
std::string to_json_schema(const Shape& shape);

}  // namespace commfuse::schema
