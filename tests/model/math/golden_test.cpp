// SPDX-License-Identifier: Apache-2.0
// Golden tables of model/math. A line has the argument (for pow, two), our result, and the correctly rounded result (by
// mpmath with 400 bits), all as the bits of doubles; the comment after them shows argument and result in decimals.
// COMMFUSE_RENEW_GOLDEN=1 writes our results again and keeps the arguments and the correctly rounded results.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/contents_of.h"
#include "tests/model/math/functions_of_math.h"

namespace commfuse::math::test {
namespace {

struct GoldenLine {
  double x = 0.0;
  double y = 0.0;  ///< Used only by pow.
  double rounded = 0.0;
};

double read_bits(std::istream& in) {
  std::uint64_t bits = 0;
  in >> std::hex >> bits;
  return from_bits(bits);
}

GoldenLine golden_line(const std::string& text, bool has_y) {
  std::istringstream in(text);
  GoldenLine line{.x = read_bits(in)};
  line.y = has_y ? read_bits(in) : 0.0;
  read_bits(in);  // Skips our result.
  line.rounded = read_bits(in);
  EXPECT_TRUE(in) << text;
  return line;
}

std::vector<GoldenLine> golden_lines(const std::string& table, bool has_y) {
  std::istringstream in(table);
  std::vector<GoldenLine> lines;
  for (std::string text; std::getline(in, text);) {
    if (!text.starts_with('#')) {
      lines.push_back(golden_line(text, has_y));
    }
  }
  return lines;
}

/// Compares the golden table of a function with the results of `result_of`, which may be up to `largest_error` doubles
/// away from the correctly rounded results.
template <class Function>
void expect_golden(std::string_view name, bool has_y, std::uint64_t largest_error, const Function& result_of) {
  const auto path = std::filesystem::path(COMMFUSE_SOURCE_DIR) / fmt::format("tests/model/math/golden/{}.txt", name);
  const std::string golden = commfuse::test::contents_of(path);
  const std::vector<GoldenLine> lines = golden_lines(golden, has_y);
  EXPECT_GE(lines.size(), 200U) << name;
  std::string table = golden.substr(0, golden.find('\n') + 1);
  for (const GoldenLine& line : lines) {
    const double result = result_of(line);
    EXPECT_LE(doubles_between(result, line.rounded), largest_error) << name << " " << line.x << " " << line.y;
    const std::string y_bits = has_y ? fmt::format(" {:016x}", to_bits(line.y)) : "";
    const std::string y_text = has_y ? fmt::format(", {}", line.y) : "";
    table += fmt::format("{:016x}{} {:016x} {:016x}  # {}({}{}) = {}\n", to_bits(line.x), y_bits, to_bits(result),
                         to_bits(line.rounded), name, line.x, y_text, result);
  }
  if (std::getenv("COMMFUSE_RENEW_GOLDEN") != nullptr) {  // NOLINT(concurrency-mt-unsafe): no code sets it
    std::ofstream(path, std::ios::binary) << table;
  }
  EXPECT_EQ(table, commfuse::test::contents_of(path)) << path;
}

TEST(MathGolden, MatchesFunctionsOfOneArgument) {
  for (const UnaryFunction& unary : unary_functions) {
    expect_golden(unary.name, false, static_cast<std::uint64_t>(unary.largest_error),
                  [&](const GoldenLine& line) { return unary.function(line.x); });
  }
}

TEST(MathGolden, MatchesPowers) {
  expect_golden("pow", true, 1, [](const GoldenLine& line) { return pow(line.x, line.y); });
}

}  // namespace
}  // namespace commfuse::math::test
