// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/check_point.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "model/check.h"
#include "model/schedule/check_program.h"
#include "model/schedule/scope.h"

namespace commfuse::validate {

namespace {

struct BlockSizes {
  std::int64_t tokens, hidden, other;
};

constexpr std::array block_sizes{BlockSizes{3, 5, 2}, BlockSizes{8, 24, 6}};

/// No more elements in a dimension that is cut across ranks: integers up to 2 (after an activation) times weights up to
/// 1 then sum to at most 256, up to which bf16 counts exactly.
constexpr std::int64_t longest_exact_sum = 128;
static_assert(most_ranks * block_sizes[0].other <= longest_exact_sum);

/// Two query heads and one kv head of two elements a rank, or one of each where more would not sum exactly.
constexpr std::int64_t head = 2;
std::int64_t query_columns(const Dimension& dimension) {
  return head * std::clamp(longest_exact_sum / dimension.blocks / head, std::int64_t{1}, std::int64_t{2});
}

std::int64_t block_size(const Dimension& dimension, const BlockSizes& block, bool attends) {
  if (dimension.name == "tokens") {
    return block.tokens;
  }
  if (attends && dimension.name == "attention") {
    return query_columns(dimension);
  }
  if (attends && dimension.name == "qkv") {
    return query_columns(dimension) + 2 * head;
  }
  if (dimension.name == "head") {
    return head;
  }
  if (dimension.name == "batch") {
    return block.tokens % 2 == 0 ? 2 : block.tokens;
  }
  return dimension.name == "hidden" ? block.hidden : std::min(block.other, longest_exact_sum / dimension.blocks);
}

}  // namespace

std::span<const CheckedOperation> checked_operations() {
  static const std::array operations{
      CheckedOperation{"ag_gemm", "ag_gemm", operation_of(Scope::qkv, true)},
      CheckedOperation{"gemm_rs", "gemm_rs", operation_of(Scope::out_proj, true)},
      CheckedOperation{"attention", "attention", operation_of(Scope::attention, true)},
      CheckedOperation{"mlp", "mlp_swiglu", operation_of(Scope::mlp, true)},
      CheckedOperation{"mlp", "mlp_gelu", operation_of(Scope::mlp, false)},
      CheckedOperation{"layer", "layer", operation_of(Scope::layer, true)},
      CheckedOperation{"mlp_ar", "mlp_ar", operation_of(Scope::mlp_ar, true)},
  };
  return operations;
}

Program program_of(const CheckPoint& point) {
  return generate(point.operation->operation, point.ranks, *point.strategy, point.options);
}

std::vector<Sizes> checked_sizes(const Program& program) {
  std::vector<Sizes> all;
  for (const BlockSizes& block : block_sizes) {
    Sizes sizes;
    const bool attends = std::ranges::any_of(
        program.tensors, [](const Tensor& tensor) { return tensor.definition == Tensor::Definition::attention; });
    for (const Dimension& dimension : program.dimensions) {
      sizes.block.push_back(block_size(dimension, block, attends));
    }
    all.push_back(std::move(sizes));
  }
  return all;
}

CheckResult check_point(const CheckPoint& point) {
  check(point.ranks <= most_ranks, "a point has at most most_ranks ranks");
  const auto program = std::make_shared<const Program>(program_of(point));
  CheckResult result{.point = point,
                     .parameters = point.strategy->describe(point.options),
                     .ops = static_cast<std::int64_t>(program->ops.size())};
  for (const Finding& finding : check_program(*program).findings) {
    result.findings.push_back(finding.sentence);
  }
  if (result.findings.empty()) {
    for (const Sizes& sizes : checked_sizes(*program)) {
      result.verdict += verify(program, sizes, {.seed = point.seed});
    }
  }
  return result;
}

}  // namespace commfuse::validate
