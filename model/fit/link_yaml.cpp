// SPDX-License-Identifier: Apache-2.0
#include "model/fit/link_yaml.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "model/fit/fit_scope_yaml.h"
#include "model/fit/parameter_yaml.h"
#include "model/hardware/described.h"
#include "model/hardware/nccl_tuning.h"

namespace commfuse {

namespace {

/// Lines of nested maps.
class Lines {
 public:
  explicit Lines(int indent) : indent_(indent) {}

  template <class T>
  void add(std::string_view key, const Parameter<T>& parameter) {
    text_ += parameter_line(key, parameter, indent_);
  }
  void add(std::string_view key, const std::string& value) {
    text_ += fmt::format("{:{}}{}: {}\n", "", indent_, key, value);
  }
  /// Adds a map `fit` that replaces every factor of the base.
  void add(const FitScope& fit) { text_ += fit_scope_yaml(fit, indent_, ByLimit{}); }
  template <class Inside>
  void map(std::string_view key, const Inside& inside) {
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

/// Adds the entries of a described struct, except `without`, that have a value.
template <class S>
void add_described(Lines& lines, const S& described, std::string_view without = {}) {
  each_entry<S>([&](const auto& entry) {
    using Member = typename std::remove_cvref_t<decltype(entry)>::Member;
    const Member& member = described.*entry.member;
    if (entry.key == without) {
      return;
    }
    if constexpr (!is_optional<Member>) {
      lines.add(entry.key, member);
    } else if constexpr (is_parameter<typename Member::value_type>) {
      if (member) {
        lines.add(entry.key, *member);
      }
    } else if (member) {
      lines.map(entry.key, [&] { add_described(lines, *member); });
    }
  });
}

void add_nccl(Lines& lines, const NcclKernels& nccl) {
  lines.add("generation", std::string(name_of(nccl.tuning.generation)));
  lines.add("wire", std::string(name_of(nccl.tuning.wire)));
  lines.add("channels", std::to_string(nccl.tuning.channels));
  lines.add("channel_rate",
            Parameter<BytesPerSecond>{
                .value = nccl.tuning.channel_rate, .provenance = Provenance::prior, .source = "copied from the base"});
  if (nccl.tuning.rccl) {
    lines.add("rccl", std::string("true"));
  }
  if (nccl.tuning.wire == NcclWire::network) {
    if (nccl.tuning.tree_channels > 0) {
      lines.add("tree_channels", std::to_string(nccl.tuning.tree_channels));
    }
    lines.add("ll128_across", std::string(nccl.tuning.ll128_across ? "true" : "false"));
    lines.add("amd_hosts", std::string(nccl.tuning.amd_hosts ? "true" : "false"));
    lines.add("tree_step", fmt::format("{} us", to_microseconds(nccl.tuning.tree_step)));
    lines.add("tree_node_step", fmt::format("{} us", to_microseconds(nccl.tuning.tree_node_step)));
  }
  lines.map("ll", [&] { add_described(lines, nccl.ll, key_of_ramp); });
  if (nccl.ll128) {
    lines.map("ll128", [&] { add_described(lines, *nccl.ll128); });
  }
  if (nccl.nvls) {
    lines.map("nvls", [&] { add_described(lines, *nccl.nvls); });
  }
}

}  // namespace

BytesPerSecond writable_up_to(BytesPerSecond limit) {
  constexpr double four_digits = 1e4;
  constexpr double rounding = 1.0 + 1e-12;  // 4.4 x 1e9 may be a little less than 4,400 x 1e6
  if (!std::isfinite(limit.value)) {
    return limit;
  }
  double unit = 1.0;
  while (limit.value >= four_digits * unit) {
    unit *= 10.0;
  }
  return {unit * std::floor(rounding * limit.value / unit)};
}

std::string peer_yaml(const PeerParameters& peer, int indent) {
  Lines lines(indent);
  add_described(lines, peer);
  return std::move(lines).text();
}

std::string custom_all_reduce_yaml(const CustomAllReduce& kernels, int indent) {
  Lines lines(indent);
  add_described(lines, kernels);
  return std::move(lines).text();
}

std::string collective_yaml(const CollectiveParameters& collective, int indent) {
  Lines lines(indent);
  add_described(lines, static_cast<const RingParameters&>(collective));
  lines.add("ctas", collective.ctas);
  lines.add("issue_cost", collective.issue_cost);
  if (collective.nccl) {
    lines.map("nccl", [&] { add_nccl(lines, *collective.nccl); });
  }
  if (collective.all_to_all) {
    lines.map("all_to_all", [&] {
      lines.add("small_up_to", collective.all_to_all->small_up_to);
      lines.map("small", [&] { add_described(lines, collective.all_to_all->small, key_of_ramp); });
      lines.map("large", [&] { add_described(lines, collective.all_to_all->large); });
      if (collective.all_to_all->fit) {
        lines.add(*collective.all_to_all->fit);
      }
    });
  }
  each_algorithm([&](const auto& entry) {
    if (const auto& algorithm = collective.*entry.member) {
      lines.map(entry.key, [&] { add_described(lines, *algorithm); });
    }
  });
  return std::move(lines).text();
}

}  // namespace commfuse
