// SPDX-License-Identifier: Apache-2.0
// No result is faster than its bounds (free communication, free compute, wires, peaks, memory, the fused kernel), and
// some results reach their bound.
#include <algorithm>
#include <array>

#include "model/config/bandwidth_choice.h"
#include "model/cost/priced_ops.h"
#include "model/cost/shape_sizes.h"
#include "tests/laws/law.h"
#include "tests/laws/wire_bound.h"

namespace commfuse::laws {

namespace {

bool is_layer(const Setting& setting) { return !is_whole_model(setting); }

Setting best_of(const Setting& setting, std::string_view strategy) {
  Setting other = setting;
  std::erase_if(other.choices, [](const auto& choice) { return choice.first.starts_with("strategy."); });
  return other.with("strategy.name", strategy);
}

std::optional<Setting> fused_kernel(const Setting& setting, Draws&) {
  // Faults stop transfers of kernels but not collectives.
  const bool compares =
      is_layer(setting) && setting.text("strategy.name") != "fused_kernel" && setting.text("faults") == "none";
  return compares ? std::optional(best_of(setting, "fused_kernel")) : std::nullopt;
}

/// Does not apply where rates change: an exchange that waits for its partner occupies SMs, however fast its link is.
std::optional<Setting> infinite_links(const Setting& setting, Draws&) {
  if (!is_layer(setting) || setting.text("faults") != "none" || setting.text("interference") == "dynamic") {
    return std::nullopt;
  }
  Setting other = setting.with("link_bandwidth", "x1000");
  if (is_cluster(setting)) {
    other = other.with("network_bandwidth", "x1000");
  }
  return other.with({"link.*latency", 0.0})
      .with({"network.*latency", 0.0})
      .with({"*own_copy_rate", 1000.0})
      .with({"*own_sum_rate", 1000.0})
      .with({"accelerator.graph_node_gap", 0.0})
      .with({"accelerator.stream_gap", 0.0});
}

std::optional<Setting> links_of_one_rank(const Setting& setting, Draws& draws) {
  constexpr std::array<std::string_view, 3> others{"x0.25", "x4", "x16"};
  const std::string_view other = draws.pick(others);
  constexpr std::array<std::string_view, 5> degrees{"ranks", "parallel.pipeline", "parallel.data", "parallel.context",
                                                    "parallel.ulysses"};
  const bool is_single =
      std::all_of(degrees.begin(), degrees.end(), [&](std::string_view key) { return setting.count(key) == 1; });
  return is_single && setting.text("link_bandwidth") != other ? std::optional(setting.with("link_bandwidth", other))
                                                              : std::nullopt;
}

/// A fused kernel waits for attention to all queries; a schedule that takes them slice by slice may be faster.
std::optional<double> no_faster_than_fused(const Outcome& before, const Outcome& after) {
  const bool cuts_queries = before.prediction->options.attention != AttentionCut::whole;
  return cuts_queries ? std::nullopt : must_not_grow<time_of>(before, after);
}

std::optional<double> above_ideal(const Outcome& outcome, const Outcome&) {
  if (outcome.whole_model) {
    return std::nullopt;
  }
  return picoseconds(outcome.prediction->ideal) / outcome.time / tolerance_of(outcome, outcome);
}

std::optional<double> above_link(const Outcome& outcome, const Outcome&) {
  if (outcome.whole_model) {
    return std::nullopt;
  }
  return picoseconds(outcome.prediction->link) / outcome.time / tolerance_of(outcome, outcome);
}

/// Compares a run with its bytes over the wires, at the rates of the data sheet: no price uses higher rates.
std::optional<double> above_wires(const Outcome& outcome, const Outcome&) {
  if (outcome.whole_model || outcome.point->ranks == 1) {
    return std::nullopt;
  }
  const Prediction& prediction = *outcome.prediction;
  const double bound = wire_bound(prediction.structure->program(), prediction.sizes, outcome.point->machine);
  return bound / outcome.time / tolerance_of(outcome, outcome);
}

/// Returns the rate of the best tile as a share of the peak.
double best_efficiency(const MatrixUnit& unit) {
  const GemmParameters& gemm = unit.gemm;
  const double tile =
      std::max({1.0, gemm.tile_256x128.value, gemm.tile_64x256.value, gemm.tile_128x64.value, gemm.tile_64x64.value});
  return gemm.loop_efficiency.value * tile;
}

std::optional<double> below_peak(const Outcome& outcome, const Outcome&) {
  if (outcome.whole_model) {
    return std::nullopt;
  }
  const Point& point = *outcome.point;
  const Prediction& prediction = *outcome.prediction;
  const MatrixUnit& unit = point.machine.accelerator.matrix_unit(point.dtype);
  const double flops = heating_work(prediction.structure->program(), prediction.sizes, {}).count;
  const double shortest = flops / (unit.dense_peak.value.value * best_efficiency(unit)) * 1e12;
  return shortest / std::max(1.0, picoseconds(outcome.parts().compute));
}

/// Counts, for each weight, the bytes that exceed the L2 and must therefore be read from memory.
std::optional<double> above_weights(const Outcome& outcome, const Outcome&) {
  if (outcome.whole_model) {
    return std::nullopt;
  }
  const Accelerator& accelerator = outcome.point->machine.accelerator;
  const Prediction& prediction = *outcome.prediction;
  double bytes = 0.0;
  for (const Shape& shape : prediction.structure->program().unfused) {
    if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
      const GemmSize size = gemm_size(*gemm, prediction.sizes);
      const auto weight = static_cast<double>(size.k * size.n * bytes_of(size.dtype));
      bytes += std::max(0.0, weight - static_cast<double>(accelerator.l2_capacity.count));
    }
  }
  const double shortest = bytes / accelerator.hbm_bandwidth.value.value * 1e12;
  return shortest / std::max(1.0, picoseconds(outcome.parts().compute));
}

std::optional<double> model_below_hardware_flops(const Outcome& outcome, const Outcome&) {
  if (!outcome.whole_model || !outcome.step.has("hfu")) {
    return std::nullopt;
  }
  return outcome.mfu / outcome.cell("hfu") / rounding_tolerance;
}

/// Compares results of one schedule, because another may win on faster links. Allows an excess of about a thousandth of
/// the communication time on the file's links, and of a thousandth of the result.
std::optional<double> reaches_ideal(const Outcome& before, const Outcome& after) {
  if (!(before.prediction->options == after.prediction->options)) {
    return std::nullopt;
  }
  const auto speedup_of = [](const std::string& choice) { return *parse_bandwidth_choice(choice)->times; };
  const double slowest =
      std::min(1000.0 / speedup_of(before.point->link_bandwidth), 1000.0 / speedup_of(before.point->network_bandwidth));
  const double excess = after.time - picoseconds(after.prediction->ideal);
  const double allowed = 1.1 * picoseconds(before.prediction->link) / slowest + 1e-3 * after.time;
  return excess / std::max(1.0, allowed);
}

/// Returns whether the schedule does exactly the work of the unfused operator, in pieces. False for a bound, which
/// takes the minimum over all cuts; for TokenWeave, which adds and norms each token on only one rank; and for unfused
/// attention cut by query, which computes no scores after the last query of a slice.
bool only_cuts(const Outcome& outcome) {
  const Prediction& prediction = *outcome.prediction;
  const bool skips_scores =
      outcome.point->price.attention == AttentionKernel::unfused && prediction.options.attention != AttentionCut::whole;
  return !prediction.strategy->bound && prediction.strategy->name != "tokenweave" && !skips_scores;
}

std::optional<double> cuts_cost(const Outcome& outcome, const Outcome&) {
  if (outcome.whole_model || !only_cuts(outcome)) {
    return std::nullopt;
  }
  const double compute = picoseconds(outcome.parts().compute);
  return compute / std::max(1.0, compute + picoseconds(outcome.parts().slicing));
}

constexpr std::array bound_laws{
    Law{"ideal-bound", "No run is faster than with free communication", nullptr, above_ideal},
    Law{"link-bound", "No run is faster than with free compute", nullptr, above_link},
    Law{"wire-bound", "No run is faster than its bytes over the busiest wire", nullptr, above_wires},
    Law{"peak-bound", "GEMMs are no faster than the best loop at the dense peak", nullptr, below_peak},
    Law{"weight-bound", "GEMMs are no faster than the reading of their weights", nullptr, above_weights},
    Law{"fused-kernel-bound", "No schedule of whole attention is faster than one fused kernel per site", fused_kernel,
        no_faster_than_fused},
    Law{"hardware-flops-bound", "MFU is at most HFU", nullptr, model_below_hardware_flops},
    Law{"infinite-links", "On infinitely fast links only the time with free communication remains", infinite_links,
        reaches_ideal},
    Law{"one-rank", "One rank does not depend on links", links_of_one_rank, must_stay<time_of>},
    Law{"cutting-work", "Cutting work never makes it cheaper", nullptr, cuts_cost},
};

}  // namespace

std::span<const Law> laws_of_bounds() { return bound_laws; }

}  // namespace commfuse::laws
