// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "model/build_info.h"
#include "model/config/catalogue.h"
#include "model/config/field.h"
#include "model/record/result.h"
#include "page/engine/answers.h"
#include "sim/commands/listing.h"

namespace commfuse::page {

namespace {

using nlohmann::json;

/// The name in every row, with its other cells as words: "80 GB memory, 3.35 HBM TB/s".
json names_in_words(const sim::Listing& listing) {
  json all = json::array();
  for (const std::vector<std::string>& row : listing.rows) {
    std::vector<std::string> words;
    for (std::size_t column = 1; column < row.size(); ++column) {
      if (!row[column].empty() && row[column] != "-") {
        words.push_back(listing.columns[column].is_text
                            ? row[column]
                            : fmt::format("{} {}", row[column], listing.columns[column].name));
      }
    }
    all.push_back({{"name", row.front()}, {"words", fmt::format("{}", fmt::join(words, ", "))}});
  }
  return all;
}

/// Names each, the strategy whose schedule it realises, GPUs on which it was measured ("-": none), and what it does.
json implementations() {
  json all = json::array();
  for (const std::vector<std::string>& row : sim::listed_implementations().rows) {
    all.push_back({{"name", row[0]}, {"implements", row[1]}, {"measured", row[3]}, {"words", row[4]}});
  }
  return all;
}

json scopes() {
  json all = names_in_words(sim::listed_scopes());
  for (json& scope : all) {
    const std::string name = scope["name"];
    scope["whole"] = name == "step" || name == "prefill" || name == "decode";
  }
  return all;
}

json fields() {
  json all = json::array();
  for (const Field& field : run_fields()) {
    all.push_back({{"key", field.key}, {"words", field.doc}, {"preset", field.preset}, {"choices", nullptr}});
    if (field.choices != nullptr) {
      all.back()["choices"] = field.choices();
    }
  }
  return all;
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
