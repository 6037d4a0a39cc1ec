// SPDX-License-Identifier: Apache-2.0
// Scores tables of quantization of activations to fp8.
#include "model/cost/quantization.h"

#include <fmt/format.h>

#include "sim/score/scored_calls.h"
#include "sim/score/sizes.h"

namespace commfuse::score {

namespace {

constexpr std::int64_t fewest_bytes_of_traffic = std::int64_t{4} << 20;  // below, a call takes longer than its traffic

struct QuantizationCalls {
  using Columns = QuantizationColumns;
  static constexpr bool has_frameworks = false;

  static std::string group(std::string_view hw, const QuantizationSize& size) { return quantization_group(hw, size); }
  static std::string why_not(const Columns& columns, const Row& row, const QuantizationSize& size,
                             const Machine& machine) {
    std::string why_not = columns.why_not(row);
    return why_not.empty() && quantization_of(machine.accelerator, size.dtype) == nullptr
               ? fmt::format("quantization on {}, which has no fit of it", machine.name)
               : why_not;
  }
  static std::string_view part(const QuantizationSize& size) {
    const bool is_small = quantization_traffic(size).count < fewest_bytes_of_traffic;
    if (size.part == QuantizationPart::scale) {
      return is_small ? "scale, < 4 MiB" : "scale, >= 4 MiB";
    }
    return is_small ? "conversion, < 4 MiB" : "conversion, >= 4 MiB";
  }
  static std::string_view interval_kind(const QuantizationSize&) { return "quantization"; }
  static PricedShape shape(const QuantizationSize& size) { return shape_of(size); }
  static ShapeKey key(const QuantizationSize& size) { return {size.rows, size.width}; }
  static Duration time(const Accelerator& accelerator, const QuantizationSize& size) {
    return quantization_time(accelerator, size);
  }
};

}  // namespace

void score_quantization(const Table& table, Context& context, Tally& tally) {
  score_calls<QuantizationCalls>(table, context, tally);
}

}  // namespace commfuse::score
