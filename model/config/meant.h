// SPDX-License-Identifier: Apache-2.0
// What people type for a value: "H100" for h100-sxm, "8k" for 8K, "float16" for fp16, "meta-llama/Llama-3.1-70B" for
// the model of that name.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/config/field.h"

namespace commfuse {

struct Synonym {
  std::string_view typed, means;
};
/// What a word means; empty where it is none of these.
std::string_view found_in(std::span<const Synonym> synonyms, std::string_view word);

/// Our flag for what other tools call it: "--ranks" for "--tp". Empty where the word is none of theirs.
std::string_view flag_meant(std::string_view typed);
/// The setting that a key on a command line means: "seq", and "seq-len" or "seq_len" of other tools. nullptr where
/// there is none.
const Field* field_meant(std::string_view key);

/// The value as settings keep it; a text that means nothing here as it is.
std::string meant(const Field& field, std::string_view text);

/// The choice of a field that a word of another project, or of everyday use, stands for: "te" for ring_exchange, "ffn"
/// for mlp. Empty where there is none. It is suggested, not taken.
std::string_view choice_for(const Field& field, std::string_view word);

/// Whether it is written as "organisation/name", and neither as a path nor as a file.
bool is_hf_id(std::string_view text);

/// A name of the catalogue, or a path to the config.json of a folder or of the Hugging Face cache; a text that means
/// nothing here as it is. Words of a GPU's name are matched whole, and a memory has to be that of the machine; without
/// a form, SXM is meant. "dgx-" and "hgx-" are a cluster of such nodes, or one node where no cluster is known.
std::string meant_name(Catalogue catalogue, std::string_view text);

}  // namespace commfuse
