// SPDX-License-Identifier: Apache-2.0
// A single schedule, chosen by settings or read from a file, for commands that accept only one.
#pragma once

#include <optional>
#include <string>

#include "reports/export/tasks.h"
#include "sim/commands/schedule_files.h"
#include "sim/commands/setting_flags.h"
#include "sim/point/request.h"

namespace commfuse::sim {

struct OneScheduleArguments {
  ScheduleArguments files;  // At most one file, and --size.
  SettingArguments settings;
};

enum class ScheduleUse : std::uint8_t {
  unpriced,  // Structure only; the point of the settings serves only to choose the fastest of several schedules.
  priced,    // Structure, sizes and costs, at the point of the settings.
};

struct OneSchedule {
  Structure structure;
  Sizes sizes;  // Empty if the schedule is not priced.
  Costs costs;  // Empty if the schedule is not priced.

  [[nodiscard]] const Program& program() const { return structure.program(); }
  [[nodiscard]] reports::ExportInput input() const { return {structure.plan.lowered, sizes, costs}; }
};

/// Returns a note, in a whole line, on how far a schedule accounts for the experts of the point's model; empty for a
/// model whose GEMM has no experts.
std::string note_on_experts(const Point& point, ScheduleUse use);

/// Returns the schedule. If a strategy has several schedules, returns the fastest at the point, as `run` does, and
/// names it on stderr. Returns nothing if the proof of a file fails, after printing the findings on stderr. Throws
/// ConfigError if the arguments choose no schedule, several strategies, or several schedules by `--variants all`, or if
/// they do not fit the file.
std::optional<OneSchedule> one_schedule(const OneScheduleArguments& arguments, ScheduleUse use);

}  // namespace commfuse::sim
