// SPDX-License-Identifier: Apache-2.0
// Which flags of Megatron-LM are read, and which are not though they change the work.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace commfuse::import {

/// A flag that changes the work and has no counterpart, with what is assumed instead.
struct UnreadFlag {
  std::string_view flag;
  std::string_view instead;
};

std::span<const UnreadFlag> flags_without_counterpart();

/// The flag that is read and that this one is a misspelling of, one edit away.
std::optional<std::string_view> misspelled(std::string_view flag);

}  // namespace commfuse::import
