// SPDX-License-Identifier: Apache-2.0
#include "model/config/hf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/config_error.h"
#include "model/formats/json_guard.h"
#include "model/json_budget.h"
#include "model/text/files.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

using Json = nlohmann::json;

constexpr std::size_t deepest_nesting = 32;
constexpr std::size_t largest_file = std::size_t{16} << 20U;

[[noreturn]] void refuse(const std::string& path, std::string_view message) {
  throw ConfigError(fmt::format("{}: {}", path, message));
}

/// Replaces NaN with 0 and the infinities with null outside strings, because Python writes them but JSON does not allow
/// them. Added blanks keep the length, so that positions in messages stay correct.
void replace_python_numbers(std::string& text) {
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      in_text = !in_text;
    } else if (in_text && text[i] == '\\') {
      ++i;
    } else if (!in_text) {
      for (const auto& [word, harmless] : {std::pair<std::string_view, std::string_view>{"-Infinity", "null     "},
                                           {"Infinity", "null    "},
                                           {"NaN", "0  "}}) {
        if (text.compare(i, word.size(), word) == 0) {
          text.replace(i, word.size(), harmless);
        }
      }
    }
  }
}

Json parse(const std::string& path) {
  std::string text = read_file(path, largest_file);
  if (text.size() > largest_file) {
    refuse(path, "the file is larger than 16 MiB; give the config.json of a model");
  }
  replace_python_numbers(text);
  Json json;
  try {
    guard_json(text, path,
               {.twice = "keep one of them", .deepest = deepest_nesting, .too_deep = "give a config.json of a model"});
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}: not valid JSON; correct it there, or fetch the file again", path,
                                  line_and_column(text, error.byte)));
  } catch (const Json::exception&) {  // a number that no double can hold
    refuse(path, "a number is out of range; correct it, or fetch the file again");
  }
  if (!json.is_object()) {
    refuse(path, "the top level is not an object; give a config.json of a model");
  }
  return json;
}

std::string_view kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::string: return "a string";
    case Json::value_t::boolean: return "true or false";
    case Json::value_t::array: return "a list";
    case Json::value_t::object: return "an object";
    default: return "a number";
  }
}

/// Returns an untrusted string as in_quotes() does, without the quotes.
std::string in_plain(const std::string& text) {
  const std::string quoted = in_quotes(text);
  return quoted.substr(1, quoted.size() - 2);
}

/// Keys under which multimodal files keep the language model.
constexpr std::array<std::string_view, 5> wrappers{"text_config", "llm_config", "language_config", "language_model",
                                                   "thinker_config"};
constexpr std::array<std::string_view, 4> widths{"hidden_size", "n_embd", "d_model", "n_embed"};

bool has_width(const Json& object) {
  return std::any_of(widths.begin(), widths.end(), [&](std::string_view key) { return object.contains(key); });
}

/// Returns the value of a key, or of "outer.inner".
const Json* find_in(const Json& object, std::string_view key) {
  const std::size_t dot = key.find('.');
  const auto entry = object.find(key.substr(0, dot));
  if (entry == object.end() || entry->is_null()) {
    return nullptr;
  }
  if (dot == std::string_view::npos) {
    return &*entry;
  }
  return entry->is_object() ? find_in(*entry, key.substr(dot + 1)) : nullptr;
}

}  // namespace

HfFile::HfFile(std::string path)
    : path_(std::move(path)), top_(std::make_unique<Json>(parse(path_))), shape_(top_.get()) {
  for (const Json* inside = top_.get(); !has_width(*inside);) {
    const auto* const wrapper = std::find_if(wrappers.begin(), wrappers.end(), [&](std::string_view key) {
      return inside->contains(key) && inside->at(std::string(key)).is_object();
    });
    if (wrapper == wrappers.end()) {
      break;
    }
    inside = &inside->at(std::string(*wrapper));
    shape_ = inside;
    wrapper_ += (wrapper_.empty() ? "" : ".") + std::string(*wrapper);
  }
}

HfFile::~HfFile() = default;

std::optional<HfFile::Field> HfFile::first_of(HfKeys keys) {
  std::optional<Field> first;
  for (const std::string_view key : keys) {
    requested_.insert(std::string(key.substr(0, key.find('.'))));
    const Json* value = find_in(*shape_, key);
    if (value != nullptr && !first) {
      first = Field{std::string(key), value};
    }
  }
  return first;
}

bool HfFile::has(std::string_view key) { return first_of({key}).has_value(); }

std::string HfFile::in_file(std::string_view key) const {
  return wrapper_.empty() ? fmt::format("'{}'", key) : fmt::format("'{}.{}'", wrapper_, key);
}

void HfFile::mistake(std::string_view message) { mistakes_.push_back(fmt::format("{}: {}", path_, message)); }

namespace {

/// A whole number in range, or the mistake in it.
struct Counted {
  std::int64_t value = 0;
  std::string wrong;
};

Counted count_in(const Json& value, Range<std::int64_t> range) {
  if (!value.is_number_integer()) {
    const bool is_short = value.is_number() || value.is_string();
    return {range.least, fmt::format("is {}; write a whole number",
                                     in_plain(is_short ? value.dump() : std::string(kind_of(value))))};
  }
  const bool is_huge =
      value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(range.most);
  const std::int64_t count = is_huge ? range.most : value.get<std::int64_t>();
  if (is_huge || count < range.least || count > range.most) {
    return {range.least, fmt::format("is {}; choose {} to {}", value.dump(), range.least, range.most)};
  }
  return {count, {}};
}

}  // namespace

std::optional<std::int64_t> HfFile::optional_count(HfKeys keys, Range<std::int64_t> range) {
  const std::optional<Field> field = first_of(keys);
  if (!field) {
    return std::nullopt;
  }
  const Counted count = count_in(*field->value, range);
  if (!count.wrong.empty()) {
    mistake(fmt::format("{} {}", in_file(field->key), count.wrong));
  }
  return count.value;
}

std::optional<std::vector<std::int64_t>> HfFile::optional_counts(HfKeys keys, Range<std::int64_t> range) {
  const std::optional<Field> field = first_of(keys);
  if (!field || !field->value->is_array()) {
    return std::nullopt;
  }
  std::vector<std::int64_t> counts;
  for (const Json& item : *field->value) {
    const Counted count = count_in(item, range);
    if (!count.wrong.empty()) {
      mistake(fmt::format("an item of {} {}", in_file(field->key), count.wrong));
      return std::vector<std::int64_t>{};
    }
    counts.push_back(count.value);
  }
  return counts;
}

std::int64_t HfFile::count(HfKeys keys, Range<std::int64_t> range) {
  if (const std::optional<std::int64_t> value = optional_count(keys, range)) {
    return *value;
  }
  mistake(fmt::format("{} is missing; add it, or give a config.json of a decoder", in_file(*keys.begin())));
  return range.least;
}

std::optional<bool> HfFile::optional_flag(HfKeys keys) {
  const std::optional<Field> field = first_of(keys);
  return field && field->value->is_boolean() ? std::optional(field->value->get<bool>()) : std::nullopt;
}

std::string HfFile::word(HfKeys keys) {
  const std::optional<Field> field = first_of(keys);
  return field && field->value->is_string() ? field->value->get<std::string>() : std::string();
}

std::vector<std::string> HfFile::words(HfKeys keys) {
  const std::optional<Field> field = first_of(keys);
  std::vector<std::string> words;
  if (field && field->value->is_array()) {
    for (const Json& item : *field->value) {
      words.push_back(item.is_string() ? item.get<std::string>() : std::string());
    }
  }
  return words;
}

const Json* HfFile::at_top(std::string_view key) {
  requested_at_top_.emplace(key);
  return find_in(*top_, key);
}

std::vector<std::string> HfFile::unrequested() const {
  std::vector<std::string> keys;
  const auto take = [&](const Json& object, const auto& requested, const std::string& prefix) {
    for (const auto& [key, value] : object.items()) {
      if (!requested.contains(key) && !value.is_null()) {
        keys.push_back(prefix + key);
      }
    }
  };
  std::set<std::string, std::less<>> at_top = requested_at_top_;
  if (shape_ == top_.get()) {
    at_top.insert(requested_.begin(), requested_.end());
  } else {
    take(*shape_, requested_, wrapper_ + ".");
    at_top.insert(wrapper_.substr(0, wrapper_.find('.')));
  }
  take(*top_, at_top, "");
  return keys;
}

void HfFile::finish() const {
  if (!mistakes_.empty()) {
    throw ConfigError(fmt::format("{}", fmt::join(mistakes_, "\n")));
  }
}

}  // namespace commfuse
