// SPDX-License-Identifier: Apache-2.0
// Data inside a page: gzip in base64, so that it contains no markup and no text can end a script.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse::reports {

/// Receives bytes, piece by piece.
using TakeBytes = std::function<void(std::string_view)>;

/// Encodes by RFC 4648, with padding.
std::string base64_of(std::string_view bytes);
/// Packs by RFC 1952; equal text yields equal bytes. Throws std::runtime_error if zlib has no memory.
std::string gzip_of(std::string_view text);

/// Returns <script type="text/plain" id="block-NAME">...</script>. A browser runs nothing of that type.
std::string block_of(std::string_view name, std::string_view text);
/// Returns a block of bytes that are already gzip.
std::string packed_block(std::string_view name, std::string_view gzip);
/// Writes block_of() piece by piece, for text that `write` provides piece by piece. Throws as gzip_of() does.
void write_block(std::string_view name, const std::function<void(const TakeBytes&)>& write, const TakeBytes& take);

/// Numbers by column, for typed arrays. The bytes are, little endian: u32 length of the header, u32 0, the header (a
/// JSON object), and each column, aligned to eight bytes.
class ColumnBlock {
 public:
  void add(std::string_view name, std::vector<double> values);
  void add(std::string_view name, std::vector<std::uint32_t> values);
  void add(std::string_view name, std::vector<std::uint16_t> values);
  void add(std::string_view name, std::vector<std::uint8_t> values);
  /// Adds values that are computed, in their order, when they are written.
  void add_f64(std::string_view name, std::size_t count, std::function<double(std::size_t)> value);
  void add_u32(std::string_view name, std::size_t count, std::function<std::uint32_t(std::size_t)> value);

  /// Writes the block. `header` is a JSON object and gets "columns" with the name, type (f64, u32, u16, u8), offset and
  /// count of each column; members that `header` already has for a name are kept.
  void write(const std::string& header, const TakeBytes& take) const;
  [[nodiscard]] std::string bytes(const std::string& header) const;

 private:
  struct Column {
    std::string name;
    std::string_view type;
    std::size_t offset = 0;
    std::size_t count = 0;
    std::size_t size = 0;  // bytes
    std::function<void(const TakeBytes&)> write;
  };
  template <class T>
  void append(std::string_view name, std::string_view type, std::vector<T> values);
  template <class T>
  void append(std::string_view name, std::string_view type, std::size_t count, std::function<T(std::size_t)> value);
  /// Appends the column at the next offset.
  void append(Column column);

  std::vector<Column> columns_;
};

}  // namespace commfuse::reports
