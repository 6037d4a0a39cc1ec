// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "model/config/catalogue.h"
#include "model/config/settings.h"
#include "model/config_error.h"
#include "model/cost/attention.h"
#include "model/cost/communication.h"
#include "model/cost/custom_all_reduce.h"
#include "model/cost/decode_attention.h"
#include "model/cost/gemm.h"
#include "model/cost/memory_bound.h"
#include "model/cost/quantization.h"
#include "model/fit/attention_fit.h"
#include "model/fit/custom_all_reduce_fit.h"
#include "model/fit/decode_attention_fit.h"
#include "model/fit/expert_layer_fit.h"
#include "model/fit/fit_scope_yaml.h"
#include "model/fit/framework_kernel_fit.h"
#include "model/fit/gemm_fit.h"
#include "model/fit/holdout.h"
#include "model/fit/kernel_choice_fit.h"
#include "model/fit/latent_decode_fit.h"
#include "model/fit/link_fit.h"
#include "model/fit/link_yaml.h"
#include "model/fit/memory_bound_fit.h"
#include "model/fit/parameter_yaml.h"
#include "model/fit/quantization_fit.h"
#include "model/text/counted.h"
#include "sim/score/all_reduce_column.h"

namespace commfuse::calibrate {

namespace {

constexpr std::size_t min_executor_gemms = 50;  // the fastest GEMM sets the executor's peak
constexpr std::size_t min_traffic_rows = 6;
constexpr std::size_t min_collectives = 4;
constexpr std::size_t min_exchanges = 4;
/// With fewer rows, all rows are fitted with the base as a prior (LinkFitOptions::few_rows), and no row is held back.
constexpr std::size_t few_collectives = 40;
constexpr std::size_t few_exchanges = 12;

FitQuality quality_of(const std::vector<Residual>& residuals, bool held_out) {
  std::vector<double> errors;
  for (const Residual& residual : residuals) {
    if (residual.held_out == held_out) {
      errors.push_back(std::abs(residual.predicted_us / residual.measured_us - 1.0));
    }
  }
  return fit_quality(errors);
}

/// Measured rows, divided into rows to fit and held-back rows. `held_out` has one flag per measured row.
template <class Row>
struct Split {
  std::vector<bool> held_out;
  std::vector<Row> to_fit;
};
template <class Row, class Observed, class KeyOf>
Split<Row> split(const std::vector<Observed>& observed, std::size_t min_rows, const KeyOf& key_of) {
  Split<Row> split;
  const auto held_out_count =
      std::count_if(observed.begin(), observed.end(), [&](const auto& row) { return is_held_out(key_of(row)); });
  const bool has_enough = observed.size() - static_cast<std::size_t>(held_out_count) >= min_rows;
  for (const Observed& row : observed) {
    split.held_out.push_back(has_enough && is_held_out(key_of(row)));
    if (!split.held_out.back()) {
      split.to_fit.push_back(row.row);
    }
  }
  return split;
}

double seconds_of(const ObservedCollective& collective) { return 1e-6 * collective.row.time_us; }
double seconds_of(const ObservedExchange& exchange) { return 1e-6 * exchange.row.time_us; }
double seconds_of(const ObservedCustomAllReduce& sum) { return 1e-6 * sum.row.time_us; }
template <class Measured>
double seconds_of(const Measured& row) {
  return to_seconds(row.time);
}

}  // namespace

std::string first_fault(const Observations& observations) {
  const std::size_t faults = observations.faults.size();
  return faults == 1 ? observations.faults.front()
                     : fmt::format("{} (the first of {} faulty rows)", observations.faults.front(), faults);
}

namespace {

/// Returns the reason why there is nothing to fit.
std::string nothing_fitted(const Observations& observations, std::vector<std::string> reasons) {
  constexpr std::size_t max_listed = 5;
  if (!observations.faults.empty()) {
    reasons.push_back(first_fault(observations));
  }
  const std::vector<std::string>& skipped = observations.skipped;
  const std::string_view remedy = !reasons.empty()  ? ""  // each reason has its own
                                  : skipped.empty() ? "; give files with rows"
                                                    : "; give rows of this machine, with dtypes and ops that the "
                                                      "model supports";
  if (!skipped.empty()) {
    const std::span shown = std::span(skipped).first(std::min(skipped.size(), max_listed));
    const std::size_t more = skipped.size() - shown.size();
    reasons.push_back(fmt::format("skipped: {}{}", fmt::join(shown, ", "),
                                  more > 0 ? fmt::format(" and {}", counted(more, "more such reason")) : ""));
  }
  return fmt::format("nothing can be fitted{}{}{}", reasons.empty() ? "" : ": ", fmt::join(reasons, "; "), remedy);
}

/// Runs a fit. Formulas fitted to wrong times may predict a time outside the allowed range, and the error about such a
/// time does not name the file. Throws a ConfigError that names the file.
template <class Measured, class Fit>
void fit_to(const Measurements<Measured>& measured, const Fit& fit) {
  try {
    fit();
  } catch (const ConfigError& error) {
    const std::string_view why = error.what();
    if (why.starts_with(measured.source)) {
      throw;
    }
    double longest = 0.0;
    for (const Measured& row : measured.rows) {
      longest = std::max(longest, seconds_of(row));
    }
    throw ConfigError(fmt::format("{}: no parameters fit its rows: {}; check the times (the longest is {:.4g} s)",
                                  measured.source, why.substr(0, why.rfind("; ")), longest));
  }
}

/// Returns the machine's name in the keys that select held-out rows, for tables that name no machine. For a cluster,
/// returns the name of its node, as `score` does.
std::string machine_in_keys(const Machine& base) {
  return base.node_name.empty() ? base.name : load_machine(base.node_name).name;
}

class Calibrator {
 public:
  Calibrator(const Machine& base, const Observations& observations)
      : base_(base),
        accelerator_(base.accelerator),
        observations_(observations),
        base_in_keys_(machine_in_keys(base)),
        machine_(observations.machine.empty() ? base_in_keys_ : observations.machine) {}

  /// Runs before the other fits, because all kernels read and write memory.
  void traffic() {
    const auto& [rows, source] = observations_.traffic;
    if (rows.empty() || !is_enough("copies and adds", source, rows.size(), min_traffic_rows)) {
      return;
    }
    MemoryBoundFit fit = fit_memory_bound(accelerator_, rows, source);
    accelerator_ = std::move(fit.accelerator);
    FittedPart& part = add_part("copies and adds", source, fit.fit.parameters);
    for (const auto& [bytes, time] : rows) {
      part.residuals.push_back(
          {to_microseconds(time), to_microseconds(memory_bound_time(accelerator_, bytes, accelerator_.sms)), false});
    }
    conclude(part, memory_bound_yaml(accelerator_, 2));
    constants_ += comment(part, 2) + part.yaml;
  }

  /// Converts the measured delays until the next op, on the same lane and on another lane, to launch costs.
  void launch_costs() {
    if (!observations_.next_op || !observations_.wake_up) {
      return;
    }
    const auto line = [&](const char* key, Duration value) {
      const Parameter<Duration> parameter{
          .value = value,
          .provenance = Provenance::measured,
          .source = observations_.traffic.source.empty() ? "micro-benchmarks" : observations_.traffic.source};
      return parameter_line(key, parameter, 2);
    };
    constants_ += line("launch_cost", *observations_.next_op) +
                  line("event_cost", std::max(Duration{}, *observations_.wake_up - *observations_.next_op)) +
                  line("graph_launch_cost", *observations_.next_op) + line("graph_node_gap", *observations_.wake_up);
  }

  void gemms(DType dtype) {
    const auto& [rows, source] = observations_.gemm[index_of(dtype)];
    const std::string name = fmt::format("GEMMs in {}", name_of(dtype));
    if (rows.empty() || (observations_.measured_on_cpus && !is_enough(name, source, rows.size(), min_executor_gemms))) {
      return;
    }
    std::optional<MatrixUnit>& unit = accelerator_.matrix_units[index_of(dtype)];
    if (!unit) {
      result_.skipped.push_back(fmt::format("{} ({}): the base has no peak rate for this dtype", name, source));
      return;
    }
    const std::string peak = observations_.measured_on_cpus ? measured_peak(*unit, rows, source) : "";
    const GemmFit fit = fit_gemm(accelerator_, dtype, rows,
                                 {.machine = machine_,
                                  .source = source,
                                  .has_power_ceiling = unit->gemm.burst_efficiency.value > 0.0,
                                  .has_conversion = unit->gemm.conversion_passes.value > 0.0,
                                  .has_resident_weights = unit->gemm.resident_share.value > 0.0,
                                  .has_resident_output = unit->gemm.resident_output_share.value > 0.0,
                                  .has_operand_feed = unit->gemm.operand_feed.value > 0.0});
    Accelerator fitted = accelerator_;
    fitted.matrix_units[index_of(dtype)]->gemm = fit.parameters;
    if (fit.kernel_choice != nullptr) {
      fitted.matrix_units[index_of(dtype)]->kernel_choice = fit.kernel_choice;
    }
    FittedPart& part = add_part(name, source, fit);
    for (const auto& [size, time] : fit.has_few ? fit.medians : rows) {
      part.residuals.push_back({to_microseconds(time), to_microseconds(estimate_gemm(fitted, size, fitted.sms).time),
                                !fit.has_few && is_held_out(gemm_group("gemm", machine_, name_of(dtype), size))});
      widen(part.scope, FitSize::m, size.m);
      widen(part.scope, FitSize::n, size.n);
      widen(part.scope, FitSize::k, size.k);
    }
    const std::string lines = gemm_yaml(fit, 8);
    const std::string choice = fit.kernel_choice != nullptr ? kernel_choice_yaml(*fit.kernel_choice, 6) : "";
    conclude(part, (lines.empty() ? "" : "      gemm:\n" + lines) + choice, 6, unit->fit);
    units_ += fmt::format("    {}:\n{}{}", name_of(dtype), comment(part, 6), peak + part.yaml);
  }

  void attention() {
    const auto& [rows, source] = observations_.attention;
    if (rows.empty()) {
      return;
    }
    const AttentionFit fit = fit_attention(accelerator_, rows, machine_, source);
    const Accelerator& fitted = fit.accelerator;
    FittedPart& part = add_part("attention", source, fit);
    for (const auto& [size, time] : fit.has_few ? fit.medians : rows) {
      part.residuals.push_back({to_microseconds(time), to_microseconds(attention_time(fitted, size, fitted.sms)),
                                !fit.has_few && is_held_out(attention_group("attention", machine_, size))});
      widen(part.scope, FitSize::seq, size.seq);
    }
    conclude(part, attention_yaml(fit, 4), 4, base_.accelerator.attention_fit);
    attention_ += fmt::format("  attention:\n{}{}", comment(part, 4), part.yaml);
  }

  void decode_attention(DType cache) {
    const bool is_fp8 = cache == DType::fp8;
    const DecodeAttention* const known = decode_attention_of(base_.accelerator, cache);
    calls(is_fp8 ? observations_.decode_attention_fp8 : observations_.decode_attention,
          CalledKernel<AttentionSize>{
              .name = is_fp8 ? "decode attention, cache in fp8" : "decode attention",
              .map = is_fp8 ? "decode_attention_fp8" : "decode_attention",
              .dtype = cache,
              .can_fit = can_fit_decode_attention,
              .fit = fit_decode_attention,
              .yaml = decode_attention_yaml,
              .time = decode_attention_time,
              .group = decode_attention_group,
              .seen = [](const AttentionSize& size) { return std::pair(FitSize::seq, size.seq); }},
          known != nullptr ? known->fit : FitScope{});
  }

  void latent_decode(DType cache) {
    const bool is_fp8 = cache == DType::fp8;
    const LatentDecodeKernel* const known = latent_decode_of(base_.accelerator, cache);
    calls(is_fp8 ? observations_.latent_decode_fp8 : observations_.latent_decode,
          CalledKernel<LatentDecodeSize>{
              .name = is_fp8 ? "latent decode attention, cache in fp8" : "latent decode attention",
              .map = is_fp8 ? "latent_decode_fp8" : "latent_decode",
              .dtype = cache,
              .needs_peak = true,
              .can_fit = can_fit_latent_decode,
              .fit = fit_latent_decode,
              .yaml = latent_decode_yaml,
              .time = latent_decode_time,
              .group = latent_decode_group,
              .seen = [](const LatentDecodeSize& size) { return std::pair(FitSize::seq, size.seq); }},
          known != nullptr ? known->fit : FitScope{});
  }

  void experts(DType dtype) {
    const bool is_fp8 = dtype == DType::fp8;
    const ExpertLayer* const known = expert_layer_of(base_.accelerator, dtype);
    calls(is_fp8 ? observations_.experts_fp8 : observations_.experts,
          CalledKernel<ExpertLayerSize>{
              .name = is_fp8 ? "experts in fp8" : "experts",
              .map = is_fp8 ? "experts_fp8" : "experts",
              .dtype = dtype,
              .needs_peak = true,
              .can_fit = can_fit_expert_layer,
              .fit = fit_expert_layer,
              .yaml = expert_layer_yaml,
              .time = expert_layer_time,
              .group = expert_layer_group,
              .seen = [](const ExpertLayerSize& size) { return std::pair(FitSize::m, expert_work(size).rows); }},
          known != nullptr ? known->fit : FitScope{});
  }

  void quantization() {
    const Quantization* const known = quantization_of(base_.accelerator, DType::fp8);
    calls(observations_.quantization,
          CalledKernel<QuantizationSize>{.name = "quantization",
                                         .map = "quantization",
                                         .dtype = DType::fp8,
                                         .can_fit = can_fit_quantization,
                                         .fit = fit_quantization,
                                         .yaml = quantization_yaml,
                                         .time = quantization_time,
                                         .group = quantization_group,
                                         .seen =
                                             [](const QuantizationSize& size) {
                                               return std::pair(FitSize::bytes, quantization_traffic(size).count);
                                             }},
          known != nullptr ? known->fit : FitScope{});
  }

  void kernels() {
    const auto& [rows, source] = observations_.kernels;
    if (rows.empty()) {
      return;
    }
    const FrameworkKernelFit fit = fit_framework_kernels(accelerator_, rows, machine_, source);
    if (!fit.accelerator.framework_kernels && !observations_.traffic.rows.empty()) {
      result_.skipped.push_back(fmt::format(
          "memory-bound kernels ({}): their price uses memory_bound_efficiency, which copies and adds have set",
          source));
      return;
    }
    FittedPart& part = add_part("memory-bound kernels", source, fit);
    for (const auto& [op, size, time] : fit.has_few ? fit.medians : rows) {
      part.residuals.push_back({to_microseconds(time), to_microseconds(framework_kernel_time(fit.accelerator, size)),
                                !fit.has_few && is_held_out(framework_kernel_group(machine_, op, size.width))});
    }
    add_kernels(fit, part);
  }

  /// Returns the highest rate at which a collective over nodes can use the wires: the rate of all NICs of a node, but
  /// at most the rate of a GPU's port.
  [[nodiscard]] BytesPerSecond max_over_nodes() const {
    const double nics = std::min(base_.nics_per_node, base_.gpus_per_node);
    return {std::min(nics * base_.network->capacity.value, base_.link.capacity.value)};
  }

  /// Returns the highest rate of an exchange inside a node, which a mesh or a ring carries on a single wire.
  [[nodiscard]] BytesPerSecond max_to_peer() const {
    const BytesPerSecond fastest = fastest_pair(*base_.topology, base_.gpus_per_node);
    return fastest.value > 0.0 ? std::min(fastest, base_.link.capacity) : base_.link.capacity;
  }

  void node_exchanges() { exchanges("exchanges", observations_.peers, base_.link, max_to_peer(), link_); }
  void node_collectives() {
    const std::size_t before = link_.size();
    collectives("collectives", observations_.collectives, base_.link, base_.link.capacity, link_);
    if (!frameworks_.empty()) {
      link_ +=
          fmt::format("{}    custom_all_reduce:\n{}", link_.size() == before ? "  collective:\n" : "", frameworks_);
    }
  }

  /// Fits the kernels of one framework to the rows of that framework. Runs before node_collectives(), which writes the
  /// result into the map of collectives.
  void custom_all_reduce(AllReduceKernel framework) {
    const auto& [rows, source] = observations_.custom_all_reduces[static_cast<std::size_t>(framework)];
    const std::string name = fmt::format("all-reduce of {}", name_of(framework));
    const auto [held_back, to_fit] =
        split<CustomAllReduceRow>(rows, least_custom_all_reduces, [&](const ObservedCustomAllReduce& sum) {
          return link_group(score::custom_all_reduce_kind, machine_, sum.kernel, sum.row.total.count);
        });
    if (rows.empty() || !is_enough(name, source, to_fit.size(), least_custom_all_reduces)) {
      return;
    }
    const BytesPerSecond capacity =
        std::isfinite(base_.link.capacity.value) ? base_.link.capacity : base_.link.nominal_rate.value;
    const CustomAllReduceFit fit =
        fit_custom_all_reduce(to_fit, largest_sum(&base_, framework), writable_up_to(capacity), source);
    FittedPart& part = add_part(name, source, fit.fitted_parameters);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const CustomAllReduceRow& row = rows[i].row;
      part.residuals.push_back(
          {row.time_us, to_microseconds(custom_all_reduce_time(fit.parameters, row.ranks, row.total)), held_back[i]});
    }
    conclude(part, custom_all_reduce_yaml(fit.parameters, 8));
    frameworks_ += fmt::format("      {}:\n{}{}", name_of(framework), comment(part, 8), part.yaml);
  }

  /// Exchanges over the network are skipped if the base is a single node.
  void network_exchanges() {
    if (base_.network) {
      exchanges("exchanges between nodes", observations_.network_peers, *base_.network, base_.network->capacity,
                network_);
    }
  }
  void network_collectives() {
    if (base_.network) {
      collectives("collectives over nodes", observations_.network_collectives, *base_.network, max_over_nodes(),
                  network_);
    }
  }

  Calibration calibration(const std::string& base_name, const std::string& name, const std::string& written_by) && {
    std::string node = accelerator_lines() + (link_.empty() ? "" : "\nlink:\n" + link_);
    if (base_.nodes == 1) {
      result_.yaml = head(name, "hardware", base_name, written_by) + node;
      return std::move(result_);
    }
    const std::string node_name = name + "-node";
    const std::optional<SizedCluster> sized = sized_cluster(base_name);
    result_.yaml =
        head(name, "cluster", sized ? sized->name : base_name, written_by) + fmt::format("nodes: {}\n", base_.nodes);
    if (!node.empty()) {
      result_.node_name = node_name;
      result_.node_yaml = head(node_name, "hardware", base_.node_name, written_by) + node;
      result_.yaml += fmt::format("hardware: {}.yaml\n", node_name);
    }
    result_.yaml += network_.empty() ? "" : "\nnetwork:\n" + network_;
    return std::move(result_);
  }

 private:
  static std::string head(const std::string& name, std::string_view kind, const std::string& base,
                          const std::string& written_by) {
    return fmt::format(
        "# {} as calibrated by `{}`; all other keys are as in {}.\n"
        "schema: commfuse.{}/1\n"
        "name: {}\n"
        "extends: {}\n",
        name, written_by, base, kind, name, yaml_scalar(base));
  }

  [[nodiscard]] std::string accelerator_lines() const {
    return units_.empty() && attention_.empty() && kernels_.empty() && constants_.empty()
               ? ""
               : "\naccelerator:\n" + constants_ + attention_ + kernels_ +
                     (units_.empty() ? "" : "  matrix_units:\n" + units_);
  }

  void collectives(const std::string& name, const Measurements<ObservedCollective>& measurements, const Link& link,
                   BytesPerSecond bandwidth_limit, std::string& lines) {
    const auto& [rows, source] = measurements;
    const auto [held_back, to_fit] =
        split<CollectiveRow>(rows, few_collectives, [&](const ObservedCollective& collective) {
          return link_group("collective", collective.of_base ? base_in_keys_ : machine_, collective.op,
                            collective.row.total.count);
        });
    if (rows.empty() || !is_enough(name, source, to_fit.size(), min_collectives)) {
      return;
    }
    const CollectiveFit fit = fit_collectives(
        link.collective, to_fit,
        {.source = source, .physical_rate = writable_up_to(bandwidth_limit), .few_rows = few_collectives});
    FittedPart& part = add_part(name, source, fit.report.parameters);
    part.unchanged = fit.report.left;
    part.has_few = to_fit.size() < few_collectives;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      part.residuals.push_back(
          {rows[i].row.time_us, collective_microseconds(fit.parameters, rows[i].row), held_back[i]});
      widen(part.scope, FitSize::bytes, rows[i].row.total.count);
      widen(part.scope, FitSize::ranks, rows[i].row.ranks);
    }
    CollectiveParameters written = fit.parameters;
    written.custom_all_reduce = nullptr;  // fitted to other rows; without them it stays as in the base
    renew_residual_of_all_to_alls(rows, part, written);
    conclude(part, collective_yaml(written, 4), 4, link.collective.fit);
    lines += fmt::format("  collective:\n{}{}", comment(part, 4), part.yaml);
  }

  /// Replaces the residual of all-to-alls, if the base has one, by the residual of the rows that are all-to-alls.
  static void renew_residual_of_all_to_alls(const std::vector<ObservedCollective>& rows, const FittedPart& part,
                                            CollectiveParameters& written) {
    if (written.all_to_all == nullptr || !written.all_to_all->fit) {
      return;
    }
    std::vector<Residual> residuals;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].row.kind == CollectiveKind::all_to_all) {
        residuals.push_back(part.residuals[i]);
      }
    }
    if (residuals.empty()) {
      return;
    }
    AllToAllParameters direct = *written.all_to_all;
    const double residual = residual_of(quality_of(residuals, false), quality_of(residuals, true));
    *direct.fit = part.has_few ? FitScope{.residual = residual_of_few(residual, *direct.fit, part.distance),
                                          .by_limit = direct.fit->by_limit}
                               : FitScope{.residual = residual};
    written.all_to_all = std::make_shared<const AllToAllParameters>(std::move(direct));
  }

  void exchanges(const std::string& name, const Measurements<ObservedExchange>& measurements, const Link& link,
                 BytesPerSecond bandwidth_limit, std::string& lines) {
    const auto& [rows, source] = measurements;
    const auto [held_back, to_fit] = split<PeerRow>(rows, few_exchanges, [&](const ObservedExchange& exchange) {
      return link_group("p2p", machine_, exchange.op, exchange.row.bytes.count);
    });
    if (rows.empty() || !is_enough(name, source, to_fit.size(), min_exchanges)) {
      return;
    }
    const PeerFit fit =
        fit_peer(link.peer, to_fit,
                 {.source = source, .physical_rate = writable_up_to(bandwidth_limit), .few_rows = few_exchanges});
    FittedPart& part = add_part(name, source, fit.report.parameters);
    part.unchanged = fit.report.left;
    part.has_few = to_fit.size() < few_exchanges;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      part.residuals.push_back(
          {rows[i].row.time_us, to_microseconds(p2p_time(fit.parameters, rows[i].row.bytes)), held_back[i]});
      widen(part.scope, FitSize::bytes, rows[i].row.bytes.count);
    }
    PeerParameters written = fit.parameters;
    written.aggregate_rate.value = std::min(written.aggregate_rate.value, writable_up_to(link.capacity));
    conclude(part, peer_yaml(written, 4), 4, link.peer.fit);
    lines += fmt::format("  peer:\n{}{}", comment(part, 4), part.yaml);
  }

  bool is_enough(const std::string& name, const std::string& source, std::size_t rows, std::size_t min_rows) {
    if (rows < min_rows) {
      result_.skipped.push_back(fmt::format("{} ({}): {}, but a fit needs {}; measure more sizes", name, source,
                                            counted(rows, "row"), min_rows));
    }
    return rows >= min_rows;
  }

  /// Sets the unit's peak to the rate of the fastest GEMM, and returns the line of the peak for the file.
  static std::string measured_peak(MatrixUnit& unit, const std::vector<MeasuredGemm>& rows, const std::string& source) {
    double fastest = 0.0;
    for (const MeasuredGemm& row : rows) {
      fastest = std::max(fastest, flops_of(row.size).count / to_seconds(row.time));
    }
    unit.dense_peak = {.value = {fastest}, .provenance = Provenance::measured, .source = source + ", the fastest GEMM"};
    return parameter_line("dense_peak", unit.dense_peak, 6);
  }

  /// Adds the map of framework kernels. An accelerator without this map prices these kernels by its
  /// memory_bound_efficiency.
  void add_kernels(const FrameworkKernelFit& fit, FittedPart& part) {
    const bool has_map = fit.accelerator.framework_kernels.has_value();
    const std::string yaml = framework_kernels_yaml(fit, has_map ? 4 : 2);
    if (has_map && !yaml.empty()) {
      conclude(part, yaml, 4, base_.accelerator.framework_kernel_fit);
    } else {
      conclude(part, yaml);
    }
    if (part.yaml.empty()) {
      return;
    }
    if (has_map) {
      kernels_ = fmt::format("  framework_kernels:\n{}{}", comment(part, 4), part.yaml);
    } else {
      constants_ += comment(part, 2) + part.yaml;
    }
  }

  /// A kernel with an optional map of its own in the accelerator, and the functions of its fit.
  template <class Size>
  struct CalledKernel {
    std::string name;
    std::string_view map;
    DType dtype = DType::bf16;
    bool needs_peak = false;
    bool (*can_fit)(const Accelerator&, std::span<const MeasuredCall<Size>>, const std::string&) = nullptr;
    CallFit<Size> (*fit)(const Accelerator&, std::span<const MeasuredCall<Size>>, const std::string&,
                         const std::string&) = nullptr;
    std::string (*yaml)(const CallFit<Size>&, DType, int) = nullptr;
    Duration (*time)(const Accelerator&, const Size&) = nullptr;
    std::string (*group)(std::string_view, const Size&) = nullptr;
    std::pair<FitSize, std::int64_t> (*seen)(const Size&) = nullptr;
  };

  template <class Size>
  void calls(const Measurements<MeasuredCall<Size>>& measured, const CalledKernel<Size>& kernel, const FitScope& base) {
    const auto& [rows, source] = measured;
    if (rows.empty()) {
      return;
    }
    if (kernel.needs_peak && !base_.accelerator.supports(kernel.dtype)) {
      result_.skipped.push_back(fmt::format("{} ({}): the base has no peak rate for this dtype", kernel.name, source));
      return;
    }
    if (!kernel.can_fit(accelerator_, rows, machine_)) {
      result_.skipped.push_back(
          fmt::format("{} ({}): {}, but a fit needs 60 sizes unless the base has parameters; measure more sizes",
                      kernel.name, source, counted(rows.size(), "row")));
      return;
    }
    const CallFit<Size> fit = kernel.fit(accelerator_, rows, machine_, source);
    FittedPart& part = add_part(kernel.name, source, fit);
    for (const auto& [size, time] : fit.has_few ? fit.medians : rows) {
      part.residuals.push_back({to_microseconds(time), to_microseconds(kernel.time(fit.accelerator, size)),
                                !fit.has_few && is_held_out(kernel.group(machine_, size))});
      const auto [fit_size, value] = kernel.seen(size);
      widen(part.scope, fit_size, value);
    }
    conclude(part, kernel.yaml(fit, kernel.dtype, 4), 4, base);
    attention_ += fmt::format("  {}:\n{}{}", kernel.map, comment(part, 4), part.yaml);
  }

  template <class Fit>
  FittedPart& add_part(const std::string& name, const std::string& source, const Fit& fit) {
    FittedPart& part = add_part(name, source, fit.fitted_parameters);
    part.unchanged = fit.left;
    part.has_few = fit.has_few;
    part.distance = fit.distance;
    return part;
  }

  FittedPart& add_part(std::string name, const std::string& source, std::vector<FittedParameter> parameters) {
    return result_.parts.emplace_back(FittedPart{.name = std::move(name),
                                                 .source = source,
                                                 .parameters = std::move(parameters),
                                                 .residuals = {},
                                                 .scope = {},
                                                 .yaml = {}});
  }

  static void conclude(FittedPart& part, std::string yaml) {
    part.fitted = quality_of(part.residuals, false);
    part.held_out = quality_of(part.residuals, true);
    part.yaml = std::move(yaml);
  }

  /// `indent` is the indentation of the map `fit`.
  static void conclude(FittedPart& part, std::string yaml, int indent, const FitScope& base) {
    conclude(part, std::move(yaml));
    const double residual = residual_of(part.fitted, part.held_out);
    part.scope.residual = part.has_few ? residual_of_few(residual, base, part.distance) : residual;
    if (part.has_few) {
      part.scope.by_limit = base.by_limit;
    }
    part.yaml += fit_scope_yaml(part.scope, indent, base.by_limit);
  }

  static std::string comment(const FittedPart& part, int indent) {
    const FitQuality& unseen = part.held_out;
    if (unseen.rows == 0) {
      return fmt::format("{:{}}# Fitted to {} {}{}: the median error is {:.1f}% and the p90 error {:.1f}%.\n", "",
                         indent, part.fitted.rows, part.fitted.rows == 1 ? "row" : "rows",
                         part.has_few ? ", with the base as the prior" : "", 100.0 * part.fitted.median,
                         100.0 * part.fitted.p90);
    }
    if (unseen.rows == 1) {
      return fmt::format("{:{}}# Fitted to {} rows; on the row held out the error is {:.1f}%.\n", "", indent,
                         part.fitted.rows, 100.0 * unseen.median);
    }
    return fmt::format(
        "{:{}}# Fitted to {} rows; on the {} rows held out the median error is {:.1f}% and the p90 error {:.1f}%.\n",
        "", indent, part.fitted.rows, unseen.rows, 100.0 * unseen.median, 100.0 * unseen.p90);
  }

  const Machine& base_;
  Accelerator accelerator_;  // accelerator of the base, with the parts fitted so far
  const Observations& observations_;
  std::string base_in_keys_;
  std::string machine_;
  Calibration result_;
  std::string constants_, units_, attention_, kernels_, link_, network_;  // lines of the file
  std::string frameworks_;                                                // lines of the map custom_all_reduce in link_
};

}  // namespace

Calibration calibrate(const Machine& base, const std::string& base_name, const std::string& name,
                      const Observations& observations, const std::string& written_by) {
  Calibrator calibrator(base, observations);
  fit_to(observations.traffic, [&] { calibrator.traffic(); });
  calibrator.launch_costs();
  for (const DType dtype : all_dtypes) {
    fit_to(observations.gemm[index_of(dtype)], [&] { calibrator.gemms(dtype); });
  }
  fit_to(observations.attention, [&] { calibrator.attention(); });
  fit_to(observations.decode_attention, [&] { calibrator.decode_attention(DType::bf16); });
  fit_to(observations.decode_attention_fp8, [&] { calibrator.decode_attention(DType::fp8); });
  fit_to(observations.latent_decode, [&] { calibrator.latent_decode(DType::bf16); });
  fit_to(observations.latent_decode_fp8, [&] { calibrator.latent_decode(DType::fp8); });
  fit_to(observations.experts, [&] { calibrator.experts(DType::bf16); });
  fit_to(observations.experts_fp8, [&] { calibrator.experts(DType::fp8); });
  fit_to(observations.quantization, [&] { calibrator.quantization(); });
  fit_to(observations.kernels, [&] { calibrator.kernels(); });
  fit_to(observations.peers, [&] { calibrator.node_exchanges(); });
  for (const AllReduceKernel framework : all_all_reduce_kernels) {
    fit_to(observations.custom_all_reduces[static_cast<std::size_t>(framework)],
           [&] { calibrator.custom_all_reduce(framework); });
  }
  fit_to(observations.collectives, [&] { calibrator.node_collectives(); });
  fit_to(observations.network_peers, [&] { calibrator.network_exchanges(); });
  fit_to(observations.network_collectives, [&] { calibrator.network_collectives(); });
  Calibration calibration = std::move(calibrator).calibration(base_name, name, written_by);
  if (calibration.parts.empty()) {
    throw ConfigError(nothing_fitted(observations, calibration.skipped));
  }
  return calibration;
}

}  // namespace commfuse::calibrate
