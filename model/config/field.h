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
  name,       ///< of a catalogue, or a path
  names,      ///< several, between commas; "all" or "none" alone
  choice,     ///< one word of `choices`
  choices,    ///< several, between commas; the first of them, "all", stands for every one
  count,      ///< a whole number, binary K, M and G
  bandwidth,  ///< of a link: "x2" of its own, or "450 GB/s"
  share       ///< "2%" or 0.02; `least` and `most` are percent
};

/// What `a..b` on an axis means where no step is given.
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

/// What a field holds, and the member of RunChoices (choices.h) that takes it.
struct FieldValue {
  FieldType type = FieldType::choice;
  std::vector<std::string_view> (*choices)() = nullptr;      ///< of a choice
  void (*put)(std::string_view, RunChoices& run) = nullptr;  ///< Sets the member. Requires a value of the field.
};

struct Field {
  std::string_view key;      ///< "strategy.slices": nested maps in YAML
  std::string_view flag;     ///< "slices", without the dashes
  char letter = '\0';        ///< 'j': the short flag
  std::string_view group;    ///< heading in --help
  std::string_view doc;      ///< one line
  std::string_view preset;   ///< the default as people write it; empty: left open
  std::string_view example;  ///< a value

  Uses uses;  ///< Work that takes the setting; other work refuses a value that is not the default.

  FieldType type = FieldType::choice;
  Catalogue catalogue = Catalogue::models;               ///< of a name
  std::vector<std::string_view> (*choices)() = nullptr;  ///< of a choice
  std::string_view noun = "choice", nouns = "choices";   ///< of a choice: "unknown dtype 'fp64'; known dtypes: ..."
  std::int64_t least = 1, most = 1;                      ///< of a count; of a share in percent
  std::string_view unit;                                 ///< of a count, in words: "tokens"; may be empty
  Growth growth = Growth::doubles;                       ///< of a count
  bool of_point = true;                                  ///< false: changes no result, so no axis
  bool is_usual = false;                                 ///< Among the few flags that a short help shows.

  void (*put)(std::string_view, RunChoices& run) = nullptr;  ///< As in FieldValue.

  /// Returns this field as one that fills a member.
  [[nodiscard]] constexpr Field fills(const FieldValue& value) const {
    Field field = *this;
    field.type = value.type;
    field.choices = value.choices;
    field.put = value.put;
    return field;
  }
};

/// In the order of every listing.
std::span<const Field> run_fields();

/// nullptr when there is none of that key.
const Field* find_field(std::string_view key);
/// Position in run_fields().
std::size_t index_of(const Field& field);

/// Whether settings lie below the key: "strategy".
bool is_group(std::string_view key);

/// "COMMFUSE_STRATEGY_SLICES".
std::string variable_of(const Field& field);

/// Returns what a field of names may hold: its catalogue, and for frameworks also "none", which has no file.
std::vector<std::string> names_known_to(const Field& field);

/// A sentence and a remedy when `text` is no value of the field; nothing when it is one. Whether a path can be read
/// counts; what is in the file does not.
std::optional<std::string> mistake_in(const Field& field, std::string_view text);

/// The remedy for a key that is no setting: the nearest one, or all.
std::string remedy_for_key(std::string_view wrong);

/// "a whole number from 1 to 1G tokens"; "one of: mlp, ..."
std::string values_in_words(const Field& field);

}  // namespace commfuse
