// SPDX-License-Identifier: Apache-2.0
#include "tests/laws/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/config/bandwidth_choice.h"
#include "model/config/choices.h"
#include "model/config_error.h"
#include "model/hardware/raised.h"

namespace commfuse::laws {

namespace {

bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) {
    return pattern == name;
  }
  const std::string_view first = pattern.substr(0, star);
  const std::string_view last = pattern.substr(star + 1);
  return name.size() >= first.size() + last.size() && name.starts_with(first) && name.ends_with(last);
}

Machine edited(Machine machine, const std::vector<Edit>& edits) {
  for (const Edit& edit : edits) {
    for (const NamedParameter& parameter : parameters_of(machine)) {
      if (matches(edit.parameters, parameter.name)) {
        machine = raised(machine, parameter.name, edit.times - 1.0);
      }
    }
  }
  return machine;
}

/// Returns the last row, because a decoding step has the row `all_reduce` before the rows of strategies.
const StepRow& row_of(const std::vector<StepRow>& rows) { return rows.back(); }

}  // namespace

/// Loads each combination of files once, because the library reads files at every call.
void Simulator::load(const Settings& settings) {
  std::string names;
  for (const char* key : {"model", "hardware", "link_bandwidth", "network_bandwidth", "jitter", "faults"}) {
    names += settings.text(key) + " ";
  }
  if (!loaded_.contains(names)) {
    library_.load(settings);
    loaded_.insert(names);
  }
}

const Machine& Simulator::edited_machine(const Settings& settings, const std::vector<Edit>& edits) {
  std::string key =
      settings.text("hardware") + settings.text("link_bandwidth") + " " + settings.text("network_bandwidth");
  for (const Edit& edit : edits) {
    key += fmt::format(" {} x{}", edit.parameters, edit.times);
  }
  const auto known = edited_machines_.find(key);
  return known != edited_machines_.end()
             ? known->second
             : edited_machines_.emplace(key, edited(library_.machine(choices_of(settings).machine), edits))
                   .first->second;
}

Outcome Simulator::run(const Setting& setting) {
  try {
    const Settings settings = settings_of(setting);
    load(settings);
    return is_whole_model(setting) ? run_step(settings, setting) : run_layer(settings, setting);
  } catch (const ConfigError& error) {
    return Outcome{.reason = error.what()};
  }
}

const std::vector<Candidates>& Simulator::candidates_at(const Settings& settings) {
  std::string key;
  for (const Field& field : run_fields()) {
    if (field.key.starts_with("strategy.") || field.key == "ranks" || field.key == "scope" || field.key == "dtype") {
      key += settings.at(field).text + "\n";
    }
  }
  const auto known = candidates_.find(key);
  return known != candidates_.end() ? known->second : candidates_.emplace(key, candidates_of(settings)).first->second;
}

Outcome Simulator::run_layer(const Settings& settings, const Setting& setting) {
  auto point = std::make_shared<Point>(point_of(settings, library_));
  if (!setting.edits.empty()) {
    point->machine = edited_machine(settings, setting.edits);
  }
  require_runnable(*point);
  const std::vector<Candidates>& candidates = candidates_at(settings);
  if (candidates.size() != 1) {
    throw ConfigError("a law checks one strategy at a time; choose one");
  }
  Outcome outcome;
  outcome.prediction = predictor_.predict_best(*point, *candidates.front().strategy, candidates.front().options);
  outcome.rates_change = point->needs_engine();
  outcome.meets_others = point->price.interference == Interference::dynamic;
  outcome.time = picoseconds(outcome.parts().makespan);
  outcome.memory = static_cast<double>(outcome.prediction->buffers.count);
  outcome.mfu = outcome.prediction->mfu;
  if (point->monte_carlo.jitter != nullptr) {
    predictor_.add_tails(*point, *outcome.prediction);
    outcome.samples = predictor_.makespans(*point, *outcome.prediction);
  }
  outcome.machine = &point->machine;
  outcome.point = std::move(point);
  return outcome;
}

Outcome Simulator::run_step(const Settings& settings, const Setting& setting) {
  if (!setting.edits.empty()) {
    throw ConfigError("a whole model uses the machine of a file; change only settings");
  }
  Outcome outcome;
  outcome.whole_model = true;
  outcome.machine = &library_.machine(choices_of(settings).machine);
  outcome.step = row_of(steps_.rows(settings));
  if (!outcome.step.feasible()) {
    outcome.reason = outcome.step.text("reason");
    return outcome;
  }
  outcome.time = outcome.cell("time_ms") * 1e9;
  outcome.mfu = outcome.cell("mfu");
  if (outcome.step.has("memory_gb")) {
    outcome.memory = outcome.cell("memory_gb") * 1e9;
  } else if (outcome.step.has("cache_gb")) {
    outcome.memory = (outcome.cell("weights_gb") + outcome.cell("cache_gb")) * 1e9;
  }
  return outcome;
}

}  // namespace commfuse::laws
