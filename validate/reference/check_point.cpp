// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/check_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "model/check.h"
#include "model/program/narrowed.h"
#include "model/proof/check_program.h"
#include "model/strategies/scope.h"
#include "validate/reference/check_file.h"

namespace commfuse::validate {

namespace {

struct BlockSizes {
  std::int64_t tokens, hidden, other;
};

constexpr std::array block_sizes{BlockSizes{3, 5, 2}, BlockSizes{8, 24, 6}};

/// Largest size of a dimension that is cut across ranks. Integers up to 2 (after an activation) times weights up to 1
/// then sum to at most 256, up to which bf16 is exact; the same holds for integers up to 1 over gate and up together.
/// Sums over tokens are gradients in fp32, which is exact up to 2^24.
constexpr std::int64_t longest_exact_sum = 128;  // two GEMMs in a row need the thinned data of integer_data()
static_assert(max_ranks * block_sizes[0].other <= longest_exact_sum);

/// Each rank has two query heads and one kv head of two elements each, or a single query head where sums over two would
/// not be exact.
constexpr std::int64_t head = 2;
std::int64_t query_columns(const Dimension& dimension) {
  return head * std::clamp(longest_exact_sum / dimension.blocks / head, std::int64_t{1}, std::int64_t{2});
}

std::int64_t block_size(const Dimension& dimension, const BlockSizes& block) {
  if (dimension.name == "tokens") {
    return block.tokens;
  }
  if (dimension.name == "hidden" && dimension.blocks == 1) {
    return block.hidden;
  }
  return std::clamp(longest_exact_sum / dimension.blocks, std::int64_t{1}, block.other);
}

/// Makes blocks hold whole heads, and tokens whole sequences.
void fit_attention(const Program& program, const AttentionShape& attention, Sizes& sizes) {
  const auto size = [&](DimensionId id) -> std::int64_t& { return sizes.block[position(id)]; };
  const std::int64_t queries = query_columns(program.dimensions[position(attention.columns.dimension)]);
  const std::int64_t tokens = size(attention.keys.dimension);
  size(attention.columns.dimension) = queries;
  size(attention.qkv.dimension) = queries + 2 * head;
  size(attention.head) = head;
  size(attention.batch) = tokens % 2 == 0 ? 2 : tokens;
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
      CheckedOperation{"gemm_ar", "gemm_ar", operation_of(Scope::out_proj_ar, true)},
      CheckedOperation{"mlp_ar", "mlp_ar", operation_of(Scope::mlp_ar, true)},
      CheckedOperation{"ulysses", "ulysses", operation_of(Scope::ulysses, true)},
      CheckedOperation{"ag_gemm_backward", "ag_gemm_backward", operation_of(Scope::gate_up_backward, true)},
      CheckedOperation{"gemm_rs_backward", "gemm_rs_backward", operation_of(Scope::down_backward, true)},
      CheckedOperation{"weight_ag_gemm", "weight_ag_gemm", operation_of(Scope::fsdp_gate_up, true)},
      CheckedOperation{"data_parallel", "data_parallel", operation_of(Scope::data_parallel, true)},
  };
  return operations;
}

CheckPoint point_of(ScheduleFile file, std::uint64_t seed) {
  require_runnable(file);
  CheckPoint point{.ranks = file.program.mesh.ranks(), .seed = seed};
  point.file = std::make_shared<const ScheduleFile>(std::move(file));
  return point;
}

Program program_of(const CheckPoint& point) {
  if (point.file) {
    return point.file->program;
  }
  Program program = generate(point.operation->operation, point.ranks, *point.strategy, point.options);
  return point.wire ? narrowed(std::move(program), *point.wire) : program;
}

/// Returns the strategy's parameters, and the wire's dtype if it is chosen.
std::string parameters_of(const CheckPoint& point) {
  if (point.file) {
    return point.file->name();
  }
  std::string text = parameters_of(*point.strategy, kinds_of(point.operation->operation), point.options);
  if (point.wire) {
    text += fmt::format("{}wire {}", text.empty() ? "" : ", ", name_of(*point.wire));
  }
  return text;
}

std::vector<Sizes> checked_sizes(const Program& program) {
  std::vector<Sizes> checked;
  for (const BlockSizes& block : block_sizes) {
    Sizes sizes;
    for (const Dimension& dimension : program.dimensions) {
      sizes.block.push_back(block_size(dimension, block));
    }
    for (const Shape& shape : program.shapes) {
      if (const auto* attention = std::get_if<AttentionShape>(&shape)) {
        fit_attention(program, *attention, sizes);
      }
    }
    checked.push_back(std::move(sizes));
  }
  return checked;
}

CheckResult check_point(const CheckPoint& point) { return check_point(point, {}); }

CheckResult check_point(const CheckPoint& point, const CheckHow& how, References* references) {
  check(point.ranks <= max_ranks, "a point has at most max_ranks ranks");
  const auto program = std::make_shared<const Program>(program_of(point));
  CheckResult result{.point = point,
                     .executor = how.name,
                     .parameters = parameters_of(point),
                     .ops = static_cast<std::int64_t>(program->ops.size())};
  for (const Finding& finding : check_program(*program).findings) {
    result.findings.push_back(finding.sentence);
  }
  if (result.findings.empty()) {
    for (const Sizes& sizes : point.file ? sizes_for(*point.file, point.seed) : checked_sizes(*program)) {
      result.verdict += verify(program, sizes,
                               {.seed = point.seed,
                                .orders = how.orders,
                                .executor = how.executor,
                                .oracle = how.oracle,
                                .chaos = how.chaos,
                                .library_sums = how.library_sums,
                                .references = references});
    }
    if (how.together) {
      result.verdict = how.together(point.ranks, result.verdict);
    }
  }
  return result;
}

}  // namespace commfuse::validate
