// SPDX-License-Identifier: Apache-2.0
// Text from strangers that a terminal would obey, or show in another order than it is written, or that is no text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace commfuse {

/// Bytes of the control character that `text` begins with: one of ASCII, one of U+0080 to U+009F, or one that turns the
/// direction of writing (U+202A to U+202E, U+2066 to U+2069), in UTF-8. 0: it begins with none.
std::size_t control_character(std::string_view text);

/// Whether there is a control character but those of ASCII in `allowed`.
bool has_control_character(std::string_view text, std::string_view allowed = "");

/// The text with its control characters, but those in `allowed`, written out byte by byte as in "\x1b".
std::string with_escapes(std::string_view text, std::string_view allowed = "");

/// Whether all bytes are UTF-8 as JSON wants it: no letter in more bytes than it needs, none of UTF-16's halves.
bool is_utf8(std::string_view text);

}  // namespace commfuse
