// SPDX-License-Identifier: Apache-2.0
#include "model/text/plain_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace commfuse {

namespace {

bool is_allowed(char letter, std::string_view allowed) { return allowed.find(letter) != std::string_view::npos; }

/// Returns the number of bytes of the UTF-8 character at the start of a string that is not empty; 0 if it does not
/// start with one.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  if (first < 0xc2 || first > 0xf4) {
    return 0;
  }
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  for (std::size_t i = 1; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) {
      return 0;
    }
  }
  const bool is_overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool is_beyond = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
  return is_overlong || is_beyond ? 0 : length;
}

}  // namespace

std::size_t control_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto is_in = [&](std::size_t i, unsigned least, unsigned greatest) {
    return byte(i) >= least && byte(i) <= greatest;
  };
  if (text.empty()) {
    return 0;
  }
  if (byte(0) < 0x20 || byte(0) == 0x7f) {
    return 1;
  }
  if (byte(0) == 0xc2 && is_in(1, 0x80, 0x9f)) {
    return 2;
  }
  const bool changes_direction = (byte(1) == 0x80 && is_in(2, 0xaa, 0xae)) || (byte(1) == 0x81 && is_in(2, 0xa6, 0xa9));
  return byte(0) == 0xe2 && changes_direction ? 3 : 0;
}

bool has_control_character(std::string_view text, std::string_view allowed) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_ascii_letter = text[i] >= 0x20 && text[i] < 0x7f;
    if (!is_ascii_letter && control_character(text.substr(i)) > 0 && !is_allowed(text[i], allowed)) {
      return true;
    }
  }
  return false;
}

std::string with_escapes(std::string_view text, std::string_view allowed) {
  std::string out;
  while (!text.empty()) {
    std::size_t length = is_allowed(text.front(), allowed) ? 0 : control_character(text);
    if (length == 0) {
      out += text.front();
      text.remove_prefix(1);
    }
    for (; length > 0; --length) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
    }
  }
  return out;
}

std::size_t characters(std::string_view text) {
  const auto begins = [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins));
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

std::string as_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    valid += length > 0 ? text.substr(0, length) : "\ufffd";
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return valid;
}

}  // namespace commfuse
