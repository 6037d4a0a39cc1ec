// SPDX-License-Identifier: Apache-2.0
// Scores tables of collectives and single exchanges, in one node and across several nodes.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "model/expect/message.h"
#include "model/fit/holdout.h"
#include "model/text/suggest.h"
#include "sim/score/all_reduce_column.h"
#include "sim/score/checked_interval.h"
#include "sim/score/judged_ways.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"

namespace commfuse::score {

namespace {

/// Returns the size in bytes from which bandwidth dominates. It is larger for collectives across nodes, because the
/// network has a higher latency.
std::int64_t large_from(const Message& message) {
  return message.nodes == 1 || message.op == LinkOp::send_recv ? 64 << 10 : 1 << 20;
}

bool is_guessed(const Parameter<BytesPerSecond>& rate) {
  return rate.provenance == Provenance::prior || rate.provenance == Provenance::published;
}

/// Returns whether the message's price depends on rates between nodes and none of them was measured.
bool depends_on_priors(const Machine& machine, const Message& message) {
  if (message.nodes == 1) {
    return false;
  }
  const CollectiveParameters& collective = collective_of(machine, message);
  if (message.op == LinkOp::send_recv) {
    return is_guessed(machine.network->peer.rate);
  }
  const bool uses_trees = message.op == LinkOp::all_reduce && collective.tree != nullptr;
  const bool uses_rings = !uses_trees || nccl_chooses_trees(collective);
  return (!uses_rings || is_guessed(collective.rate)) && (!uses_trees || is_guessed(rate_over(*collective.tree, 2)));
}

/// Returns the library whose kernels run an all-reduce in a node. Only tables of frameworks use a library other than
/// NCCL.
AllReduceKernel framework_of(const Machine& machine, const Message& message) {
  return message.op == LinkOp::all_reduce && message.nodes == 1 ? machine.link.collective.all_reduce_kernel
                                                                : AllReduceKernel::nccl;
}

/// Makes the names of parts, such as "all_gather, one node, >= 64 KiB", "all_reduce of vllm, one node, < 64 KiB" and
/// "all_reduce, 4 nodes, >= 1 MiB, from priors".
class PartNames {
 public:
  std::string_view of(const Machine& machine, const Message& message) {
    const std::int64_t from = large_from(message);
    const bool is_large = message.bytes.count >= from;
    const bool uses_priors = depends_on_priors(machine, message);
    const AllReduceKernel framework = framework_of(machine, message);
    const auto [entry, added] = names_.try_emplace({message.op, message.nodes, is_large, uses_priors, framework});
    if (added) {
      entry->second =
          fmt::format("{}{}, {}, {} {}{}", name_of(message.op),
                      framework == AllReduceKernel::nccl ? "" : fmt::format(" of {}", name_of(framework)),
                      message.nodes == 1 ? "one node" : fmt::format("{} nodes", message.nodes), is_large ? ">=" : "<",
                      from == 64 << 10 ? "64 KiB" : "1 MiB", uses_priors ? ", from priors" : "");
    }
    return entry->second;
  }

 private:
  std::map<std::tuple<LinkOp, std::int64_t, bool, bool, AllReduceKernel>, std::string> names_;
};

/// Returns the kind of op under which the message's interval is checked.
std::string_view kind_of(const Machine& machine, const Message& message) {
  const bool is_large = message.bytes.count >= large_from(message);
  if (message.op == LinkOp::send_recv) {
    return is_large ? "send/recv >= 64 KiB" : "send/recv < 64 KiB";
  }
  if (framework_of(machine, message) != AllReduceKernel::nccl) {
    return "all-reduce of a framework";
  }
  if (message.nodes > 1) {
    return is_large ? "collectives over nodes >= 1 MiB" : "collectives over nodes < 1 MiB";
  }
  if (message.op == LinkOp::all_to_all) {
    return is_large ? "all-to-all >= 64 KiB" : "all-to-all < 64 KiB";
  }
  return is_large ? "collectives >= 64 KiB" : "collectives < 64 KiB";
}

/// A row of a table of messages, with the values common to all kinds of such tables.
struct LinkRow {
  std::string_view op;  ///< The op's name in the table.
  Message message;      ///< The message without its op.
  double measured_us = 1.0;
  bool held_out = false;
  FoundMachine node;
  std::string_view prose = {};  ///< Text that may name the cluster if there are several nodes.
};

/// Scores rows, and skips rows that the simulator cannot express.
class LinkScorer {
 public:
  LinkScorer(Context& context, Tally& tally) : context_(context), tally_(tally) {}

  void score(const Row& row, LinkRow link_row) {
    const std::optional<LinkOp> op = link_op_named(link_row.op);
    if (!op || !row.is_sound()) {
      if (tally_.takes(row, link_row.held_out)) {
        tally_.skip(fmt::format("the model has no {}", in_quotes(link_row.op)));
      }
      return;
    }
    link_row.message.op = *op;
    score_message(row, link_row);
  }

  /// Judges each all-reduce against a reduce-scatter and an all-gather, for all rows that no fit has seen.
  void judge_sums() {
    for (const auto& [message, time] : times_) {
      const auto& [machine, gpus, nodes, bytes, op] = message;
      const auto gather = times_.find({machine, gpus, nodes, bytes, LinkOp::all_gather});
      const auto scatter = times_.find({machine, gpus, nodes, bytes, LinkOp::reduce_scatter});
      if (op == LinkOp::all_reduce && gather != times_.end() && scatter != times_.end()) {
        const Message all_reduce{.op = op, .gpus = gpus, .nodes = nodes, .bytes = {bytes}};
        judge(*machine, "all-reduce or two halves", way_of(*machine, {{all_reduce, time}}),
              way_of(*machine, {{with_op(all_reduce, LinkOp::all_gather), gather->second},
                                {with_op(all_reduce, LinkOp::reduce_scatter), scatter->second}}),
              {gpus, bytes}, tally_);
      }
    }
  }

 private:
  void score_message(const Row& row, const LinkRow& link_row) {
    const FoundMachine match = machine_of(link_row);
    const std::string why_not = reason_to_skip(link_row, match);
    // A row also counts as unseen if the rates of its network are priors.
    const bool unseen = link_row.held_out || (why_not.empty() && depends_on_priors(*match.machine, link_row.message));
    if (!tally_.takes(row, unseen)) {
      return;
    }
    if (!why_not.empty()) {
      tally_.skip(why_not);
      return;
    }
    const std::string_view part = parts_.of(*match.machine, link_row.message);
    const Compared time{link_row.measured_us, to_microseconds(message_time(*match.machine, link_row.message)),
                        std::span(&part, 1)};
    if (tally_.score(row, *match.machine, unseen, {time})) {
      check(*match.machine, link_row.message, unseen, time);
    }
  }

  void check(const Machine& machine, const Message& message, bool held_out, const Compared& time) {
    const auto price = [&](const Machine& other) { return to_microseconds(message_time(other, message)); };
    check_interval(machine,
                   {.shape = shape_of(message),
                    .kind = kind_of(machine, message),
                    .key = {static_cast<std::int64_t>(message.op), message.bytes.count},
                    .held_out = held_out,
                    .ranks = static_cast<int>(message.gpus)},
                   time, context_, tally_, price);
    if (is_unseen(machine, held_out, context_) && time.predicted_us < longest_checked_us) {
      times_.try_emplace({&machine, message.gpus, message.nodes, message.bytes.count, message.op}, time.measured_us,
                         time.predicted_us);
    }
  }

  FoundMachine machine_of(const LinkRow& link_row) {
    const Machine* node = link_row.node.machine;
    return node == nullptr
               ? link_row.node
               : context_.machines.over_nodes(*node, static_cast<int>(link_row.message.nodes), link_row.prose);
  }

  /// Returns the reason to skip the row; empty if it can be scored.
  static std::string reason_to_skip(const LinkRow& link_row, const FoundMachine& match) {
    const Message& message = link_row.message;
    if (match.machine == nullptr) {
      return match.why_not;
    }
    if (message.gpus > message.nodes * link_row.node.machine->gpus_per_node) {
      return fmt::format("{} has fewer GPUs than the message needs", match.machine->name);
    }
    if (message.gpus % message.nodes != 0) {
      return "the nodes have different numbers of GPUs";
    }
    if (message.bytes.count == 0 || message.gpus == 1) {
      return "nothing is sent";
    }
    if (message.op == LinkOp::send_recv && message.gpus != 2) {
      return "more than two GPUs exchange messages, and the table does not state how";
    }
    return "";
  }

  struct Times {
    Times(double measured, double predicted) : measured_us(measured), predicted_us(predicted) {}
    double measured_us;
    double predicted_us;
  };
  struct Sent {
    Message message;
    Times time;
  };

  static Message with_op(Message message, LinkOp op) {
    message.op = op;
    return message;
  }

  Way way_of(const Machine& machine, const std::vector<Sent>& sent) {
    std::vector<TimedShape> shapes;
    Way way;
    for (const Sent& exchange : sent) {
      const PricedShape shape = shape_of(exchange.message);
      shapes.push_back(
          {shape, exchange.time.predicted_us, residual_of(shape, machine, static_cast<int>(exchange.message.gpus))});
      way.measured_us += exchange.time.measured_us;
      way.predicted_us += exchange.time.predicted_us;
    }
    way.uncertainty = context_.doubts.of(machine, shapes, [&](const Machine& other) {
      double us = 0.0;
      for (const Sent& exchange : sent) {
        us += to_microseconds(message_time(other, exchange.message));
      }
      return us;
    });
    return way;
  }

  Context& context_;
  Tally& tally_;
  PartNames parts_;
  std::map<std::tuple<const Machine*, std::int64_t, std::int64_t, std::int64_t, LinkOp>, Times> times_;
};

/// Scores every row of a table. `read` converts a row and finds its machine among those of the table.
template <class Read>
void score_link_rows(const Table& table, Context& context, Tally& tally, const Read& read) {
  MachineColumn machines(context.machines);
  LinkScorer scorer(context, tally);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    scorer.score(row, read(row, machines));
  }
}

/// Returns the number of nodes in the row's cell or, if the cell is empty, the smallest number of nodes that have the
/// GPUs. If `node` is null, all GPUs count as one node.
std::int64_t nodes_of(Row& row, const Column& nodes, std::int64_t gpus, const Machine* node) {
  const std::int64_t gpus_per_node = node == nullptr ? gpus : node->gpus_per_node;
  return row.has(nodes) ? row.count(nodes, max_gpus) : (gpus + gpus_per_node - 1) / gpus_per_node;
}

/// Converts the bus bandwidth of nccl-tests to a time; 0 for unknown ops and for rows that send nothing, which are
/// skipped.
double microseconds_at(double bus_gigabytes_per_second, std::string_view op, const Message& message) {
  const std::optional<LinkOp> known = link_op_named(op);
  const double factor = known && message.gpus > 1 ? bus_factor(*known, message.gpus) : 0.0;
  return static_cast<double>(message.bytes.count) * factor / bus_gigabytes_per_second / 1e3;
}

}  // namespace

void score_collectives(const Table& table, Context& context, Tally& tally) {
  const Column op = table.column("op");
  const Column gpus = table.column("ngpus");
  const Column bytes = table.column("bytes");
  const Column time = table.column("time_us");
  const Column nodes = table.column("nodes");
  const Column hw = table.column("hw");
  const MachinesByGpus by_gpus(hw.exists() ? std::string_view() : table.comment("hardware"), context.machines);
  const FoundMachine whole_table =
      hw.exists() || by_gpus.lists_machines() ? FoundMachine{} : machine_of_table(table, context);
  MachineColumn machines(context.machines);
  LinkScorer scorer(context, tally);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    LinkRow link_row{.op = row.text(op),
                     .message = {.gpus = row.count(gpus, max_gpus), .bytes = {row.size(bytes)}},
                     .measured_us = row.amount(time),
                     .node = hw.exists() ? machines.of(row.text(hw)) : whole_table,
                     .prose = table.comment("hardware")};
    Message& message = link_row.message;
    if (by_gpus.lists_machines()) {
      link_row.node = by_gpus.of(message.gpus);
    }
    const Machine* node = link_row.node.machine;
    message.nodes = nodes_of(row, nodes, message.gpus, node);
    const std::string_view node_name = node == nullptr ? std::string_view() : node->name;
    const std::string_view machine_name = hw.exists() ? row.text(hw) : node_name;
    link_row.held_out = is_held_out(link_group("collective", machine_name, link_row.op, message.bytes.count));
    scorer.score(row, link_row);
  }
  scorer.judge_sums();
}

namespace {

/// Returns whether the framework's kernels were fitted on this machine; otherwise they have priors from another
/// machine.
bool is_fitted(const Machine* machine, AllReduceKernel framework) {
  return machine != nullptr &&
         kernels_of(*machine->link.collective.custom_all_reduce, framework)->one_shot_rate.provenance ==
             Provenance::fitted;
}

}  // namespace

void score_framework_all_reduces(const Table& table, Context& context, Tally& tally) {
  const Column hw = table.column("hw");
  const Column kernel = table.column("kernel");
  const Column gpus = table.column("ngpus");
  const Column nodes = table.column("nodes");
  const Column bytes = table.column("bytes");
  const Column time = table.column("time_us");
  score_link_rows(table, context, tally, [&](Row& row, MachineColumn& machines) {
    const std::string_view cell = row.text(kernel);
    LinkRow link_row{.op = name_of(LinkOp::all_reduce),
                     .message = {.gpus = row.count(gpus, max_gpus),
                                 .nodes = row.has(nodes) ? row.count(nodes, max_gpus) : 1,
                                 .bytes = {row.size(bytes)}},
                     .measured_us = row.amount(time),
                     .node = machines.of(row.text(hw))};
    link_row.held_out =
        is_held_out(link_group(custom_all_reduce_kind, row.text(hw), cell, link_row.message.bytes.count));
    if (const std::optional<AllReduceKernel> framework = framework_named(cell); !framework) {
      link_row.node = {nullptr, std::string(why_not_a_framework)};
    } else if (link_row.message.nodes > 1) {
      link_row.node = {nullptr, "the kernels of frameworks sum within one node"};
    } else if (link_row.node.machine != nullptr) {
      link_row.node = context.machines.with_all_reduce(*link_row.node.machine, *framework);
      link_row.held_out = link_row.held_out || !is_fitted(link_row.node.machine, *framework);
    }
    return link_row;
  });
}

void score_bus_rates(const Table& table, Context& context, Tally& tally) {
  const Column hw = table.column("hw");
  const Column op = table.column("op");
  const Column gpus = table.column("ngpus");
  const Column nodes = table.column("nodes");
  const Column bytes = table.column("bytes");
  const Column rate = table.column("busbw_GBs");
  score_link_rows(table, context, tally, [&](Row& row, MachineColumn& machines) {
    LinkRow link_row{.op = row.text(op),
                     .message = {.gpus = row.count(gpus, max_gpus), .bytes = {row.size(bytes)}},
                     .node = machines.of(row.text(hw)),
                     .prose = table.comment("hardware")};
    link_row.message.nodes = nodes_of(row, nodes, link_row.message.gpus, link_row.node.machine);
    link_row.measured_us = microseconds_at(row.amount(rate), link_row.op, link_row.message);
    link_row.held_out =
        is_held_out(link_group("collective_rate", row.text(hw), link_row.op, link_row.message.bytes.count));
    return link_row;
  });
}

void score_exchanges(const Table& table, Context& context, Tally& tally) {
  const Column device = table.column("device");
  const Column op = table.column("op");
  const Column gpus = table.column("ngpus");
  const Column devices_per_node = table.column("devices_per_node");
  const Column bytes = table.column("bytes");
  const Column time = table.column("median_us");
  score_link_rows(table, context, tally, [&](Row& row, MachineColumn& machines) {
    LinkRow link_row{.op = row.text(op),
                     .message = {.gpus = row.count(gpus, max_gpus), .bytes = {row.size(bytes)}},
                     .measured_us = row.amount(time),
                     .node = machines.of(row.text(device)),
                     .prose = row.text(device)};
    const std::int64_t gpus_per_node = row.count(devices_per_node, max_gpus);
    link_row.message.nodes = (link_row.message.gpus + gpus_per_node - 1) / gpus_per_node;
    link_row.held_out = is_held_out(link_group("p2p", row.text(device), link_row.op, link_row.message.bytes.count));
    return link_row;
  });
}

}  // namespace commfuse::score
