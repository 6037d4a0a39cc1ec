// SPDX-License-Identifier: Apache-2.0
// The one table of run settings. YAML, COMMFUSE_* variables, --set, flags, --axis, their messages, `config show` and
// `config explain` all come from it, and so do the typed values that the simulator takes: a new setting is one entry
// here and one member in choices.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/catalogue.h"
#include "model/enum_set.h"

namespace commfuse {

enum class FieldType : std::uint8_t {
  name,       ///< name in a catalogue, or a path
  names,      ///< several names, between commas; "all" or "none" must be the only one
  choice,     ///< one word of `choices`
  choices,    ///< several words, between commas; the first choice, "all", stands for every one
  count,      ///< whole number with binary K, M and G
  bandwidth,  ///< bandwidth of a link: "x2" of its own, or "450 GB/s"
  share       ///< "2%" or 0.02; `least` and `most` are percent
};

/// Meaning of `a..b` on an axis when no step is given.
enum class Growth : std::uint8_t { doubles, by_one };

/// Work that takes settings.
enum class Use : std::uint8_t {
  layer,     ///< simulates a scope of one layer
  step,      ///< simulates a training step of a whole model
  prefill,   ///< simulates a prefill of a whole model
  decode,    ///< simulates a decoding step of a whole model
  tune,      ///< searches the best layout of a training step
  plan,      ///< a plan file of a training run
  lab,       ///< simulates a workload of configs/lab
  measure,   ///< runs a scope of one layer on hardware
  schedule,  ///< builds the schedules of a scope
  price      ///< prices a schedule, beside building it
};
using Uses = EnumSet<Use>;

struct RunChoices;

/// Kind of value that a field holds, and the member of RunChoices (choices.h) that takes it.
struct FieldValue {
  FieldType type = FieldType::choice;
  std::vector<std::string_view> (*choices)() = nullptr;      ///< words of a choice
  void (*put)(std::string_view, RunChoices& run) = nullptr;  ///< Sets the member. Requires a value of the field.
};

struct Field {
  std::string_view key;      ///< "strategy.slices": path in nested YAML maps
  std::string_view flag;     ///< "slices", without the dashes
  char letter = '\0';        ///< short flag, 'j' for -j
  std::string_view group;    ///< heading in --help
  std::string_view doc;      ///< description, one line
  std::string_view preset;   ///< the default as the user would write it; empty when left open
  std::string_view example;  ///< example of a value

  Uses uses;  ///< Work that takes the setting; other work refuses a value that is not the default.

  FieldType type = FieldType::choice;
  Catalogue catalogue = Catalogue::models;               ///< catalogue of a name
  std::vector<std::string_view> (*choices)() = nullptr;  ///< words of a choice
  std::string_view noun = "choice", nouns = "choices";   ///< for messages: "unknown dtype 'fp64'; known dtypes: ..."
  std::int64_t least = 1, most = 1;                      ///< limits of a count, or of a share in percent
  std::string_view unit;                                 ///< unit of a count, in words: "tokens"; may be empty
  Growth growth = Growth::doubles;                       ///< default steps of an axis of counts
  bool of_point = true;                                  ///< false when it changes no result and so cannot be an axis
  bool is_usual = false;                                 ///< Shown among the few flags of the short help.

  void (*put)(std::string_view, RunChoices& run) = nullptr;  ///< Sets the member, see FieldValue.

  /// Returns this field as one that fills a member.
  [[nodiscard]] constexpr Field fills(const FieldValue& value) const {
    Field field = *this;
    field.type = value.type;
    field.choices = value.choices;
    field.put = value.put;
    return field;
  }
};

/// Returns all fields in the order of every listing.
std::span<const Field> run_fields();

/// Returns the field, or nullptr when no field has that key.
const Field* find_field(std::string_view key);
/// Returns the position in run_fields().
std::size_t index_of(const Field& field);

/// Returns true if settings lie below the key, as for "strategy".
bool is_group(std::string_view key);

/// Returns a name such as "COMMFUSE_STRATEGY_SLICES".
std::string variable_of(const Field& field);

/// Returns what a field of names may hold: its catalogue, and for frameworks also "none", which has no file.
std::vector<std::string> names_known_to(const Field& field);

/// Returns a sentence and a remedy when `text` is not a value of the field, else nullopt. Checks that a path is
/// readable, but not the contents of the file.
std::optional<std::string> mistake_in(const Field& field, std::string_view text);

/// Returns the remedy for an unknown key: the nearest setting, or all of them.
std::string remedy_for_key(std::string_view wrong);

/// Returns, for example, "a whole number from 1 to 1G tokens" or "one of: mlp, ...".
std::string values_in_words(const Field& field);

}  // namespace commfuse
