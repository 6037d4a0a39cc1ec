// SPDX-License-Identifier: Apache-2.0
// What is said of an option beside its name and its description, where it is added: whether the short help shows it,
// and what shells offer as its value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/field.h"

namespace CLI {
class Option;
}

namespace commfuse {

/// Marks one of the dozen options of a large command that most people need: `--help` shows those alone.
CLI::Option* usual(CLI::Option* option);
bool is_usual(const CLI::Option& option);

enum class OfferKind : std::uint8_t {
  nothing,   ///< A number, or any text.
  words,     ///< Some of a fixed list.
  names,     ///< Of a catalogue, or files.
  settings,  ///< KEY=VALUE of any setting.
  axes,      ///< KEY=VALUES of settings that an axis may vary.
  files,
  folders
};

/// What a shell offers for a value.
struct Offer {
  OfferKind kind = OfferKind::nothing;
  std::vector<std::string> words;             ///< Of `words`.
  Catalogue catalogue = Catalogue::hardware;  ///< Of `names`.
};

CLI::Option* offers(CLI::Option* option, const Offer& offer);
CLI::Option* offers_words(CLI::Option* option, const std::vector<std::string_view>& words);
CLI::Option* offers_names(CLI::Option* option, Catalogue catalogue);
/// What was said of the option; else files or folders where its type is FILE, FOLDER or PATH.
Offer offer_of(CLI::Option& option);
Offer offer_of(const Field& field);

/// "models": a catalogue as completion scripts ask for it. Empty for those that have no name of their own.
std::string_view name_of(Catalogue catalogue);

/// Their names: of the catalogues, "settings" and "axes".
std::vector<std::string_view> completion_lists();
/// What may be typed, one a line: the names of a catalogue by that name; "settings" and "axes": every KEY= with its
/// words or names. Throws ConfigError for another list.
std::string completion_list(std::string_view list);

}  // namespace commfuse
