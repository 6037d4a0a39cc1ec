// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/data.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "model/check.h"
#include "validate/reference/rounding.h"
#include "validate/reference/unfused.h"
#include "validate/values/random.h"

namespace commfuse::validate {

namespace {

/// Integers are exact in bf16 only up to 256, so bf16 data is -1, 0 and 1.
std::int64_t largest_integer(DType dtype) {
  switch (dtype) {
    case DType::bf16: return 1;
    case DType::fp16: return 2;
    case DType::fp32: return 8;
    case DType::fp8: break;
  }
  check(false, "the reference stores fp32, fp16 and bf16");
  return 0;
}

float integer(Random& random, DType dtype, unsigned thinning) {
  const auto value = static_cast<float>(random.integer(largest_integer(dtype)));
  const bool kept = thinning == 0 || random.next() % (std::uint64_t{1} << thinning) == 0;
  return kept ? value : 0.0F;
}

/// Returns whether some wire carries fp8, which holds few of the values of other dtypes.
bool sends_fp8(const Program& program) {
  return std::ranges::any_of(program.shapes, [](const Shape& shape) {
    const auto* exchange = std::get_if<ExchangeShape>(&shape);
    const auto* collective = std::get_if<CollectiveShape>(&shape);
    return (exchange != nullptr && exchange->wire == DType::fp8) ||
           (collective != nullptr && collective->wire == DType::fp8);
  });
}

/// Returns random bits, except that one bit of the exponent is cleared, which excludes infinity and NaN.
float tag(Random& random, DType dtype) {
  if (dtype == DType::fp8) {
    const std::array bits{static_cast<std::byte>((random.next() >> 56U) & ~std::uint64_t{0x08})};
    float value = 0.0F;
    decode(dtype, bits, {&value, 1});
    return value;
  }
  if (dtype == DType::fp32) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(random.next() >> 32U) & ~0x00800000U);
  }
  const std::uint16_t one_less = dtype == DType::bf16 ? 0x0080U : 0x0400U;
  const auto bits = static_cast<std::uint16_t>((random.next() >> 48U) & ~std::uint64_t{one_less});
  std::array<std::byte, sizeof bits> bytes{};
  std::memcpy(bytes.data(), &bits, sizeof bits);
  float value = 0.0F;
  decode(dtype, bytes, {&value, 1});
  return value;
}

float element(Random& random, DType dtype, DataKind kind, unsigned thinning) {
  switch (kind) {
    case DataKind::integers: return integer(random, dtype, thinning);
    case DataKind::random: return stored(dtype, random.uniform());
    case DataKind::tags: return tag(random, dtype);
  }
  return 0.0F;
}

constexpr unsigned max_thinning = 8;

}  // namespace

std::vector<Matrix<float>> input_data(const Program& program, const Sizes& sizes, DataKind kind, std::uint64_t seed,
                                      unsigned thinning) {
  std::vector<Matrix<float>> data(program.tensors.size());
  const bool has_fp8_wire = sends_fp8(program);  // tags must survive such a wire unchanged
  for (std::size_t id = 0; id < program.tensors.size(); ++id) {
    const Tensor& tensor = program.tensors[id];
    if (tensor.definition != Tensor::Definition::input) {
      continue;
    }
    Random random(Random(seed).next() + id);
    data[id] = Matrix<float>(sizes.elements(tensor.rows), sizes.elements(tensor.columns));
    for (float& value : data[id].values()) {
      value = element(random, kind == DataKind::tags && has_fp8_wire ? DType::fp8 : tensor.dtype, kind, thinning);
    }
  }
  return data;
}

IntegerData integer_data(const Program& program, const Sizes& sizes, std::uint64_t seed) {
  for (unsigned thinning = 0; thinning <= max_thinning; ++thinning) {
    IntegerData data{.inputs = input_data(program, sizes, DataKind::integers, seed, thinning), .unfused = {}};
    data.unfused = unfused(program, sizes, data.inputs, Functions::integer);
    if (sums_are_exact(program, data.unfused)) {
      return data;
    }
  }
  check(false, "integer data requires sizes that keep every sum exact");
  return {};
}

}  // namespace commfuse::validate
