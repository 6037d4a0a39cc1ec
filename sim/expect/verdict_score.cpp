// SPDX-License-Identifier: Apache-2.0
#include "sim/expect/verdict_score.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "model/config/catalogue.h"
#include "model/expect/copies.h"
#include "model/expect/judge.h"
#include "model/expect/machine_change.h"
#include "model/math/functions.h"
#include "model/random/philox.h"
#include "sim/expect/calibrated_node.h"
#include "sim/expect/measured_nodes.h"

namespace commfuse::expect {

namespace {

constexpr double false_alarms = 0.01;
/// Number of generated repetitions of a measured node. Each adds errors of size repeat_error: one for the node, one per
/// collective and one per row.
constexpr std::uint32_t repeats = 20;

/// Draws an approximately standard normal number: the sum of twelve uniform numbers, minus 6. The arguments identify
/// the draw; every group of nodes below has node numbers of its own.
double normal(std::uint32_t node, std::uint32_t part, std::uint32_t item) {
  double sum = -6.0;
  for (std::uint32_t i = 0; i < 3; ++i) {
    for (const std::uint32_t word : philox({item, part, node, i}, 45)) {
      sum += (static_cast<double>(word) + 0.5) / 4294967296.0;
    }
  }
  return sum;
}

using Rows = std::vector<MeasuredMessage>;

Rows repeated(Rows rows, std::uint32_t node) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double deviation = normal(node, 0, 0) + normal(node, 1, static_cast<std::uint32_t>(rows[i].message.op)) +
                             normal(node, 2, static_cast<std::uint32_t>(i));
    rows[i].time_us *= math::exp(repeat_error * deviation);
  }
  return rows;
}

/// Returns the factor on the time of a message, given its expected time on the machine.
using FaultOn = std::function<double(const Message& message, const Expected& expected)>;

Rows with_fault(Rows rows, const std::vector<Expected>& expected, const FaultOn& fault) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].time_us *= fault(rows[i].message, expected[i]);
  }
  return rows;
}

FaultOn slower(double rate) {
  return [rate](const Message&, const Expected&) { return 1.0 / rate; };
}

double latency_doubled(const Message&, const Expected& expected) {
  return expected.limit == Limit::latency ? 2.0 : 1.0;
}

/// Returns the slowdown that the model predicts on the faulty machine.
FaultOn slowdown_on(const Machine& healthy, const Machine& faulty) {
  return [&healthy, faulty](const Message& message, const Expected&) {
    return to_seconds(message_time(faulty, message)) / to_seconds(message_time(healthy, message));
  };
}

std::string suspects_of(const Judgement& judgement) {
  std::string text;
  for (const SuspectedFault& suspect : judgement.suspects) {
    text += fmt::format("{}{} {:.0f}%", text.empty() ? "" : ", ", suspect.fault->name, 100.0 * suspect.probability);
  }
  return text;
}

bool is_bad(const Judgement& judgement) { return judgement.health == Health::bad; }

bool names_a_link(const Judgement& judgement) {
  constexpr std::array<std::string_view, 3> links{"slow_link", "pcie_generation", "degraded_nic"};
  return is_bad(judgement) && !judgement.suspects.empty() &&
         std::find(links.begin(), links.end(), judgement.suspects.front().fault->name) != links.end();
}

/// Keeps one judge per machine.
class Judges {
 public:
  Judge& of(const Machine& machine) {
    std::unique_ptr<Judge>& judge = judges_[fmt::format("{} {}", machine.name, machine.nodes)];
    if (judge == nullptr) {
      judge = std::make_unique<Judge>(Expectation(machine), false_alarms);
    }
    return *judge;
  }

 private:
  std::map<std::string, std::unique_ptr<Judge>> judges_;
};

/// Counts the verdicts on a node and its repetitions.
void count(VerdictCount& total, Judge& judge, const Rows& rows, std::uint32_t node, const std::optional<FaultOn>& fault,
           bool (*is_hit)(const Judgement&) = is_bad) {
  const std::vector<Expected> expected = judge.of(rows).expected;
  for (std::uint32_t i = 0; i <= repeats; ++i) {
    const Rows repetition = i == 0 ? rows : repeated(rows, node * (repeats + 1) + i);
    ++total.nodes;
    total.hits += is_hit(judge.of(fault ? with_fault(repetition, expected, *fault) : repetition)) ? 1 : 0;
  }
}

VerdictCount at_most(std::string what, double limit) {
  return {std::move(what), fmt::format("<= {:.3g}%", 100.0 * limit), limit, true};
}
VerdictCount at_least(std::string what, double limit) {
  return {std::move(what), fmt::format(">= {:.3g}%", 100.0 * limit), limit, false};
}

void add_with_priors(const std::vector<MeasuredNode>& healthy, Judges& judges, VerdictScore& score) {
  VerdictCount called = at_most("shipped file: healthy called bad", 0.01);
  VerdictCount slow = at_least("shipped file: all rates x 0.7 called bad", 0.95);
  VerdictCount latency = at_least("shipped file: latency-bound sizes x 2 called bad", 0.95);
  VerdictCount link = at_least("shipped file: one link at half its rate, called bad and a link named", 0.90);
  std::uint32_t number = 0;
  for (const MeasuredNode& node : healthy) {
    Judge& judge = judges.of(node.machine);
    const Machine half = with_link_rates(node.machine, 0.5);
    count(called, judge, node.rows, number, std::nullopt);
    count(slow, judge, node.rows, number, slower(0.7));
    count(latency, judge, node.rows, number, FaultOn(latency_doubled));
    count(link, judge, node.rows, number, slowdown_on(node.machine, half), names_a_link);
    ++number;
  }
  score.counts.insert(score.counts.end(), {called, slow, latency, link});
}

/// Returns whether two different nodes have the same machine, number of GPUs and known NCCL version.
bool are_of_one_fleet(const MeasuredNode& a, const MeasuredNode& b) {
  return &a != &b && a.machine.name == b.machine.name && a.gpus == b.gpus && !a.nccl_version.empty() &&
         a.nccl_version == b.nccl_version;
}

void add_with_references(const std::vector<MeasuredNode>& healthy, VerdictScore& score) {
  VerdictCount called = at_most("another node as reference: healthy called bad", 0.01);
  VerdictCount slow = at_least("another node as reference: all rates x 0.85 called bad", 0.95);
  VerdictCount latency = at_least("another node as reference: latency-bound sizes x 2 called bad", 0.95);
  std::uint32_t number = 1000;
  for (const MeasuredNode& reference_node : healthy) {
    const Expectation expectation(reference_node.machine);
    std::optional<Judge> judge;
    for (const MeasuredNode& node : healthy) {
      if (!are_of_one_fleet(reference_node, node)) {
        continue;
      }
      if (!judge) {
        const std::array<Rows, 1> reference{reference_node.rows};
        judge.emplace(expectation, false_alarms, reference_of(reference, expectation));
      }
      count(called, *judge, node.rows, number, std::nullopt);
      count(slow, *judge, node.rows, number, slower(0.85));
      count(latency, *judge, node.rows, number, FaultOn(latency_doubled));
      ++number;
    }
  }
  score.counts.insert(score.counts.end(), {called, slow, latency});
}

/// A node and the machine that was calibrated on a sibling of the node.
struct Sibling {
  std::string cluster;  ///< "h100-sxm, NCCL 2.29.2"; without the GPU count, as groups of 2, 4 and 8 share their nodes.
  std::int64_t gpus = 1;
  const Machine* calibrated = nullptr;
  const MeasuredNode* node = nullptr;
  ShareLikelihood bandwidth, latency;
};

/// Sibling pairs, with the calibrated machines to which they point.
struct Siblings {
  std::vector<std::unique_ptr<const Machine>> machines;
  std::vector<Sibling> pairs;
};

void add_likelihoods(Sibling& sibling) {
  const Expectation expectation(*sibling.calibrated);
  for (const double share : tried_shares()) {
    const std::vector<ClassHalf> halves =
        Judge(expectation, false_alarms, {}, FittedTo::this_fleet, {share, share}).of(sibling.node->rows).halves;
    sibling.bandwidth.push_back(healthy_likelihood(halves, Limit::bandwidth));
    sibling.latency.push_back(healthy_likelihood(halves, Limit::latency));
  }
}

Siblings siblings_of(const std::vector<MeasuredNode>& healthy) {
  Siblings siblings;
  for (const MeasuredNode& calibrated_node : healthy) {
    const Machine* calibrated = nullptr;
    for (const MeasuredNode& node : healthy) {
      if (!are_of_one_fleet(calibrated_node, node) || calibrated_node.machine.nodes > 1) {
        continue;
      }
      if (calibrated == nullptr) {
        siblings.machines.push_back(std::make_unique<const Machine>(calibrated_on(calibrated_node)));
        calibrated = siblings.machines.back().get();
      }
      siblings.pairs.push_back({.cluster = fmt::format("{}, NCCL {}", node.machine.name, node.nccl_version),
                                .gpus = node.gpus,
                                .calibrated = calibrated,
                                .node = &node,
                                .bandwidth = {},
                                .latency = {}});
      add_likelihoods(siblings.pairs.back());
    }
  }
  return siblings;
}

/// Returns the joint likelihood of all pairs with one count of GPUs. N nodes form N (N - 1) pairs but have only N - 1
/// independent differences, so the pairs are weighted to count as N - 1 comparisons.
ShareLikelihood likelihood_of(const std::vector<const Sibling*>& pairs, ShareLikelihood Sibling::*side) {
  const auto count = static_cast<double>(pairs.size());
  const double nodes = 0.5 + std::sqrt(0.25 + count);  // count = nodes x (nodes - 1)
  ShareLikelihood sum((pairs.front()->*side).size(), 0.0);
  for (const Sibling* const pair : pairs) {
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += (pair->*side)[i] * (nodes - 1.0) / count;
    }
  }
  return sum;
}

/// Estimates the shares without the nodes of one cluster; with an empty name, from all nodes.
HeldOutShares shares_without(const std::vector<Sibling>& pairs, const std::string& cluster) {
  std::map<std::pair<std::string, std::int64_t>, std::vector<const Sibling*>> groups;
  HeldOutShares shares{.cluster = cluster.empty() ? "none" : cluster};
  for (const Sibling& pair : pairs) {
    if (pair.cluster == cluster) {
      ++shares.pairs;
    } else {
      groups[{pair.cluster, pair.gpus}].push_back(&pair);
    }
  }
  std::vector<ShareLikelihood> bandwidth, latency;
  for (const auto& [key, own_pairs] : groups) {
    bandwidth.push_back(likelihood_of(own_pairs, &Sibling::bandwidth));
    latency.push_back(likelihood_of(own_pairs, &Sibling::latency));
  }
  shares.bandwidth = share_of(bandwidth);
  shares.latency = share_of(latency);
  return shares;
}

/// Judges each node by a file that was calibrated on another node of its fleet, with residual shares estimated on the
/// other clusters.
void add_with_calibrations(const std::vector<MeasuredNode>& healthy, VerdictScore& score) {
  VerdictCount called = at_most("calibrated on another node: healthy called bad", 0.01);
  VerdictCount slow = at_least("calibrated on another node: all rates x 0.85 called bad", 0.95);
  VerdictCount latency = at_least("calibrated on another node: latency-bound sizes x 2 called bad", 0.95);
  const Siblings siblings = siblings_of(healthy);
  std::map<std::string, HeldOutShares> held_out;
  for (const Sibling& pair : siblings.pairs) {
    if (!held_out.contains(pair.cluster)) {
      held_out[pair.cluster] = shares_without(siblings.pairs, pair.cluster);
      score.shares.push_back(held_out[pair.cluster]);
    }
  }
  score.shares.push_back(shares_without(siblings.pairs, ""));
  std::uint32_t number = 3000;
  std::optional<Judge> judge;
  const Machine* judged = nullptr;
  for (const Sibling& pair : siblings.pairs) {
    if (judged != pair.calibrated) {
      const HeldOutShares& shares = held_out[pair.cluster];
      judge.emplace(Expectation(*pair.calibrated), false_alarms, Reference{}, FittedTo::this_fleet,
                    SiblingShares{shares.bandwidth, shares.latency});
      judged = pair.calibrated;
    }
    count(called, *judge, pair.node->rows, number, std::nullopt);
    count(slow, *judge, pair.node->rows, number, slower(0.85));
    count(latency, *judge, pair.node->rows, number, FaultOn(latency_doubled));
    ++number;
  }
  score.counts.insert(score.counts.end(), {called, slow, latency});
}

/// Judges generated nvbandwidth matrices of eight GPUs, with the errors that model/expect/copies.cpp states. There is
/// no public matrix of a node that is known to be degraded.
void add_copies(VerdictScore& score) {
  VerdictCount called = at_most("nvbandwidth, generated: healthy called bad", 0.01);
  VerdictCount named = at_least("nvbandwidth, generated: one pair at half its rate, called bad and named", 0.90);
  const Machine machine = load_machine("h100-sxm");
  const double expected = expected_copy(machine, 0, 1, false).value;
  constexpr std::uint32_t nodes = 200;
  constexpr std::uint32_t first = 9000;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const int low = static_cast<int>(node % 4);
    const int high = static_cast<int>(4 + node % 3);
    const auto judged = [&](double share) {
      CopyTable table{.test = "read", .by_sms = false, .copies = {}};
      for (int a = 0; a < machine.gpus_per_node; ++a) {
        for (int b = 0; b < machine.gpus_per_node; ++b) {
          const double deviation = 0.05 * normal(first + node, 0, 0) +
                                   0.015 * normal(first + node, 1, static_cast<std::uint32_t>(8 * a + b));
          const bool is_slow = std::min(a, b) == low && std::max(a, b) == high;
          if (a != b) {
            table.copies.push_back({a, b, {expected * math::exp(deviation) * (is_slow ? share : 1.0)}});
          }
        }
      }
      return judge_copies(machine, {table}, false_alarms).front();
    };
    ++called.nodes;
    called.hits += judged(1.0).health == Health::bad ? 1 : 0;
    const CopyJudgement half = judged(0.5);
    ++named.nodes;
    const bool is_named =
        half.health == Health::bad && half.suspects.front().subject == fmt::format("GPU {} – GPU {}", low, high);
    named.hits += is_named ? 1 : 0;
  }
  score.counts.insert(score.counts.end(), {called, named});
}

void add_degraded(const std::vector<MeasuredNode>& nodes, Judges& judges, VerdictScore& score) {
  VerdictCount called = at_least("degraded tables called bad", 1.0);
  for (const MeasuredNode& node : nodes) {
    if (node.health == NodeHealth::degraded) {
      const Judgement judgement = judges.of(node.machine).of(node.rows);
      score.degraded.push_back({fmt::format("{}, {} GPUs", node.table, node.gpus),
                                std::string(name_of(judgement.health)), judgement.slowdown, suspects_of(judgement)});
      ++called.nodes;
      called.hits += is_bad(judgement) ? 1 : 0;
    }
  }
  score.counts.push_back(called);
}

/// A generated fault. Most severities differ from those that the verdict tries.
struct GeneratedFault {
  std::string_view machine;
  std::string_view fault;
  Machine (*on)(const Machine& machine);
};

constexpr std::array generated_faults{
    GeneratedFault{"h100-sxm", "uniform_slowdown",
                   [](const Machine& m) { return with_latencies(with_link_rates(m, 0.65), 1.0 / 0.65); }},
    GeneratedFault{"h100-sxm", "slow_link", [](const Machine& m) { return with_link_rates(m, 0.55); }},
    GeneratedFault{"pcie-rtx-pro-6000", "pcie_generation", [](const Machine& m) { return with_link_rates(m, 0.5); }},
    GeneratedFault{"h100-sxm", "host_path",
                   [](const Machine& m) { return with_latencies(with_link_rates(m, 0.15), 1.4); }},
    GeneratedFault{"h100-sxm", "missing_nvls", [](const Machine& m) { return without_nvls(m); }},
    GeneratedFault{"h100-sxm", "few_ctas", [](const Machine& m) { return with_ctas(m, 10); }},
    GeneratedFault{"h100-sxm", "low_clocks", [](const Machine& m) { return with_clock(m, 0.4); }},
    GeneratedFault{"h100-sxm", "slow_host", [](const Machine& m) { return with_latencies(m, 2.5); }},
    GeneratedFault{"dgx-h100-x2", "dead_rail", [](const Machine& m) { return with_rails(m, 6); }},
    GeneratedFault{"dgx-h100-x2", "degraded_nic", [](const Machine& m) { return with_network_rates(m, 0.5); }},
    GeneratedFault{"dgx-h100-x2", "missing_gdr",
                   [](const Machine& m) { return with_latencies(with_network_rates(m, 0.4), 1.5); }},
    GeneratedFault{"dgx-h100-x2", "sockets",
                   [](const Machine& m) { return with_latencies(with_network_rates(m, 0.07), 2.2); }}};

/// Returns predicted rows of all collectives at sizes from 1 KiB to 8 GiB.
Rows generated_rows(const Machine& machine) {
  Rows rows;
  for (const LinkOp op : {LinkOp::all_gather, LinkOp::reduce_scatter, LinkOp::all_reduce, LinkOp::all_to_all}) {
    for (std::int64_t bytes = 1024; bytes <= std::int64_t{8} << 30U; bytes *= 2) {
      const Message message{.op = op, .gpus = total_gpus(machine), .nodes = machine.nodes, .bytes = {bytes}};
      rows.push_back({message, to_microseconds(message_time(machine, message))});
    }
  }
  return rows;
}

void add_generated_faults(Judges& judges, VerdictScore& score) {
  VerdictCount named = at_least("cause right on 12 generated faults", 10.0 / 12.0);
  std::uint32_t number = 5000;
  for (const GeneratedFault& planted : generated_faults) {
    const Machine machine = load_machine(planted.machine);
    Judge& judge = judges.of(machine);
    const Judgement judgement = judge.of(repeated(generated_rows(planted.on(machine)), number++));
    const bool is_right = !judgement.suspects.empty() && judgement.suspects.front().fault->name == planted.fault;
    score.faults.push_back({std::string(planted.machine), std::string(planted.fault), suspects_of(judgement), is_right,
                            is_bad(judgement)});
    ++named.nodes;
    named.hits += is_right ? 1 : 0;
  }
  score.counts.push_back(named);
}

void add_spreads(const std::vector<MeasuredNode>& healthy, Judges& judges, VerdictScore& score) {
  for (const Limit side : {Limit::bandwidth, Limit::latency}) {
    MedianSpread spread{.side = std::string(name_of(side))};
    double squares = 0.0;
    for (const MeasuredNode& node : healthy) {
      for (const ClassHalf& half : judges.of(node.machine).of(node.rows).halves) {
        if (half.limit == side) {
          const double errors = half.median / error_of(half);
          squares += errors * errors;
          spread.largest = std::max(spread.largest, std::abs(errors));
          ++spread.medians;
        }
      }
    }
    spread.deviation = spread.medians == 0 ? 0.0 : std::sqrt(squares / static_cast<double>(spread.medians));
    score.spreads.push_back(spread);
  }
}

}  // namespace

VerdictScore score_verdicts(const std::vector<std::filesystem::path>& tables) {
  const std::vector<MeasuredNode> nodes = measured_nodes(tables);
  Judges judges;
  VerdictScore score;
  std::vector<MeasuredNode> healthy;
  for (const MeasuredNode& node : nodes) {
    if (node.health == NodeHealth::healthy) {
      if (is_enough(judges.of(node.machine).of(node.rows).halves)) {
        healthy.push_back(node);
      } else {
        ++score.too_small;
      }
    }
  }
  score.healthy = healthy.size();
  add_with_priors(healthy, judges, score);
  add_with_references(healthy, score);
  add_with_calibrations(healthy, score);
  add_degraded(nodes, judges, score);
  add_generated_faults(judges, score);
  add_copies(score);
  add_spreads(healthy, judges, score);
  return score;
}

}  // namespace commfuse::expect
