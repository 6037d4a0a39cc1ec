// SPDX-License-Identifier: Apache-2.0
// Reads untrusted YAML files. Mistakes are collected, and finish() throws them all together, so a reader goes straight
// through its fields and returns a value that needs no second check.
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

/// Closed range of a number.
template <class T>
struct Range {
  T least;
  T most;
};

inline constexpr Range<std::int64_t> positive_count{1, 1'000'000'000'000};

/// File of at most 1 MiB with one document and a map at the top; anchors, aliases, tags, merge keys and duplicate keys
/// are refused.
class YamlFile {
 public:
  /// Throws ConfigError (`path:line:col: sentence; remedy`) when the file cannot be read, is not YAML, or breaks these
  /// limits.
  explicit YamlFile(const std::filesystem::path& path);
  /// Reads a string that is not in a file. `name` replaces the path in messages.
  YamlFile(const std::string& name, const std::string& text);
  ~YamlFile();
  YamlFile(const YamlFile&) = delete;
  YamlFile& operator=(const YamlFile&) = delete;
  YamlFile(YamlFile&&) noexcept;
  YamlFile& operator=(YamlFile&&) noexcept;

  YamlMap root();
  YamlValue top();
  /// Returns the number of files that this file extends, directly and indirectly.
  [[nodiscard]] int bases() const;
  /// Returns the top of a file that this file extends, with the fields that the extended file itself inherits. Level 1
  /// is the file that `extends` names, level 2 the file that the file of level 1 extends, and so on. Requires 1 <=
  /// level <= bases().
  YamlMap base_root(int level);

  [[nodiscard]] const std::string& path() const;

  /// Takes from `base` the fields that this file omits, map by map. Fields named in `own_keys` are not taken: "name" at
  /// the top, "topology.kind" inside a map that both files have. A mistake in a taken field is reported at `place`.
  void extend(const YamlFile& base, YamlPlace place, std::span<const std::string_view> own_keys);

  /// Returns true if there are mistakes so far. Check rules about several fields only if each field is right.
  bool has_mistakes() const;
  /// Returns true if further mistakes would not be shown, so readers need not word them.
  bool is_full() const;

  /// Notes a mistake: a sentence and, after "; ", the remedy.
  void mistake(const YamlPlace& place, const std::string& message);

  /// Throws ConfigError with the mistakes so far, in order of their positions, one per line (the first hundred, and how
  /// many more). Keys that no reader requested are mistakes in maps from which a reader requested any. Call this once,
  /// after all fields have been read.
  void finish();

 private:
  friend class YamlMap;
  std::unique_ptr<YamlDocument> document_;
};

/// Unchecked value of any kind in a file, for readers without a fixed list of keys. Must not outlive its YamlFile.
class YamlValue {
 public:
  [[nodiscard]] YamlKind kind() const;
  [[nodiscard]] const std::string& text() const;  ///< text of a scalar
  [[nodiscard]] const YamlPlace& place() const;
  [[nodiscard]] YamlPlace text_place() const;          ///< place of the first character of a scalar's text
  [[nodiscard]] std::string where() const;             ///< "path:line:col"
  [[nodiscard]] std::vector<YamlValue> items() const;  ///< items of a list

  struct Field;
  [[nodiscard]] std::vector<Field> fields() const;  ///< fields of a map, in the file's order

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

/// Returns the field of a map; nullopt when the value is not a map or has no such field.
std::optional<YamlValue> field_of(const std::optional<YamlValue>& map, std::string_view key);
/// Returns the text of a field; empty when it is absent or not a string.
std::string text_in(const std::optional<YamlValue>& map, std::string_view key);

/// One map of a file. A field that is missing or wrong is noted as a mistake and read as a harmless value, which no
/// caller uses because finish() throws. Must not outlive its YamlFile.
class YamlMap {
 public:
  bool has(std::string_view key) const;
  std::vector<std::string> keys() const;
  /// Returns the level of the file that states a field, or the `value` of a parameter: 0 for this file and for a field
  /// that is absent, otherwise as in YamlFile::base_root.
  int level(std::string_view key) const;
  /// Returns the path of the file from which a field is inherited, or an empty string if this file states it.
  std::string inherited_from(std::string_view key) const;
  /// Returns the key with the maps around it, as in "link.peer.rate".
  std::string full_name(std::string_view key) const;

  /// Return fields, which are required except in optional_map() and optional_value(). A quantity needs its unit; rates
  /// must be above 0.
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

  /// Reads a required `{value: ..., error: 0.05, provenance: "fitted: table"}`; error may be omitted (0). A duration is
  /// at most 1 s.
  Parameter<Duration> duration_parameter(std::string_view key);
  Parameter<BytesPerSecond> bandwidth_parameter(std::string_view key);
  Parameter<FlopsPerSecond> compute_rate_parameter(std::string_view key);
  Parameter<Bytes> size_parameter(std::string_view key);
  Parameter<double> number_parameter(std::string_view key, Range<double> range);
  Parameter<std::string> text_parameter(std::string_view key);
  Parameter<int> count_parameter(std::string_view key, Range<std::int64_t> range);
  /// Reads the required field `provenance`, as in "fitted: table.csv": the kind and the source.
  std::pair<Provenance, std::string> provenance();

  /// Throws ConfigError immediately unless the field `schema` is `expected`, because the reader could not interpret any
  /// other field.
  void schema(std::string_view expected);

  /// Notes a mistake at the value of `key` (at the map when the key is absent): a sentence and, after "; ", the remedy.
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
  int node_;          ///< Index in the document's nodes; -1 for a missing map, whose fields are not required.
  std::string name_;  ///< path such as "link.peer"; empty at the top
};

}  // namespace commfuse
