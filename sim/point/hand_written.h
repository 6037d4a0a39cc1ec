// SPDX-License-Identifier: Apache-2.0
// Schedules from files, so that they can be run at points and stand beside generated ones.
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

/// Whole dimensions in elements, by name: what --size gives for those that the model does not.
using OwnSizes = std::map<std::string, std::int64_t, std::less<>>;

/// A proved schedule of a file. It runs at points of its own number of ranks, dtype and scope only.
struct HandWritten {
  std::string file;  // "doubling.yaml"
  Structure structure;
  OwnSizes sizes;                   // of its dimensions that the model does not give
  DType dtype = DType::bf16;        // of its products
  std::string work;                 // as work_of
  std::optional<Scope> scope;       // the scope that does the same work; none: a work of its own
  std::optional<bool> gated_mlp{};  // where the scope depends on it: the kind of MLP it is written for

  [[nodiscard]] const Program& program() const { return structure.program(); }
  [[nodiscard]] std::int32_t ranks() const { return program().mesh.ranks(); }
};

/// The result column `scope` of a work of its own.
inline constexpr std::string_view own_work = "file";

/// Requires a program that passed check_program. `sizes` may hold more than this file needs. Throws ConfigError when a
/// dimension has no size, or when its products have several dtypes.
HandWritten hand_written(ScheduleFile file, const OwnSizes& sizes);

/// Throws ConfigError for a size that no file needs.
void require_needed(const OwnSizes& sizes, std::span<const ScheduleFile> files);

/// What the settings of a grid leave open (ranks, dtype, scope), its files say: one value becomes the setting, several
/// an axis. Throws ConfigError where a setting and a file disagree, and where works of their own are compared with
/// others. `generated`: strategies are run beside the files.
void fit(Grid& grid, std::span<const HandWritten> files, bool generated);

/// Whether the file belongs to the point.
bool belongs(const HandWritten& schedule, const Point& point);

/// Elements a block at a point. Throws ConfigError, with the remedy, when the file is for another kind of MLP, a
/// dimension does not divide, heads come out broken, or a matrix is too large to count.
Sizes sizes_at(const HandWritten& schedule, const Point& point);

/// Model FLOPs at a point, all ranks together: those of its scope; of a work of its own the products and attention of
/// `unfused` times the ranks.
Flops flops_of(const HandWritten& schedule, const Point& point, const Sizes& sizes);

}  // namespace commfuse
