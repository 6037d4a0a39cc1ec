// SPDX-License-Identifier: Apache-2.0
#include "reports/html/blocks.h"

#include <fmt/format.h>
#define ZLIB_CONST  // next_in points to const
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "model/check.h"

namespace commfuse::reports {

static_assert(std::endian::native == std::endian::little, "columns are written as they lie in memory");

namespace {

constexpr std::size_t piece = std::size_t{1} << 16U;  // bytes of a buffer

/// Encodes every three bytes as four characters, even if the bytes come in several calls.
class Base64 {
 public:
  explicit Base64(const TakeBytes& take) : take_(take) {}

  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      bits_ = bits_ << 8U | static_cast<std::uint8_t>(byte);
      if (++count_ == 3) {
        put(4);
      }
    }
  }
  void finish() {
    if (const unsigned count = count_; count > 0) {
      bits_ <<= 8U * (3 - count);
      put(count + 1);
      text_.append(3 - count, '=');
    }
    take_(text_);
    text_.clear();
  }

 private:
  void put(unsigned letters) {
    constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (unsigned i = 0; i < letters; ++i) {
      text_ += alphabet[bits_ >> (18U - 6U * i) & 63U];
    }
    bits_ = 0;
    count_ = 0;
    if (text_.size() >= piece) {
      take_(text_);
      text_.clear();
    }
  }

  const TakeBytes& take_;
  std::string text_;
  std::uint32_t bits_ = 0;
  unsigned count_ = 0;
};

/// Compresses text; the result does not depend on how the text is divided among calls.
class Gzip {
 public:
  explicit Gzip(const TakeBytes& take) : take_(take), packed_(piece, '\0') {
    constexpr int gzip_window = 15 + 16;
    if (deflateInit2(&stream_, 6, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::runtime_error("zlib could not start; free some memory and run again");
    }
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() { deflateEnd(&stream_); }

  void add(std::string_view bytes) { pack(bytes, Z_NO_FLUSH); }
  void finish() { pack({}, Z_FINISH); }

 private:
  void pack(std::string_view bytes, int flush) {
    check(bytes.size() < std::numeric_limits<uInt>::max(), "a piece of a page has less than 4 GiB");
    // NOLINTNEXTLINE(*-reinterpret-cast): zlib's bytes are unsigned
    stream_.next_in = reinterpret_cast<const Bytef*>(bytes.data());
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      // NOLINTNEXTLINE(*-reinterpret-cast): zlib's bytes are unsigned
      stream_.next_out = reinterpret_cast<Bytef*>(packed_.data());
      stream_.avail_out = static_cast<uInt>(packed_.size());
      deflate(&stream_, flush);
      take_(std::string_view(packed_).substr(0, packed_.size() - stream_.avail_out));
    } while (stream_.avail_out == 0);
  }

  const TakeBytes& take_;
  std::string packed_;
  z_stream stream_{};
};

constexpr std::string_view element_begins = "<script type=\"text/plain\" id=\"block-{}\">";
constexpr std::string_view element_ends = "</script>\n";

}  // namespace

std::string base64_of(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  const TakeBytes take = [&](std::string_view letters) { text += letters; };
  Base64 base64(take);
  base64.add(bytes);
  base64.finish();
  return text;
}

std::string gzip_of(std::string_view text) {
  std::string packed;
  const TakeBytes take = [&](std::string_view bytes) { packed += bytes; };
  Gzip gzip(take);
  gzip.add(text);
  gzip.finish();
  return packed;
}

void write_block(std::string_view name, const std::function<void(const TakeBytes&)>& write, const TakeBytes& take) {
  take(fmt::format(element_begins, name));
  Base64 base64(take);
  const TakeBytes to_base64 = [&](std::string_view bytes) { base64.add(bytes); };
  Gzip gzip(to_base64);
  write([&](std::string_view bytes) { gzip.add(bytes); });
  gzip.finish();
  base64.finish();
  take(element_ends);
}

std::string packed_block(std::string_view name, std::string_view gzip) {
  return fmt::format(element_begins, name) + base64_of(gzip) + std::string(element_ends);
}

std::string block_of(std::string_view name, std::string_view text) { return packed_block(name, gzip_of(text)); }

void ColumnBlock::append(Column column) {
  const std::size_t end = columns_.empty() ? 0 : columns_.back().offset + columns_.back().size;
  column.offset = (end + 7) / 8 * 8;
  columns_.push_back(std::move(column));
}

template <class T>
void ColumnBlock::append(std::string_view name, std::string_view type, std::vector<T> values) {
  const std::size_t count = values.size();
  auto write = [values = std::move(values)](const TakeBytes& take) {
    // NOLINTNEXTLINE(*-reinterpret-cast): the bytes of the numbers
    take({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
  };
  append(
      {.name = std::string{name}, .type = type, .count = count, .size = count * sizeof(T), .write = std::move(write)});
}

template <class T>
void ColumnBlock::append(std::string_view name, std::string_view type, std::size_t count,
                         std::function<T(std::size_t)> value) {
  auto write = [count, value = std::move(value)](const TakeBytes& take) {
    std::array<T, piece / sizeof(T)> buffer{};
    for (std::size_t first = 0; first < count; first += buffer.size()) {
      const std::size_t size = std::min(buffer.size(), count - first);
      for (std::size_t i = 0; i < size; ++i) {
        buffer[i] = value(first + i);
      }
      // NOLINTNEXTLINE(*-reinterpret-cast): the bytes of the numbers
      take({reinterpret_cast<const char*>(buffer.data()), size * sizeof(T)});
    }
  };
  append(
      {.name = std::string{name}, .type = type, .count = count, .size = count * sizeof(T), .write = std::move(write)});
}

void ColumnBlock::add(std::string_view name, std::vector<double> values) { append(name, "f64", std::move(values)); }
void ColumnBlock::add(std::string_view name, std::vector<std::uint32_t> values) {
  append(name, "u32", std::move(values));
}
void ColumnBlock::add(std::string_view name, std::vector<std::uint16_t> values) {
  append(name, "u16", std::move(values));
}
void ColumnBlock::add(std::string_view name, std::vector<std::uint8_t> values) {
  append(name, "u8", std::move(values));
}
void ColumnBlock::add_f64(std::string_view name, std::size_t count, std::function<double(std::size_t)> value) {
  append(name, "f64", count, std::move(value));
}
void ColumnBlock::add_u32(std::string_view name, std::size_t count, std::function<std::uint32_t(std::size_t)> value) {
  append(name, "u32", count, std::move(value));
}

void ColumnBlock::write(const std::string& header, const TakeBytes& take) const {
  using Json = nlohmann::ordered_json;
  Json json = Json::parse(header);
  Json& columns = json["columns"];
  for (const Column& column : columns_) {
    Json* entry = nullptr;
    for (Json& known : columns) {
      entry = known["name"] == column.name ? &known : entry;
    }
    if (entry == nullptr) {
      columns.push_back({{"name", column.name}});
      entry = &columns.back();
    }
    (*entry)["type"] = column.type;
    (*entry)["offset"] = column.offset;
    (*entry)["count"] = column.count;
  }
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string begin(8, '\0');
  std::memcpy(begin.data(), &length, sizeof(length));
  begin += text;
  begin.resize((begin.size() + 7) / 8 * 8);
  take(begin);
  std::size_t written = 0;
  for (const Column& column : columns_) {
    take(std::string(column.offset - written, '\0'));
    column.write(take);
    written = column.offset + column.size;
  }
}

std::string ColumnBlock::bytes(const std::string& header) const {
  std::string collected;
  write(header, [&](std::string_view bytes) { collected += bytes; });
  return collected;
}

}  // namespace commfuse::reports
