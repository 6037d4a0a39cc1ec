// SPDX-License-Identifier: Apache-2.0
#include "model/config/option_marks.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "model/config_error.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

constexpr std::array catalogue_names{
    std::pair("models", Catalogue::models),        std::pair("hardware", Catalogue::hardware),
    std::pair("schedules", Catalogue::schedules),  std::pair("jitter", Catalogue::jitter),
    std::pair("faults", Catalogue::faults),        std::pair("plans", Catalogue::plans),
    std::pair("sweeps", Catalogue::sweeps),        std::pair("implementations", Catalogue::implementations),
    std::pair("frameworks", Catalogue::frameworks)};
constexpr std::array kind_names{std::pair("words", OfferKind::words),       std::pair("names", OfferKind::names),
                                std::pair("settings", OfferKind::settings), std::pair("axes", OfferKind::axes),
                                std::pair("files", OfferKind::files),       std::pair("folders", OfferKind::folders)};

/// CLI11 cannot store data of this program with an option, except in the name of a check. The check that offers() adds
/// accepts everything, and its name holds the offer: "offer words table,json".
constexpr std::string_view mark = "offer ";

std::string text_of(const Offer& offer) {
  const auto* const kind =
      std::find_if(kind_names.begin(), kind_names.end(), [&](const auto& entry) { return entry.second == offer.kind; });
  const std::string words = offer.kind == OfferKind::names ? std::string(name_of(offer.catalogue))
                                                           : fmt::format("{}", fmt::join(offer.words, ","));
  return fmt::format("{}{} {}", mark, kind->first, words);
}

/// Parses the text. Requires `text` to be an output of text_of().
Offer parsed(std::string_view text) {
  text.remove_prefix(mark.size());
  const std::string_view word = text.substr(0, text.find(' '));
  const std::string_view rest = text.substr(word.size() + 1);
  Offer offer;
  for (const auto& [name, kind] : kind_names) {
    offer.kind = word == name ? kind : offer.kind;
  }
  for (const auto& [name, catalogue] : catalogue_names) {
    offer.catalogue = offer.kind == OfferKind::names && rest == name ? catalogue : offer.catalogue;
  }
  if (offer.kind == OfferKind::words) {
    for (const std::string_view offered : split_list(rest)) {
      offer.words.emplace_back(offered);
    }
  }
  return offer;
}

std::optional<Offer> marked(CLI::Option& option) {
  try {
    for (int i = 0;; ++i) {
      if (const std::string& name = option.get_validator(i)->get_name(); name.starts_with(mark)) {
        return parsed(name);
      }
    }
  } catch (const CLI::OptionNotFound&) {  // CLI11 does not report how many checks an option has.
    return std::nullopt;
  }
}

/// Returns the names that need no quotes in a shell.
std::vector<std::string> typeable_names(Catalogue catalogue) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+@";
  std::vector<std::string> names = known_names(catalogue);
  std::erase_if(names, [&](const std::string& name) { return name.find_first_not_of(plain) != std::string::npos; });
  return names;
}

/// Returns "strategy.name=serial", or "seq=" when there is no list.
std::string lines_of(const Field& field) {
  const Offer offer = offer_of(field);
  std::string lines;
  for (const std::string& word : offer.kind == OfferKind::names ? typeable_names(offer.catalogue) : offer.words) {
    lines += fmt::format("{}={}\n", field.key, word);
  }
  return lines.empty() ? fmt::format("{}=\n", field.key) : lines;
}

}  // namespace

CLI::Option* usual(CLI::Option* option) {
  return option->configurable(false);  // hides it from CLI11's own settings files, which this project does not use
}

bool is_usual(const CLI::Option& option) { return !option.get_configurable(); }

CLI::Option* offers(CLI::Option* option, const Offer& offer) {
  return offer.kind == OfferKind::nothing ? option : option->check(CLI::Validator(), text_of(offer));
}

CLI::Option* offers_words(CLI::Option* option, const std::vector<std::string_view>& words) {
  return offers(option, {.kind = OfferKind::words, .words = {words.begin(), words.end()}});
}

CLI::Option* offers_names(CLI::Option* option, Catalogue catalogue) {
  return offers(option, {.kind = OfferKind::names, .words = {}, .catalogue = catalogue});
}

Offer offer_of(CLI::Option& option) {
  if (std::optional<Offer> offer = marked(option)) {
    return *std::move(offer);
  }
  const std::string type = option.get_type_name();
  const bool is_file = type == "FILE" || type == "PATH";
  return {.kind = is_file ? OfferKind::files : type == "FOLDER" ? OfferKind::folders : OfferKind::nothing};
}

Offer offer_of(const Field& field) {
  if (field.type == FieldType::name || field.type == FieldType::names) {
    return {.kind = OfferKind::names, .words = {}, .catalogue = field.catalogue};
  }
  if (field.choices == nullptr) {
    return {};
  }
  const std::vector<std::string_view> words = field.choices();
  return {.kind = OfferKind::words, .words = {words.begin(), words.end()}};
}

std::string_view name_of(Catalogue catalogue) {
  const auto* const named = std::find_if(catalogue_names.begin(), catalogue_names.end(),
                                         [&](const auto& entry) { return entry.second == catalogue; });
  return named == catalogue_names.end() ? std::string_view{} : named->first;
}

std::vector<std::string_view> completion_lists() {
  std::vector<std::string_view> lists{"settings", "axes"};
  for (const auto& [name, catalogue] : catalogue_names) {
    lists.emplace_back(name);
  }
  return lists;
}

std::string completion_list(std::string_view list) {
  for (const auto& [name, catalogue] : catalogue_names) {
    if (list == name) {
      return fmt::format("{}\n", fmt::join(typeable_names(catalogue), "\n"));
    }
  }
  if (list != "settings" && list != "axes") {
    throw ConfigError(
        fmt::format("unknown list {}; {}", in_quotes(list), remedy_for(list, completion_lists(), "lists")));
  }
  std::string lines;
  for (const Field& field : run_fields()) {
    lines += list == "settings" || field.of_point ? lines_of(field) : "";
  }
  return lines;
}

}  // namespace commfuse
