// SPDX-License-Identifier: Apache-2.0
// Describes a setting of a run next to the struct that holds it: key, flag, words, limits, and the way it fills its
// member. The table of all settings (model/config/field.h) consists of these descriptions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/describe/choice_words.h"
#include "model/enum_set.h"
#include "model/text/quantity.h"

namespace commfuse {

/// Kinds of files that are found by name (model/config/catalogue.h).
enum class Catalogue : std::uint8_t {
  models,
  hardware,  ///< searched in hardware/, then in clusters/
  nodes,     ///< searched in hardware/ only
  schedules,
  jitter,
  faults,
  plans,
  sweeps,
  implementations,
  frameworks,
};

enum class FieldType : std::uint8_t {
  name,       ///< name in a catalogue, or a path
  names,      ///< names separated by commas; "all" and "none" must stand alone
  choice,     ///< one word of `choices`
  choices,    ///< words separated by commas; the first choice, "all", means every word
  count,      ///< whole number with binary K, M and G
  bandwidth,  ///< bandwidth of a link: "x2" of its own rate, or "450 GB/s"
  share,      ///< "2%" or 0.02; `least` and `most` are percent
  amount      ///< number, as in "2.80" or "3M", with powers of 1000
};

/// Meaning of `a..b` on an axis when no step is given.
enum class Growth : std::uint8_t { doubles, by_one };

/// Kinds of work, which differ in the settings that they use.
enum class Use : std::uint8_t {
  layer,     ///< simulates a scope of one layer
  step,      ///< simulates a training step of a whole model
  prefill,   ///< simulates a prefill of a whole model
  decode,    ///< simulates a decoding step of a whole model
  tune,      ///< searches for the best layout of a training step
  plan,      ///< evaluates a plan file of a training run
  lab,       ///< simulates a workload of configs/lab
  measure,   ///< runs a scope of one layer on hardware
  schedule,  ///< builds the schedules of a scope
  price      ///< prices a schedule after building it
};
using Uses = EnumSet<Use>;

/// Kind of value that a setting holds, and the function that stores the value in an Owner.
template <class Owner>
struct SettingValue {
  FieldType type = FieldType::choice;
  std::vector<std::string_view> (*choices)() = nullptr;   ///< words of a choice
  void (*put)(std::string_view, Owner& owner) = nullptr;  ///< Sets the member. Requires a valid value.
};

template <class Owner>
struct SettingEntry {
  std::string_view key;      ///< "strategy.slices": path in nested YAML maps
  std::string_view flag;     ///< "slices", without the dashes
  char letter = '\0';        ///< short flag, 'j' for -j
  std::string_view group;    ///< heading in --help
  std::string_view doc;      ///< description, one line
  std::string_view preset;   ///< the default as the user would write it; empty when there is none
  std::string_view example;  ///< example value

  Uses uses;  ///< Work that uses the setting; other work refuses any value but the default.

  FieldType type = FieldType::choice;
  Catalogue catalogue = Catalogue::models;               ///< catalogue that holds the name
  std::vector<std::string_view> (*choices)() = nullptr;  ///< words of a choice
  std::string_view noun = "choice", nouns = "choices";   ///< for messages: "unknown dtype 'fp64'; known dtypes: ..."
  std::int64_t least = 1, most = 1;                      ///< limits of a count or an amount, or of a share in percent
  std::string_view unit;                                 ///< unit of a count, in words: "tokens"; may be empty
  Growth growth = Growth::doubles;                       ///< default steps of an axis of counts
  bool of_point = true;                                  ///< false when it changes no result and so cannot be an axis
  bool is_usual = false;                                 ///< Shown among the few flags of the short help.

  void (*put)(std::string_view, Owner& owner) = nullptr;  ///< Sets the member, see SettingValue.

  /// Returns a copy of this setting that fills the member of `value`.
  [[nodiscard]] constexpr SettingEntry fills(const SettingValue<Owner>& value) const {
    SettingEntry entry = *this;
    entry.type = value.type;
    entry.choices = value.choices;
    entry.put = value.put;
    return entry;
  }
  /// Returns a copy of this setting for `Other`, a struct that holds the owner; `other_put` sets the member.
  template <class Other>
  [[nodiscard]] constexpr SettingEntry<Other> of(void (*other_put)(std::string_view, Other& other)) const {
    return {.key = key,
            .flag = flag,
            .letter = letter,
            .group = group,
            .doc = doc,
            .preset = preset,
            .example = example,
            .uses = uses,
            .type = type,
            .catalogue = catalogue,
            .choices = choices,
            .noun = noun,
            .nouns = nouns,
            .least = least,
            .most = most,
            .unit = unit,
            .growth = growth,
            .of_point = of_point,
            .is_usual = is_usual,
            .put = other_put};
  }
};

namespace run_settings {

// Headings of settings in --help, in the order that all listings use.
inline constexpr std::string_view what = "What to simulate";
inline constexpr std::string_view whole = "Whole models: scope step, prefill or decode";
inline constexpr std::string_view which = "Schedules";
inline constexpr std::string_view how = "How to simulate it";

inline constexpr std::int64_t kibi = 1024;

template <class Member>
struct OwnerOf;
template <class Member, class Class>
struct OwnerOf<Member Class::*> {
  using Type = Class;
};
/// SettingValue for the struct that has the first member of a path.
template <auto first>
using ValueOf = SettingValue<typename OwnerOf<decltype(first)>::Type>;

/// Follows a path of members, as in `<&RunChoices::machine, &MachineChoice::hardware>`.
template <auto first, auto... rest>
auto& member_of(auto& object) {
  if constexpr (sizeof...(rest) == 0) {
    return object.*first;
  } else {
    return member_of<rest...>(object.*first);
  }
}

template <const auto& values>
std::vector<std::string_view> names() {
  std::vector<std::string_view> words;
  for (const auto value : values) {
    words.push_back(name_of(value));
  }
  return words;
}

// Functions that set the member at the end of a path from the text of a valid value.
inline constexpr auto put_text = [](std::string_view text, auto& member) { member = text; };
inline constexpr auto put_count = [](std::string_view text, auto& member) {
  member = static_cast<std::remove_reference_t<decltype(member)>>(*parse_count(text));
};
inline constexpr auto put_share = [](std::string_view text, auto& member) { member = *parse_share(text); };
inline constexpr auto put_amount = [](std::string_view text, auto& member) { member = *parse_amount(text); };
template <const auto& values>
inline constexpr auto put_named = [](std::string_view text, auto& member) {
  member = *std::find_if(values.begin(), values.end(), [&](auto value) { return name_of(value) == text; });
};
template <const auto& table>
inline constexpr auto put_word = [](std::string_view text, auto& member) { member = chosen(table, text); };

template <const auto& put, auto first, auto... rest>
constexpr ValueOf<first> value(FieldType type, std::vector<std::string_view> (*choices)() = nullptr) {
  return {type, choices, [](std::string_view text, auto& owner) { put(text, member_of<first, rest...>(owner)); }};
}

// Kinds of values that fill the member at the end of the path.
template <auto... path>
inline constexpr auto name = value<put_text, path...>(FieldType::name);
template <auto... path>
inline constexpr auto names_of = value<put_text, path...>(FieldType::names);
template <auto... path>
inline constexpr auto bandwidth = value<put_text, path...>(FieldType::bandwidth);
template <auto... path>
inline constexpr auto count = value<put_count, path...>(FieldType::count);
template <auto... path>
inline constexpr auto share = value<put_share, path...>(FieldType::share);
template <auto... path>
inline constexpr auto amount = value<put_amount, path...>(FieldType::amount);
/// Accepts the name of one of the enumerated values.
template <const auto& values, auto... path>
inline constexpr auto one_of = value<put_named<values>, path...>(FieldType::choice, names<values>);
/// Accepts a word of a table of words and values.
template <const auto& table, auto... path>
inline constexpr auto word = value<put_word<table>, path...>(FieldType::choice, words_of_table<table>);

inline constexpr std::array switch_choices{Choice<bool>{"on", true}, Choice<bool>{"off", false}};

}  // namespace run_settings
}  // namespace commfuse
