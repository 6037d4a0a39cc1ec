// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "model/build_info.h"
#include "model/config/catalogue.h"
#include "model/config/field.h"
#include "model/record/model_version.h"
#include "page/engine/answers.h"
#include "sim/commands/listing.h"

namespace commfuse::page {

namespace {

using nlohmann::json;

/// Returns each row's name, with its other cells in words: "80 GB memory, 3.35 HBM TB/s".
json names_in_words(const sim::Listing& listing) {
  json names = json::array();
  for (const std::vector<std::string>& row : listing.rows) {
    std::vector<std::string> words;
    for (std::size_t column = 1; column < row.size(); ++column) {
      if (!row[column].empty() && row[column] != "-") {
        words.push_back(listing.columns[column].is_text
                            ? row[column]
                            : fmt::format("{} {}", row[column], listing.columns[column].name));
      }
    }
    names.push_back({{"name", row.front()}, {"words", fmt::format("{}", fmt::join(words, ", "))}});
  }
  return names;
}

/// Returns the name of each implementation, the strategy whose schedule it implements, the GPUs on which it was
/// measured ("-": none), and a description.
json implementations() {
  json listed = json::array();
  for (const std::vector<std::string>& row : sim::listed_implementations().rows) {
    listed.push_back({{"name", row[0]}, {"implements", row[1]}, {"measured", row[3]}, {"words", row[4]}});
  }
  return listed;
}

json scopes() {
  json listed = names_in_words(sim::listed_scopes());
  for (json& scope : listed) {
    const std::string name = scope["name"];
    scope["whole"] = name == "step" || name == "prefill" || name == "decode";
  }
  return listed;
}

json fields() {
  json settings = json::array();
  for (const Field& field : run_fields()) {
    settings.push_back({{"key", field.key}, {"words", field.doc}, {"preset", field.preset}, {"choices", nullptr}});
    if (field.choices != nullptr) {
      settings.back()["choices"] = field.choices();
    }
  }
  return settings;
}

}  // namespace

json start() {
  return {{"version", build_info().version},
          {"model_version", model_version},
          {"models", names_in_words(sim::listed_models())},
          {"hardware", names_in_words(sim::listed_machines(Catalogue::nodes, false))},
          {"clusters", names_in_words(sim::listed_machines(Catalogue::hardware, true))},
          {"implementations", implementations()},
          {"scopes", scopes()},
          {"strategies", names_in_words(sim::listed_strategies())},
          {"fields", fields()}};
}

}  // namespace commfuse::page
