// SPDX-License-Identifier: Apache-2.0
// Reads YAML files from strangers. Mistakes are collected, and finish() throws them all at once, so a reader goes
// straight through its fields and returns a value that needs no second check.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/hardware/parameter.h"
#include "model/text/yaml_document.h"
#include "model/units.h"

namespace commfuse {

class YamlMap;
class YamlValue;

/// What a number may be, both ends included.
template <class T>
struct Range {
  T least;
  T most;
};

inline constexpr Range<std::int64_t> positive_count{1, 1'000'000'000'000};

/// A file of at most 1 MiB, one document, a map at the top; no anchors, aliases, tags, merge keys or duplicate keys.
class YamlFile {
 public:
  /// Throws ConfigError (`path:line:col: sentence; remedy`) when it cannot be read or is no such YAML.
  explicit YamlFile(const std::filesystem::path& path);
  /// A text that is in no file. `name` stands for the path in messages.
  YamlFile(const std::string& name, const std::string& text);
  ~YamlFile();
  YamlFile(const YamlFile&) = delete;
  YamlFile& operator=(const YamlFile&) = delete;
  YamlFile(YamlFile&&) noexcept;
  YamlFile& operator=(YamlFile&&) noexcept;

  YamlMap root();
  YamlValue top();

  [[nodiscard]] const std::string& path() const;

  /// Takes from `base` what this file leaves out, maps field by field, but for the fields named in `own`: "name" of the
  /// top, "topology.kind" of a map in it that both have. What is wrong with such a field is told at `place`.
  void extend(const YamlFile& base, YamlPlace place, std::span<const std::string_view> own);

  /// Whether anything was wrong so far: rules that join several fields are worth checking only when each was right.
  bool has_mistakes() const;
  /// Whether more mistakes would not be shown: their sentences need no care.
  bool is_full() const;

  /// Notes a mistake: a sentence and, after "; ", the remedy.
  void mistake(const YamlPlace& place, const std::string& message);

  /// Throws ConfigError with the mistakes so far, in order of place, one a line (the first hundred, and how many more);
  /// keys nobody asked for are mistakes. Call it once, after all fields were read.
  void finish();

 private:
  friend class YamlMap;
  std::unique_ptr<YamlDocument> document_;
};

/// Anything in a file, for readers whose keys are no fixed list. Nothing is checked. Lives no longer than its YamlFile.
class YamlValue {
 public:
  [[nodiscard]] YamlKind kind() const;
  [[nodiscard]] const std::string& text() const;  ///< Of a scalar.
  [[nodiscard]] const YamlPlace& place() const;
  [[nodiscard]] YamlPlace text_place() const;          ///< Of the first character of a scalar's text.
  [[nodiscard]] std::string where() const;             ///< "path:line:col"
  [[nodiscard]] std::vector<YamlValue> items() const;  ///< Of a list.

  struct Field;
  [[nodiscard]] std::vector<Field> fields() const;  ///< Of a map, in the file's order.

 private:
  friend class YamlFile;
  friend class YamlMap;
  YamlValue(const YamlDocument* document, int node) : document_(document), node_(node) {}
  [[nodiscard]] const YamlNode& node() const;

  const YamlDocument* document_;
  int node_;
};

struct YamlValue::Field {
  std::string key;
  YamlPlace place;
  YamlValue value;
};

/// One map of a file. A field that is missing or wrong is noted as a mistake and read as a harmless value, which never
/// gets out because finish() throws. Lives no longer than its YamlFile.
class YamlMap {
 public:
  bool has(std::string_view key) const;
  std::vector<std::string> keys() const;

  /// Required fields. A quantity needs its unit; rates must be above 0.
  std::string text(std::string_view key, std::string_view example = "text");
  bool boolean(std::string_view key);
  std::int64_t count(std::string_view key, Range<std::int64_t> range = positive_count);  ///< "128K" is 131072.
  std::vector<std::int64_t> counts(std::string_view key, Range<std::int64_t> range = positive_count);  ///< A list.
  double number(std::string_view key, Range<double> range);
  Duration duration(std::string_view key);
  Bytes size(std::string_view key);
  BytesPerSecond bandwidth(std::string_view key);
  FlopsPerSecond compute_rate(std::string_view key);
  YamlMap map(std::string_view key);
  std::optional<YamlMap> optional_map(std::string_view key);
  std::optional<YamlValue> optional_value(std::string_view key);

  /// Required `{value: ..., error: 0.05, provenance: "fitted: table"}`; error may be left out (0). A duration is at
  /// most 1 s.
  Parameter<Duration> duration_parameter(std::string_view key);
  Parameter<BytesPerSecond> bandwidth_parameter(std::string_view key);
  Parameter<FlopsPerSecond> compute_rate_parameter(std::string_view key);
  Parameter<Bytes> size_parameter(std::string_view key);
  Parameter<double> number_parameter(std::string_view key, Range<double> range);
  Parameter<std::string> text_parameter(std::string_view key);
  Parameter<int> count_parameter(std::string_view key, Range<std::int64_t> range);

  /// Throws ConfigError at once unless the field `schema` is what this reader understands: nothing else would make
  /// sense.
  void schema(std::string_view expected);

  /// Notes a mistake at the value of `key` (at the map when there is none): a sentence and, after "; ", the remedy.
  void mistake(std::string_view key, const std::string& message);

 private:
  friend class YamlFile;
  YamlMap(YamlDocument* document, int node, std::string name);
  const YamlNode* find(std::string_view key);
  const YamlNode* require(std::string_view key, std::string_view example);
  const YamlNode* require_scalar(std::string_view key, std::string_view example);
  template <class T>
  T quantity(std::string_view key, std::string_view what, std::string_view example, T fallback,
             std::optional<T> (*parse)(std::string_view));
  template <class T, class Read>
  Parameter<T> parameter(std::string_view key, std::string_view example, Read read);

  YamlDocument* document_;
  int node_;          ///< Index in the document's nodes; -1 for a map that is missing, whose fields are not asked for.
  std::string name_;  ///< As in "link.peer"; empty at the top.
};

}  // namespace commfuse
