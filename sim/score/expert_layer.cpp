// SPDX-License-Identifier: Apache-2.0
// Scores tables of routed-expert layers on one GPU, timed as one call of a serving framework.
#include "model/cost/expert_layer.h"

#include <fmt/format.h>

#include "sim/score/scored_calls.h"
#include "sim/score/sizes.h"

namespace commfuse::score {

namespace {

constexpr std::int64_t most_tokens_of_decoding = 128;

struct ExpertCalls {
  using Columns = ExpertColumns;
  static constexpr bool has_frameworks = false;

  static std::string group(std::string_view hw, const ExpertLayerSize& size) { return expert_layer_group(hw, size); }
  static std::string why_not(const Columns& columns, const Row& row, const ExpertLayerSize& size,
                             const Machine& machine) {
    std::string why_not = columns.why_not(row);
    return why_not.empty() && expert_layer_of(machine.accelerator, size.dtype) == nullptr
               ? fmt::format("experts in {} on {}, which has no fit of them", name_of(size.dtype), machine.name)
               : why_not;
  }
  static std::string_view part(const ExpertLayerSize& size) {
    const bool is_short = size.tokens <= most_tokens_of_decoding;
    if (size.dtype == DType::fp8) {
      return is_short ? "experts in fp8, <= 128 tokens" : "experts in fp8, > 128 tokens";
    }
    return is_short ? "experts in 16 bits, <= 128 tokens" : "experts in 16 bits, > 128 tokens";
  }
  static std::string_view interval_kind(const ExpertLayerSize& size) {
    return size.dtype == DType::fp8 ? "experts, fp8" : "experts";
  }
  static PricedShape shape(const ExpertLayerSize& size) { return shape_of(size); }
  static ShapeKey key(const ExpertLayerSize& size) { return {size.hidden, size.ffn / size.tp, size.experts / size.ep}; }
  static Duration time(const Accelerator& accelerator, const ExpertLayerSize& size) {
    return expert_layer_time(accelerator, size);
  }
};

}  // namespace

void score_expert_layers(const Table& table, Context& context, Tally& tally) {
  score_calls<ExpertCalls>(table, context, tally);
}

}  // namespace commfuse::score
