// SPDX-License-Identifier: Apache-2.0
#include "model/formats/json_guard.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "model/config_error.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

using Json = nlohmann::json;

/// Handler for nlohmann's SAX parser.
class Guard {
 public:
  Guard(const std::string& path, const JsonRules& rules) : path_(path), rules_(rules) {}

  bool null() { return true; }
  bool boolean(bool /*value*/) { return true; }
  bool number_integer(Json::number_integer_t /*value*/) { return true; }
  bool number_unsigned(Json::number_unsigned_t /*value*/) { return true; }
  bool number_float(Json::number_float_t /*value*/, const std::string& /*text*/) { return true; }
  bool string(std::string& /*text*/) { return true; }
  bool binary(Json::binary_t& /*value*/) { return true; }
  bool start_object(std::size_t /*size*/) { return begin(); }
  bool start_array(std::size_t /*size*/) { return begin(); }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  bool key(std::string& text) {
    if (!keys_.back().insert(text).second) {
      throw ConfigError(fmt::format("{}: an object has the key {} twice; {}", path_, in_quotes(text), rules_.twice));
    }
    return true;
  }
  bool parse_error(std::size_t /*byte*/, const std::string& /*token*/, const Json::exception& /*error*/) {
    return false;
  }

 private:
  bool begin() {
    if (keys_.size() >= rules_.deepest) {
      throw ConfigError(fmt::format("{}: more than {} levels of nesting; {}", path_, rules_.deepest, rules_.too_deep));
    }
    keys_.emplace_back();
    return true;
  }
  bool end() {
    keys_.pop_back();
    return true;
  }

  const std::string& path_;
  const JsonRules& rules_;
  std::vector<std::set<std::string>> keys_;  // keys of the open objects; lists have none
};

}  // namespace

void guard_json(std::string_view text, const std::string& path, const JsonRules& rules) {
  Guard guard(path, rules);
  Json::sax_parse(text, &guard);
}

}  // namespace commfuse
