// SPDX-License-Identifier: Apache-2.0
// One schedule, chosen by settings or read from a file, for commands that take just one.
#pragma once

#include <optional>

#include "reports/export/tasks.h"
#include "sim/commands/schedule_files.h"
#include "sim/commands/setting_flags.h"

namespace commfuse::sim {

struct OneScheduleArguments {
  ScheduleArguments files;  // at most one file; --size
  SettingArguments settings;
};

enum class ScheduleUse : std::uint8_t {
  unpriced,  // its structure alone: no point is looked at, but to choose the fastest of several
  priced,    // sizes and costs at the point of the settings
};

struct OneSchedule {
  Structure structure;
  Sizes sizes;  // empty where it is not priced, like the costs
  Costs costs;

  [[nodiscard]] const Program& program() const { return structure.program(); }
  [[nodiscard]] reports::ExportInput input() const { return {structure.plan.lowered, sizes, costs}; }
};

/// Of several schedules of one strategy the fastest at the point, as `run` shows it, and stderr says which; with
/// `--variants all`, and of several strategies, none. Nothing where the proof of a file failed: its findings are on
/// stderr. Throws ConfigError where the arguments choose none or several, or do not fit the file.
std::optional<OneSchedule> one_schedule(const OneScheduleArguments& arguments, ScheduleUse use);

}  // namespace commfuse::sim
