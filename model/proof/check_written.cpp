// SPDX-License-Identifier: Apache-2.0
#include "model/proof/check_written.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "model/proof/check_program.h"

namespace commfuse {

namespace {

/// Number of blocks that GEMMs or attention over the same dimensions compute on a rank.
struct Computed {
  bool is_gemm = true;
  std::array<DimensionId, 3> dimensions{};  // m, n and k, or queries, columns and qkv
  double blocks = 0.0;

  [[nodiscard]] bool same_kind(const Computed& other) const {
    return is_gemm == other.is_gemm && dimensions == other.dimensions;
  }
};

/// Returns the blocks that a GEMM or an attention of this shape computes; nullopt for other shapes.
std::optional<Computed> computed_by(const Shape& shape) {
  if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
    return Computed{.dimensions = {gemm->m.dimension, gemm->n.dimension, gemm->k.dimension},
                    .blocks = 1.0 * gemm->m.blocks * gemm->n.blocks * gemm->k.blocks};
  }
  if (const auto* attention = std::get_if<AttentionShape>(&shape)) {
    return Computed{
        .is_gemm = false,
        .dimensions = {attention->queries.dimension, attention->columns.dimension, attention->qkv.dimension},
        .blocks = 1.0 * attention->queries.blocks * attention->columns.blocks};
  }
  return std::nullopt;
}

/// Returns the share of the ranks for which a predicate holds.
double share_of_ranks(const Mesh& mesh, const Predicate& where) {
  const double extent = mesh.axes[static_cast<std::size_t>(where.axis)].extent;
  switch (where.relation) {
    case Relation::always: return 1.0;
    case Relation::equal: return 1.0 / extent;
    case Relation::not_equal: return 1.0 - 1.0 / extent;
    case Relation::less: return where.value / extent;
    case Relation::at_least: return 1.0 - where.value / extent;
  }
  return 1.0;
}

/// Adds the blocks to the entry of their kind.
void add_to(std::vector<Computed>& kinds, const Computed& computed) {
  const auto known = std::ranges::find_if(kinds, [&](const Computed& kind) { return kind.same_kind(computed); });
  if (known == kinds.end()) {
    kinds.push_back(computed);
  } else {
    known->blocks += computed.blocks;
  }
}

/// Returns the blocks that the unfused work states, one entry for each kind.
std::vector<Computed> stated_by(const Program& program) {
  std::vector<Computed> kinds;
  for (const Shape& shape : program.unfused) {
    if (const std::optional<Computed> computed = computed_by(shape)) {
      add_to(kinds, *computed);
    }
  }
  return kinds;
}

double blocks_of(const std::vector<Computed>& kinds, const Computed& of) {
  const auto known = std::ranges::find_if(kinds, [&](const Computed& kind) { return kind.same_kind(of); });
  return known == kinds.end() ? 0.0 : known->blocks;
}

/// Returns the blocks that the essential ops compute on the average rank.
double computed_by_ops(const Program& program, const Computed& kind) {
  double blocks = 0.0;
  for (const Op& op : program.ops) {
    const std::optional<Computed> computed = computed_by(program.shapes[op.shape]);
    if (computed && op.purpose == Purpose::essential && computed->same_kind(kind)) {
      blocks += computed->blocks * share_of_ranks(program.mesh, op.where);
    }
  }
  return blocks;
}

/// Returns the kind of the GEMM or attention that defines a tensor, with the blocks that it computes for each block of
/// the tensor; nothing for inputs and functions.
std::optional<Computed> computed_for(const Program& program, const Tensor& tensor) {
  if (tensor.definition != Tensor::Definition::product && tensor.definition != Tensor::Definition::attention) {
    return std::nullopt;
  }
  const Tensor& operand = program.tensors[position(tensor.a)];
  const bool is_gemm = tensor.definition == Tensor::Definition::product;
  const Extent third = is_gemm ? contraction_of(tensor, operand) : operand.columns;
  return Computed{.is_gemm = is_gemm,
                  .dimensions = {tensor.rows.dimension, tensor.columns.dimension, third.dimension},
                  .blocks = is_gemm ? 1.0 * third.blocks : 1.0};
}

/// A rectangle of blocks of a tensor. `bottom` and `right` are the first row and column beyond it.
struct HeldBlocks {
  std::int64_t top = 0;
  std::int64_t bottom = 0;
  std::int64_t left = 0;
  std::int64_t right = 0;
};

/// Returns the number of blocks in at least one of the rectangles, or 0 if counting them would take too long.
double blocks_in(const std::vector<HeldBlocks>& rectangles) {
  constexpr std::size_t max_cells = std::size_t{1} << 18U;
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> columns;
  for (const HeldBlocks& rectangle : rectangles) {
    rows.insert(rows.end(), {rectangle.top, rectangle.bottom});
    columns.insert(columns.end(), {rectangle.left, rectangle.right});
  }
  for (std::vector<std::int64_t>* const edges : {&rows, &columns}) {
    std::ranges::sort(*edges);
    edges->erase(std::unique(edges->begin(), edges->end()), edges->end());
  }
  if (rows.size() * columns.size() > max_cells) {
    return 0.0;
  }
  // The sum of all changes above and to the left of a cell is the number of rectangles that cover it.
  std::vector<std::int32_t> changes(rows.size() * columns.size());
  const auto change_at = [&](std::int64_t row, std::int64_t column) -> std::int32_t& {
    const auto i = static_cast<std::size_t>(std::lower_bound(rows.begin(), rows.end(), row) - rows.begin());
    const auto j = static_cast<std::size_t>(std::lower_bound(columns.begin(), columns.end(), column) - columns.begin());
    return changes[i * columns.size() + j];
  };
  for (const HeldBlocks& rectangle : rectangles) {
    ++change_at(rectangle.top, rectangle.left);
    --change_at(rectangle.top, rectangle.right);
    --change_at(rectangle.bottom, rectangle.left);
    ++change_at(rectangle.bottom, rectangle.right);
  }
  double blocks = 0.0;
  std::vector<std::int32_t> covers(columns.size());  // by column: the changes in the rows so far
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
    std::int32_t cover = 0;
    for (std::size_t j = 0; j + 1 < columns.size(); ++j) {
      covers[j] += changes[i * columns.size() + j];
      cover += covers[j];
      blocks += cover > 0
                    ? static_cast<double>(rows[i + 1] - rows[i]) * static_cast<double>(columns[j + 1] - columns[j])
                    : 0.0;
    }
  }
  return blocks;
}

/// Returns for each tensor the first tensor that is equal to it by definition. A schedule may compute equal tensors
/// only once.
std::vector<std::size_t> first_equals(const Program& program) {
  using Definition =
      std::tuple<Tensor::Definition, Function, bool, bool, bool, std::size_t, std::size_t, std::int32_t, std::int32_t>;
  std::map<Definition, std::size_t> known;
  std::vector<std::size_t> firsts(program.tensors.size());
  std::iota(firsts.begin(), firsts.end(), std::size_t{0});
  for (std::size_t id = 0; id < program.tensors.size(); ++id) {
    const Tensor& tensor = program.tensors[id];
    if (tensor.definition == Tensor::Definition::input) {
      continue;
    }
    const std::size_t a = firsts[position(tensor.a)];
    const std::size_t b = tensor.b == no_tensor ? a : firsts[position(tensor.b)];
    if (tensor.definition == Tensor::Definition::function &&
        (tensor.function == Function::copy || tensor.function == Function::add)) {
      firsts[id] = a;
      continue;
    }
    const bool is_sum = tensor.definition == Tensor::Definition::function && b < a;
    firsts[id] =
        known
            .try_emplace({tensor.definition, tensor.function, tensor.causal, tensor.transpose_a, tensor.transpose_b,
                          is_sum ? b : a, is_sum ? a : b, tensor.rows.blocks, tensor.columns.blocks},
                         id)
            .first->second;
  }
  return firsts;
}

/// Returns for each tensor the rectangles that the ranks hold at the end. Omits contents beyond a limit, because a few
/// lines of text can describe more rectangles than memory can hold.
std::vector<std::vector<HeldBlocks>> held_at_the_end(const Program& program, const std::vector<std::size_t>& firsts) {
  constexpr std::int64_t max_rectangles = std::int64_t{1} << 20U;
  std::vector<std::vector<HeldBlocks>> held(program.tensors.size());
  std::int64_t rectangles = 0;
  for (const Content& content : program.final) {
    const bool is_fixed = content.row.fixed() && content.column.fixed();
    const Rank ranks = is_fixed ? 1 : program.mesh.ranks();
    rectangles += ranks;
    if (rectangles > max_rectangles) {
      break;
    }
    for (Rank rank = 0; rank < ranks; ++rank) {
      const Coordinates coordinates = program.mesh.coordinates(rank);
      const std::int64_t row = content.row.at(program.mesh, coordinates);
      const std::int64_t column = content.column.at(program.mesh, coordinates);
      held[firsts[position(content.tensor)]].push_back(
          {row, row + content.here.rows, column, column + content.here.columns});
    }
  }
  return held;
}

/// Returns for each tensor a lower bound on the blocks that the final contents of all ranks need. An operand counts
/// only if the tensor that it defines is needed as a whole. Tensors that are equal by definition count once.
std::vector<double> needed_blocks(const Program& program) {
  const std::vector<std::size_t> firsts = first_equals(program);
  const std::vector<std::vector<HeldBlocks>> held = held_at_the_end(program, firsts);
  std::vector<double> needed(program.tensors.size());
  for (std::size_t id = program.tensors.size(); id-- > 0;) {  // operands precede the tensors that they define
    const Tensor& tensor = program.tensors[id];
    const auto whole = [&](std::size_t of) {
      return 1.0 * program.tensors[of].rows.blocks * program.tensors[of].columns.blocks;
    };
    needed[id] = std::max(needed[id], blocks_in(held[id]));
    if (needed[id] == whole(id) && tensor.definition != Tensor::Definition::input) {
      for (const TensorId operand : {tensor.a, tensor.b}) {
        if (operand != no_tensor) {
          needed[firsts[position(operand)]] = whole(firsts[position(operand)]);
        }
      }
    }
  }
  return needed;
}

/// Returns the GEMMs and attention that the final contents need on the average rank, one entry for each kind.
std::vector<Computed> needed_by_final(const Program& program) {
  std::vector<Computed> kinds;
  const std::vector<double> blocks = needed_blocks(program);
  for (std::size_t id = 0; id < program.tensors.size(); ++id) {
    std::optional<Computed> computed = computed_for(program, program.tensors[id]);
    if (!computed || blocks[id] == 0.0) {
      continue;
    }
    computed->blocks *= blocks[id] / program.mesh.ranks();
    add_to(kinds, *computed);
  }
  return kinds;
}

/// Returns, for example, "GEMM tokens x qkv x hidden".
std::string kind_in_words(const Program& program, const Computed& kind) {
  const auto name = [&](std::size_t i) -> const std::string& {
    return program.dimensions[position(kind.dimensions.at(i))].name;
  };
  return kind.is_gemm ? fmt::format("GEMM {} x {} x {}", name(0), name(1), name(2))
                      : fmt::format("attention {} x {}", name(0), name(1));
}

}  // namespace

CheckReport check_written(const Program& program) {
  CheckReport report = check_program(program);
  if (!report.ok()) {
    return report;
  }
  constexpr double rounding = 1e-9;  // allows for rounded shares of ranks
  const std::vector<Computed> stated = stated_by(program);
  const auto add = [&](const Computed& kind, double stated_blocks, std::string_view contradiction, double blocks) {
    report.findings.push_back(
        {FindingKind::contents,
         fmt::format("unfused has {:g} block{} of {} per rank, but {} {:g}; list the work of one rank before any "
                     "cutting",
                     stated_blocks, stated_blocks == 1.0 ? "" : "s", kind_in_words(program, kind), contradiction,
                     blocks)});
  };
  for (const Computed& kind : stated) {
    const double blocks = computed_by_ops(program, kind);
    if (kind.blocks > blocks * (1.0 + rounding)) {
      add(kind, kind.blocks, "the ops compute", blocks);
    }
  }
  for (const Computed& kind : needed_by_final(program)) {
    const double blocks = blocks_of(stated, kind);
    if (blocks < kind.blocks * (1.0 - rounding)) {
      add(kind, blocks, "the final contents need", kind.blocks);
    }
  }
  return report;
}

}  // namespace commfuse
