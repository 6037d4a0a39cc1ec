// SPDX-License-Identifier: Apache-2.0
#include "model/config/yaml_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "model/config_error.h"
#include "model/text/files.h"
#include "model/text/misread.h"
#include "model/text/plain_text.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "model/text/yaml_document.h"

namespace commfuse {

namespace {

constexpr std::size_t max_mistakes = 100;  // A file can hold 100,000 mistakes; readers stop early.
// Limits on rates, in bytes or FLOPs per second. They are far from any real machine and keep times in range.
constexpr double least_rate = 1.0;
constexpr double max_bandwidth = 1e18;
constexpr double max_compute_rate = 1e24;
constexpr Duration longest_parameter = std::chrono::seconds(1);  // A longer latency is a mistake in the unit.

/// Removes the mistake that `key` is missing, because the file misspells it: the misspelling counts only as an unknown
/// key.
void forget_missing(YamlDocument& document, int map, std::string_view key) {
  const auto is_same = [&](const YamlMistake& mistake) { return mistake.map == map && mistake.missing == key; };
  document.mistakes.erase(std::remove_if(document.mistakes.begin(), document.mistakes.end(), is_same),
                          document.mistakes.end());
}

/// Returns the key of the only map directly below `node` in which a reader requested `key`; empty if there is none, or
/// if there are several.
std::string_view map_with(const YamlDocument& document, const YamlNode& node, std::string_view key) {
  std::string_view name;
  for (const YamlField& field : node.fields) {
    const std::vector<std::string>& known = document.nodes[static_cast<std::size_t>(field.value)].known;
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      continue;
    }
    if (!name.empty()) {
      return {};
    }
    name = field.key;
  }
  return name;
}

/// Returns the remedy for a key that no reader requested.
std::string remedy_for_key(const YamlDocument& document, const YamlNode& node, std::string_view key,
                           std::span<const std::string_view> known) {
  const std::string_view below = nearest(key, known) ? std::string_view{} : map_with(document, node, key);
  return below.empty() ? remedy_for(key, known, "keys") : fmt::format("it belongs under '{}'", below);
}

/// Adds one mistake for each key that no reader requested, up to `max_mistakes`; returns how many more there are.
std::size_t note_unknown_keys(YamlDocument& document) {
  std::size_t unknown = 0;
  for (const YamlNode& node : document.nodes) {
    const std::vector<std::string_view> known(node.known.begin(), node.known.end());
    if (known.empty()) {
      continue;  // No reader entered this map, or it is not a map.
    }
    for (const YamlField& field : node.fields) {
      if (!field.asked && ++unknown <= max_mistakes) {
        if (const std::optional<std::string> suggestion = nearest(field.key, known)) {
          forget_missing(document, static_cast<int>(&node - document.nodes.data()), *suggestion);
        }
        document.mistakes.push_back({field.place, fmt::format("unknown key {}; {}", in_quotes(field.key),
                                                              remedy_for_key(document, node, field.key, known))});
      }
    }
  }
  return unknown - std::min(unknown, max_mistakes);
}

std::string example_of(std::string_view key, std::string_view value) {
  return fmt::format("as in \"{}: {}\"", key, value);
}

std::string with_unit(std::string_view example, std::string_view units) {
  return fmt::format("write a number and a unit{}, as in \"{}\"", units, example);
}

/// Returns the text without the line break that ends a YAML block.
std::string_view without_end(std::string_view text) {
  return text.substr(0, text.size() - (text.ends_with('\n') ? 1 : 0));
}

}  // namespace

YamlFile::YamlFile(const std::filesystem::path& path)
    : document_(std::make_unique<YamlDocument>(parse_yaml(path.string(), read_small_file(path.string())))) {}
YamlFile::YamlFile(const std::string& name, const std::string& text)
    : document_(std::make_unique<YamlDocument>(parse_yaml(name, text))) {}
YamlFile::~YamlFile() = default;
YamlFile::YamlFile(YamlFile&&) noexcept = default;
YamlFile& YamlFile::operator=(YamlFile&&) noexcept = default;

YamlMap YamlFile::root() { return YamlMap(document_.get(), 0, ""); }
YamlValue YamlFile::top() { return {document_.get(), 0}; }
int YamlFile::bases() const { return static_cast<int>(document_->bases.size()); }
YamlMap YamlFile::base_root(int level) {
  return YamlMap(&document_->bases.at(static_cast<std::size_t>(level) - 1), 0, "");
}

const std::string& YamlFile::path() const { return document_->path; }

void YamlFile::mistake(const YamlPlace& place, const std::string& message) {
  document_->mistakes.push_back({place, message});
}

void YamlFile::extend(const YamlFile& base, YamlPlace place, std::span<const std::string_view> own_keys) {
  graft(*document_, *base.document_, place, own_keys);
}

bool YamlFile::has_mistakes() const { return !document_->mistakes.empty(); }

bool YamlFile::is_full() const { return document_->mistakes.size() >= max_mistakes; }

void YamlFile::finish() {
  const std::size_t unlisted = note_unknown_keys(*document_);
  std::vector<YamlMistake>& mistakes = document_->mistakes;
  if (mistakes.empty()) {
    return;
  }
  std::stable_sort(mistakes.begin(), mistakes.end(), [](const YamlMistake& a, const YamlMistake& b) {
    return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
  });
  // Drops duplicates, because a reader that goes through a map more than once finds the same mistake again.
  std::set<std::tuple<int, int, std::string_view>> known;
  std::vector<YamlMistake> distinct;
  for (const YamlMistake& mistake : mistakes) {
    if (known.emplace(mistake.place.line, mistake.place.column, mistake.message).second) {
      distinct.push_back(mistake);
    }
  }
  mistakes = std::move(distinct);
  std::vector<std::string> lines;
  for (const YamlMistake& mistake : std::span(mistakes).first(std::min(mistakes.size(), max_mistakes))) {
    lines.push_back(at_place(document_->path, mistake.place, mistake.message));
  }
  if (const std::size_t more = mistakes.size() - lines.size() + unlisted; more > 0) {
    lines.push_back(fmt::format("{}: {} more {}; first correct those listed above", document_->path, more,
                                more == 1 ? "mistake" : "mistakes"));
  }
  throw ConfigError(fmt::format("{}", fmt::join(lines, "\n")));
}

const YamlNode& YamlValue::node() const { return document_->nodes[static_cast<std::size_t>(node_)]; }
YamlKind YamlValue::kind() const { return node().kind; }
const std::string& YamlValue::text() const { return node().text; }
const YamlPlace& YamlValue::place() const { return node().place; }

YamlPlace YamlValue::text_place() const { return {place().line, place().column + (node().quoted ? 1 : 0)}; }

std::string YamlValue::where() const { return fmt::format("{}:{}:{}", document_->path, place().line, place().column); }

std::vector<YamlValue> YamlValue::items() const {
  std::vector<YamlValue> values;
  for (const int item : node().items) {
    values.push_back({document_, item});
  }
  return values;
}

std::vector<YamlValue::Field> YamlValue::fields() const {
  std::vector<Field> fields;
  for (const YamlField& field : node().fields) {
    fields.push_back({field.key, field.place, {document_, field.value}});
  }
  return fields;
}

std::optional<YamlValue> field_of(const std::optional<YamlValue>& map, std::string_view key) {
  if (map && map->kind() == YamlKind::map) {
    for (const YamlValue::Field& field : map->fields()) {
      if (field.key == key) {
        return field.value;
      }
    }
  }
  return std::nullopt;
}

std::string text_in(const std::optional<YamlValue>& map, std::string_view key) {
  const std::optional<YamlValue> value = field_of(map, key);
  return value && value->kind() == YamlKind::scalar ? value->text() : std::string();
}

YamlMap::YamlMap(YamlDocument* document, int node, std::string name)
    : document_(document), node_(node), name_(std::move(name)) {}

bool YamlMap::has(std::string_view key) const {
  if (node_ < 0) {
    return false;
  }
  return find_field(document_->nodes[static_cast<std::size_t>(node_)], key) != nullptr;
}

std::vector<std::string> YamlMap::keys() const {
  std::vector<std::string> names;
  if (node_ >= 0) {
    for (const YamlField& field : document_->nodes[static_cast<std::size_t>(node_)].fields) {
      names.push_back(field.key);
    }
  }
  return names;
}

int YamlMap::level(std::string_view key) const {
  if (!has(key)) {
    return 0;
  }
  const auto node_at = [&](int node) -> YamlNode& { return document_->nodes[static_cast<std::size_t>(node)]; };
  YamlNode& value = node_at(find_field(node_at(node_), key)->value);
  const YamlField* const number = find_field(value, "value");
  return number == nullptr ? value.level : node_at(number->value).level;
}

std::string YamlMap::inherited_from(std::string_view key) const {
  const int at = level(key);
  return at == 0 ? "" : document_->bases[static_cast<std::size_t>(at) - 1].path;
}

std::string YamlMap::full_name(std::string_view key) const {
  return name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key);
}

const YamlNode* YamlMap::find(std::string_view key) {
  if (node_ < 0) {
    return nullptr;
  }
  YamlNode& map = document_->nodes[static_cast<std::size_t>(node_)];
  YamlField* const field = find_field(map, key);
  const bool is_new =  // The field's flag is quick to look up; readers may request a hundred thousand keys of one map.
      field != nullptr ? !field->asked : std::find(map.known.begin(), map.known.end(), key) == map.known.end();
  if (is_new) {
    map.known.emplace_back(key);
  }
  if (field == nullptr) {
    return nullptr;
  }
  field->asked = true;
  return &document_->nodes[static_cast<std::size_t>(field->value)];
}

const YamlNode* YamlMap::require(std::string_view key, std::string_view example) {
  const YamlNode* value = find(key);
  if (value == nullptr) {
    if (node_ >= 0) {
      const std::string where = name_.empty() ? "" : fmt::format(" in '{}'", name_);
      mistake("", fmt::format("missing key '{}'{}; add it, {}", key, where, example_of(key, example)));
      document_->mistakes.back().map = node_;
      document_->mistakes.back().missing = key;
    }
    return nullptr;
  }
  if (value->kind == YamlKind::null) {
    mistake(key, fmt::format("'{}' has no value; write one, {}", key, example_of(key, example)));
    return nullptr;
  }
  return value;
}

const YamlNode* YamlMap::require_scalar(std::string_view key, std::string_view example) {
  const YamlNode* value = require(key, example);
  if (value != nullptr && value->kind != YamlKind::scalar) {
    mistake(key, fmt::format("'{}' is a {}; write one value, {}", key, value->kind == YamlKind::map ? "map" : "list",
                             example_of(key, example)));
    return nullptr;
  }
  return value;
}

void YamlMap::mistake(std::string_view key, const std::string& message) {
  const YamlNode* value = key.empty() ? nullptr : find(key);
  if (value == nullptr && node_ >= 0) {
    value = &document_->nodes[static_cast<std::size_t>(node_)];
  }
  document_->mistakes.push_back({value == nullptr ? YamlPlace{} : value->place, message});
}

template <class T>
T YamlMap::quantity(std::string_view key, std::string_view what, std::string_view example, T fallback,
                    std::optional<T> (*parse)(std::string_view)) {
  const YamlNode* value = require_scalar(key, example);
  if (value == nullptr) {
    return fallback;
  }
  if (const std::optional<T> parsed = parse(value->text)) {
    return *parsed;
  }
  const bool too_long = std::is_same_v<T, Duration> && is_too_long(value->text);
  mistake(key, too_long ? fmt::format("{} is too long; write a time below 9.2e6 s", in_quotes(value->text))
                        : misread(value->text, what,
                                  with_unit(example, std::is_same_v<T, BytesPerSecond> ? " (GB/s, Gbit/s)" : "")));
  return fallback;
}

std::string YamlMap::text(std::string_view key, std::string_view example) {
  const YamlNode* value = require_scalar(key, example);
  if (value != nullptr && value->text.empty()) {
    mistake(key, fmt::format("'{}' is empty; write its text", key));
  } else if (value != nullptr && has_control_character(without_end(value->text), "\t")) {
    mistake(key, fmt::format("'{}' must be one line of plain text; remove control characters", key));
  } else if (value != nullptr && !is_utf8(value->text)) {
    mistake(key, fmt::format("'{}' is not UTF-8; save the file as UTF-8", key));
  }
  return value == nullptr ? "" : value->text;
}

bool YamlMap::boolean(std::string_view key) {
  const YamlNode* value = require_scalar(key, "true");
  if (value == nullptr || value->text == "true" || value->text == "false") {
    return value != nullptr && value->text == "true";
  }
  mistake(key, fmt::format("{} is neither true nor false; write true or false", in_quotes(value->text)));
  return false;
}

std::int64_t YamlMap::count(std::string_view key, Range<std::int64_t> range) {
  const std::string example = fmt::format("{}", std::clamp<std::int64_t>(8, range.least, range.most));
  const YamlNode* value = require_scalar(key, example);
  if (value == nullptr) {
    return range.least;
  }
  const std::optional<std::int64_t> parsed = parse_count(value->text);
  if (!parsed) {
    mistake(key, misread(value->text, "a whole number", fmt::format("write one, {}", example_of(key, example))));
    return range.least;
  }
  if (*parsed < range.least || *parsed > range.most) {
    mistake(key, fmt::format("'{}' is {}; choose {} to {}", key, *parsed, range.least, range.most));
    return range.least;
  }
  return *parsed;
}

std::vector<std::int64_t> YamlMap::counts(std::string_view key, Range<std::int64_t> range) {
  const YamlNode* value = require(key, "[8]");
  std::vector<std::int64_t> counts;
  if (value == nullptr) {
    return counts;
  }
  if (value->kind != YamlKind::list) {
    mistake(key,
            fmt::format("'{}' is not a list; write [{}]", key, std::clamp<std::int64_t>(8, range.least, range.most)));
    return counts;
  }
  for (const YamlValue& item : YamlValue(document_, static_cast<int>(value - document_->nodes.data())).items()) {
    const std::optional<std::int64_t> parsed =
        item.kind() == YamlKind::scalar ? parse_count(item.text()) : std::optional<std::int64_t>();
    if (!parsed || *parsed < range.least || *parsed > range.most) {
      mistake(key, fmt::format("an item of '{}' is not a whole number from {} to {}; write [{}]", key, range.least,
                               range.most, std::clamp<std::int64_t>(8, range.least, range.most)));
      return counts;
    }
    counts.push_back(*parsed);
  }
  return counts;
}

double YamlMap::number(std::string_view key, Range<double> range) {
  const YamlNode* value = require_scalar(key, "0.8");
  if (value == nullptr) {
    return range.least;
  }
  const std::optional<double> parsed = parse_number(value->text);
  if (!parsed) {
    mistake(key, misread(value->text, "a number", fmt::format("write one, {}", example_of(key, "0.8"))));
    return range.least;
  }
  if (*parsed < range.least || *parsed > range.most) {
    mistake(key, fmt::format("'{}' is {}; choose {} to {}", key, *parsed, range.least, range.most));
    return range.least;
  }
  return *parsed;
}

Duration YamlMap::duration(std::string_view key) {
  return quantity<Duration>(key, "a time", "5 us", Duration{0}, &parse_duration);
}

Bytes YamlMap::size(std::string_view key) { return quantity<Bytes>(key, "a size", "32 KiB", Bytes{0}, &parse_size); }

BytesPerSecond YamlMap::bandwidth(std::string_view key) {
  const BytesPerSecond rate = quantity<BytesPerSecond>(key, "a bandwidth", "450 GB/s", {1.0}, &parse_bandwidth);
  if (rate.value <= 0.0) {
    mistake(key, fmt::format("'{}' is 0 B/s; choose a bandwidth above 0", key));
  } else if (rate.value < least_rate || rate.value > max_bandwidth) {
    mistake(key, fmt::format("'{}' is {:g} B/s; choose {} to {:g} B/s", key, rate.value, least_rate, max_bandwidth));
  }
  return rate;
}

FlopsPerSecond YamlMap::compute_rate(std::string_view key) {
  const FlopsPerSecond rate =
      quantity<FlopsPerSecond>(key, "a compute rate", "989 TFLOP/s", {1.0}, &parse_compute_rate);
  if (rate.value <= 0.0) {
    mistake(key, fmt::format("'{}' is 0 FLOP/s; choose a compute rate above 0", key));
  } else if (rate.value < least_rate || rate.value > max_compute_rate) {
    mistake(key, fmt::format("'{}' is {:g} FLOP/s; choose {} to {:g} FLOP/s", key, rate.value, least_rate,
                             max_compute_rate));
  }
  return rate;
}

YamlMap YamlMap::map(std::string_view key) {
  const YamlNode* value = require(key, "{...}");
  if (value != nullptr && value->kind != YamlKind::map) {
    mistake(key, fmt::format("'{}' is not a map; write fields below it, as in \"{}: {{key: value}}\"", key, key));
    value = nullptr;
  }
  const int node = value == nullptr ? -1 : static_cast<int>(value - document_->nodes.data());
  return YamlMap(document_, node, full_name(key));
}

std::optional<YamlMap> YamlMap::optional_map(std::string_view key) {
  return find(key) == nullptr ? std::nullopt : std::optional(map(key));
}

std::optional<YamlValue> YamlMap::optional_value(std::string_view key) {
  const YamlNode* value = find(key);
  return value == nullptr ? std::nullopt
                          : std::optional(YamlValue(document_, static_cast<int>(value - document_->nodes.data())));
}

namespace {

/// Splits "fitted: table.csv" into its two halves; nullopt when the kind is unknown or the source is missing.
std::optional<std::pair<Provenance, std::string>> parse_provenance(std::string_view text) {
  const std::size_t colon = text.find(": ");
  const std::optional<Provenance> kind = provenance_named(text.substr(0, colon));
  if (!kind || colon == std::string_view::npos || colon + 2 == text.size()) {
    return std::nullopt;
  }
  return std::pair(*kind, std::string(text.substr(colon + 2)));
}

}  // namespace

std::pair<Provenance, std::string> YamlMap::provenance() {
  const YamlNode* text = require_scalar("provenance", "'prior: why'");
  if (text == nullptr) {
    return {};
  }
  if (has_control_character(text->text, "\t\n")) {
    mistake("provenance", "'provenance' must be plain text; remove control characters");
  } else if (!is_utf8(text->text)) {
    mistake("provenance", "'provenance' is not UTF-8; save the file as UTF-8");
  } else if (auto parsed = parse_provenance(text->text)) {
    return *std::move(parsed);
  } else {
    mistake("provenance",
            fmt::format("unknown provenance {}; write prior, published, fitted or measured, then ': ' and "
                        "the source",
                        in_quotes(text->text)));
  }
  return {};
}

template <class T, class Read>
Parameter<T> YamlMap::parameter(std::string_view key, std::string_view example, Read read) {
  Parameter<T> result;
  const YamlNode* node = require(key, fmt::format("{{value: {}, provenance: 'prior: why'}}", example));
  if (node != nullptr && node->kind != YamlKind::map) {
    const std::size_t known_mistakes = document_->mistakes.size();
    if (node->kind == YamlKind::scalar) {
      (void)read(*this, key);
    }
    const bool is_value = node->kind == YamlKind::scalar && document_->mistakes.size() == known_mistakes;
    const std::string shown = in_quotes(is_value ? node->text : std::string(example));
    mistake(key, fmt::format("'{}' has no provenance; write {{value: {}, provenance: 'prior: why'}}", key,
                             shown.substr(1, shown.size() - 2)));
    return result;
  }
  if (node == nullptr) {
    return result;
  }
  YamlMap fields = map(key);
  result.value = static_cast<T>(read(fields, "value"));
  if (fields.has("error")) {
    result.standard_error = fields.number("error", {0.0, 10.0});
  } else {
    fields.find("error");  // marks the key as known; it may be omitted
  }
  std::tie(result.provenance, result.source) = fields.provenance();
  return result;
}

Parameter<Duration> YamlMap::duration_parameter(std::string_view key) {
  return parameter<Duration>(key, "5 us", [](YamlMap& fields, std::string_view field) {
    const Duration value = fields.duration(field);
    if (value > longest_parameter) {
      fields.mistake(field, fmt::format("'{}' is {}; choose at most {}", field, format_duration(value),
                                        format_duration(longest_parameter)));
    }
    return value;
  });
}

Parameter<BytesPerSecond> YamlMap::bandwidth_parameter(std::string_view key) {
  return parameter<BytesPerSecond>(key, "450 GB/s",
                                   [](YamlMap& fields, std::string_view field) { return fields.bandwidth(field); });
}

Parameter<FlopsPerSecond> YamlMap::compute_rate_parameter(std::string_view key) {
  return parameter<FlopsPerSecond>(key, "989 TFLOP/s",
                                   [](YamlMap& fields, std::string_view field) { return fields.compute_rate(field); });
}

Parameter<Bytes> YamlMap::size_parameter(std::string_view key) {
  return parameter<Bytes>(key, "32 KiB", [](YamlMap& fields, std::string_view field) { return fields.size(field); });
}

Parameter<double> YamlMap::number_parameter(std::string_view key, Range<double> range) {
  return parameter<double>(key, "0.8",
                           [range](YamlMap& fields, std::string_view field) { return fields.number(field, range); });
}

Parameter<std::string> YamlMap::text_parameter(std::string_view key) {
  return parameter<std::string>(key, "kernels.txt",
                                [](YamlMap& fields, std::string_view field) { return fields.text(field); });
}

Parameter<int> YamlMap::count_parameter(std::string_view key, Range<std::int64_t> range) {
  return parameter<int>(key, "8",
                        [range](YamlMap& fields, std::string_view field) { return fields.count(field, range); });
}

void YamlMap::schema(std::string_view expected) {
  const YamlNode* value = require_scalar("schema", expected);
  if (value == nullptr) {
    const YamlMistake last = document_->mistakes.back();
    throw ConfigError(at_place(document_->path, last.place, last.message));
  }
  if (value->text != expected) {
    throw ConfigError(at_place(document_->path, value->place,
                               fmt::format("schema is {}, but '{}' is required here; give a file of that kind",
                                           in_quotes(value->text), expected)));
  }
}

}  // namespace commfuse
