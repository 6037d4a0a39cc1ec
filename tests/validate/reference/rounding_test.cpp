// SPDX-License-Identifier: Apache-2.0
// Tests how values are stored in a dtype: worked examples, then the bound over many values.
#include "validate/reference/rounding.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "validate/values/random.h"

namespace commfuse::validate {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(Rounding, Bf16KeepsEightSignificantBitsAndTiesGoToEven) {
  EXPECT_EQ(stored(DType::bf16, 1.0F), 1.0F);
  EXPECT_EQ(stored(DType::bf16, 256.0F), 256.0F);
  EXPECT_EQ(stored(DType::bf16, 257.0F), 256.0F);                  // between 256 and 258: the even one
  EXPECT_EQ(stored(DType::bf16, 259.0F), 260.0F);                  // between 258 and 260: the even one
  EXPECT_EQ(stored(DType::bf16, 257.01F), 258.0F);                 // past the middle
  EXPECT_EQ(stored(DType::bf16, 1.0F + 0x1p-8F), 1.0F);            // a tie, down
  EXPECT_EQ(stored(DType::bf16, 1.0F + 0x3p-8F), 1.0F + 0x1p-6F);  // a tie, up
  EXPECT_EQ(stored(DType::bf16, -1.0F - 0x3p-8F), -1.0F - 0x1p-6F);
  EXPECT_EQ(stored(DType::bf16, 3.14159265F), 3.140625F);
}

TEST(Rounding, Bf16OverflowsToInfinityAndKeepsSubnormals) {
  EXPECT_EQ(stored(DType::bf16, std::numeric_limits<float>::max()), infinity);
  EXPECT_EQ(stored(DType::bf16, -std::numeric_limits<float>::max()), -infinity);
  EXPECT_EQ(stored(DType::bf16, 0x1p-133F), 0x1p-133F);
  EXPECT_EQ(stored(DType::bf16, 0x1p-134F), 0.0F);  // a tie
  EXPECT_EQ(stored(DType::bf16, 0x3p-135F), 0x1p-133F);
}

TEST(Rounding, Fp16KeepsElevenSignificantBitsAndTiesGoToEven) {
  EXPECT_EQ(stored(DType::fp16, 2049.0F), 2048.0F);
  EXPECT_EQ(stored(DType::fp16, 2051.0F), 2052.0F);
  EXPECT_EQ(stored(DType::fp16, -2049.5F), -2050.0F);
  EXPECT_EQ(stored(DType::fp16, 65519.0F), 65504.0F);
  EXPECT_EQ(stored(DType::fp16, 65520.0F), infinity);
  EXPECT_EQ(stored(DType::fp16, 0x1p-24F), 0x1p-24F);
  EXPECT_EQ(stored(DType::fp16, 0x1p-25F), 0.0F);  // a tie
  EXPECT_EQ(stored(DType::fp16, 0x3p-26F), 0x1p-24F);
  EXPECT_EQ(stored(DType::fp16, 0x1p-14F - 0x1p-26F), 0x1p-14F);  // up into the normal numbers
}

TEST(Rounding, Fp32StoresItsValueUnchanged) { EXPECT_EQ(stored(DType::fp32, 1.0F + 0x1p-23F), 1.0F + 0x1p-23F); }

/// Returns the value after it was stored in memory and read back.
float read_back(DType dtype, float value) {
  std::array<std::byte, 4> bytes{};
  const std::span<std::byte> memory(bytes.data(), static_cast<std::size_t>(bytes_of(dtype)));
  encode(dtype, {&value, 1}, memory);
  float result = 0.0F;
  decode(dtype, memory, {&result, 1});
  return result;
}

TEST(Rounding, MemoryKeepsStoredValues) {
  Random random(3);
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32}) {
    for (int i = 0; i < 20000; ++i) {
      const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random.next() >> 32U));
      const float near = random.uniform() * std::ldexp(1.0F, static_cast<int>(random.integer(26)));
      for (const float number : {value, near}) {
        if (!std::isnan(number)) {
          EXPECT_EQ(std::bit_cast<std::uint32_t>(read_back(dtype, number)),
                    std::bit_cast<std::uint32_t>(stored(dtype, number)))
              << name_of(dtype) << " " << number;
        }
      }
    }
    for (const float number : {0.0F, -0.0F, infinity, -infinity}) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(read_back(dtype, number)), std::bit_cast<std::uint32_t>(number));
    }
    EXPECT_TRUE(std::isnan(read_back(dtype, std::bit_cast<float>(0x7f800001U))));
    EXPECT_TRUE(std::isnan(read_back(dtype, std::numeric_limits<float>::quiet_NaN())));
  }
}

TEST(Rounding, NanIsStoredWithTheBitsThatMemoryKeeps) {
  const auto bits_of = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  const auto poison = std::bit_cast<float>(0xffffffffU);
  EXPECT_EQ(bits_of(stored(DType::bf16, poison)), 0xffff0000U);
  EXPECT_EQ(bits_of(stored(DType::fp16, poison)), 0xffffe000U);
  EXPECT_EQ(bits_of(stored(DType::fp32, poison)), 0xffffffffU);
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32, DType::fp8}) {
    for (const std::uint32_t bits : {0xffffffffU, 0x7f800001U, 0xff802001U, 0x7fc00000U, 0x7fff1234U}) {
      const auto value = std::bit_cast<float>(bits);
      EXPECT_EQ(bits_of(read_back(dtype, value)), bits_of(stored(dtype, value))) << name_of(dtype) << " " << bits;
    }
  }
}

TEST(Rounding, AllSixteenBitsComeBackFromMemory) {
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
      const std::array bytes{static_cast<std::byte>(bits & 0xffU), static_cast<std::byte>(bits >> 8U)};
      float value = 0.0F;
      decode(dtype, bytes, {&value, 1});
      std::array<std::byte, 2> encoded{};
      encode(dtype, {&value, 1}, encoded);
      EXPECT_EQ(encoded, bytes) << name_of(dtype) << " " << bits;
    }
  }
}

TEST(Rounding, PoisonIsNanInEveryDtype) {
  const std::array<std::byte, 4> poison{std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32, DType::fp8}) {
    float value = 0.0F;
    decode(dtype, std::span(poison).first(static_cast<std::size_t>(bytes_of(dtype))), {&value, 1});
    EXPECT_TRUE(std::isnan(value));
  }
}

TEST(Rounding, ZeroKeepsItsSignAndNanAndInfinityStay) {
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32}) {
    EXPECT_EQ(stored(dtype, 0.0F), 0.0F);
    EXPECT_TRUE(std::signbit(stored(dtype, -0.0F)));
    EXPECT_TRUE(std::isnan(stored(dtype, std::numeric_limits<float>::quiet_NaN())));
    EXPECT_TRUE(
        std::isnan(stored(dtype, std::bit_cast<float>(0x7f800001U))));  // truncation to 16 bits would give infinity
    EXPECT_EQ(stored(dtype, infinity), infinity);
    EXPECT_EQ(stored(dtype, -infinity), -infinity);
  }
}

TEST(Rounding, EveryBf16NumberStaysUnchanged) {
  for (std::uint32_t upper = 0; upper < 0x10000U; ++upper) {
    const auto value = std::bit_cast<float>(upper << 16U);
    if (!std::isnan(value)) {
      ASSERT_EQ(stored(DType::bf16, value), value);
    }
  }
}

TEST(Rounding, ErrorsAreAtMostTheRoundoff) {
  Random random(5);
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32}) {
    double worst = 0.0;
    for (int i = 0; i < 100'000; ++i) {
      const float value = std::ldexp(random.uniform(), static_cast<int>(random.integer(30)) - 15);
      const Roundoff roundoff = roundoff_of(dtype);
      const double error = std::abs(static_cast<double>(stored(dtype, value)) - static_cast<double>(value));
      const double allowed = roundoff.relative * std::abs(static_cast<double>(value)) + roundoff.absolute;
      ASSERT_LE(error, allowed) << name_of(dtype) << " " << value;
      worst = std::max(worst, error / allowed);
    }
    EXPECT_GT(worst, dtype == DType::fp32 ? -1.0 : 0.9) << name_of(dtype);
  }
}

TEST(Rounding, IntegersAreExactUpToTheSignificantBits) {
  EXPECT_EQ(largest_exact_integer(DType::bf16), 256.0);
  EXPECT_EQ(largest_exact_integer(DType::fp16), 2048.0);
  EXPECT_EQ(largest_exact_integer(DType::fp32), 16'777'216.0);
}

TEST(Rounding, Fp8TiesToEvenAndSaturates) {
  EXPECT_EQ(stored(DType::fp8, 1.0F), 1.0F);
  EXPECT_EQ(stored(DType::fp8, 17.0F), 16.0F);  // between 16 and 18: the even one
  EXPECT_EQ(stored(DType::fp8, 19.0F), 20.0F);  // between 18 and 20: the even one
  EXPECT_EQ(stored(DType::fp8, -17.01F), -18.0F);
  EXPECT_EQ(stored(DType::fp8, 432.0F), 416.0F + 32.0F);  // a tie, up to the largest value
  EXPECT_EQ(stored(DType::fp8, 449.0F), 448.0F);
  EXPECT_EQ(stored(DType::fp8, -1e30F), -448.0F);
  EXPECT_EQ(stored(DType::fp8, infinity), 448.0F);
  EXPECT_EQ(stored(DType::fp8, 0x1p-9F), 0x1p-9F);
  EXPECT_EQ(stored(DType::fp8, 0x1p-10F), 0.0F);  // a tie
  EXPECT_TRUE(std::signbit(stored(DType::fp8, -0x1p-10F)));
  EXPECT_EQ(stored(DType::fp8, 0x3p-11F), 0x1p-9F);
  EXPECT_EQ(stored(DType::fp8, 0x1p-6F - 0x1p-11F), 0x1p-6F);  // up into the normal numbers
  EXPECT_TRUE(std::isnan(stored(DType::fp8, std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(largest_exact_integer(DType::fp8), 16.0);
}

TEST(Rounding, AllEightBitsComeBackFromMemory) {
  for (std::uint32_t bits = 0; bits < 0x100U; ++bits) {
    const std::array bytes{static_cast<std::byte>(bits)};
    float value = 0.0F;
    decode(DType::fp8, bytes, {&value, 1});
    std::array<std::byte, 1> encoded{};
    encode(DType::fp8, {&value, 1}, encoded);
    EXPECT_EQ(encoded[0], std::isnan(value) ? std::byte{0x7f} : bytes[0]) << bits;
    EXPECT_EQ(std::isnan(value), (bits & 0x7fU) == 0x7fU) << bits;
  }
}

TEST(Rounding, Fp8ErrorsAreAtMostTheRoundoff) {
  Random random(7);
  const Roundoff roundoff = roundoff_of(DType::fp8);
  double worst = 0.0;
  for (int i = 0; i < 100'000; ++i) {
    const float value = std::ldexp(random.uniform(), static_cast<int>(random.integer(8)));
    const double error = std::abs(static_cast<double>(stored(DType::fp8, value)) - static_cast<double>(value));
    const double allowed = roundoff.relative * std::abs(static_cast<double>(value)) + roundoff.absolute;
    ASSERT_LE(error, allowed) << value;
    EXPECT_EQ(read_back(DType::fp8, value), stored(DType::fp8, value));
    worst = std::max(worst, error / allowed);
  }
  EXPECT_GT(worst, 0.9);
}

TEST(Rounding, TensorsCannotBeStoredInFp8) {
  EXPECT_FALSE(can_store(DType::fp8));
  EXPECT_TRUE(can_store(DType::fp16));
}

}  // namespace
}  // namespace commfuse::validate
