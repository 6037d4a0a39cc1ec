// SPDX-License-Identifier: Apache-2.0
// One schedule, chosen by settings or read from a file, for commands that take just one.
#pragma once

#include <optional>

#include "reports/export/tasks.h"
#include "sim/commands/schedule_files.h"
#include "sim/commands/setting_flags.h"

namespace commfuse::sim {

struct OneScheduleArguments {
  ScheduleArguments files;  // At most one file, and --size.
  SettingArguments settings;
};

enum class ScheduleUse : std::uint8_t {
  unpriced,  // The structure alone. A point is only looked at to choose the fastest of several schedules.
  priced,    // Sizes and costs, too, at the point of the settings.
};

struct OneSchedule {
  Structure structure;
  Sizes sizes;  // Empty if the schedule is not priced, like the costs.
  Costs costs;

  [[nodiscard]] const Program& program() const { return structure.program(); }
  [[nodiscard]] reports::ExportInput input() const { return {structure.plan.lowered, sizes, costs}; }
};

/// Returns the schedule. Of several schedules of one strategy it is the fastest at the point, as `run` shows it, and
/// stderr says which; with `--variants all`, and of several strategies, the choice is an error. Returns nothing if the
/// proof of a file failed; its findings are on stderr. Throws ConfigError if the arguments choose none or several, or
/// do not fit the file.
std::optional<OneSchedule> one_schedule(const OneScheduleArguments& arguments, ScheduleUse use);

}  // namespace commfuse::sim
