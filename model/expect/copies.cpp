// SPDX-License-Identifier: Apache-2.0
#include "model/expect/copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <numbers>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "model/analysis/median.h"
#include "model/check.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

/// The share of the nominal rate of its wires that a copy reaches, and the standard errors of ln(rate) around it: the
/// error that all copies of a node share, and the error of each copy. docs/decisions/0070 lists the published matrices
/// from which they are estimated.
struct CopyShare {
  double share = 1.0;
  double shared_error = 0.0;
  double own_error = 0.0;
};
constexpr CopyShare over_nvlink{.share = 0.863, .shared_error = 0.05, .own_error = 0.015};
constexpr CopyShare over_nvlink_by_sms{.share = 0.84, .shared_error = 0.06, .own_error = 0.02};
constexpr CopyShare below_a_root{.share = 0.83, .shared_error = 0.10, .own_error = 0.05};
constexpr CopyShare across_roots{.share = 0.70, .shared_error = 0.15, .own_error = 0.08};
constexpr CopyShare to_the_host{.share = 0.87, .shared_error = 0.08, .own_error = 0.05};
/// Replaces to_the_host.shared_error if the wires are unknown, so that all common rates are about equally likely.
constexpr double unknown_error = 3.0;

/// Relative error of a fault's degree (assumed). It covers the degrees between those tried.
constexpr double degree_error = 0.2;
constexpr std::array degrees{0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.1, 0.05};

/// The data-sheet rate of the wire that limits a copy, and the share of this rate that a copy reaches.
struct Wire {
  BytesPerSecond rate;
  CopyShare copy_share;
};

/// Returns the wire that limits a copy over a route; without a route, the machine's link.
Wire wire_on(const std::optional<Route>& route, const Machine& machine, bool by_sms) {
  const CopyShare nvlink = by_sms ? over_nvlink_by_sms : over_nvlink;
  if (!route) {
    return {machine.link.nominal_rate.value, nvlink};
  }
  const Topology& topology = *machine.topology;
  BytesPerSecond least = unlimited;
  for (const int link : route->links) {
    const Edge& edge = topology.edges[static_cast<std::size_t>(link / 2)];
    least = std::min(least, std::isfinite(edge.capacity.value) ? edge.capacity : edge.rate);
  }
  const auto passes = [&](VertexKind kind) {
    return std::any_of(route->vertices.begin(), route->vertices.end(),
                       [&](int vertex) { return topology.vertices[static_cast<std::size_t>(vertex)].kind == kind; });
  };
  const bool crosses_root = passes(VertexKind::root);
  const bool is_pcie = crosses_root || (passes(VertexKind::bridge) && !passes(VertexKind::crossbar));
  return {least, crosses_root ? across_roots : is_pcie ? below_a_root : nvlink};
}

/// Finds the wires of copies inside a node. The routes from a GPU are found once, because finding them is slow.
class CopyWires {
 public:
  explicit CopyWires(const Machine& machine) : machine_(machine) {}

  Wire between(int from, int to, bool by_sms) {
    if (machine_.topology == nullptr) {
      return wire_on(std::nullopt, machine_, by_sms);
    }
    const auto [entry, is_new] = routes_.try_emplace(from);
    if (is_new) {
      entry->second = routes_from(*machine_.topology, from);
      entry->second.resize(static_cast<std::size_t>(machine_.gpus_per_node));  // drops the GPUs of other nodes
    }
    return wire_on(entry->second[static_cast<std::size_t>(to)], machine_, by_sms);
  }

 private:
  const Machine& machine_;
  std::map<int, std::vector<std::optional<Route>>> routes_;  // by sending GPU
};

bool has_pcie_tree(const Machine& machine) {
  return machine.plan != nullptr && machine.plan->kind == NodeKind::pcie_tree;
}

/// A copy and its expectation. The GPUs of a pair are in ascending order; `turned` is true if the table lists them in
/// descending order.
struct Cell {
  int low = 0;  ///< A GPU, or host_side.
  int high = 0;
  bool turned = false;
  double off = 0.0;  ///< ln(expected / measured).
  double shared = 0.0;
  double own_error = 0.0;
};

/// Cells that one fault would slow.
struct Part {
  enum class Kind { every_gpu, gpu, pair, direction } kind = Kind::every_gpu;
  std::string subject;
  std::vector<std::size_t> cells;
};

/// Returns the number of standard errors that the given share of normal errors exceeds, to within 1e-9. Requires
/// 0 < share < 0.5.
double normal_errors_with_share_above(double share) {
  double low = 0.0;
  double high = 40.0;
  while (high - low > 1e-9) {
    const double half = 0.5 * (low + high);
    (0.5 * math::erfc(half / std::numbers::sqrt2) > share ? low : high) = half;
  }
  return low;
}

/// Sums over cells, each term divided by the square of the cell's own error; the likelihood of normal errors is
/// computed from them.
struct Sums {
  double weight = 0.0;         ///< Sum of 1.
  double off = 0.0;            ///< Sum of off.
  double off_square = 0.0;     ///< Sum of off^2.
  double shared = 0.0;         ///< Sum of shared.
  double off_shared = 0.0;     ///< Sum of off x shared.
  double shared_square = 0.0;  ///< Sum of shared^2.

  void add(const Cell& cell) {
    const double precision = 1.0 / (cell.own_error * cell.own_error);
    weight += precision;
    off += cell.off * precision;
    off_square += cell.off * cell.off * precision;
    shared += cell.shared * precision;
    off_shared += cell.off * cell.shared * precision;
    shared_square += cell.shared * cell.shared * precision;
  }
};

/// Returns ln(likelihood of the node's cells with a fault in `part` / their likelihood without one). The fault slows
/// each cell of the part by `fault`; its error, degree_error x fault, is common to these cells. The covariance matrix
/// is diagonal plus two terms of rank one (the error that all cells share, and the degree of the fault), so Woodbury's
/// identity inverts it.
double log_ratio(const Sums& node, const Sums& part, double fault) {
  const double degree = degree_error * fault;
  const double squares = node.off_square - 2.0 * fault * part.off + fault * fault * part.weight;
  const double along_shared = node.off_shared - fault * part.shared;
  const double along_degree = degree * (part.off - fault * part.weight);
  const double shared = 1.0 + node.shared_square;
  const double both = degree * part.shared;
  const double own_degree = 1.0 + degree * degree * part.weight;
  const double determinant = shared * own_degree - both * both;
  const double explained = (along_shared * along_shared * own_degree - 2.0 * along_shared * along_degree * both +
                            along_degree * along_degree * shared) /
                           determinant;
  const double healthy = node.off_square - node.off_shared * node.off_shared / shared + math::log(shared);
  return 0.5 * (healthy - (squares - explained + math::log(determinant)));
}

std::string name_of_pair(int low, int high) {
  return low == host_side ? fmt::format("GPU {}", high) : fmt::format("GPU {} – GPU {}", low, high);
}

/// Returns the parts: all cells, and the cells of each GPU, of each pair, and of each direction of a pair.
std::vector<Part> parts_of(const std::vector<Cell>& cells) {
  Part whole{.kind = Part::Kind::every_gpu, .subject = "all GPUs"};
  std::map<int, Part> by_gpu;
  std::map<std::pair<int, int>, Part> by_pair;
  std::map<std::tuple<int, int, bool>, Part> by_direction;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    whole.cells.push_back(i);
    const auto add = [&](Part& part, Part::Kind kind, std::string subject) {
      part.kind = kind;
      part.subject = std::move(subject);
      part.cells.push_back(i);
    };
    add(by_gpu[cell.high], Part::Kind::gpu, fmt::format("GPU {}", cell.high));
    if (cell.low == host_side) {
      continue;
    }
    add(by_gpu[cell.low], Part::Kind::gpu, fmt::format("GPU {}", cell.low));
    add(by_pair[{cell.low, cell.high}], Part::Kind::pair, name_of_pair(cell.low, cell.high));
    add(by_direction[{cell.low, cell.high, cell.turned}], Part::Kind::direction,
        name_of_pair(cell.low, cell.high) + ", one direction");
  }
  std::vector<Part> parts{std::move(whole)};
  for (auto& [gpu, part] : by_gpu) {
    parts.push_back(std::move(part));
  }
  for (auto& [pair, part] : by_pair) {
    parts.push_back(std::move(part));
  }
  for (auto& [direction, part] : by_direction) {
    parts.push_back(std::move(part));
  }
  return parts;
}

const Fault* fault_of(const Machine& machine, const Part& part, bool with_host, double share) {
  constexpr double max_through_host = 0.45;
  const bool all_through_host = !with_host && part.kind == Part::Kind::every_gpu && share < max_through_host;
  return fault_named(all_through_host                      ? "host_path"
                     : with_host || has_pcie_tree(machine) ? "pcie_generation"
                                                           : "slow_link");
}

double share_of(const std::vector<Cell>& cells, const std::vector<std::size_t>& indices) {
  std::vector<double> offs;
  for (const std::size_t i : indices) {
    offs.push_back(cells[i].off);
  }
  return math::exp(-median(std::move(offs)));
}

Severity severity_of_rate_share(double share) {
  return share <= 1.0 / 1.5 ? Severity::critical : share <= 1.0 / 1.15 ? Severity::major : Severity::minor;
}

/// Returns, for each part, ln(likelihood of the cells with its fault / likelihood without a fault), averaged over the
/// degrees of the fault and divided by the number of parts of its kind.
std::vector<double> log_ratios(const std::vector<Cell>& cells, const std::vector<Part>& parts) {
  std::array<double, 4> parts_of_kind{};  // by kind; the parts of a kind share the weight of one fault
  Sums node;
  for (const Cell& cell : cells) {
    node.add(cell);
  }
  for (const Part& part : parts) {
    parts_of_kind[static_cast<std::size_t>(part.kind)] += 1.0;
  }
  std::vector<double> ratios;
  for (const Part& part : parts) {
    Sums sums;
    for (const std::size_t i : part.cells) {
      sums.add(cells[i]);
    }
    std::array<double, degrees.size()> by_degree{};
    std::transform(degrees.begin(), degrees.end(), by_degree.begin(),
                   [&](double degree) { return log_ratio(node, sums, -math::log(degree)); });
    const double likeliest = *std::max_element(by_degree.begin(), by_degree.end());
    double sum = 0.0;
    for (const double ratio : by_degree) {
      sum += math::exp(ratio - likeliest);
    }
    const double weight = static_cast<double>(degrees.size()) * parts_of_kind[static_cast<std::size_t>(part.kind)];
    ratios.push_back(likeliest + math::log(sum / weight));
  }
  return ratios;
}

void decide(const Machine& machine, const std::vector<Cell>& cells, bool with_host, double false_alarms,
            CopyJudgement& judgement) {
  const std::vector<Part> parts = parts_of(cells);
  const std::vector<double> ratios = log_ratios(cells, parts);
  const double likeliest = *std::max_element(ratios.begin(), ratios.end());
  double sum = 0.0;
  std::set<Part::Kind> kinds;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sum += math::exp(ratios[i] - likeliest);
    kinds.insert(parts[i].kind);
  }
  constexpr double largest = 600.0;  // e^600 is still in the range of a double
  judgement.odds = math::exp(std::min(largest, likeliest)) * sum / static_cast<double>(kinds.size());
  judgement.healthy_probability = 1.0 / (1.0 + judgement.odds * bad_share / (1.0 - bad_share));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double probability = (1.0 - judgement.healthy_probability) * math::exp(ratios[i] - likeliest) / sum;
    if (probability > 0.01) {
      const double share = share_of(cells, parts[i].cells);
      judgement.suspects.push_back(
          {fault_of(machine, parts[i], with_host, share), parts[i].subject, probability, share});
    }
  }
  std::stable_sort(judgement.suspects.begin(), judgement.suspects.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
  judgement.rate_share = share_of(cells, parts.front().cells);
  if (judgement.odds >= 1.0 / false_alarms) {
    judgement.health = Health::bad;
    judgement.rate_share = judgement.suspects.front().rate_share;
    judgement.severity = severity_of_rate_share(judgement.rate_share);
  }
}

/// Returns true if every GPU of the machine was timed: with the host if `with_host`, otherwise with every other GPU.
bool is_complete(const Machine& machine, const std::vector<Cell>& cells, bool with_host) {
  std::set<std::pair<int, int>> pairs;
  for (const Cell& cell : cells) {
    pairs.insert({cell.low, cell.high});
  }
  const auto gpus = static_cast<std::size_t>(machine.gpus_per_node);
  return pairs.size() >= (with_host ? gpus : gpus * (gpus - 1) / 2);
}

struct ExpectedCells {
  std::vector<Cell> cells;
  std::vector<double> expected;  ///< Bytes per second.
  std::vector<double> measured;
};

ExpectedCells cells_of(const Machine& machine, const std::vector<CopyTable>& tables, bool with_host) {
  ExpectedCells table_cells;
  CopyWires wires(machine);
  const double host_rate = expected_host_copy(machine).value;
  for (const CopyTable& table : tables) {
    for (const MeasuredCopy& copy : table.copies) {
      const auto [low, high] = std::minmax(copy.from, copy.to);
      const bool is_valid = high < machine.gpus_per_node && low != high && copy.rate.value > 0.0;
      if (!is_valid || (low == host_side) != with_host) {
        continue;
      }
      Cell cell{.low = low, .high = high, .turned = copy.from > copy.to};
      double expected = host_rate;
      if (with_host) {
        cell.shared = host_rate > 0.0 ? to_the_host.shared_error : unknown_error;
        cell.own_error = to_the_host.own_error;
      } else {
        const Wire wire = wires.between(low, high, table.by_sms);
        expected = wire.copy_share.share * wire.rate.value;
        cell.shared = wire.copy_share.shared_error;
        cell.own_error = wire.copy_share.own_error;
      }
      table_cells.cells.push_back(cell);
      table_cells.expected.push_back(expected);
      table_cells.measured.push_back(copy.rate.value);
    }
  }
  return table_cells;
}

}  // namespace

BytesPerSecond expected_copy(const Machine& machine, int gpu_a, int gpu_b, bool by_sms) {
  check(gpu_a != gpu_b && std::min(gpu_a, gpu_b) >= 0 && std::max(gpu_a, gpu_b) < machine.gpus_per_node,
        "a copy joins two GPUs of a node");
  const Wire wire = CopyWires(machine).between(gpu_a, gpu_b, by_sms);
  return {wire.copy_share.share * wire.rate.value};
}

BytesPerSecond host_wire(const Machine& machine) {
  return machine.plan == nullptr ? BytesPerSecond{} : rate_of(machine.plan->host_link);
}

BytesPerSecond expected_host_copy(const Machine& machine) { return {to_the_host.share * host_wire(machine).value}; }

CopyFloors copy_floors(const Machine& machine, double false_alarms) {
  check(false_alarms > 0.0 && false_alarms < 0.5, "the false-alarm rate is below one half");
  // The probability of a false alarm is divided among all copies of a kind.
  const auto floor_of = [&](const Wire& wire, int copies) {
    const double error = std::sqrt(wire.copy_share.shared_error * wire.copy_share.shared_error +
                                   wire.copy_share.own_error * wire.copy_share.own_error);
    const double errors = normal_errors_with_share_above(false_alarms / copies);
    return wire.copy_share.share * wire.rate.value * math::exp(-errors * error);
  };
  const int gpus = machine.gpus_per_node;
  CopyWires wires(machine);
  CopyFloors floors;
  for (int a = 0; a < gpus; ++a) {
    for (int b = a + 1; b < gpus; ++b) {
      const double floor = floor_of(wires.between(a, b, false), gpus * (gpus - 1));
      floors.between_gpus.value = floors.between_gpus.value > 0.0 ? std::min(floors.between_gpus.value, floor) : floor;
    }
  }
  if (const BytesPerSecond wire = host_wire(machine); wire.value > 0.0) {
    floors.with_host.value = floor_of({wire, to_the_host}, 2 * gpus);
  }
  return floors;
}

std::vector<CopyJudgement> judge_copies(const Machine& machine, const std::vector<CopyTable>& tables,
                                        double false_alarms) {
  check(false_alarms > 0.0 && false_alarms < 0.5, "the false-alarm rate is below one half");
  std::vector<CopyJudgement> judgements;
  for (const bool with_host : {false, true}) {
    ExpectedCells table_cells = cells_of(machine, tables, with_host);
    if (table_cells.cells.empty()) {
      continue;
    }
    CopyJudgement judgement{.wires = with_host ? copies_with_host : copies_between_gpus,
                            .copies = table_cells.cells.size(),
                            .expected = {median(table_cells.expected)},
                            .measured = {median(table_cells.measured)}};
    const bool is_relative = judgement.expected.value <= 0.0;
    if (is_relative) {
      judgement.expected = judgement.measured;
      std::fill(table_cells.expected.begin(), table_cells.expected.end(), judgement.measured.value);
    }
    for (std::size_t i = 0; i < table_cells.cells.size(); ++i) {
      table_cells.cells[i].off = math::log(table_cells.expected[i] / table_cells.measured[i]);
    }
    decide(machine, table_cells.cells, with_host, false_alarms, judgement);
    if (judgement.health != Health::bad && is_complete(machine, table_cells.cells, with_host) && !is_relative) {
      judgement.health = Health::healthy;
    }
    judgements.push_back(std::move(judgement));
  }
  return judgements;
}

}  // namespace commfuse
