// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/verdict_score_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/expect/sibling_shares.h"

namespace commfuse::sim {

namespace {

using expect::VerdictScore;
using Json = nlohmann::ordered_json;

std::string percent(double share) { return fmt::format("{:.2f}%", 100.0 * share); }

constexpr std::string_view yes_or_no(bool yes) { return yes ? "yes" : "no"; }

/// Returns the paragraph about the method behind the figures.
std::string method(const VerdictScore& score) {
  return fmt::format(
      "Written by `commfuse-sim score --verdicts -o markdown`. A node is what one group of GPUs of one run of a table\n"
      "measured: {} healthy ones with enough rows ({} more have too few). Each counts as measured and in 20 "
      "repetitions\n"
      "with errors of 2.4% of the node, of each collective and of each row, so the table counts more nodes than there\n"
      "are. Faults multiply measured times; a fault of a link by what the model says of a machine that has it.\n"
      "`sim/expect/measured_nodes.cpp` lists healthy and degraded tables. With a reference (`--healthy`), each node "
      "is\n"
      "held against one other node of the same machine and NCCL version; some runs may be of one node. So is it "
      "against\n"
      "a file that `calibrate` made of one other node, by shares that were estimated on another cluster. At most 1% "
      "false\n"
      "alarms are asked for.\n",
      score.healthy, score.too_small);
}

}  // namespace

std::string verdict_score_table(const VerdictScore& score) {
  std::string text =
      fmt::format("{:<72}  {:>7}  {:>6}  {:>6}  {:>8}  {}\n", "what", "bar", "nodes", "hits", "share", "met");
  for (const expect::VerdictCount& count : score.counts) {
    text += fmt::format("{:<72}  {:>7}  {:>6}  {:>6}  {:>8}  {}\n", count.what, count.bar, count.nodes, count.hits,
                        percent(count.share()), yes_or_no(count.is_met()));
  }
  text += "\n";
  for (const expect::DegradedVerdict& degraded : score.degraded) {
    text += fmt::format("{}: {}, {:.2f} times as slow; {}\n", degraded.node, degraded.health, degraded.slowdown,
                        degraded.suspects);
  }
  text += "\n";
  for (const expect::NamedFault& fault : score.faults) {
    text += fmt::format("{} on {}: {}{}; {}\n", fault.fault, fault.machine, fault.is_right ? "named" : "missed",
                        fault.is_bad ? ", called bad" : ", not called bad", fault.suspects);
  }
  text += "\n";
  for (const expect::MedianSpread& spread : score.spreads) {
    text += fmt::format("{} medians: {}, deviation {:.2f} standard errors, largest {:.2f}\n", spread.side,
                        spread.medians, spread.deviation, spread.largest);
  }
  text += "\n";
  for (const expect::HeldOutShares& held_out : score.shares) {
    text +=
        fmt::format("shares of a calibrated file's residual between siblings, held out {}: {:.2f}, latency {:.2f}\n",
                    held_out.cluster, held_out.bandwidth, held_out.latency);
  }
  return text;
}

std::string verdict_score_json(const VerdictScore& score) {
  Json json{{"schema", "commfuse.verdict_score/1"}, {"healthy", score.healthy}, {"too_small", score.too_small}};
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
  text += "\n| what | bar | nodes | hits | share | met |\n|---|---|---:|---:|---:|---|\n";
  for (const expect::VerdictCount& count : score.counts) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", count.what, count.bar, count.nodes, count.hits,
                        percent(count.share()), yes_or_no(count.is_met()));
  }
  text += "\nDegraded nodes as they were measured:\n\n| node | verdict | slowdown | suspects |\n|---|---|---:|---|\n";
  for (const expect::DegradedVerdict& degraded : score.degraded) {
    text += fmt::format("| {} | {} | {:.2f} | {} |\n", degraded.node, degraded.health, degraded.slowdown,
                        degraded.suspects);
  }
  text +=
      "\nFaults put into made-up nodes, most at degrees that no pattern has:\n\n"
      "| fault | machine | named | called bad | suspects |\n|---|---|---|---|---|\n";
  for (const expect::NamedFault& fault : score.faults) {
    text += fmt::format("| {} | {} | {} | {} | {} |\n", fault.fault, fault.machine, yes_or_no(fault.is_right),
                        yes_or_no(fault.is_bad), fault.suspects);
  }
  text +=
      "\nMedians of the healthy nodes around what the model says, in the standard errors of the verdict's error "
      "model:\n\n"
      "| limited by | medians | deviation | largest |\n|---|---:|---:|---:|\n";
  for (const expect::MedianSpread& spread : score.spreads) {
    text +=
        fmt::format("| {} | {} | {:.2f} | {:.2f} |\n", spread.side, spread.medians, spread.deviation, spread.largest);
  }
  text += fmt::format(
      "\nWhat a calibrated file leaves of a size it leaves on all nodes of the fleet alike, but for a share, which is\n"
      "estimated on siblings. Nodes of a cluster are judged with shares that the other one gave; `verdict` uses "
      "{:.2f}\n"
      "and {:.2f}, from all of them:\n\n"
      "| cluster held out | pairs | bandwidth | latency |\n|---|---:|---:|---:|\n",
      shipped_shares().bandwidth, shipped_shares().latency);
  for (const expect::HeldOutShares& held_out : score.shares) {
    text += fmt::format("| {} | {} | {:.2f} | {:.2f} |\n", held_out.cluster, held_out.pairs, held_out.bandwidth,
                        held_out.latency);
  }
  return text;
}

}  // namespace commfuse::sim
