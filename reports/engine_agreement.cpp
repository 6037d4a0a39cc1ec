// SPDX-License-Identifier: Apache-2.0
#include "reports/engine_agreement.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/record/score.h"

namespace commfuse::reports {

namespace {

using Agreements = std::span<const EngineAgreement>;

std::string fine_percent(double share) { return fmt::format("{:.2f}", 100.0 * share); }

std::string number_of(const AgreementBar& bar, double number) {
  return bar.is_share ? fine_percent(number) : fmt::format("{:.0f}", number);
}

constexpr std::string_view agreement_heading =
    "\n## Static against dynamic\n\n"
    "Written by `commfuse-sim score --dynamic -o markdown`, without any table of measurements. By default a "
    "kernel is\nslowed for as long as everything takes that may run at the same time (`--interference static`); the "
    "dynamic engine\ndetermines what actually runs at the same time. Both simulate the MLP of Llama-3.1-70B "
    "on every machine of\n`configs/hardware` and `configs/clusters`, on 4, 8 and 16 ranks if the machine has "
    "them, for 2K, 8K and 32K tokens,\n"
    "with the fastest form of every strategy. A difference is |static / dynamic - 1| of a time, in %. A point has a "
    "winner\nif the [verdict](metrics.md) of one side names one, and is a conflict if that strategy does not "
    "even tie on the other\nside.\n\n";

}  // namespace

std::string agreement_section(Agreements machines) {
  std::string text = std::string(agreement_heading) + "| what | goal | reached | met |\n|---|---|---|---|\n";
  for (const AgreementBar& bar : agreement_bars(machines)) {
    text += fmt::format("| {} | {} | {} | {} |\n", bar.what, number_of(bar, bar.bar), number_of(bar, bar.reached),
                        bar.met() ? "yes" : "no");
  }
  text +=
      "\n| machine | ranks | pairs | median | largest | points | with a winner | conflicts |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const EngineAgreement& machine : machines) {
    const ErrorSummary summary = summary_of(machine.differences);
    const bool has_pairs = summary.n > 0;
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", machine.machine, fmt::join(machine.ranks, ", "),
                        summary.n, has_pairs ? fine_percent(summary.median) : "-",
                        has_pairs ? fine_percent(summary.max) : "-", machine.points, machine.winners,
                        machine.conflicts.size());
  }
  return text;
}

std::string agreement_table(Agreements machines) {
  constexpr const char* line = "{:<22} {:>6} {:>8} {:>8} {:>7} {:>8} {:>10}\n";
  std::string text =
      fmt::format(line, "static to dynamic, %", "pairs", "median", "largest", "points", "winners", "conflicts");
  for (const EngineAgreement& machine : machines) {
    const ErrorSummary summary = summary_of(machine.differences);
    text += fmt::format(line, machine.machine, summary.n, fine_percent(summary.median), fine_percent(summary.max),
                        machine.points, machine.winners, machine.conflicts.size());
    for (const std::string& conflict : machine.conflicts) {
      text += fmt::format("  {}\n", conflict);
    }
  }
  for (const AgreementBar& bar : agreement_bars(machines)) {
    text += fmt::format("{}: {}, at most {}: {}\n", bar.what, number_of(bar, bar.reached), number_of(bar, bar.bar),
                        bar.met() ? "met" : "not met");
  }
  return text;
}

std::string agreement_json(Agreements machines) {
  nlohmann::ordered_json object{{"schema", engine_agreement_schema}};
  for (const AgreementBar& bar : agreement_bars(machines)) {
    object["bars"].push_back({{"what", bar.what}, {"bar", bar.bar}, {"reached", bar.reached}, {"met", bar.met()}});
  }
  for (const EngineAgreement& machine : machines) {
    const ErrorSummary summary = summary_of(machine.differences);
    object["machines"].push_back({{"machine", machine.machine},
                                  {"ranks", machine.ranks},
                                  {"points", machine.points},
                                  {"pairs", summary.n},
                                  {"median", summary.median},
                                  {"max", summary.max},
                                  {"winners", machine.winners},
                                  {"conflicts", machine.conflicts}});
  }
  return object.dump(2) + "\n";
}

}  // namespace commfuse::reports
