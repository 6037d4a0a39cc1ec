// SPDX-License-Identifier: Apache-2.0
// commfuse-sim plan: GPUs, time and money of a whole training run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <utility>

#include "model/build_info.h"
#include "model/config/command_line.h"
#include "reports/plan/plan_page.h"
#include "reports/plan/plan_rows.h"
#include "reports/plan/plan_text.h"
#include "sim/commands/commands.h"
#include "sim/commands/setting_flags.h"
#include "sim/commands/write_new.h"
#include "sim/plan/capacity.h"

namespace commfuse::sim {

namespace {

struct PlanRequest {
  std::string file;
  std::string format = "table";
  std::string out;
};

using PlanFormat = std::pair<std::string_view, std::string (*)(const CapacityPlan&)>;
constexpr std::array formats{PlanFormat{"table", reports::plan_text}, PlanFormat{"json", reports::plan_json},
                             PlanFormat{"csv", reports::plan_csv}, PlanFormat{"markdown", reports::plan_markdown}};

int run_plan(const PlanRequest& request) {
  std::vector<std::string_view> names;
  for (const auto& [name, write] : formats) {
    names.push_back(name);
  }
  require_word("--output", request.format, names, "format");
  const CapacityPlan plan = plan_capacity(load_plan(request.file));
  if (!request.out.empty()) {
    const reports::PlanPageInput page{
        .plan = plan,
        .command = fmt::format("commfuse-sim plan {} --out {}", request.file, request.out),
        .version = fmt::format("commfuse {}", build_info().version)};
    write_new(request.out, {{"plan.html", reports::plan_page(page)},
                            {"plan.json", reports::plan_json(plan)},
                            {"plan.csv", reports::plan_csv(plan)},
                            {"plan.md", reports::plan_markdown(plan)}});
  }
  for (const auto& [name, write] : formats) {
    if (name == request.format) {
      fmt::print("{}", write(plan));
    }
  }
  return plan.answer ? exit_code::done : exit_code::gate_missed;
}

}  // namespace

void add_plan(CLI::App& app, int& status) {
  add_verb(app, "plan", "Plan the GPUs, time and money of a training run", [&status](CLI::App& command) {
    const auto request = std::make_shared<PlanRequest>();
    command.add_option("PLAN", request->file, "A plan file, such as configs/plans/train-70b.yaml")->required();
    command.add_option("-o,--output", request->format, "table, json, csv, markdown")
        ->type_name("FORMAT")
        ->capture_default_str();
    command.add_option("--out", request->out, "A folder for plan.html, plan.json, plan.csv and plan.md")
        ->type_name("FOLDER");
    command.footer(
        "The file says what is trained, by when or for how much, and which GPUs could be\n"
        "had at which price. docs/plan.md says how to write one; commfuse-sim config\n"
        "explain plan lists its keys. 4 is returned where nothing keeps the limits.\n\n"
        "Examples:\n"
        "  commfuse-sim plan configs/plans/train-70b.yaml\n"
        "  commfuse-sim plan configs/plans/compare-gpus.yaml --out out/plan\n"
        "  commfuse-sim plan mine.yaml -o json");
    command.callback([request, &status] { status = run_plan(*request); });
  });
}

}  // namespace commfuse::sim
