// SPDX-License-Identifier: Apache-2.0
// Lists of Megatron-LM's arguments: those that are read, those that change the work but are not read, and those that
// change nothing. Flags of a command line ("--num-layers") and keys of NeMo's and Megatron-Bridge's files
// ("num_layers") have the same names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/import/key_lists.h"

namespace commfuse::import {

/// Returns all flags that are read.
std::vector<std::string_view> read_flags();

/// The first returns whether a flag is read; the second, whether it is read as a switch without a value.
bool is_read(std::string_view flag);
bool is_switch(std::string_view flag);

/// Returns whether the word behind a flag is certainly not its value, even if the flag is not read.
bool takes_no_value(std::string_view flag);

/// These convert "--num-layers" to "num_layers", and back.
std::string key_of(std::string_view flag);
std::string flag_of(std::string_view key);

/// Returns the keys that are not read.
KeyLists megatron_keys();

/// Returns the flag of which this one is a misspelling: one edit away, or with _ for -.
std::optional<std::string_view> misspelled(std::string_view flag);

}  // namespace commfuse::import
