// SPDX-License-Identifier: Apache-2.0
// The one table of run settings. YAML, COMMFUSE_* variables, --set, flags, --axis, their messages, `config show` and
// `config explain` all come from it, and so do the typed values that the simulator takes. It joins the descriptions
// that stand next to the members. To add a setting, add a member and its entry in the header of the struct.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/catalogue.h"
#include "model/describe/setting.h"

namespace commfuse {

struct RunChoices;
/// A setting that fills a member of RunChoices (choices.h), or of a struct in it.
using Field = SettingEntry<RunChoices>;

/// Returns all fields in the order that all listings use.
std::span<const Field> run_fields();

/// Returns the field, or nullptr when no field has that key.
const Field* find_field(std::string_view key);
/// Returns the position of the field in run_fields().
std::size_t index_of(const Field& field);

/// Returns true if settings lie below the key, as for "strategy".
bool is_group(std::string_view key);

/// Returns the environment variable of a field, such as "COMMFUSE_STRATEGY_SLICES".
std::string variable_of(const Field& field);

/// Returns the names that a field accepts: those of its catalogue, and for frameworks also "none", which has no file.
std::vector<std::string> names_known_to(const Field& field);

/// Returns whether `text`, a valid value of a setting with a catalogue, is a name in that catalogue or a file. The
/// framework "none" and a model given by its shape, such as "8192x28672", are neither.
bool names_config(const Field& field, std::string_view text);

/// Returns a sentence and a remedy when `text` is not a value of the field, else nullopt. Checks that a path exists and
/// is not a folder, but not the contents of the file.
std::optional<std::string> mistake_in(const Field& field, std::string_view text);

/// Returns the setting for which `word` is the flag, the last part of the key, or the name in other tools; null if none
/// matches.
const Field* field_called(std::string_view word);

/// Returns the remedy for an unknown key: the nearest setting, or all of them.
std::string remedy_for_key(std::string_view wrong);

/// Returns, for example, "a whole number of tokens from 1 to 1G" or "one of: mlp, ...".
std::string values_in_words(const Field& field);

}  // namespace commfuse
