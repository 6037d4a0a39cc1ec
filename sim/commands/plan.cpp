// SPDX-License-Identifier: Apache-2.0
// commfuse-sim plan: plans the GPUs, time and cost of a whole training run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/build_info.h"
#include "model/config/catalogue.h"
#include "model/config/command_line.h"
#include "model/config/field.h"
#include "model/config/option_marks.h"
#include "model/config/plan_file.h"
#include "model/config_error.h"
#include "model/stderr_text.h"
#include "model/text/counted.h"
#include "model/text/shell_word.h"
#include "reports/plan/plan_page.h"
#include "reports/plan/plan_rows.h"
#include "reports/plan/plan_text.h"
#include "sim/commands/answer.h"
#include "sim/commands/commands.h"
#include "sim/commands/measured_step_flags.h"
#include "sim/commands/plan_by_flags.h"
#include "sim/commands/setting_flags.h"
#include "sim/commands/write_new.h"
#include "sim/plan/capacity.h"

namespace commfuse::sim {

namespace {

struct PlanRequest {
  std::string file;
  std::string format = "table";
  std::string out;
  SettingArguments settings;  ///< Flags of settings; run_plan() moves them to the plan's `set` section.
  PlanFlags flags;
  MeasuredArguments measured;
};

/// Returns the command that reproduces the plan.
std::string command_of(const PlanRequest& request, const PlanFlags& flags) {
  std::string command = "commfuse-sim plan";
  command += request.file.empty() ? "" : " " + shell_word(request.file);
  command += in_shell_words(flags);
  for (const auto& [flag, text] : {std::pair("--measured-step", &request.measured.time),
                                   std::pair("--measured-config", &request.measured.config)}) {
    command += text->empty() ? "" : fmt::format(" {} {}", flag, shell_word(*text));
  }
  return command + " --out " + shell_word(request.out);
}

using PlanFormat = std::pair<std::string_view, std::string (*)(const CapacityPlan&)>;
constexpr std::array plan_formats{PlanFormat{"table", reports::plan_text}, PlanFormat{"json", reports::plan_json},
                                  PlanFormat{"csv", reports::plan_csv}, PlanFormat{"markdown", reports::plan_markdown},
                                  PlanFormat{"verdict", reports::plan_sentences}};

std::vector<std::string_view> format_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, write] : plan_formats) {
    names.push_back(name);
  }
  return names;
}

/// Writes a plan in the given format. `by_flags` is the plan file that is equivalent to the flags; empty if the user
/// gave a file.
void write_plan(const CapacityPlan& plan, const std::string& by_flags, std::string_view format, const Sink& sink) {
  require_word("--output", format, format_names(), "format");
  for (const auto& [name, write] : plan_formats) {
    if (name == format) {
      sink(write(plan));
    }
  }
  if (!by_flags.empty() && format == "table") {
    sink(fmt::format("\nThis plan as a file:\n\n{}", by_flags));
  }
}

/// Returns the evidence of a measured step. The settings of the step must be in a file, because a plan does not fix the
/// layout.
std::optional<StepEvidence> evidence_for(const MeasuredArguments& measured, const PlanFile& file) {
  std::optional<MeasuredStep> chosen_step;
  for (const GpuOffer& offer : file.gpus) {  // the settings of the step may name the node of an offered cluster
    const std::string& hardware = offer.machine.text("hardware");
    std::optional<MeasuredStep> step =
        measured_of(measured, nullptr, {.hardware = hardware, .jitter = file.settings.text("jitter")});
    if (step && (!chosen_step || step->settings.text("hardware") == hardware)) {
      chosen_step = std::move(step);
    }
  }
  return chosen_step ? std::optional(evidence_of(*chosen_step)) : std::nullopt;
}

/// Returns a note about the runs whose corrected step is limited to the dense peak.
std::string peak_note_of(const CapacityPlan& plan) {
  std::vector<std::string> names;
  for (const CapacityKind& kind : plan.kinds) {
    const auto runs = std::ranges::count_if(kind.runs, [](const auto& run) { return is_at_peak(run.mfu.value); });
    if (runs > 0) {
      names.push_back(fmt::format("{} on {}", counted(runs, "run"), kind.name));
    }
  }
  return peak_note(names);
}

/// Plans the run that the file describes. If flags replace the file, errors name these flags.
CapacityPlan planned(const PlanFile& file, const PlanFlags& flags, const std::string& by_flags,
                     const std::optional<StepEvidence>& evidence) {
  try {
    return plan_capacity(file, evidence ? &*evidence : nullptr);
  } catch (const ConfigError& error) {
    throw naming_flags(flags, by_flags, error);
  }
}

Answer run_plan(const PlanRequest& request, Caller& caller) {
  PlanFlags flags = with_start(request.flags);
  flags.settings = request.settings.flags;
  require_word("--output", request.format, format_names(), "format");
  if (request.file.empty() != flags.any()) {
    throw ConfigError(
        request.file.empty()
            ? "no plan; give a file, a name in configs/plans, or --model, --tokens, --gpus, --price and "
              "--deadline"
            : "a plan file cannot be combined with plan flags; remove the flags and write their values into "
              "the file, or remove the file");
  }
  caller.note(for_stderr(request.file.empty() ? add_variables(flags) : ignored_beside_file()));
  const std::string by_flags = request.file.empty() ? plan_of(flags) : "";
  const PlanFile file =
      by_flags.empty() ? load_plan(file_or_known(Catalogue::plans, request.file)) : plan_by_flags(flags, by_flags);
  const std::optional<StepEvidence> evidence = evidence_for(request.measured, file);
  if (!request.out.empty()) {
    require_new(request.out, {"plan.html", "plan.json", "plan.csv", "plan.md"});  // before a long search
  }
  CapacityPlan plan = planned(file, flags, by_flags, evidence);
  if (evidence) {
    caller.note(for_stderr(in_words(*evidence) + "\n" + peak_note_of(plan)) + "\n");
  }
  Answer answer{.code = plan.answer ? exit_code::done : exit_code::gate_missed, .format = request.format};
  if (!request.out.empty()) {
    const reports::PlanPageInput page{.plan = plan,
                                      .command = command_of(request, flags),
                                      .version = fmt::format("commfuse {}", build_info().version)};
    caller.note(write_new(request.out, {{"plan.html", reports::plan_page(page)},
                                        {"plan.json", reports::plan_json(plan)},
                                        {"plan.csv", reports::plan_csv(plan)},
                                        {"plan.md", reports::plan_markdown(plan)}}));
    answer.files.push_back(request.out);
  }
  answer.write = [plan = std::move(plan), by_flags](std::string_view format, const Sink& sink) {
    write_plan(plan, by_flags, format, sink);
  };
  return answer;
}

}  // namespace

void add_plan(CLI::App& app, Caller& caller) {
  add_verb(app, "plan", "Plan the GPUs, time and money of a training run", [&caller](CLI::App& command) {
    const auto request = std::make_shared<PlanRequest>();
    offers_names(
        command.add_option("PLAN", request->file, "Plan file, or a name in configs/plans, for example train-70b"),
        Catalogue::plans);
    const std::string group = "Without a file";
    const auto add = [&](const char* flags, std::string& value, const char* doc) {
      return usual(command.add_option(flags, value, doc)->group(group)->type_name("TEXT"));
    };
    add("--tokens", request->flags.tokens, "Tokens to train on, for example 2T");
    offers_names(add("--gpus", request->flags.gpus, "GPUs to rent, for example h100"), Catalogue::hardware);
    offers_names(
        command.add_option("--hardware", request->flags.hardware, "Same as --gpus")->group(group)->type_name("TEXT"),
        Catalogue::hardware);
    add("--price", request->flags.price, "Price of a GPU-hour, for example 2.80");
    add("--deadline", request->flags.deadline,
        "Longest time for training, for example 90d, or a day such as 2027-03-01");
    command
        .add_option("--start", request->flags.start, "First day of training if --deadline is a day (default: today)")
        ->group(group)
        ->type_name("TEXT");
    add("--budget", request->flags.budget, "Highest cost, for example 3M");
    add("--count", request->flags.count, "Exact number of GPUs (default: the plan chooses it)");
    command
        .add_option("--available", request->flags.available,
                    "Largest number of GPUs (default 8192; without a network, one node)")
        ->group(group)
        ->type_name("TEXT");
    for (const Field& field : run_fields()) {
      if (is_plan_setting(field)) {
        add_setting_flag(command, field, request->settings)->group(group)->default_str("");
      }
    }
    add_measured_flags(command, request->measured);
    usual(offers_words(
        command.add_option("-o,--output", request->format, "table, json, csv, markdown; verdict: the summary only")
            ->type_name("FORMAT")
            ->capture_default_str(),
        format_names()));
    usual(command.add_option("--out", request->out, "Folder for plan.html, .json, .csv and .md")->type_name("FOLDER"));
    command.footer(
        "The file states what to train, the deadline, the budget or the number of GPUs,\n"
        "and which GPUs are available at what price. docs/plan.md explains how to write\n"
        "one; commfuse-sim config explain plan lists its keys. Exits with 4 if no option\n"
        "meets the limits.\n"
        "\n"
        "Examples:\n"
        "  commfuse-sim plan configs/plans/train-70b.yaml\n"
        "  commfuse-sim plan configs/plans/compare-gpus.yaml --out out/plan\n"
        "  commfuse-sim plan mine.yaml -o json\n"
        "  commfuse-sim plan --model llama-3.1-70b --tokens 2T --gpus h100 --price 2.80 \\\n"
        "    --deadline 90d\n"
        "  commfuse-sim plan --model llama-3.1-70b --tokens 2T --gpus h100 --price 2.80 \\\n"
        "    --count 1024");
    command.callback([request, &caller] { caller.take(run_plan(*request, caller)); });
  });
}

}  // namespace commfuse::sim
