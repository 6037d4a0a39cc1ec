// SPDX-License-Identifier: Apache-2.0
// commfuse-sim plan: GPUs, time and money of a whole training run.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/build_info.h"
#include "model/config/catalogue.h"
#include "model/config/command_line.h"
#include "model/config/field.h"
#include "model/config/meant.h"
#include "model/config/plan_file.h"
#include "model/config_error.h"
#include "reports/atomic_file.h"
#include "reports/plan/plan_page.h"
#include "reports/plan/plan_rows.h"
#include "reports/plan/plan_text.h"
#include "sim/commands/commands.h"
#include "sim/commands/setting_flags.h"
#include "sim/commands/spread.h"
#include "sim/commands/write_new.h"
#include "sim/plan/capacity.h"

namespace commfuse::sim {

namespace {

struct PlanRequest {
  std::string file;
  std::string format = "table";
  std::string out;
  std::vector<std::pair<const Field*, std::string>> settings;  ///< Below `set`.
  std::string tokens, gpus, price, deadline, budget, available;

  [[nodiscard]] bool has_flags() const {
    return !settings.empty() || !tokens.empty() || !gpus.empty() || !price.empty() || !deadline.empty() ||
           !budget.empty() || !available.empty();
  }
};

/// A plan file that says what the flags say. Prices of today are the user's.
std::string plan_of(const PlanRequest& request) {
  for (const auto& [flag, value] : {std::pair("--tokens", &request.tokens), std::pair("--gpus", &request.gpus),
                                    std::pair("--price", &request.price)}) {
    if (value->empty()) {
      throw ConfigError(
          fmt::format("{} is missing; add it, as in --tokens 2T --gpus h100 --price 2.80, or give a plan "
                      "file",
                      flag));
    }
  }
  std::string text = "schema: commfuse.plan/1\ntitle: a plan by flags\nset:\n";
  for (const auto& [field, value] : request.settings) {
    text += fmt::format("  {}: {}\n", field->key, value);
  }
  text += fmt::format("tokens: {}\n", request.tokens);
  text += request.deadline.empty() ? "" : fmt::format("deadline: {}\n", request.deadline);
  text += request.budget.empty() ? "" : fmt::format("budget: {}\n", request.budget);
  const std::chrono::year_month_day today{std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())};
  return text + fmt::format(
                    "gpus:\n  {0}:\n    hardware: {1}\n    price: {2}\n    price_date: {3:04}-{4:02}-{5:02}\n"
                    "    available: {6}\n",
                    request.gpus.substr(request.gpus.rfind('/') + 1),
                    cluster_of_nodes(meant_name(Catalogue::hardware, request.gpus)), request.price,
                    static_cast<int>(today.year()), static_cast<unsigned>(today.month()),
                    static_cast<unsigned>(today.day()), request.available.empty() ? "8192" : request.available);
}

/// The flags as a file for as long as it is read.
PlanFile plan_by_flags(const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("commfuse-plan-{}.yaml", ::getpid());
  reports::atomic_write(path, text);
  try {
    PlanFile plan = load_plan(path.string());
    std::filesystem::remove(path);
    return plan;
  } catch (const ConfigError& error) {
    std::filesystem::remove(path);
    std::string why = error.what();
    const std::string name = path.string();
    for (std::size_t at = why.find(name); at != std::string::npos; at = why.find(name)) {
      why.replace(at, name.size(), "plan by flags");
    }
    throw ConfigError(fmt::format("{}\nThe plan that the flags make:\n{}", why, text));
  }
}

using PlanFormat = std::pair<std::string_view, std::string (*)(const CapacityPlan&)>;
constexpr std::array formats{PlanFormat{"table", reports::plan_text}, PlanFormat{"json", reports::plan_json},
                             PlanFormat{"csv", reports::plan_csv}, PlanFormat{"markdown", reports::plan_markdown}};

int run_plan(const PlanRequest& request) {
  std::vector<std::string_view> names;
  for (const auto& [name, write] : formats) {
    names.push_back(name);
  }
  require_word("--output", request.format, names, "format");
  if (request.file.empty() != request.has_flags()) {
    throw ConfigError(request.file.empty()
                          ? "no plan; give a file, a name in configs/plans, or --model, --tokens, --gpus, --price and "
                            "--deadline"
                          : "a plan file and flags of a plan are given; leave the flags out, or the file");
  }
  const std::string by_flags = request.file.empty() ? plan_of(request) : "";
  const CapacityPlan plan = plan_capacity(by_flags.empty() ? load_plan(file_or_known(Catalogue::plans, request.file))
                                                           : plan_by_flags(by_flags));
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
  if (!by_flags.empty() && request.format == "table") {
    fmt::print("\nThis plan as a file:\n\n{}", by_flags);
  }
  return plan.answer ? exit_code::done : exit_code::gate_missed;
}

}  // namespace

void add_plan(CLI::App& app, int& status) {
  add_verb(app, "plan", "Plan the GPUs, time and money of a training run", [&status](CLI::App& command) {
    const auto request = std::make_shared<PlanRequest>();
    command.add_option("PLAN", request->file, "A plan file, or a name in configs/plans, as in train-70b");
    const auto setting = [&](const char* key, const char* doc) {
      const Field* field = find_field(key);
      command
          .add_option_function<std::string>(
              fmt::format("--{}", field->flag),
              [request, field](const std::string& text) { request->settings.emplace_back(field, meant(*field, text)); },
              doc)
          ->group("Without a file")
          ->type_name("TEXT");
    };
    setting("model", "Transformer model");
    setting("seq", "Sequence length in tokens");
    setting("batch", "Sequences a step");
    const auto add = [&](const char* flag, std::string& value, const char* doc) {
      command.add_option(flag, value, doc)->group("Without a file")->type_name("TEXT");
    };
    add("--tokens", request->tokens, "Tokens to train on, as in 2T");
    add("--gpus", request->gpus, "Hardware that could be had, as in h100");
    add("--price", request->price, "Of a GPU for an hour, as in 2.80");
    add("--deadline", request->deadline, "Time that training may take, as in 90d");
    add("--budget", request->budget, "Money that it may cost, as in 3M");
    add("--available", request->available, "How many GPUs could be had (default 8192)");
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
        "  commfuse-sim plan mine.yaml -o json\n"
        "  commfuse-sim plan --model llama-3.1-70b --tokens 2T --gpus h100 --price 2.80 \\\n"
        "    --deadline 90d");
    command.callback([request, &status] { status = run_plan(*request); });
  });
}

}  // namespace commfuse::sim
