// SPDX-License-Identifier: Apache-2.0
// Detects untrusted text that a terminal would obey, or display in another order, or that is not text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace commfuse {

/// Returns the bytes of the control character at the start of `text`: one of ASCII, one of U+0080 to U+009F, or one
/// that changes the direction of writing (U+202A to U+202E, U+2066 to U+2069), in UTF-8. Returns 0 if the text does not
/// start with one.
std::size_t control_character(std::string_view text);

/// Returns true if the text has a control character other than those of ASCII in `allowed`.
bool has_control_character(std::string_view text, std::string_view allowed = "");

/// Returns the text with its control characters, except those in `allowed`, written byte by byte as in "\x1b".
std::string with_escapes(std::string_view text, std::string_view allowed = "");

/// Returns true if all bytes are UTF-8 as JSON requires it: no overlong encodings and no surrogates.
bool is_utf8(std::string_view text);

}  // namespace commfuse
