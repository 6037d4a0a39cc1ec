// SPDX-License-Identifier: Apache-2.0
#include "sim/expect/expected_rows.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "model/config_error.h"
#include "model/cost/communication.h"
#include "model/expect/machine_change.h"
#include "model/text/quantity.h"

namespace commfuse::expect {

namespace {

/// Returns for example "8 GPUs; use 1 to 8".
std::string count_and_choice(std::int64_t count, std::string_view noun) {
  return count == 1 ? fmt::format("one {}; use 1", noun) : fmt::format("{0} {1}s; use 1 to {0}", count, noun);
}

std::string up_to(std::int64_t gpus) { return gpus == 2 ? "2" : fmt::format("2 to {}", gpus); }

/// Returns the values of --ranks that fit if `gpus_per_node` GPUs of each node take part.
std::string fitting_ranks(const Machine& machine, std::int64_t gpus_per_node) {
  if (machine.nodes == 1) {
    return fmt::format("{}, or a cluster such as dgx-h100-x2",
                       gpus_per_node == 1 ? "a larger --gpus-per-node" : up_to(gpus_per_node));
  }
  return gpus_per_node == 1
             ? up_to(machine.nodes)
             : fmt::format("{}, or whole nodes up to {}", up_to(gpus_per_node), gpus_per_node * machine.nodes);
}

std::int64_t gpus_per_node_of(const Machine& machine, const Question& question) {
  return question.gpus_per_node == 0 ? machine.gpus_per_node : question.gpus_per_node;
}

/// Returns for example "2 nodes with 4 GPUs each under --gpus-per-node 4".
std::string nodes_in_words(const Machine& machine, const Question& question) {
  const std::int64_t gpus = gpus_per_node_of(machine, question);
  return fmt::format("{} with {}{}{}", machine.nodes == 1 ? "one node" : fmt::format("{} nodes", machine.nodes),
                     gpus == 1 ? "one GPU" : fmt::format("{} GPUs", gpus), machine.nodes == 1 ? "" : " each",
                     question.gpus_per_node == 0 ? "" : fmt::format(" under --gpus-per-node {}", gpus));
}

/// Returns a message between `gpus` GPUs. If `gpus` exceeds the number of GPUs per node that take part, the group
/// covers several nodes.
Message message_of(const Machine& machine, LinkOp op, std::int64_t gpus, const Question& question) {
  const std::int64_t gpus_per_node = gpus_per_node_of(machine, question);
  if (gpus_per_node < 1 || gpus_per_node > machine.gpus_per_node) {
    throw ConfigError(fmt::format("--gpus-per-node: a node of {} has {}", machine.name,
                                  count_and_choice(machine.gpus_per_node, "GPU")));
  }
  const std::int64_t nodes = (gpus + gpus_per_node - 1) / gpus_per_node;
  const Message message{.op = op, .gpus = gpus, .nodes = nodes, .bytes = question.sizes.front()};
  if (!fits(machine, message)) {
    throw ConfigError(fmt::format("--ranks: {} GPUs do not fit {}, which has {}; use {}", gpus, machine.name,
                                  nodes_in_words(machine, question), fitting_ranks(machine, gpus_per_node)));
  }
  return message;
}

std::string kernel_of(const Machine& machine, const Message& message) {
  if (message.op == LinkOp::send_recv || message.op == LinkOp::all_to_all) {
    return "";
  }
  const std::optional<NcclKernel> kernel =
      kernel_taken(collective_of(machine, message), {.ranks = static_cast<int>(message.gpus),
                                                     .passes = message.op == LinkOp::all_reduce ? 2 : 1,
                                                     .total = static_cast<double>(message.bytes.count),
                                                     .nodes = static_cast<int>(message.nodes),
                                                     .gathers = message.op != LinkOp::reduce_scatter});
  // After without_nvls(), NCCL's tuning may still choose NVLS; the price is then that of Simple.
  const bool lacks_nvls = kernel == NcclKernel::nvls && !has_nvls(machine);
  return !kernel ? "" : std::string(name_of(lacks_nvls ? NcclKernel::simple : *kernel));
}

/// Returns the possible exchanges: between two GPUs of a node, and between GPUs of two nodes. Sizes are not set.
std::vector<Message> exchanges_of(const Machine& machine) {
  std::vector<Message> pairs;
  if (machine.gpus_per_node > 1) {
    pairs.push_back({.op = LinkOp::send_recv, .gpus = 2, .nodes = 1, .bytes = {}});
  }
  if (machine.nodes > 1) {
    pairs.push_back({.op = LinkOp::send_recv, .gpus = 2, .nodes = 2, .bytes = {}});
  }
  return pairs;
}

void add_sizes(const Expectation& expectation, Message message, const Question& question,
               std::vector<ExpectedRow>& rows) {
  const Bytes saturation = expectation.saturation(message);
  for (const Bytes size : question.sizes) {
    message.bytes = size;
    const Expected expected = expectation.of(message);
    rows.push_back({.message = message,
                    .time = expected.time,
                    .range = range_of(expected, question.false_alarms),
                    .limit = expected.limit,
                    .kernel = kernel_of(expectation.machine(), message),
                    .saturation = saturation});
  }
}

}  // namespace

Machine with_setup(Machine machine, const Setup& setup) {
  if (setup.nvls && !has_nvls(machine)) {
    throw ConfigError(fmt::format("--nvls: {} has no sums in the switch (NVLS); remove --nvls", machine.name));
  }
  const bool version_lacks_nvls = setup.nccl && !can_have_nvls(*setup.nccl);
  if (setup.nvls == true && version_lacks_nvls) {
    throw ConfigError(
        fmt::format("--nvls: NCCL {} does not support NVLS (2.17 and later do); remove --nvls", name_of(*setup.nccl)));
  }
  if (setup.ctas && *setup.ctas < 1) {
    throw ConfigError("--ctas: a kernel uses at least one CTA; use 1 or more");
  }
  if (setup.rails && (!machine.network || *setup.rails < 1 || *setup.rails > machine.nics_per_node)) {
    throw ConfigError(
        machine.network
            ? fmt::format("--rails: a node of {} has {}", machine.name, count_and_choice(machine.nics_per_node, "NIC"))
            : fmt::format("--rails: {} is one node; use a cluster such as dgx-h100-x2", machine.name));
  }
  if (setup.nvls == false || (version_lacks_nvls && has_nvls(machine))) {
    machine = without_nvls(std::move(machine));
  }
  if (setup.ctas) {
    machine = with_ctas(std::move(machine), *setup.ctas);
  }
  if (setup.rails && *setup.rails < machine.nics_per_node) {
    machine = with_rails(std::move(machine), *setup.rails);
  }
  return machine;
}

std::vector<ExpectedRow> expected_rows(const Expectation& expectation, const Question& question) {
  std::vector<ExpectedRow> rows;
  for (const LinkOp op : question.ops) {
    if (op == LinkOp::send_recv) {
      for (const Message& pair : exchanges_of(expectation.machine())) {
        add_sizes(expectation, pair, question, rows);
      }
      continue;
    }
    for (const std::int64_t gpus : question.gpus) {
      add_sizes(expectation, message_of(expectation.machine(), op, gpus, question), question, rows);
    }
  }
  return rows;
}

std::vector<Bytes> sizes_between(Bytes smallest, Bytes largest, std::int64_t factor) {
  constexpr std::int64_t limit = std::int64_t{64} << 30U;
  if (smallest.count < 1 || largest.count > limit) {
    throw ConfigError(fmt::format("sizes go from {} to {}; use a range from 1 B to 64 GiB, as in 1K..8G",
                                  format_size(smallest), format_size(largest)));
  }
  if (smallest > largest) {
    throw ConfigError(
        fmt::format("sizes go from {} down to {}; write the smallest first, as in --sizes 1K..8G or -b 1K -e 8G",
                    format_size(smallest), format_size(largest)));
  }
  if (factor < 2) {
    throw ConfigError(fmt::format("-f: {} is not a step factor; use 2 or more", factor));
  }
  std::vector<Bytes> sizes;
  sizes.push_back(smallest);
  while (sizes.back().count <= largest.count / factor) {
    sizes.push_back({sizes.back().count * factor});
  }
  return sizes;
}

}  // namespace commfuse::expect
