// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/verdict_score_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/expect/sibling_shares.h"
#include "model/wrapped.h"

namespace commfuse::sim {

namespace {

using expect::VerdictScore;
using Json = nlohmann::ordered_json;

std::string percent(double share) { return fmt::format("{:.2f}%", 100.0 * share); }

constexpr std::string_view yes_or_no(bool yes) { return yes ? "yes" : "no"; }

/// Returns the paragraph that describes the method behind the figures.
std::string method(const VerdictScore& score) {
  return fmt::format(
      "Written by `commfuse-sim score --verdicts -o markdown`. Each node is one group of GPUs in one run of a\n"
      "table: {} healthy nodes have enough rows ({} more have too few). Each node is counted as measured, and in\n"
      "20 repetitions with errors of 2.4% for the node, for each collective and for each row, so the table counts\n"
      "more nodes than exist. Faults multiply measured times; for a fault of a link, the model predicts the\n"
      "factors on a machine with that fault. `sim/expect/measured_nodes.cpp` lists healthy and degraded tables.\n"
      "With a reference (`--healthy`), each node is compared with one other node of the same machine and NCCL\n"
      "version; some of these runs may be of the same node. Each node is also compared with a file that\n"
      "`calibrate` made of one other node, with shares that were estimated on other clusters. The target is at\n"
      "most 1% false alarms.\n",
      score.healthy, score.too_small);
}

/// Returns an indented line below a heading, wrapped to the width of the terminal.
std::string item(const std::string& text) { return wrapped(text, "  ", "    "); }

/// Returns the table of counts and their bars. Numbers come first, because the texts are long.
std::string bars_table(const VerdictScore& score) {
  constexpr const char* line = "{:>7}  {:>8}  {:>5}  {:>5}  {:<3}  ";
  std::string text = fmt::format(line, "share", "bar", "nodes", "hits", "met") + "what\n";
  for (const expect::VerdictCount& count : score.counts) {
    const std::string numbers =
        fmt::format(line, percent(count.share()), count.bar, count.nodes, count.hits, yes_or_no(count.is_met()));
    text += wrapped(count.what, numbers, std::string(numbers.size(), ' '));
  }
  return text;
}

}  // namespace

std::string verdict_score_table(const VerdictScore& score) {
  std::string text = bars_table(score);
  text += score.degraded.empty() ? "" : "\nDegraded nodes as they were measured\n";
  for (const expect::DegradedVerdict& degraded : score.degraded) {
    text += item(fmt::format("{}: {}, {:.2f} times as slow; suspects {}", degraded.node, degraded.health,
                             degraded.slowdown, degraded.suspects));
  }
  text += "\nFaults in generated nodes: is the likeliest suspect right?\n";
  for (const expect::NamedFault& fault : score.faults) {
    text += item(fmt::format("{} on {}: {}, {}; suspects {}", fault.fault, fault.machine,
                             fault.is_right ? "right" : "wrong", fault.is_bad ? "called bad" : "not called bad",
                             fault.suspects));
  }
  text += "\nMedians of the healthy nodes relative to the prediction\n";
  for (const expect::MedianSpread& spread : score.spreads) {
    text += item(fmt::format("{}: {} medians, deviation {:.2f} standard errors, largest {:.2f}", spread.side,
                             spread.medians, spread.deviation, spread.largest));
  }
  text += "\nShare of a calibrated file's residual that differs between nodes of a cluster\n";
  for (const expect::HeldOutShares& held_out : score.shares) {
    const bool is_whole = held_out.cluster == "none";
    text += item(fmt::format("{}{}: bandwidth {:.2f}, latency {:.2f}", is_whole ? "from all clusters" : "without ",
                             is_whole ? "" : held_out.cluster, held_out.bandwidth, held_out.latency));
  }
  return text;
}

std::string verdict_score_json(const VerdictScore& score) {
  Json json{{"schema", "commfuse.verdict_score/1"}, {"healthy", score.healthy}, {"too_small", score.too_small}};
  for (const char* const list : {"counts", "degraded", "faults", "medians", "sibling_shares"}) {
    json[list] = Json::array();  // Without an entry, a list is empty, not missing.
  }
  for (const expect::VerdictCount& count : score.counts) {
    json["counts"].push_back({{"what", count.what},
                              {"bar", count.bar},
                              {"nodes", count.nodes},
                              {"hits", count.hits},
                              {"share", count.share()},
                              {"met", count.is_met()}});
  }
  for (const expect::DegradedVerdict& degraded : score.degraded) {
    json["degraded"].push_back({{"node", degraded.node},
                                {"health", degraded.health},
                                {"slowdown", degraded.slowdown},
                                {"suspects", degraded.suspects}});
  }
  for (const expect::NamedFault& fault : score.faults) {
    json["faults"].push_back({{"machine", fault.machine},
                              {"fault", fault.fault},
                              {"named", fault.is_right},
                              {"bad", fault.is_bad},
                              {"suspects", fault.suspects}});
  }
  for (const expect::MedianSpread& spread : score.spreads) {
    json["medians"].push_back({{"side", spread.side},
                               {"medians", spread.medians},
                               {"deviation", spread.deviation},
                               {"largest", spread.largest}});
  }
  for (const expect::HeldOutShares& held_out : score.shares) {
    json["sibling_shares"].push_back({{"held_out", held_out.cluster},
                                      {"pairs", held_out.pairs},
                                      {"bandwidth", held_out.bandwidth},
                                      {"latency", held_out.latency}});
  }
  return json.dump(1) + "\n";
}

std::string verdict_score_section(const VerdictScore& score) {
  std::string text = "\n## Verdicts\n\n" + method(score);
  text += "\n| what | goal | nodes | hits | share | met |\n|---|---|---:|---:|---:|---|\n";
  for (const expect::VerdictCount& count : score.counts) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", count.what, count.bar, count.nodes, count.hits,
                        percent(count.share()), yes_or_no(count.is_met()));
  }
  text += score.degraded.empty() ? ""
                                 : "\nDegraded nodes as they were measured:\n\n"
                                   "| node | verdict | slowdown | suspects |\n|---|---|---:|---|\n";
  for (const expect::DegradedVerdict& degraded : score.degraded) {
    text += fmt::format("| {} | {} | {:.2f} | {} |\n", degraded.node, degraded.health, degraded.slowdown,
                        degraded.suspects);
  }
  text +=
      "\nFaults in generated nodes, most at severities that the verdict does not try:\n\n"
      "| fault | machine | named | called bad | suspects |\n|---|---|---|---|---|\n";
  for (const expect::NamedFault& fault : score.faults) {
    text += fmt::format("| {} | {} | {} | {} | {} |\n", fault.fault, fault.machine, yes_or_no(fault.is_right),
                        yes_or_no(fault.is_bad), fault.suspects);
  }
  text +=
      "\nMedians of the healthy nodes relative to the prediction, in standard errors of the verdict's error "
      "model:\n\n"
      "| limited by | medians | deviation | largest |\n|---|---:|---:|---:|\n";
  for (const expect::MedianSpread& spread : score.spreads) {
    text +=
        fmt::format("| {} | {} | {:.2f} | {:.2f} |\n", spread.side, spread.medians, spread.deviation, spread.largest);
  }
  text += fmt::format(
      "\nThe residual of a calibrated file at a size is the same on all nodes of a fleet, except for a share, which\n"
      "is estimated on siblings. Nodes of one cluster are judged with the shares from the other; `verdict` uses\n"
      "{:.2f} and {:.2f}, which are estimated on all clusters:\n\n"
      "| cluster held out | pairs | bandwidth | latency |\n|---|---:|---:|---:|\n",
      shipped_shares().bandwidth, shipped_shares().latency);
  for (const expect::HeldOutShares& held_out : score.shares) {
    text += fmt::format("| {} | {} | {:.2f} | {:.2f} |\n", held_out.cluster, held_out.pairs, held_out.bandwidth,
                        held_out.latency);
  }
  return text;
}

}  // namespace commfuse::sim
