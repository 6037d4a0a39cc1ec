// SPDX-License-Identifier: Apache-2.0
// Schedules from files that can be run at points and compared with generated ones.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/program_text/load_schedule.h"
#include "sim/point/structure.h"

namespace commfuse {

struct Grid;
struct Point;

/// Sizes of whole dimensions in elements, by name: --size sets the sizes that the model does not determine.
using OwnSizes = std::map<std::string, std::int64_t, std::less<>>;

/// A proved schedule from a file. It runs only at points with its own number of ranks, dtype and scope.
struct HandWritten {
  std::string file;  // "doubling.yaml"
  Structure structure;
  OwnSizes sizes;                   // sizes of its dimensions that the model does not define
  DType dtype = DType::bf16;        // dtype of its GEMMs
  std::string work;                 // text of work_of()
  std::optional<Scope> scope;       // scope with the same work; nothing if no scope has this work
  std::optional<bool> gated_mlp{};  // the kind of MLP that it computes, if the scope depends on it

  [[nodiscard]] const Program& program() const { return structure.program(); }
  [[nodiscard]] std::int32_t ranks() const { return program().mesh.ranks(); }
};

/// Value of the result column `scope` for a schedule whose work belongs to no scope.
inline constexpr std::string_view own_work = "file";

/// Requires the program of `file` to have passed check_program(). `sizes` may contain more sizes than this file needs.
/// Throws ConfigError if a dimension has no size, if the GEMMs have several dtypes, or if attention has different
/// numbers of query and key rows.
HandWritten hand_written(ScheduleFile file, const OwnSizes& sizes);

/// Throws ConfigError for a size that no file needs or that the model defines.
void require_needed(const OwnSizes& sizes, std::span<const ScheduleFile> files);

/// Takes settings that the grid leaves open (ranks, dtype, scope) from the files: one value becomes the setting,
/// several values become an axis. Throws ConfigError if a setting and a file disagree, and if a file whose work belongs
/// to no scope is compared with schedules or implementations that do other work. `generated` states whether generated
/// schedules run in addition to the files.
void fit(Grid& grid, std::span<const HandWritten> files, bool generated);

/// Returns whether the file belongs to the point.
bool belongs(const HandWritten& schedule, const Point& point);

/// Returns the elements per block at a point. Throws ConfigError if the file is for another kind of MLP, if a
/// dimension does not divide into its blocks, if the model lacks the file's scope or cannot be split over the ranks, if
/// a head would be split, or if a matrix is too large to count.
Sizes sizes_at(const HandWritten& schedule, const Point& point);

/// Returns the model FLOPs of all ranks at a point: the FLOPs of the scope or, for a schedule without a scope, the
/// FLOPs of GEMMs and attention in `unfused`, times the ranks.
Flops flops_of(const HandWritten& schedule, const Point& point, const Sizes& sizes);

}  // namespace commfuse
