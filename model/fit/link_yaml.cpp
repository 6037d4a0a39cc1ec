// SPDX-License-Identifier: Apache-2.0
#include "model/fit/link_yaml.h"

#include <fmt/format.h>

#include <utility>

#include "model/fit/parameter_yaml.h"
#include "model/hardware/nccl_tuning.h"

namespace commfuse {

namespace {

/// Lines of maps inside maps.
class Lines {
 public:
  explicit Lines(int indent) : indent_(indent) {}

  template <class T>
  void add(const char* key, const Parameter<T>& parameter) {
    text_ += parameter_line(key, parameter, indent_);
  }
  void add(const char* key, const std::string& value) {
    text_ += fmt::format("{:{}}{}: {}\n", "", indent_, key, value);
  }
  template <class Inside>
  void map(const char* key, const Inside& inside) {
    text_ += fmt::format("{:{}}{}:\n", "", indent_, key);
    indent_ += 2;
    inside();
    indent_ -= 2;
  }

  std::string text() && { return std::move(text_); }

 private:
  int indent_;
  std::string text_;
};

void add_latencies_and_rates(Lines& lines, const ProtocolParameters& protocol) {
  lines.add("base_latency", protocol.base_latency);
  lines.add("step_latency", protocol.step_latency);
  lines.add("rate", protocol.rate);
  lines.add("own_copy_rate", protocol.own_copy_rate);
}

void add_protocol(Lines& lines, const ProtocolParameters& protocol) {
  add_latencies_and_rates(lines, protocol);
  lines.add("ramp_size", protocol.ramp_size);
}

void add_nccl(Lines& lines, const NcclKernels& nccl) {
  lines.add("generation", std::string(name_of(nccl.tuning.generation)));
  lines.add("wire", std::string(name_of(nccl.tuning.wire)));
  lines.add("channels", std::to_string(nccl.tuning.channels));
  lines.add("channel_rate",
            Parameter<BytesPerSecond>{
                .value = nccl.tuning.channel_rate, .provenance = Provenance::prior, .source = "as the base has it"});
  if (nccl.tuning.wire == NcclWire::network) {
    if (nccl.tuning.tree_channels > 0) {
      lines.add("tree_channels", std::to_string(nccl.tuning.tree_channels));
    }
    lines.add("ll128_across", std::string(nccl.tuning.ll128_across ? "true" : "false"));
    lines.add("amd_hosts", std::string(nccl.tuning.amd_hosts ? "true" : "false"));
    lines.add("tree_step", fmt::format("{} us", to_microseconds(nccl.tuning.tree_step)));
    lines.add("tree_node_step", fmt::format("{} us", to_microseconds(nccl.tuning.tree_node_step)));
  }
  lines.map("ll", [&] {
    add_latencies_and_rates(lines, nccl.ll);
    lines.add("fill_size", nccl.ll_fill);
  });
  if (nccl.ll128) {
    lines.map("ll128", [&] { add_protocol(lines, *nccl.ll128); });
  }
  if (nccl.nvls) {
    lines.map("nvls", [&] {
      lines.add("base_latency", nccl.nvls->base_latency);
      lines.add("rate", nccl.nvls->rate);
      lines.add("ramp_size_per_rank", nccl.nvls->ramp_size_per_rank);
    });
  }
}

void add_tree_protocol(Lines& lines, const TreeProtocol& protocol) {
  lines.add("base_latency", protocol.base_latency);
  lines.add("level_latency", protocol.level_latency);
  lines.add("rate", protocol.rate);
  if (protocol.two_nodes_rate) {
    lines.add("two_nodes_rate", *protocol.two_nodes_rate);
  }
}

void add_tree(Lines& lines, const TreeParameters& tree) {
  add_tree_protocol(lines, tree);
  lines.add("ramp_size_per_rank", tree.ramp_size_per_rank);
  if (tree.ll) {
    lines.map("ll", [&] { add_tree_protocol(lines, *tree.ll); });
  }
  if (tree.ll128) {
    lines.map("ll128", [&] { add_tree_protocol(lines, *tree.ll128); });
  }
}

}  // namespace

std::string peer_yaml(const PeerParameters& peer, int indent) {
  Lines lines(indent);
  lines.add("latency", peer.latency);
  lines.add("rate", peer.rate);
  lines.add("aggregate_rate", peer.aggregate_rate);
  lines.add("ctas", peer.ctas);
  lines.add("issue_cost", peer.issue_cost);
  if (peer.small) {
    lines.map("small", [&] {
      lines.add("up_to", peer.small->up_to);
      lines.add("latency", peer.small->latency);
      lines.add("rate", peer.small->rate);
    });
  }
  return std::move(lines).text();
}

std::string collective_yaml(const CollectiveParameters& collective, int indent) {
  Lines lines(indent);
  add_protocol(lines, collective);
  lines.add("ctas", collective.ctas);
  lines.add("issue_cost", collective.issue_cost);
  if (collective.nccl) {
    lines.map("nccl", [&] { add_nccl(lines, *collective.nccl); });
  }
  if (collective.all_to_all) {
    lines.map("all_to_all", [&] {
      lines.add("small_up_to", collective.all_to_all->small_up_to);
      lines.map("small", [&] { add_latencies_and_rates(lines, collective.all_to_all->small); });
      lines.map("large", [&] { add_protocol(lines, collective.all_to_all->large); });
    });
  }
  if (collective.tree) {
    lines.map("tree", [&] { add_tree(lines, *collective.tree); });
  }
  return std::move(lines).text();
}

}  // namespace commfuse
