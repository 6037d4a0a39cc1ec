// SPDX-License-Identifier: Apache-2.0
#include "model/config/resolver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "model/config/meant.h"
#include "model/config_error.h"
#include "model/text/plain_text.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

constexpr std::string_view run_schema = "commfuse.run/1";
constexpr std::string_view variable_prefix = "COMMFUSE_";
/// Variables of this project that are not settings; the last one belongs to the tests.
constexpr std::array<std::string_view, 3> other_variables{"COMMFUSE_CONFIG_DIR", "COMMFUSE_CUDA_PLUGIN",
                                                          "COMMFUSE_RENEW_GOLDEN"};

std::string_view kind_in_words(YamlKind kind) {
  switch (kind) {
    case YamlKind::map: return "map";
    case YamlKind::list: return "list";
    case YamlKind::scalar:
    case YamlKind::null: break;
  }
  return "value";
}

std::string example_of(const Field& field) { return fmt::format("as in \"{}: {}\"", field.key, field.example); }

std::string unknown_key(std::string_view key) {
  if (is_group(key)) {
    return fmt::format("'{0}' is a group of settings; name one, as in {0}.name", key);
  }
  return fmt::format("unknown setting {}; {}", in_quotes(key), remedy_for_key(key));
}

/// Resolves each path in a value from a file against the file's folder; leaves any other string unchanged.
std::string from_folder_of(const std::string& file, const Field& field, std::string_view text) {
  if (field.type == FieldType::names && text.find(',') != std::string_view::npos) {
    std::vector<std::string> names;
    for (const std::string_view name : split_list(text)) {
      names.push_back(from_folder_of(file, field, name));
    }
    return fmt::format("{}", fmt::join(names, ","));
  }
  if (field.type != FieldType::name && field.type != FieldType::names) {
    return std::string(text);
  }
  std::string path = beside_file(file, field.catalogue, text);
  std::error_code error;
  const bool is_id = field.catalogue == Catalogue::models && is_hf_id(text) && !std::filesystem::exists(path, error);
  return is_id ? std::string(text) : path;
}

/// Returns "path:line:col" of an entry's key.
std::string place_of(const YamlFile& file, const YamlValue::Field& entry) {
  return fmt::format("{}:{}:{}", file.path(), entry.place.line, entry.place.column);
}

/// Walks one map of settings and stores every value.
class MapReader {
 public:
  using Put = std::function<void(const Field&, const Setting&)>;
  MapReader(YamlFile& file, Resolver& resolver, Put put) : file_(file), resolver_(resolver), put_(std::move(put)) {}

  void read(const YamlValue& map, const std::string& prefix, std::string_view skipped = "") {
    for (const YamlValue::Field& entry : map.fields()) {
      const std::string key = prefix + entry.key;
      if (key == skipped) {
        continue;
      }
      std::string refused;
      if (const Field* field = resolver_.field_of_key(key, place_of(file_, entry), refused)) {
        put(*field, entry);
      } else if (!refused.empty()) {
        file_.mistake(entry.place, refused);
      } else if (is_group(key)) {
        descend(key, entry);
      } else {
        note_unknown(prefix, entry);
      }
    }
  }

 private:
  void put(const Field& field, const YamlValue::Field& entry) {
    const auto [first, is_new] = seen_.emplace(field.key, entry.place.line);
    if (!is_new) {
      file_.mistake(entry.place,
                    fmt::format("'{}' was already given on line {}; keep one of them", field.key, first->second));
      return;
    }
    if (const std::optional<Setting> setting = read_setting(file_, field, entry.value)) {
      put_(field, *setting);
    }
  }

  void descend(const std::string& key, const YamlValue::Field& entry) {
    if (entry.value.kind() == YamlKind::map) {
      read(entry.value, key + ".");
      return;
    }
    file_.mistake(entry.value.place(),
                  fmt::format("'{0}' is a group of settings; write them below it, as in \"{0}: {{name: all}}\"", key));
  }

  void note_unknown(const std::string& prefix, const YamlValue::Field& entry) {
    if (file_.is_full()) {
      file_.mistake(entry.place, "unknown setting");  // counted, not shown
      return;
    }
    if (prefix.empty()) {
      file_.mistake(entry.place, unknown_key(entry.key));
      return;
    }
    std::vector<std::string_view> known;
    for (const Field& field : run_fields()) {
      if (field.key.substr(0, prefix.size()) == prefix) {
        known.push_back(field.key.substr(prefix.size()));
      }
    }
    file_.mistake(entry.place,
                  fmt::format("unknown setting {} in '{}'; {}", in_quotes(entry.key),
                              prefix.substr(0, prefix.size() - 1), remedy_for(entry.key, known, "settings")));
  }

  YamlFile& file_;
  Resolver& resolver_;
  Put put_;
  std::map<std::string_view, int> seen_;
};

MapReader::Put putting_into(Settings& settings) {
  return [&settings](const Field& field, const Setting& setting) { settings.put(field, setting); };
}

/// Returns "all" or "serial,sliced" from a list of words; nullopt when an item is not a word.
std::optional<std::string> joined(const YamlValue& list) {
  std::string text;
  for (const YamlValue& item : list.items()) {
    if (item.kind() != YamlKind::scalar) {
      return std::nullopt;
    }
    text += (text.empty() ? "" : ",") + item.text();
  }
  return text;
}

void require_run_schema(const YamlValue& top) {
  for (const YamlValue::Field& entry : top.fields()) {
    if (entry.key == "schema" && entry.value.text() != run_schema) {
      throw ConfigError(fmt::format("{}: schema is {}, but '{}' is required here; give a file of that kind",
                                    entry.value.where(), in_quotes(entry.value.text()), run_schema));
    }
  }
}

const Field* field_of_variable(std::string_view name) {
  const auto fields = run_fields();
  const auto entry =
      std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return variable_of(field) == name; });
  return entry == fields.end() ? nullptr : &*entry;
}

std::string unknown_variable(std::string_view name) {
  const std::string word = lowercase(name.substr(variable_prefix.size()));
  std::string flag = word;
  std::ranges::replace(flag, '_', '-');
  for (const std::string& called : {word, flag}) {
    if (const Field* const field = field_called(called)) {
      return fmt::format("unknown environment variable {}; did you mean '{}'?", in_quotes(name), variable_of(*field));
    }
  }
  std::vector<std::string> names{std::string(other_variables.front())};
  for (const Field& field : run_fields()) {
    names.push_back(variable_of(field));
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  return fmt::format("unknown environment variable {}; {}", in_quotes(name), remedy_for(name, known, "variables"));
}

/// Returns the flag as the user wrote it, shortened to fit one line.
std::string quoted_flag(std::string_view flag, std::string_view text) {
  const std::string quoted = in_quotes(text);
  return fmt::format("{} {}", flag, std::string_view(quoted).substr(1, quoted.size() - 2));
}

}  // namespace

std::optional<Setting> read_setting(YamlFile& file, const Field& field, std::string_view text, const YamlValue& place) {
  const std::string value = meant(field, from_folder_of(file.path(), field, text));
  if (const std::optional<std::string> mistake = mistake_in(field, value)) {
    file.mistake(place.place(), *mistake);
    return std::nullopt;
  }
  return Setting{value, {Source::file, place.where()}};
}

std::optional<Setting> read_setting(YamlFile& file, const Field& field, const YamlValue& value) {
  if (value.kind() == YamlKind::null) {
    file.mistake(value.place(), fmt::format("'{}' has no value; write one, {}", field.key, example_of(field)));
    return std::nullopt;
  }
  if (value.kind() == YamlKind::list && field.type == FieldType::choices) {
    if (const std::optional<std::string> text = joined(value)) {
      return read_setting(file, field, *text, value);
    }
  }
  if (value.kind() != YamlKind::scalar) {
    const std::string_view hint = value.kind() == YamlKind::list ? " (a sweep varies it under 'axes')" : "";
    file.mistake(value.place(), fmt::format("'{}' is a {}; write one value, {}{}", field.key,
                                            kind_in_words(value.kind()), example_of(field), hint));
    return std::nullopt;
  }
  return read_setting(file, field, value.text(), value);
}

void Resolver::noting(const std::function<void()>& read) {
  try {
    read();
  } catch (const ConfigError& error) {
    mistake(error.what());
  }
}

void Resolver::read_file(const std::string& path) {
  noting([&] {
    YamlFile file(path);
    require_run_schema(file.top());
    MapReader(file, *this, putting_into(settings_)).read(file.top(), "", "schema");
    file.finish();
  });
}

void Resolver::read_map(YamlFile& file, const YamlValue& map) {
  MapReader(file, *this, putting_into(settings_)).read(map, "");
}

const Field* Resolver::field_of_key(std::string_view key, std::string_view where, std::string& refused) {
  if (const Field* const field = find_field(key)) {
    return field;
  }
  const std::optional<FormerName> former = renames_->key(key);
  if (former && former->is_accepted) {
    warn(fmt::format("{}: {}", where, former->sentence));
    return find_field(former->now);
  }
  refused = former ? former->sentence : "";
  return nullptr;
}

void Resolver::warn(std::string sentence) {
  if (std::find(warnings_.begin(), warnings_.end(), sentence) == warnings_.end()) {
    warnings_.push_back(std::move(sentence));
  }
}

void Resolver::read_environment(std::span<const std::string> variables) {
  for (const std::string& variable : variables) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    const std::string_view value = std::string_view(variable).substr(std::min(name.size() + 1, variable.size()));
    const bool is_ours = name.substr(0, variable_prefix.size()) == variable_prefix;
    if (!is_ours || value.empty() ||
        std::find(other_variables.begin(), other_variables.end(), name) != other_variables.end()) {
      continue;
    }
    const std::optional<FormerName> former = renames_->variable(name);
    if (const Field* field = field_of_variable(name)) {
      put(*field, value, {Source::environment, std::string(name)});
    } else if (former && former->is_accepted) {
      warn(former->sentence);
      put(*find_field(former->now), value, {Source::environment, std::string(name)});
    } else if (former) {
      mistake(former->sentence);
    } else {
      mistake(unknown_variable(name));
    }
  }
}

void Resolver::read_set(std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string where = quoted_flag("--set", assignment);
  if (equals == std::string_view::npos) {
    mistake(fmt::format("{}: '=' is missing; write a setting and its value, as in --set seq=8K", where));
    return;
  }
  const std::string_view key = assignment.substr(0, equals);
  std::string refused;
  const Field* field = field_of_key(key, where, refused);
  field = field == nullptr && refused.empty() ? field_meant(key) : field;
  if (field != nullptr) {
    put(*field, assignment.substr(equals + 1), {Source::set, where});
  } else {
    mistake(fmt::format("{}: {}", where, refused.empty() ? unknown_key(key) : refused));
  }
}

void Resolver::read_flag(const Field& field, std::string_view text) {
  put(field, text, {Source::flag, fmt::format("--{}", field.flag)});
}

Settings Resolver::finish() {
  for (const std::string& warning : warnings_) {
    std::fputs((with_escapes(warning, "\t") + "\n").c_str(), stderr);
  }
  if (!mistakes_.empty()) {
    throw ConfigError(fmt::format("{}", fmt::join(mistakes_, "\n")));
  }
  return settings_;
}

void Resolver::put(const Field& field, std::string_view text, Origin origin) {
  std::string value = meant(field, text);
  if (const std::optional<std::string> wrong = mistake_in(field, value)) {
    mistake(fmt::format("{}: {}", origin.where, *wrong));
    return;
  }
  settings_.put(field, {std::move(value), std::move(origin)});
}

std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    variables.emplace_back(*variable);
  }
  std::sort(variables.begin(), variables.end());
  return variables;
}

}  // namespace commfuse
