// SPDX-License-Identifier: Apache-2.0
// commfuse-sim schedule export: writes one schedule, generated or from a file, for other programs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/program_text/text.h"
#include "model/text/quantity.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"
#include "reports/atomic_file.h"
#include "reports/export/chakra.h"
#include "reports/export/dot.h"
#include "reports/export/goal.h"
#include "reports/export/schedule_json.h"
#include "sim/commands/one_schedule.h"
#include "sim/commands/schedule_commands.h"

namespace commfuse::sim {

namespace {

constexpr std::int32_t max_ranks_drawn = 8;
constexpr std::int64_t max_time_scale = 1'000'000;

struct ExportRequest {
  OneScheduleArguments schedule;
  std::string format = "yaml";
  std::string out;
  std::string ranks_shown;
  std::string messages;
  std::string time_scale;

  [[nodiscard]] bool priced() const { return format == "goal" || format == "chakra"; }
  [[nodiscard]] ScheduleUse use() const { return priced() ? ScheduleUse::priced : ScheduleUse::unpriced; }
};

// --- options of formats ----------------------------------------------------------------------------------------------

void require_export_format(const ExportRequest& request) {
  constexpr std::array<std::string_view, 5> formats{"yaml", "json", "dot", "goal", "chakra"};
  require_word("--format", request.format, formats, "format");
  const auto require_unset_unless = [&](std::string_view flag, const std::string& value, bool fits,
                                        std::string_view users) {
    if (!value.empty() && !fits) {
      throw ConfigError(fmt::format("{0}: applies only to {1}; remove {0}", flag, users));
    }
  };
  require_unset_unless("--ranks-shown", request.ranks_shown, request.format == "dot", "-o dot");
  require_unset_unless("--message-order", request.messages, request.priced(), "-o goal and -o chakra");
  require_unset_unless("--time-scale", request.time_scale, request.format == "chakra", "-o chakra");
  if (request.format == "chakra" && request.out.empty()) {
    throw ConfigError("chakra writes one file per rank; name them with --out, as in --out traces/mine");
  }
}

reports::MessageOrder message_order(const ExportRequest& request) {
  constexpr std::array<std::string_view, 2> orders{"lane", "data"};
  if (request.messages.empty()) {
    return reports::MessageOrder::lane;
  }
  require_word("--message-order", request.messages, orders, "order");
  return request.messages == "data" ? reports::MessageOrder::data : reports::MessageOrder::lane;
}

std::int64_t time_scale(const ExportRequest& request) {
  if (request.time_scale.empty()) {
    return 1;
  }
  const std::optional<std::int64_t> scale = parse_integer(request.time_scale);
  if (!scale || *scale < 1 || *scale > max_time_scale) {
    throw ConfigError(fmt::format("--time-scale: {} is not a whole number from 1 to {}; write one, such as 1000",
                                  in_quotes(request.time_scale), max_time_scale));
  }
  return *scale;
}

std::vector<Rank> ranks_shown(const ExportRequest& request, Rank ranks) {
  if (!request.ranks_shown.empty()) {
    return parse_whole_numbers(request.ranks_shown, {.flag = "--ranks-shown", .lowest = 0, .highest = ranks - 1});
  }
  if (ranks > max_ranks_drawn) {
    throw ConfigError(fmt::format("{} ranks are too many for one picture; choose some with --ranks-shown 0..{}", ranks,
                                  max_ranks_drawn - 1));
  }
  std::vector<Rank> every_rank(static_cast<std::size_t>(ranks));
  std::iota(every_rank.begin(), every_rank.end(), 0);
  return every_rank;
}

// --- writing ---------------------------------------------------------------------------------------------------------

/// A file that appears whole or not at all, or stdout without a path.
class Destination {
 public:
  explicit Destination(const std::string& path) {
    if (!path.empty()) {
      file_.emplace(path);
    }
  }
  void write(std::string_view text) { file_ ? file_->write(text) : fmt::print("{}", text); }
  void finish() {
    if (file_) {
      file_->commit();
    }
  }

 private:
  std::optional<reports::AtomicFile> file_;
};

void write_goal(const ExportRequest& request, const OneSchedule& schedule) {
  const reports::MessageOrder messages = message_order(request);
  const std::string head = reports::goal_head(schedule.input());
  Destination out(request.out);
  out.write(head);
  for (Rank rank = 0; rank < schedule.program().mesh.ranks(); ++rank) {
    out.write(reports::goal_of(schedule.input(), rank, messages));
  }
  out.finish();
}

void write_chakra(const ExportRequest& request, const OneSchedule& schedule) {
  const reports::ChakraOptions options{.messages = message_order(request), .time_scale = time_scale(request)};
  const Rank ranks = schedule.program().mesh.ranks();
  for (Rank rank = 0; rank < ranks; ++rank) {
    reports::atomic_write(fmt::format("{}.{}.et", request.out, rank),
                          reports::chakra_trace(schedule.input(), rank, options));
  }
  const std::string groups = reports::chakra_groups(schedule.program());
  if (!groups.empty()) {
    reports::atomic_write(request.out + ".groups.json", groups);
  }
  fmt::print(stderr, "wrote {0}.0.et{1}{2}\n", request.out,
             ranks > 1 ? fmt::format(" to {}.{}.et", request.out, ranks - 1) : "",
             groups.empty() ? "" : fmt::format(" and {}.groups.json", request.out));
}

void write_text(const ExportRequest& request, const OneSchedule& schedule) {
  std::string text;
  if (request.format == "dot") {
    text = reports::to_dot(schedule.structure.plan.lowered, ranks_shown(request, schedule.program().mesh.ranks()));
  } else {
    text = request.format == "json" ? reports::schedule_json(schedule.program()) : to_text(schedule.program());
  }
  Destination out(request.out);
  out.write(text);
  out.finish();
}

int export_schedule(const ExportRequest& request) {
  require_export_format(request);
  reports::require_no_input(request.out, request.schedule.files.files);
  reports::require_no_input(request.out, files_named(request.schedule.settings));
  message_order(request);
  time_scale(request);
  const std::optional<OneSchedule> schedule = one_schedule(request.schedule, request.use());
  if (!schedule) {
    return exit_code::gate_missed;
  }
  require_few_ranks(schedule->program().mesh.ranks(), "to export");
  if (request.format == "goal") {
    write_goal(request, *schedule);
  } else if (request.format == "chakra") {
    write_chakra(request, *schedule);
  } else {
    write_text(request, *schedule);
  }
  return exit_code::done;
}

bool selects_or_prices(const Field& field) { return selects_a_schedule(field) || field.uses.has(Use::price); }

}  // namespace

void add_schedule_export(CLI::App& schedule, int& status) {
  add_verb(schedule, "export", "Export one schedule as JSON, Graphviz, GOAL or Chakra", [&status](CLI::App& command) {
    const auto request = std::make_shared<ExportRequest>();
    offers_names(command.add_option("FILE", request->schedule.files.files,
                                    "Schedule in YAML or JSON instead of a generated one"),
                 Catalogue::schedules);
    add_setting_flags(command, request->schedule.settings, selects_or_prices);
    add_size_flag(command, request->schedule.files);
    const auto add = [&](const char* flags, std::string& value, const char* doc, const char* type) {
      return command.add_option(flags, value, doc)->group("Export")->type_name(type);
    };
    usual(offers_words(add("-o,--format", request->format,
                           "yaml, json, dot (Graphviz), goal, chakra; goal is for LogGOPSim and ATLAHS, chakra for "
                           "ASTRA-sim; both include durations",
                           "FORMAT")
                           ->capture_default_str(),
                       {"yaml", "json", "dot", "goal", "chakra"}));
    usual(add("--out", request->out, "File to write instead of stdout; chakra writes PATH.0.et, PATH.1.et and so on",
              "PATH"));
    add("--ranks-shown", request->ranks_shown, "dot: ranks to draw, for example 0..3 (default: all, up to 8)", "RANKS");
    offers_words(add("--message-order", request->messages,
                     "goal, chakra: a message waits for the previous one on its lane (lane, as commfuse runs them) or "
                     "only for its data (data)",
                     "ORDER"),
                 {"lane", "data"});
    add("--time-scale", request->time_scale,
        "chakra: multiply times by this, because the format stores whole microseconds", "FACTOR");
    command.footer(
        "See docs/interchange.md for how programs read each format and what it loses.\n"
        "\n"
        "Examples:\n"
        "  commfuse-sim schedule export --strategy commfuse -o dot | dot -Tsvg > best.svg\n"
        "  commfuse-sim schedule export --strategy serial -o goal --out serial.goal\n"
        "  commfuse-sim schedule export mine.yaml -o chakra --out mine\n"
        "  commfuse-sim schedule export mine.yaml -o json");
    command.callback([request, &status] { status = export_schedule(*request); });
  });
}

}  // namespace commfuse::sim
