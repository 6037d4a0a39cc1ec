// SPDX-License-Identifier: Apache-2.0
#include "model/proof/check_written.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
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

/// Returns nothing for other shapes.
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

/// Returns the blocks that the unfused work states, one entry for each kind.
std::vector<Computed> stated_by(const Program& program) {
  std::vector<Computed> kinds;
  for (const Shape& shape : program.unfused) {
    const std::optional<Computed> computed = computed_by(shape);
    if (!computed) {
      continue;
    }
    bool known = false;
    for (Computed& kind : kinds) {
      kind.blocks += kind.same_kind(*computed) ? computed->blocks : 0.0;
      known = known || kind.same_kind(*computed);
    }
    if (!known) {
      kinds.push_back(*computed);
    }
  }
  return kinds;
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
  for (const Computed& kind : stated_by(program)) {
    const double blocks = computed_by_ops(program, kind);
    if (kind.blocks > blocks * (1.0 + rounding)) {
      report.findings.push_back(
          {FindingKind::contents,
           fmt::format("unfused has {:g} block{} of {} per rank, but the ops compute {:g}; list the work of one rank "
                       "before any cutting",
                       kind.blocks, kind.blocks == 1.0 ? "" : "s", kind_in_words(program, kind), blocks)});
    }
  }
  return report;
}

}  // namespace commfuse
