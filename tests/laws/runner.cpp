// SPDX-License-Identifier: Apache-2.0
#include "tests/laws/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace commfuse::laws {

namespace {

/// The result of a law that applies to a setting; the law is violated if `factor` exceeds 1.
struct Finding {
  Setting after;
  double factor = 1.0;
};

std::optional<Finding> finding_of(const Law& law, const Setting& before, const Outcome& outcome, const DrawKey& key,
                                  Simulator& simulator) {
  std::optional<double> factor;
  std::optional<Setting> after = before;
  if (law.changed == nullptr) {
    factor = law.factor(outcome, outcome);
  } else {
    Draws draws(key);
    after = law.changed(before, draws);
    const Outcome other = after ? simulator.run(*after) : Outcome{.reason = "the law does not apply"};
    factor = other.runs() ? law.factor(outcome, other) : std::nullopt;
  }
  return factor ? std::optional(Finding{std::move(*after), *factor}) : std::nullopt;
}

/// Returns the key of a law's draws at a setting. These draws do not depend on other laws.
DrawKey key_of(const Law& law, const DrawKey& setting) {
  std::uint32_t hash = 2166136261;  // FNV-1a
  for (const char letter : law.name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619;
  }
  DrawKey key = setting;
  key.purpose = hash;
  return key;
}

void cover(Coverage& coverage, const Setting& setting) {
  const std::string machine = setting.text("hardware");
  const std::string scope = setting.text("scope");
  const std::string strategy = setting.text("strategy.name");
  ++coverage.settings;
  coverage.machines.insert(machine);
  coverage.models.insert(setting.text("model"));
  coverage.scopes.insert(scope);
  coverage.strategies.insert(strategy);
  coverage.places.insert(fmt::format("{} {} {}", machine, scope, strategy));
}

/// A setting that can be run, with its result.
struct Runnable {
  Setting setting;
  Outcome outcome;
  DrawKey key;
};

std::optional<Runnable> runnable_at(const Trial& trial, std::uint32_t index, const Axes& axes, Simulator& simulator) {
  constexpr std::uint32_t attempts = 60;
  for (std::uint32_t attempt = 0; attempt < attempts; ++attempt) {
    Setting setting = trial.generator->make(axes, trial.seed, index, attempt);
    Outcome outcome = simulator.run(setting);
    if (outcome.runs()) {
      return Runnable{std::move(setting), std::move(outcome), {trial.seed, index, attempt, 0}};
    }
  }
  return std::nullopt;
}

void note(Report& report, LawTally& tally, Violation violation, Simulator& simulator) {
  constexpr std::size_t max_shown = 25;  // Minimizing each takes many runs.
  if (++tally.violated > max_shown) {
    return;
  }
  violation = minimized(std::move(violation), simulator);
  const auto is_equal = [&](const Violation& other) {
    return other.law == violation.law && other.before == violation.before;
  };
  if (std::none_of(report.violations.begin(), report.violations.end(), is_equal)) {
    report.violations.push_back(std::move(violation));
  }
}

void try_laws_at(const Runnable& runnable, const std::vector<KnownViolation>& known, Report& report,
                 Simulator& simulator) {
  for (LawTally& tally : report.tallies) {
    const DrawKey key = key_of(*tally.law, runnable.key);
    std::optional<Finding> finding = finding_of(*tally.law, runnable.setting, runnable.outcome, key, simulator);
    tally.tried += finding ? 1 : 0;
    if (!finding || finding->factor <= 1.0) {
      continue;
    }
    if (is_known(known, *tally.law, runnable.setting, finding->factor)) {
      ++tally.known;
    } else {
      note(report, tally, {tally.law, runnable.setting, std::move(finding->after), key, finding->factor}, simulator);
    }
  }
}

std::string share_of(std::size_t seen, std::size_t total, std::string_view things) {
  return fmt::format("{} of {} {}", seen, total, things);
}

}  // namespace

std::optional<Violation> violation_of(const Law& law, const Setting& setting, const DrawKey& key,
                                      Simulator& simulator) {
  const Outcome outcome = simulator.run(setting);
  std::optional<Finding> finding = outcome.runs() ? finding_of(law, setting, outcome, key, simulator) : std::nullopt;
  return finding && finding->factor > 1.0
             ? std::optional(Violation{&law, setting, std::move(finding->after), key, finding->factor})
             : std::nullopt;
}

Report try_laws(const Trial& trial, const Axes& axes, const std::vector<KnownViolation>& known, Simulator& simulator) {
  Report report;
  for (const Law& law : all_laws()) {
    report.tallies.push_back({.law = &law});
  }
  for (std::uint32_t index = trial.first; index < trial.first + trial.count; ++index) {
    const std::optional<Runnable> runnable = runnable_at(trial, index, axes, simulator);
    if (!runnable) {
      ++report.coverage.given_up;
      continue;
    }
    cover(report.coverage, runnable->setting);
    try_laws_at(*runnable, known, report, simulator);
  }
  return report;
}

Violation minimized(Violation violation, Simulator& simulator) {
  bool is_smaller = true;
  while (is_smaller) {
    is_smaller = false;
    const auto choices = violation.before.choices;
    for (const auto& [key, text] : choices) {
      Setting smaller = violation.before;
      smaller.choices.erase(key);
      const bool may_go = key != "strategy.name";  // A law checks one strategy at a time.
      if (std::optional<Violation> less =
              may_go ? violation_of(*violation.law, smaller, violation.key, simulator) : std::nullopt) {
        violation = std::move(*less);
        is_smaller = true;
      }
    }
  }
  return violation;
}

std::string to_text(const Report& report, const Axes& axes) {
  const Coverage& coverage = report.coverage;
  const auto count_of = [&](auto member) {
    std::set<std::string> values;
    for (const Place& place : axes.places) {
      values.insert(place.*member);
    }
    return values.size();
  };
  std::string text = fmt::format("{} settings; {}, {}, {}, {}, {}\n", coverage.settings,
                                 share_of(coverage.machines.size(), axes.machines.size(), "machines"),
                                 share_of(coverage.scopes.size(), count_of(&Place::scope), "scopes"),
                                 share_of(coverage.strategies.size(), count_of(&Place::strategy), "strategies"),
                                 share_of(coverage.places.size(), axes.places.size(), "machine x scope x strategy"),
                                 share_of(coverage.models.size(), axes.models.size(), "models"));
  text += fmt::format("{:<28}{:>10}{:>10}{:>10}\n", "law", "tried", "violated", "known");
  for (const LawTally& tally : report.tallies) {
    text += fmt::format("{:<28}{:>10}{:>10}{:>10}\n", tally.law->name, tally.tried, tally.violated, tally.known);
  }
  for (const Violation& violation : report.violations) {
    text += fmt::format("{} x{:.6g}\n  {}\n", violation.law->name, violation.factor, command_of(violation.before));
    if (violation.after != violation.before) {
      text += fmt::format("  {}\n", command_of(violation.after));
    }
  }
  return text;
}

}  // namespace commfuse::laws
