// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/config_error.h"
#include "page/engine/answers.h"
#include "reports/plan/plan_rows.h"
#include "reports/plan/plan_text.h"
#include "sim/commands/plan_by_flags.h"
#include "sim/plan/capacity.h"

namespace commfuse::page {

namespace {

using nlohmann::json;

sim::PlanFlags flags_of(const json& texts) {
  sim::PlanFlags flags;
  for (const auto& [key, value] : texts.items()) {
    const auto& text = value.get_ref<const std::string&>();
    std::string* const flag = key == "tokens"      ? &flags.tokens
                              : key == "hardware"  ? &flags.hardware
                              : key == "gpus"      ? &flags.gpus
                              : key == "price"     ? &flags.price
                              : key == "start"     ? &flags.start
                              : key == "deadline"  ? &flags.deadline
                              : key == "budget"    ? &flags.budget
                              : key == "available" ? &flags.available
                              : key == "count"     ? &flags.count
                                                   : nullptr;
    if (text.empty()) {
      continue;
    }
    if (flag != nullptr) {
      *flag = text;
    } else if (const Field* field = find_field(key)) {
      flags.settings.emplace_back(field, text);
    } else {
      throw ConfigError(fmt::format("{}: unknown setting of a plan", key));
    }
  }
  return with_start(std::move(flags));
}

}  // namespace

json plan(const json& request) {
  const sim::PlanFlags flags = flags_of(request.at("settings"));
  const std::string file = sim::plan_of(flags);
  const PlanFile plan_file = sim::plan_by_flags(flags, file);
  CapacityPlan plan;
  try {
    plan = plan_capacity(plan_file);
  } catch (const ConfigError& error) {
    throw sim::naming_flags(flags, file, error);
  }
  return {{"json", reports::plan_json(plan)},
          {"text", reports::plan_text(plan)},
          {"file", file},
          {"command", "commfuse-sim plan" + sim::in_shell_words(flags)}};
}

}  // namespace commfuse::page
