// SPDX-License-Identifier: Apache-2.0
// Detects control characters in untrusted text, which a terminal would obey or which change the direction of writing,
// and bytes that are not UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace commfuse {

/// Returns the number of bytes of the control character at the start of `text`: an ASCII control character, U+0080 to
/// U+009F, or a character that changes the direction of writing (U+202A to U+202E, U+2066 to U+2069), in UTF-8. Returns
/// 0 if the text does not start with a control character.
std::size_t control_character(std::string_view text);

/// Returns true if the text has a control character other than the ASCII control characters in `allowed`.
bool has_control_character(std::string_view text, std::string_view allowed = "");

/// Returns the text with its control characters, except those in `allowed`, written byte by byte as in "\x1b".
std::string with_escapes(std::string_view text, std::string_view allowed = "");

/// Counts characters, not bytes, of valid UTF-8.
std::size_t characters(std::string_view text);

/// Returns true if all bytes are UTF-8 as JSON requires it: no overlong encodings and no surrogates.
bool is_utf8(std::string_view text);

/// Returns the text with U+FFFD instead of every byte that is not UTF-8.
std::string as_utf8(std::string_view text);

}  // namespace commfuse
