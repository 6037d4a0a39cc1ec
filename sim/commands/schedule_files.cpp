// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/schedule_files.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/proof/check_written.h"
#include "model/text/files.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "sim/point/grid.h"
#include "sim/point/request.h"

namespace commfuse::sim {

namespace {

constexpr std::int64_t max_elements = std::int64_t{1} << 30;  // Limit of one dimension.
constexpr const char* file_flags = "Schedules from files";

OwnSizes sizes_of(const std::vector<std::string>& texts) {
  OwnSizes sizes;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const std::optional<std::int64_t> elements =
        equals == std::string::npos ? std::nullopt : parse_count(text.substr(equals + 1));
    if (name.empty() || !elements || *elements < 1 || *elements > max_elements) {
      throw ConfigError(
          fmt::format("--size: {} is not DIMENSION=ELEMENTS with 1 to {} elements; write it as in experts=64",
                      in_quotes(text), format_count(max_elements)));
    }
    if (!sizes.emplace(name, *elements).second) {
      throw ConfigError(fmt::format("--size: {} is given twice; keep one of them", in_quotes(name)));
    }
  }
  return sizes;
}

std::vector<ScheduleFile> load_all(const std::vector<std::string>& names) {
  std::vector<ScheduleFile> files;
  std::vector<std::string> mistakes;
  for (const std::string& name : names) {
    try {
      files.push_back(load_schedule(name));
    } catch (const ConfigError& error) {
      mistakes.emplace_back(error.what());
    }
  }
  if (!mistakes.empty()) {
    throw ConfigError(fmt::format("{}", fmt::join(mistakes, "\n")));
  }
  refuse_repeated(files);
  return files;
}

}  // namespace

void add_schedule_flags(CLI::App& command, ScheduleArguments& arguments) {
  offers_names(command
                   .add_option("--schedule", arguments.files,
                               "Run this schedule: a name in configs/schedules, or a path; repeatable. Ranks, dtype "
                               "and scope come from the file; --strategy adds strategies to compare")
                   ->group(file_flags)
                   ->type_name("FILE")
                   ->allow_extra_args(false),
               Catalogue::schedules);
  add_size_flag(command, arguments);
}

void add_size_flag(CLI::App& command, ScheduleArguments& arguments) {
  command
      .add_option("--size", arguments.sizes,
                  "Elements of a dimension that the file uses and the model does not define; repeatable")
      ->group(file_flags)
      ->type_name("NAME=ELEMENTS")
      ->allow_extra_args(false);
}

std::optional<std::vector<HandWritten>> read_schedules(const ScheduleArguments& arguments) {
  const OwnSizes sizes = sizes_of(arguments.sizes);
  std::vector<ScheduleFile> files = load_all(arguments.files);
  std::string findings;
  for (const ScheduleFile& file : files) {
    findings += in_words(file.path.string(), check_written(file.program));
  }
  if (!findings.empty()) {
    fmt::print(stderr, "{}", findings);
    return std::nullopt;
  }
  require_needed(sizes, files);
  std::vector<HandWritten> schedules;
  for (ScheduleFile& file : files) {
    schedules.push_back(hand_written(std::move(file), sizes));
  }
  return schedules;
}

void refuse_repeated(std::span<const ScheduleFile> files) {
  std::vector<std::filesystem::path> paths;
  std::ranges::transform(files, std::back_inserter(paths), &ScheduleFile::path);
  refuse_repeated_files(paths);
}

Settings fitted(Settings settings, std::span<const HandWritten> schedules) {
  Grid grid;
  grid.settings = std::move(settings);
  fit(grid, schedules, names_strategies(grid.settings));
  if (!grid.axes.empty()) {
    throw ConfigError(fmt::format("the schedule files differ in {0}; name only files with the same {0}",
                                  grid.axes.front().fields.front()->key));
  }
  return std::move(grid.settings);
}

std::string in_words(const std::string& subject, const CheckReport& report) {
  std::string text;
  for (const Finding& finding : report.findings) {
    text += fmt::format("{}: {}\n", subject, finding.sentence);
  }
  return report.more == 0
             ? text
             : text + fmt::format("{}: {} more {}\n", subject, report.more, report.more == 1 ? "error" : "errors");
}

}  // namespace commfuse::sim
