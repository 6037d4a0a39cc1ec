// SPDX-License-Identifier: Apache-2.0
// Lists of Megatron-LM's arguments: those that are read, those that change the work but are not read, and those that
// change nothing. A flag of a command line ("--num-layers") and a key in a file of NeMo or Megatron-Bridge
// ("num_layers") share a name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/import/key_lists.h"

namespace commfuse::import {

/// Returns all flags that are read.
std::vector<std::string_view> read_flags();

/// is_read() returns whether a flag is read; is_switch(), whether it is read as a switch, without a value.
bool is_read(std::string_view flag);
bool is_switch(std::string_view flag);

/// Returns whether a flag, read or not, is known to take no value, so that the next word is not its value.
bool takes_no_value(std::string_view flag);

/// These convert "--num-layers" to "num_layers", and back.
std::string key_of(std::string_view flag);
std::string flag_of(std::string_view key);

/// Returns the keys that are not read.
KeyLists megatron_keys();

/// Returns the readable flag of which `flag` is a likely misspelling: one edit away, or with _ instead of -.
std::optional<std::string_view> misspelled(std::string_view flag);

}  // namespace commfuse::import
