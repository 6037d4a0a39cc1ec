// SPDX-License-Identifier: Apache-2.0
// --schedule and --size: schedules from files, in addition to generated schedules.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/config/settings.h"
#include "model/proof/findings.h"
#include "sim/point/hand_written.h"

namespace CLI {
class App;
}

namespace commfuse::sim {

struct ScheduleArguments {
  std::vector<std::string> files;  // --schedule
  std::vector<std::string> sizes;  // --size NAME=ELEMENTS
};

/// Adds the flags. The arguments must outlive the parsing.
void add_schedule_flags(CLI::App& command, ScheduleArguments& arguments);
/// Adds only --size, for commands that name their files without --schedule.
void add_size_flag(CLI::App& command, ScheduleArguments& arguments);

/// Throws ConfigError for a file that is given twice, under one name or two.
void refuse_repeated(std::span<const ScheduleFile> files);

/// Reads and proves all files. Returns nothing if a proof fails, after printing the findings on stderr. Throws
/// ConfigError with the mistakes in every file, for a file that is given twice, and for missing or superfluous sizes.
std::optional<std::vector<HandWritten>> read_schedules(const ScheduleArguments& arguments);

/// Returns the settings of one point with what the files fix: ranks, dtype and scope. Throws ConfigError as fit() does,
/// and if the files belong to different points.
Settings fitted(Settings settings, std::span<const HandWritten> schedules);

/// Returns a line for each finding and for the number of additional findings, each beginning with `subject`: the file
/// or schedule that was checked. Empty if everything is proved.
std::string in_words(const std::string& subject, const CheckReport& report);

}  // namespace commfuse::sim
