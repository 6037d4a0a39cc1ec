// SPDX-License-Identifier: Apache-2.0
// Marks on an option, set where the option is added: whether the short help shows it, and what shells complete as its
// value.
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

/// Marks one of the dozen options that most users of a large command need; `--help` shows only these.
CLI::Option* usual(CLI::Option* option);
bool is_usual(const CLI::Option& option);

enum class OfferKind : std::uint8_t {
  nothing,   ///< a number, or any text
  words,     ///< words of a fixed list
  names,     ///< names of a catalogue, or files
  settings,  ///< KEY=VALUE of any setting
  axes,      ///< KEY=VALUES of settings that an axis may vary
  files,
  folders
};

/// Values that a shell completes.
struct Offer {
  OfferKind kind = OfferKind::nothing;
  std::vector<std::string> words;             ///< words of OfferKind::words
  Catalogue catalogue = Catalogue::hardware;  ///< catalogue of OfferKind::names
};

CLI::Option* offers(CLI::Option* option, const Offer& offer);
CLI::Option* offers_words(CLI::Option* option, const std::vector<std::string_view>& words);
CLI::Option* offers_names(CLI::Option* option, Catalogue catalogue);
/// Returns the offer set with offers(); without one, files or folders if the option's type is FILE, FOLDER or PATH.
Offer offer_of(CLI::Option& option);
Offer offer_of(const Field& field);

/// Returns the name with which completion scripts request a catalogue, such as "models"; empty for a catalogue without
/// a list.
std::string_view name_of(Catalogue catalogue);

/// Returns the names of the lists: the catalogues with a list, "settings" and "axes".
std::vector<std::string_view> completion_lists();
/// Returns the words of a list, one per line: the names of a catalogue; for "settings" and "axes", every KEY= with its
/// words or names. Throws ConfigError if `list` is not in completion_lists().
std::string completion_list(std::string_view list);

}  // namespace commfuse
