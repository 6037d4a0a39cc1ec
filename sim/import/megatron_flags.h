// SPDX-License-Identifier: Apache-2.0
// Which arguments of Megatron-LM are read, which are not though they change the work, and which change nothing. Flags
// of a command line ("--num-layers") and keys of NeMo's and Megatron-Bridge's files ("num_layers") are the same names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/import/key_lists.h"

namespace commfuse::import {

/// All that are read.
std::vector<std::string_view> read_flags();

/// Whether a flag is read, and whether as one that is there or not, without a value.
bool is_read(std::string_view flag);
bool is_switch(std::string_view flag);

/// Whether the word behind a flag is certainly not its value, whether the flag is read or not.
bool takes_no_value(std::string_view flag);

/// "num_layers" of "--num-layers", and back.
std::string key_of(std::string_view flag);
std::string flag_of(std::string_view key);

/// Keys that are not read.
KeyLists megatron_keys();

/// The flag that is read and that this one is a misspelling of, one edit away, or with _ for -.
std::optional<std::string_view> misspelled(std::string_view flag);

}  // namespace commfuse::import
