// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/plan_by_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "model/config/catalogue.h"
#include "model/config/meant.h"
#include "model/config/resolver.h"
#include "model/config/settings.h"
#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/shell_word.h"
#include "sim/commands/spread.h"

namespace commfuse::sim {

bool PlanFlags::any() const {
  const auto flag_texts = texts();
  return !settings.empty() ||
         std::any_of(flag_texts.begin(), flag_texts.end(), [](const auto& entry) { return !entry.second->empty(); });
}

namespace {

/// Throws a ConfigError that names all missing flags, if any.
void require_flags(const PlanFlags& flags) {
  struct Needed {
    bool is_given;
    std::string_view flag, example;
  };
  const bool has_model = std::any_of(flags.settings.begin(), flags.settings.end(),
                                     [](const auto& assignment) { return assignment.first->key == "model"; });
  std::vector<std::string_view> missing;
  std::vector<std::string_view> examples;
  for (const Needed& needed :
       {Needed{has_model, "--model", "--model llama-3.1-70b"}, Needed{!flags.tokens.empty(), "--tokens", "--tokens 2T"},
        Needed{!flags.hardware.empty() || !flags.gpus.empty(), "--gpus", "--gpus h100"},
        Needed{!flags.price.empty(), "--price", "--price 2.80"},
        Needed{!flags.deadline.empty() || !flags.budget.empty() || !flags.count.empty(),
               "one of --deadline, --budget and --count", "--deadline 90d"}}) {
    if (!needed.is_given) {
      missing.push_back(needed.flag);
      examples.push_back(needed.example);
    }
  }
  if (!missing.empty()) {
    throw ConfigError(fmt::format("{} {} missing; add {}, as in {}, or give a plan file", fmt::join(missing, ", "),
                                  missing.size() == 1 ? "is" : "are", missing.size() == 1 ? "it" : "them",
                                  fmt::join(examples, " ")));
  }
}

/// Returns the settings as YAML. Throws ConfigError with every mistake; each names its flag.
std::string settings_in_yaml(const FlagTexts& settings) {
  std::string text;
  std::vector<std::string> mistakes;
  for (const auto& [field, typed] : settings) {
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

/// Returns the text of --gpus or --hardware. Throws ConfigError for a number or for both flags.
const std::string& typed_hardware(const PlanFlags& flags) {
  if (!flags.gpus.empty() && flags.gpus.find_first_not_of("0123456789") == std::string::npos) {
    throw ConfigError(fmt::format(
        "--gpus: the flag names the hardware, as in --gpus h100; write --count {0} for exactly {0} GPU{1}, or "
        "--available {0} for at most {0}",
        flags.gpus, flags.gpus == "1" ? "" : "s"));
  }
  if (!flags.gpus.empty() && !flags.hardware.empty()) {
    throw ConfigError("--gpus and --hardware both name the hardware; remove one");
  }
  return flags.gpus.empty() ? flags.hardware : flags.gpus;
}

/// Returns the hardware of the plan. For a node of the catalogue, returns a cluster of such nodes; a file is used as it
/// is.
std::string hardware_of(const PlanFlags& flags) {
  std::string hardware = meant_name(Catalogue::hardware, typed_hardware(flags));
  if (const std::optional<std::string> mistake = mistake_in(*find_field("hardware"), hardware)) {
    throw ConfigError(fmt::format("--{}: {}", flags.gpus.empty() ? "hardware" : "gpus", *mistake));
  }
  const bool is_file = hardware.find('/') != std::string::npos || hardware.ends_with(".yaml");
  return is_file ? hardware : cluster_of_nodes(hardware);
}

/// Returns the default for --available: 8192, or the GPUs of a node if the machine has no network.
std::string default_available(const std::string& hardware) {
  const Machine machine = load_machine(hardware);
  return machine.network ? "8192" : fmt::format("{}", machine.gpus_per_node);
}

/// Returns today's date (UTC), such as "2026-12-01".
std::string today_in_words() {
  const std::chrono::year_month_day today{std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(today.year()), static_cast<unsigned>(today.month()),
                     static_cast<unsigned>(today.day()));
}

}  // namespace

PlanFlags with_start(PlanFlags flags) {
  if (flags.start.empty() && parse_date(flags.deadline)) {
    flags.start = today_in_words();
  }
  return flags;
}

namespace {

/// Returns the settings of environment variables, each with its field.
std::vector<std::pair<const Field*, Setting>> settings_of_environment() {
  Resolver resolver;
  resolver.read_environment(environment());
  const Settings settings = resolver.finish();
  std::vector<std::pair<const Field*, Setting>> variables;
  for (const Field& field : run_fields()) {
    if (settings.at(field).origin.source == Source::environment) {
      variables.emplace_back(&field, settings.at(field));
    }
  }
  return variables;
}

std::string note_of_ignored(const Setting& variable, std::string_view reason) {
  return fmt::format("note: {} is ignored; {}\n", variable.origin.where, reason);
}

}  // namespace

std::string add_variables(PlanFlags& flags) {
  std::string notes;
  const FlagTexts given = flags.settings;
  for (const auto& [field, variable] : settings_of_environment()) {
    if (field->key == "hardware") {
      flags.hardware = flags.hardware.empty() && flags.gpus.empty() ? variable.text : flags.hardware;
    } else if (field->key == "price") {
      flags.price = flags.price.empty() ? variable.text : flags.price;
    } else if (!is_plan_setting(*field)) {
      notes += note_of_ignored(variable, fmt::format("plan does not use '{}'", field->key));
    } else if (std::ranges::find(given, field, &FlagTexts::value_type::first) == given.end()) {
      flags.settings.emplace_back(field, variable.text);
    }
  }
  return notes;
}

std::string ignored_beside_file() {
  std::string notes;
  for (const auto& [field, variable] : settings_of_environment()) {
    notes += note_of_ignored(variable, "a plan file states its settings");
  }
  return notes;
}

std::string in_shell_words(const PlanFlags& flags) {
  std::string words;
  for (const auto& [field, text] : flags.settings) {
    words += fmt::format(" --{} {}", field->flag, shell_word(text));
  }
  for (const auto& [flag, text] : flags.texts()) {
    words += text->empty() ? "" : fmt::format(" {} {}", flag, shell_word(*text));
  }
  return words;
}

std::string plan_of(const PlanFlags& flags) {
  require_flags(flags);
  std::string text = "schema: commfuse.plan/1\ntitle: a plan from flags\nset:\n" + settings_in_yaml(flags.settings);
  for (const auto& [key, value] : {std::pair("tokens", &flags.tokens), std::pair("start", &flags.start),
                                   std::pair("deadline", &flags.deadline), std::pair("budget", &flags.budget)}) {
    text += value->empty() ? "" : fmt::format("{}: {}\n", key, yaml_scalar(*value));
  }
  const std::string hardware = hardware_of(flags);
  const std::string& typed = typed_hardware(flags);
  text += fmt::format("gpus:\n  {}:\n    hardware: {}\n    price: {}\n    price_date: {}\n",
                      yaml_scalar(typed.substr(typed.rfind('/') + 1)), yaml_scalar(hardware), yaml_scalar(flags.price),
                      today_in_words());
  if (!flags.count.empty()) {
    text += fmt::format("    count: {}\n", yaml_scalar(flags.count));
  }
  if (!flags.available.empty() || flags.count.empty()) {
    text += fmt::format("    available: {}\n",
                        yaml_scalar(flags.available.empty() ? default_available(hardware) : flags.available));
  }
  return text;
}

namespace {

constexpr std::string_view by_flags_name = "plan from flags";

/// Returns the flag that set line `number` of the plan, counted from 1; empty if no flag did.
std::string flag_of_line(const PlanFlags& flags, const std::string& text, std::size_t number) {
  std::istringstream lines(text);
  std::string line;
  for (std::size_t i = 0; i < number; ++i) {
    std::getline(lines, line);
  }
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::string flag = "--" + line.substr(begin, std::min(line.find(':'), line.size()) - begin);
  const auto flag_texts = flags.texts();
  const bool is_flag =
      std::any_of(flag_texts.begin(), flag_texts.end(), [&](const auto& entry) { return entry.first == flag; });
  return !is_flag ? "" : flag == "--hardware" && flags.hardware.empty() ? "--gpus" : flag;
}

/// Returns the mistakes with the flags in place of the lines of the plan; nothing if a mistake belongs to no flag.
std::optional<std::string> by_flag(const PlanFlags& flags, const std::string& text, const std::string& mistakes) {
  std::string by_flags;
  std::istringstream lines(mistakes);
  for (std::string line; std::getline(lines, line);) {
    const std::string_view front = by_flags_name;
    const std::size_t sentence = line.find(": ");
    if (!line.starts_with(front) || sentence == std::string::npos) {
      return std::nullopt;
    }
    const std::size_t number = std::strtoul(line.c_str() + front.size() + 1, nullptr, 10);
    const std::string flag = flag_of_line(flags, text, number);
    if (flag.empty()) {
      return std::nullopt;
    }
    by_flags += (by_flags.empty() ? "" : "\n") + flag + line.substr(sentence);
  }
  return by_flags;
}

}  // namespace

ConfigError naming_flags(const PlanFlags& flags, const std::string& text, const ConfigError& error) {
  const std::optional<std::string> mistakes = by_flag(flags, text, error.what());
  return mistakes ? ConfigError(*mistakes) : error;
}

PlanFile plan_by_flags(const PlanFlags& flags, const std::string& text) {
  try {
    return parse_plan(std::string(by_flags_name), text);
  } catch (const ConfigError& error) {
    const std::optional<std::string> mistakes = by_flag(flags, text, error.what());
    throw ConfigError(mistakes ? *mistakes
                               : fmt::format("{}\nThe plan that the flags describe:\n{}", error.what(), text));
  }
}

}  // namespace commfuse::sim
