// SPDX-License-Identifier: Apache-2.0
#include "model/cost/quantization.h"

#include <algorithm>
#include <cmath>

#include "model/check.h"
#include "model/cost/op_time.h"

namespace commfuse {

namespace {

constexpr double bytes_converted = 3.0;  // per element: 2 bytes read, 1 written
constexpr double bytes_scanned = 2.0;    // per element
constexpr double elements_of_conversion_block = 2048.0;
constexpr double most_conversion_blocks = 65536.0;
constexpr double elements_of_scale_block = 1024.0;
constexpr double most_scale_blocks = 1024.0;
constexpr double most_quantized_bytes = 4611686018427387904.0;  // 2^62

double elements_of(const QuantizationSize& size) {
  return static_cast<double>(size.rows) * static_cast<double>(size.width);
}

/// Returns the time of a byte, relative to a byte from the HBM. For both the conversion and the search for the scale,
/// the whole input and output (3 bytes per element) pass through the L2 between two uses of a byte, because a framework
/// runs the two one after the other.
double cost_of_quantized_byte(const Accelerator& accelerator, const Quantization& fitted, double elements,
                              double cached_cost) {
  const double capacity = fitted.resident_share.value * static_cast<double>(accelerator.l2_capacity.count);
  const double kept = share_kept({.between = bytes_converted * elements, .capacity = capacity});
  return kept * cached_cost + 1.0 - kept;
}

double conversion_call_seconds(const Accelerator& accelerator, const Quantization& fitted, double elements) {
  const double cost = cost_of_quantized_byte(accelerator, fitted, elements, fitted.cached_cost.value);
  const double stream =
      bytes_converted * elements * cost / (accelerator.hbm_bandwidth.value.value * fitted.hbm_efficiency.value);
  const double blocks = std::min(most_conversion_blocks, std::ceil(elements / elements_of_conversion_block));
  const double work = stream + blocks * to_seconds(fitted.block.value) / accelerator.sms;
  const double start = to_seconds(fitted.start.value);
  return to_seconds(fitted.call.value) + (start <= 0.0 && work <= 0.0 ? 0.0 : root_of_fourths(start, work));
}

double scale_call_seconds(const Accelerator& accelerator, const Quantization& fitted, double elements) {
  const double cost = cost_of_quantized_byte(accelerator, fitted, elements, fitted.scale_cached_cost.value);
  const double blocks = std::min(most_scale_blocks, std::ceil(elements / elements_of_scale_block));
  return to_seconds(fitted.scale_call.value) + blocks / most_scale_blocks * to_seconds(fitted.scale_join.value) +
         bytes_scanned * elements * cost / (accelerator.hbm_bandwidth.value.value * fitted.scale_efficiency.value);
}

}  // namespace

Bytes quantization_traffic(const QuantizationSize& size) {
  const double bytes =
      (size.part == QuantizationPart::conversion ? bytes_converted : bytes_scanned) * elements_of(size);
  return Bytes{std::llround(std::min(bytes, most_quantized_bytes))};
}

const Quantization* quantization_of(const Accelerator& accelerator, DType dtype) {
  return dtype == DType::fp8 && accelerator.quantization ? &*accelerator.quantization : nullptr;
}

Duration quantization_time(const Accelerator& accelerator, const QuantizationSize& size) {
  check(size.rows >= 1 && size.width >= 1, "a quantized tensor has elements");
  const Quantization* const fitted = quantization_of(accelerator, size.dtype);
  check(fitted != nullptr, "the accelerator has fitted parameters for quantization");
  const double elements = elements_of(size);
  return op_time(size.part == QuantizationPart::conversion ? conversion_call_seconds(accelerator, *fitted, elements)
                                                           : scale_call_seconds(accelerator, *fitted, elements),
                 "a quantization");
}

}  // namespace commfuse
