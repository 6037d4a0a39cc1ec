// SPDX-License-Identifier: Apache-2.0
// commfuse-sim plan: GPUs, time and money of a whole training run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/build_info.h"
#include "model/config/catalogue.h"
#include "model/config/command_line.h"
#include "model/config/field.h"
#include "model/config/meant.h"
#include "model/config/option_marks.h"
#include "model/config/plan_file.h"
#include "model/config/settings.h"
#include "model/config_error.h"
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
  SettingArguments settings;  ///< Below `set`.
  std::string tokens, hardware, gpus, price, deadline, budget, available;

  /// Those of a plan without a file, settings aside, and their flags.
  [[nodiscard]] std::array<std::pair<std::string_view, const std::string*>, 7> flags() const {
    return {{{"--tokens", &tokens},
             {"--hardware", &hardware},
             {"--gpus", &gpus},
             {"--price", &price},
             {"--deadline", &deadline},
             {"--budget", &budget},
             {"--available", &available}}};
  }
  [[nodiscard]] bool has_flags() const {
    const auto all = flags();
    return !settings.flags.empty() ||
           std::any_of(all.begin(), all.end(), [](const auto& one) { return !one.second->empty(); });
  }
};

/// Throws ConfigError with every flag that a plan without a file lacks.
void require_flags(const PlanRequest& request) {
  struct Needed {
    bool is_given;
    std::string_view flag, example;
  };
  const bool has_model = std::any_of(request.settings.flags.begin(), request.settings.flags.end(),
                                     [](const auto& one) { return one.first->key == "model"; });
  std::vector<std::string_view> missing;
  std::vector<std::string_view> examples;
  for (const Needed& one :
       {Needed{has_model, "--model", "--model llama-3.1-70b"},
        Needed{!request.tokens.empty(), "--tokens", "--tokens 2T"},
        Needed{!request.hardware.empty() || !request.gpus.empty(), "--gpus", "--gpus h100"},
        Needed{!request.price.empty(), "--price", "--price 2.80"},
        Needed{!request.deadline.empty() || !request.budget.empty(), "--deadline or --budget", "--deadline 90d"}}) {
    if (!one.is_given) {
      missing.push_back(one.flag);
      examples.push_back(one.example);
    }
  }
  if (!missing.empty()) {
    throw ConfigError(fmt::format("{} {} missing; add {}, as in {}, or give a plan file", fmt::join(missing, ", "),
                                  missing.size() == 1 ? "is" : "are", missing.size() == 1 ? "it" : "them",
                                  fmt::join(examples, " ")));
  }
}

/// The values of settings, each by its key. Throws ConfigError with every mistake, by its flag.
std::string settings_in_yaml(const SettingArguments& settings) {
  std::string text;
  std::vector<std::string> mistakes;
  for (const auto& [field, typed] : settings.flags) {
    const std::string value = meant(*field, typed);
    if (const std::optional<std::string> mistake = mistake_in(*field, value)) {
      mistakes.push_back(fmt::format("--{}: {}", field->flag, *mistake));
    }
    text += fmt::format("  {}: {}\n", field->key, yaml_scalar(value));
  }
  if (!mistakes.empty()) {
    throw ConfigError(fmt::format("{}", fmt::join(mistakes, "\n")));
  }
  return text;
}

/// What --gpus or --hardware names.
const std::string& typed_hardware(const PlanRequest& request) {
  if (!request.gpus.empty() && request.gpus.find_first_not_of("0123456789") == std::string::npos) {
    throw ConfigError(
        fmt::format("--gpus: a plan finds how many GPUs it takes; name the hardware, as in --gpus h100, "
                    "and write --available {} for the most that could be had",
                    request.gpus));
  }
  if (!request.gpus.empty() && !request.hardware.empty()) {
    throw ConfigError("--gpus and --hardware both name the hardware; leave one out");
  }
  return request.gpus.empty() ? request.hardware : request.gpus;
}

/// Of a node of the catalogue a cluster of such nodes. A file stays.
std::string hardware_of(const PlanRequest& request) {
  std::string hardware = meant_name(Catalogue::hardware, typed_hardware(request));
  if (const std::optional<std::string> mistake = mistake_in(*find_field("hardware"), hardware)) {
    throw ConfigError(fmt::format("--{}: {}", request.gpus.empty() ? "hardware" : "gpus", *mistake));
  }
  const bool is_file = hardware.find('/') != std::string::npos || hardware.ends_with(".yaml");
  return is_file ? hardware : cluster_of_nodes(hardware);
}

/// GPUs that could be had where nobody says: those of a node without a network, else as many as large orders are.
std::string usual_available(const std::string& hardware) {
  const Machine machine = load_machine(hardware);
  return machine.network ? "8192" : fmt::format("{}", machine.gpus_per_node);
}

/// A plan file that says what the flags say. Prices of today are the user's.
std::string plan_of(const PlanRequest& request) {
  require_flags(request);
  std::string text = "schema: commfuse.plan/1\ntitle: a plan by flags\nset:\n" + settings_in_yaml(request.settings);
  for (const auto& [key, value] : {std::pair("tokens", &request.tokens), std::pair("deadline", &request.deadline),
                                   std::pair("budget", &request.budget)}) {
    text += value->empty() ? "" : fmt::format("{}: {}\n", key, yaml_scalar(*value));
  }
  const std::string hardware = hardware_of(request);
  const std::string& typed = typed_hardware(request);
  const std::chrono::year_month_day today{std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())};
  return text + fmt::format(
                    "gpus:\n  {0}:\n    hardware: {1}\n    price: {2}\n    price_date: {3:04}-{4:02}-{5:02}\n"
                    "    available: {6}\n",
                    yaml_scalar(typed.substr(typed.rfind('/') + 1)), yaml_scalar(hardware), yaml_scalar(request.price),
                    static_cast<int>(today.year()), static_cast<unsigned>(today.month()),
                    static_cast<unsigned>(today.day()),
                    yaml_scalar(request.available.empty() ? usual_available(hardware) : request.available));
}

constexpr std::string_view by_flags_name = "plan by flags";

/// The flag that wrote this line of the plan, 1 for the first; empty where none did.
std::string flag_of_line(const PlanRequest& request, const std::string& text, std::size_t number) {
  std::istringstream lines(text);
  std::string line;
  for (std::size_t i = 0; i < number; ++i) {
    std::getline(lines, line);
  }
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::string flag = "--" + line.substr(begin, std::min(line.find(':'), line.size()) - begin);
  const auto all = request.flags();
  const bool is_flag = std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.first == flag; });
  return !is_flag ? "" : flag == "--hardware" && request.hardware.empty() ? "--gpus" : flag;
}

/// Mistakes in values of flags, each by its flag; nothing where one is not of a flag.
std::optional<std::string> by_flag(const PlanRequest& request, const std::string& text, const std::string& mistakes) {
  std::string all;
  std::istringstream lines(mistakes);
  for (std::string line; std::getline(lines, line);) {
    const std::string_view front = by_flags_name;
    const std::size_t sentence = line.find(": ");
    if (!line.starts_with(front) || sentence == std::string::npos) {
      return std::nullopt;
    }
    const std::size_t number = std::strtoul(line.c_str() + front.size() + 1, nullptr, 10);
    const std::string flag = flag_of_line(request, text, number);
    if (flag.empty()) {
      return std::nullopt;
    }
    all += (all.empty() ? "" : "\n") + flag + line.substr(sentence);
  }
  return all;
}

PlanFile plan_by_flags(const PlanRequest& request, const std::string& text) {
  try {
    return parse_plan(std::string(by_flags_name), text);
  } catch (const ConfigError& error) {
    const std::optional<std::string> mistakes = by_flag(request, text, error.what());
    throw ConfigError(mistakes ? *mistakes : fmt::format("{}\nThe plan that the flags make:\n{}", error.what(), text));
  }
}

/// A word of a command line for a shell.
std::string shell_word(const std::string& word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+:,@%=";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
    return word;
  }
  std::string quoted = "'";
  for (const char letter : word) {
    quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  }
  return quoted + "'";
}

/// That makes the same plan again.
std::string command_of(const PlanRequest& request) {
  std::string command = "commfuse-sim plan";
  command += request.file.empty() ? "" : " " + shell_word(request.file);
  for (const auto& [field, value] : request.settings.flags) {
    command += fmt::format(" --{} {}", field->flag, shell_word(value));
  }
  for (const auto& [flag, value] : request.flags()) {
    command += value->empty() ? "" : fmt::format(" {} {}", flag, shell_word(*value));
  }
  return command + " --out " + shell_word(request.out);
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
                                                           : plan_by_flags(request, by_flags));
  if (!request.out.empty()) {
    const reports::PlanPageInput page{
        .plan = plan, .command = command_of(request), .version = fmt::format("commfuse {}", build_info().version)};
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
    offers_names(command.add_option("PLAN", request->file, "A plan file, or a name in configs/plans, as in train-70b"),
                 Catalogue::plans);
    const std::string group = "Without a file";
    const auto add = [&](const char* flags, std::string& value, const char* doc) {
      return usual(command.add_option(flags, value, doc)->group(group)->type_name("TEXT"));
    };
    add("--tokens", request->tokens, "Tokens to train on, as in 2T");
    offers_names(add("--gpus", request->gpus, "Hardware that could be had, as in h100"), Catalogue::hardware);
    offers_names(command.add_option("--hardware", request->hardware, "The same")->group(group)->type_name("TEXT"),
                 Catalogue::hardware);
    add("--price", request->price, "Price of a GPU-hour, as in 2.80");
    add("--deadline", request->deadline, "Time that training may take, as in 90d");
    add("--budget", request->budget, "Money that it may cost, as in 3M");
    add("--available", request->available, "GPUs that could be had (default 8192 or one node)");
    for (const Field& field : run_fields()) {
      if (is_plan_setting(field)) {
        add_setting_flag(command, field, request->settings)->group(group)->default_str("");
      }
    }
    std::vector<std::string_view> names;
    for (const auto& [name, write] : formats) {
      names.push_back(name);
    }
    usual(offers_words(command.add_option("-o,--output", request->format, "table, json, csv, markdown")
                           ->type_name("FORMAT")
                           ->capture_default_str(),
                       names));
    usual(command.add_option("--out", request->out, "A folder for plan.html, plan.json, plan.csv and plan.md")
              ->type_name("FOLDER"));
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
