// SPDX-License-Identifier: Apache-2.0
// Translates the words that users type to values: "H100" to h100-sxm, "8k" to 8K, "float16" to fp16,
// "meta-llama/Llama-3.1-70B" to the model of that name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/config/field.h"

namespace commfuse {

struct Synonym {
  std::string_view typed, means;
};
/// Returns the meaning of `word`; empty when it is not among the synonyms.
std::string_view found_in(std::span<const Synonym> synonyms, std::string_view word);

/// Returns this program's flag for a flag of other tools: "--ranks" for "--tp". Empty when other tools have no such
/// flag.
std::string_view flag_meant(std::string_view typed);
/// Returns the setting that a key on a command line means: "seq", or "seq-len" and "seq_len" of other tools; nullptr
/// when there is none.
const Field* field_meant(std::string_view key);

/// Returns the value as settings store it, or the text unchanged when it has no known meaning.
std::string meant(const Field& field, std::string_view text);

/// Returns the field's choice that a word of another project or an everyday word means: "te" means ring_exchange, "ffn"
/// means mlp. Empty when there is none. The choice is only suggested, never applied.
std::string_view choice_for(const Field& field, std::string_view word);

/// Returns the implementation of the catalogue that has this name, or has it in `known_as`: "te" for "userbuffers".
/// Returns nullopt for other words, and when an implementation of the catalogue cannot be loaded. The name is only
/// suggested, never applied.
std::optional<std::string> implementation_meant(std::string_view word);

/// Returns true if the text has the form "organization/name" and is neither written as a path nor the name of a file.
bool is_hf_id(std::string_view text);

/// Returns a name of the catalogue, or the path of the config.json in a folder or in the Hugging Face cache; returns a
/// string without a known meaning unchanged. Words of a GPU's name are matched whole, and a memory size must match the
/// machine; a name without a form factor means SXM if the catalogue has it, else PCIe or OAM. "dgx-" and "hgx-" mean a
/// cluster of such nodes, or one node when no cluster is known.
std::string meant_name(Catalogue catalogue, std::string_view text);

}  // namespace commfuse
