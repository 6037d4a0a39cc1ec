// SPDX-License-Identifier: Apache-2.0
// A faster resource never makes a result slower: bandwidth, latency, launches, matrix units, SMs, faults.
#include <array>

#include "model/config/bandwidth_choice.h"
#include "tests/laws/law.h"

namespace commfuse::laws {

namespace {

constexpr std::array speedups{1.1, 2.0, 4.0, 16.0};

std::optional<Setting> faster(const Setting& setting, std::string_view key, Draws& draws) {
  BandwidthChoice choice = *parse_bandwidth_choice(setting.text(key));
  choice.times = *choice.times * draws.pick(speedups);
  return setting.with(key, format_bandwidth_choice(choice));
}

std::optional<Setting> faster_links(const Setting& setting, Draws& draws) {
  return faster(setting, "link_bandwidth", draws);
}

std::optional<Setting> faster_network(const Setting& setting, Draws& draws) {
  return is_cluster(setting) ? faster(setting, "network_bandwidth", draws) : std::nullopt;
}

std::optional<Setting> faster_memory(const Setting& setting, Draws& draws) {
  return setting.with({"accelerator.hbm_bandwidth", draws.pick(speedups)});
}

std::optional<Setting> faster_matrix_units(const Setting& setting, Draws& draws) {
  return setting.with({"accelerator.matrix_units.*.dense_peak", draws.pick(speedups)});
}

std::optional<Setting> faster_single_sm(const Setting& setting, Draws& draws) {
  return setting.with({"accelerator.sm_bandwidth", draws.pick(speedups)});
}

std::optional<Setting> faster_own_copies(const Setting& setting, Draws& draws) {
  const double speedup = draws.pick(speedups);
  return setting.with({"*own_copy_rate", speedup}).with({"*own_sum_rate", speedup});
}

/// Does not apply to layers whose kernels lose SMs to communication: the library chooses a kernel for all SMs, and the
/// one that it chooses with better loops may need more waves on the SMs that are left.
std::optional<Setting> better_gemm_loops(const Setting& setting, Draws& draws) {
  if (!is_whole_model(setting) && setting.text("interference") != "none") {
    return std::nullopt;
  }
  return setting.with({"accelerator.matrix_units.*.gemm.loop_efficiency", draws.pick(speedups)});
}

std::optional<Setting> better_attention_loops(const Setting& setting, Draws& draws) {
  return setting.with({"accelerator.attention.loop_efficiency", draws.pick(speedups)});
}

std::optional<Setting> shorter(const Setting& setting, std::string_view parameters, Draws& draws) {
  return setting.with({std::string(parameters), 1.0 / draws.pick(speedups)});
}

std::optional<Setting> lower_link_latency(const Setting& setting, Draws& draws) {
  return shorter(setting, "link.*latency", draws);
}

std::optional<Setting> lower_network_latency(const Setting& setting, Draws& draws) {
  return is_cluster(setting) ? shorter(setting, "network.*latency", draws) : std::nullopt;
}

std::optional<Setting> cheaper_issue(const Setting& setting, Draws& draws) {
  return shorter(setting, "*issue_cost", draws);
}

std::optional<Setting> cheaper_launches(const Setting& setting, Draws& draws) {
  return shorter(setting, "accelerator.*launch_cost", draws);
}

std::optional<Setting> cheaper_python(const Setting& setting, Draws& draws) {
  return shorter(setting, "accelerator.eager_cost", draws);
}

std::optional<Setting> shorter_gaps(const Setting& setting, Draws& draws) {
  return shorter(setting, "accelerator.*_gap", draws);
}

std::optional<Setting> lower_kernel_floor(const Setting& setting, Draws& draws) {
  return shorter(setting, "accelerator.kernel_floor", draws);
}

std::optional<Setting> fewer_sms_for_exchanges(const Setting& setting, Draws&) {
  return setting.with({"link.peer.ctas", 0.5});
}

std::optional<Setting> without_interference(const Setting& setting, Draws&) {
  const bool is_static = setting.text("interference") == "static";
  return is_static && !is_whole_model(setting) ? std::optional(setting.with("interference", "none")) : std::nullopt;
}

std::optional<Setting> with_a_fault(const Setting& setting, Draws& draws) {
  constexpr std::array<std::string_view, 4> faults{"slow-rank", "slow-link", "link-down", "late-start"};
  const bool is_free = setting.text("faults") == "none" && setting.text("evaluator") != "replay";
  return is_free && !is_whole_model(setting) && setting.count("ranks") > 1
             ? std::optional(setting.with("faults", draws.pick(faults)))
             : std::nullopt;
}

constexpr std::array resource_laws{
    Law{"faster-links", "Faster links in a node never make a result slower", faster_links, must_not_grow<time_of>},
    Law{"faster-network", "Faster links between nodes never make a result slower", faster_network,
        must_not_grow<time_of>},
    Law{"faster-memory", "Faster device memory never makes a result slower", faster_memory,
        must_not_grow_at_fixed_rates<time_of>},
    Law{"faster-matrix-units", "A higher dense peak never makes a result slower", faster_matrix_units,
        must_not_grow_at_fixed_rates<time_of>},
    Law{"faster-single-sm", "An SM that moves more bytes never makes a result slower", faster_single_sm,
        must_not_grow_at_fixed_rates<time_of>},
    Law{"faster-own-copies", "Faster copies of a rank's own share never make a result slower", faster_own_copies,
        must_not_grow_at_fixed_rates<time_of>},
    Law{"better-gemm-loops", "More efficient GEMM loops never make a result slower where kernels have all SMs",
        better_gemm_loops, must_not_grow_at_fixed_rates<time_of>},
    Law{"better-attention-loops", "More efficient attention loops never make a result slower", better_attention_loops,
        must_not_grow_at_fixed_rates<time_of>},
    Law{"lower-link-latency", "Lower latency in a node never makes a result slower", lower_link_latency,
        must_not_grow_at_fixed_rates<time_of>},
    Law{"lower-network-latency", "Lower latency between nodes never makes a result slower", lower_network_latency,
        must_not_grow_at_fixed_rates<time_of>},
    Law{"cheaper-issue", "Communication that is cheaper to issue never makes a result slower", cheaper_issue,
        must_not_grow_at_fixed_rates<time_of>},
    Law{"cheaper-launches", "Cheaper kernel launches never make a result slower", cheaper_launches,
        must_not_grow_at_fixed_rates<time_of>},
    Law{"cheaper-python", "A host that issues faster from Python never makes a result slower", cheaper_python,
        must_not_grow_at_fixed_rates<time_of>},
    Law{"shorter-gaps", "A shorter wait between kernels never makes a result slower", shorter_gaps,
        must_not_grow_at_fixed_rates<time_of>},
    Law{"lower-kernel-floor", "A shorter minimum kernel time never makes a result slower", lower_kernel_floor,
        must_not_grow_at_fixed_rates<time_of>},
    Law{"fewer-sms-for-exchanges", "Exchanges that hold fewer SMs never make a result slower", fewer_sms_for_exchanges,
        must_not_grow_at_fixed_rates<time_of>},
    Law{"no-interference", "Without interference no result is slower", without_interference, must_not_grow<time_of>},
    Law{"a-fault", "A fault never makes a run faster", with_a_fault, must_not_shrink_at_fixed_rates<time_of>},
};

}  // namespace

std::span<const Law> laws_of_resources() { return resource_laws; }

}  // namespace commfuse::laws
