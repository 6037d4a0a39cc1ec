// SPDX-License-Identifier: Apache-2.0
#include "reports/html/blocks.h"

#include <fmt/format.h>
#define ZLIB_CONST  // next_in points to const
#include <zlib.h>

#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "model/check.h"

namespace commfuse::reports {

static_assert(std::endian::native == std::endian::little, "columns are written as they lie in memory");

std::string base64_of(std::string_view bytes) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  const auto at = [&](std::size_t i) { return i < bytes.size() ? static_cast<std::uint8_t>(bytes[i]) : 0U; };
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t three = at(i) << 16U | at(i + 1) << 8U | at(i + 2);
    text += letters[three >> 18U & 63U];
    text += letters[three >> 12U & 63U];
    text += i + 1 < bytes.size() ? letters[three >> 6U & 63U] : '=';
    text += i + 2 < bytes.size() ? letters[three & 63U] : '=';
  }
  return text;
}

std::string gzip_of(std::string_view text) {
  check(text.size() < std::numeric_limits<uInt>::max(), "a block of a page has less than 4 GiB");
  constexpr int gzip_window = 15 + 16;
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("zlib could not start; is there memory left?");
  }
  std::string packed(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<const Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int done = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  check(done == Z_STREAM_END, "deflateBound() is a bound");
  return packed;
}

std::string packed_block(std::string_view name, std::string_view gzip) {
  return fmt::format("<script type=\"text/plain\" id=\"block-{}\">{}</script>\n", name, base64_of(gzip));
}

std::string block_of(std::string_view name, std::string_view text) { return packed_block(name, gzip_of(text)); }

template <class T>
void ColumnBlock::append(std::string_view name, std::string_view type, const std::vector<T>& values) {
  bytes_.resize((bytes_.size() + 7) / 8 * 8);
  columns_.push_back({std::string{name}, type, bytes_.size(), values.size()});
  const std::size_t size = values.size() * sizeof(T);
  bytes_.resize(bytes_.size() + size);
  if (size > 0) {
    std::memcpy(bytes_.data() + bytes_.size() - size, values.data(), size);
  }
}

void ColumnBlock::add(std::string_view name, const std::vector<double>& values) { append(name, "f64", values); }
void ColumnBlock::add(std::string_view name, const std::vector<std::uint32_t>& values) { append(name, "u32", values); }
void ColumnBlock::add(std::string_view name, const std::vector<std::uint16_t>& values) { append(name, "u16", values); }
void ColumnBlock::add(std::string_view name, const std::vector<std::uint8_t>& values) { append(name, "u8", values); }

std::string ColumnBlock::bytes(const std::string& head) const {
  using Json = nlohmann::ordered_json;
  Json json = Json::parse(head);
  Json& all = json["columns"];
  for (const Column& column : columns_) {
    Json* one = nullptr;
    for (Json& known : all) {
      one = known["name"] == column.name ? &known : one;
    }
    if (one == nullptr) {
      all.push_back({{"name", column.name}});
      one = &all.back();
    }
    (*one)["type"] = column.type;
    (*one)["offset"] = column.offset;
    (*one)["count"] = column.count;
  }
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  bytes += text;
  bytes.resize((bytes.size() + 7) / 8 * 8);
  return bytes + bytes_;
}

}  // namespace commfuse::reports
