// SPDX-License-Identifier: Apache-2.0
#include "reports/html/blocks.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <nlohmann/json.hpp>

namespace commfuse::reports {
namespace {

std::string unpacked(const std::string& gzip) {
  std::string text(1U << 20U, '\0');
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string in = gzip;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

TEST(Blocks, Base64MatchesRfc4648) {
  EXPECT_EQ(base64_of(""), "");
  EXPECT_EQ(base64_of("f"), "Zg==");
  EXPECT_EQ(base64_of("fo"), "Zm8=");
  EXPECT_EQ(base64_of("foo"), "Zm9v");
  EXPECT_EQ(base64_of("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64_of("\xff\xfe\xfd"), "//79");
}

TEST(Blocks, GzipRoundTripsAndIsDeterministic) {
  const std::string text(100'000, 'x');
  EXPECT_EQ(unpacked(gzip_of(text)), text);
  EXPECT_EQ(gzip_of(text), gzip_of(text));
  EXPECT_LT(gzip_of(text).size(), 1000U);
}

TEST(Blocks, NoTextEndsItsElement) {
  const std::string block = block_of("rows", "</script><script>alert(1)</script>");
  EXPECT_EQ(block.rfind("<script type=\"text/plain\" id=\"block-rows\">", 0), 0U);
  EXPECT_EQ(block.find("</script"), block.size() - std::strlen("</script>\n"));
}

TEST(Blocks, PiecesMakeTheSameBlockAsTheWhole) {
  std::string text;
  std::uint32_t state = 1;
  for (int i = 0; i < 300'000; ++i) {
    state = state * 1664525 + 1013904223;
    text += static_cast<char>(state >> (i % 7 == 0 ? 24U : 29U));
  }
  for (const std::size_t size : {std::size_t{1}, std::size_t{777}, std::size_t{65536}, text.size()}) {
    std::string block;
    write_block(
        "rows",
        [&](const TakeBytes& take) {
          for (std::size_t at = 0; at < text.size(); at += size) {
            take(std::string_view(text).substr(at, size));
          }
        },
        [&](std::string_view bytes) { block += bytes; });
    EXPECT_EQ(block, block_of("rows", text)) << size;
  }
}

TEST(Blocks, ComputedColumnsEqualGivenColumns) {
  ColumnBlock given;
  ColumnBlock computed;
  std::vector<double> numbers;
  std::vector<std::uint32_t> codes;
  for (std::uint32_t i = 0; i < 20'001; ++i) {
    numbers.push_back(0.5 * i);
    codes.push_back(i * i);
  }
  computed.add_u32("codes", codes.size(), [&](std::size_t i) { return codes[i]; });
  computed.add_f64("numbers", numbers.size(), [&](std::size_t i) { return numbers[i]; });
  given.add("codes", codes);
  given.add("numbers", numbers);
  EXPECT_EQ(computed.bytes(R"({"columns": []})"), given.bytes(R"({"columns": []})"));
}

TEST(Blocks, ColumnsLieAtTheOffsetsOfTheHeader) {
  ColumnBlock columns;
  columns.add("small", std::vector<std::uint8_t>{7, 8, 9});
  columns.add("time_ps", std::vector<double>{1.5, -2.0});
  const std::string bytes = columns.bytes(R"({"rows": 3, "columns": [{"name": "time_ps", "title": "Time"}]})");
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  const auto head = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(head["rows"], 3);
  // Members of a column in the given head are kept.
  EXPECT_EQ(head["columns"][0],
            (nlohmann::json{{"name", "time_ps"}, {"title", "Time"}, {"type", "f64"}, {"offset", 8}, {"count", 2}}));
  EXPECT_EQ(head["columns"][1]["type"], "u8");
  const std::size_t start = 8 + (length + 7) / 8 * 8;
  EXPECT_EQ(bytes[start + 2], 9);
  double second = 0.0;
  std::memcpy(&second, bytes.data() + start + 16, sizeof(second));
  EXPECT_EQ(second, -2.0);
  EXPECT_EQ(bytes.size(), start + 24);
}

}  // namespace
}  // namespace commfuse::reports
