// SPDX-License-Identifier: Apache-2.0
#include "reports/html/page_scripts.h"

#include <fmt/format.h>
#define ZLIB_CONST  // next_in points to const
#include <zlib.h>

#include <array>
#include <charconv>
#include <stdexcept>

#include "model/check.h"
#include "model/sha256.h"
#include "reports/html/blocks.h"

namespace commfuse::reports {

/// Generated at build time by cmake/embed.cmake.
namespace assets {
std::string_view charts();     // gzip; empty if it could not be built
std::string_view no_charts();  // the reason
std::string_view page();
}  // namespace assets

namespace {

std::string unpacked(std::string_view gzip) {
  constexpr int gzip_window = 15 + 16;
  z_stream stream{};
  if (inflateInit2(&stream, gzip_window) != Z_OK) {
    throw std::runtime_error("zlib could not start; free some memory and run again");
  }
  stream.next_in = reinterpret_cast<const Bytef*>(gzip.data());
  stream.avail_in = static_cast<uInt>(gzip.size());
  std::string text;
  std::array<char, 65536> piece{};
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(piece.data(), piece.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  check(state == Z_STREAM_END, "the packed chart library is complete");
  return text;
}

/// Returns a script's source expression for a content security policy: "'sha256-47DEQpj8...='".
std::string source_of(std::string_view script) {
  const std::string digits = sha256_of(script);
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
    bytes += static_cast<char>(value);
  }
  return fmt::format("'sha256-{}'", base64_of(bytes));
}

}  // namespace

std::string script_sources() {
  const std::string page = source_of(assets::page());
  return assets::charts().empty() ? page : page + " " + source_of(unpacked(assets::charts()));
}

std::string page_scripts() {
  const std::string_view page = assets::page();
  check(page.find("</script") == std::string_view::npos, "our script does not end its own element");
  return fmt::format("{}<script>{}</script>\n",
                     assets::charts().empty() ? std::string{} : packed_block("charts", assets::charts()), page);
}

std::string_view no_charts() { return assets::no_charts(); }

}  // namespace commfuse::reports
