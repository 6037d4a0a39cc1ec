// SPDX-License-Identifier: Apache-2.0
// Costs of an implementation's kernels compared with the ideal kernels of its schedule. A file of
// configs/implementations states them once for all GPUs, and again for each GPU generation on which they were measured.
//
//   GEMM       product_time x (part + cut_cost x (own - part)) x SMs / (SMs - sms), and per_call once per call
//              part: the op's share of the time of its one whole kernel; own: its time if every shard were a separate
//              GEMM
//   transfer   the larger of the ideal time and bytes / min(rate, rate_share x nominal rate), plus per_step; if the
//              switch adds the sums, bytes x N / (N - 1), because a rank's own share crosses its link too, and for an
//              all-reduce bytes x (N + 1) / (2 (N - 1)), because the switch also sends complete sums to all ranks
//   switch sum per_call + bytes x (N + 1) / N / min(rate, rate_share x nominal rate)
//              an all-reduce: a link carries the whole tensor, and the rank's own share twice
//   host       with launch eager, host_per_call and host_per_step calls beyond the schedule's ops, each eager_cost
//   sum        sum_time x the ideal time; with separate_sum at least that of a pass over memory
//
// Decision 59 explains the form.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/cost/costs.h"
#include "model/cost/price_settings.h"
#include "model/hardware/described.h"
#include "model/hardware/machine.h"
#include "model/program/program.h"
#include "model/program/sizes.h"
#include "model/workload/sites.h"

namespace commfuse {

/// Costs at one kind of site. The defaults are the costs of the ideal schedule.
struct ImplementedSite {
  Parameter<Duration> per_call;         ///< Barriers, symmetric memory and signals: once per call, on the compute lane.
  Parameter<Duration> per_step;         ///< Signal and wait, once per transfer.
  Parameter<double> product_time{1.0};  ///< Time of its GEMM relative to the library's GEMM.
  Parameter<double> cut_cost{0.0};      ///< 0: parts of its GEMM share one kernel's time; 1: each is a kernel.
  Parameter<double> rate_share{1.0};    ///< Largest share of the link's nominal rate that its transfers reach.
  std::optional<Parameter<BytesPerSecond>> rate{};  ///< Largest rate of its transfers, whatever the link.
  Parameter<int> sms{0};                            ///< SMs taken from the GEMM while it runs.
  Parameter<int> separate_sum{0};   ///< 1: sums are a separate pass; 0: other kernels add them at no cost.
  Parameter<double> sum_time{1.0};  ///< Time of its sums relative to a memory-bound kernel.
  /// Calls that eager Python makes per call of the operator and per transfer, beyond one per op of the schedule, each
  /// as long as an op. Three barriers, waits or views count as one: they do not pass PyTorch's dispatcher to a kernel.
  Parameter<int> host_per_call{0};
  Parameter<int> host_per_step{0};
  bool sums_in_switch = false;  ///< Its transfers are the switch's reads of every rank's partial sums (multimem).
};

/// Costs at each kind of site, and the residual error.
struct ImplementedSites {
  std::string name;  ///< Name of the implementation.
  ImplementedSite ag_gemm;
  ImplementedSite gemm_rs;
  ImplementedSite gemm_ar;
  /// An MLP, then one kernel for all-reduce, residual and norm, which sums in the switch: per_call and rate are those
  /// of this kernel, sms the SMs that it takes.
  ImplementedSite mlp_ar;
  Parameter<double> residual{0.25};  ///< Relative standard error that the fit leaves in times.
  /// Relative standard error on generations of GPUs without measurements; replaces `residual` there if it is larger.
  Parameter<double> elsewhere{0.0};
};

/// A kind of site that an implementation may cover, and its costs there.
struct ImplementedKind {
  SiteKind kind = SiteKind::ag_gemm;
  ImplementedSite ImplementedSites::*costs = nullptr;
  bool is_fitted = false;  ///< Measured pairs of kernels of this kind can determine its costs.
};

inline constexpr std::array implemented_kinds{ImplementedKind{SiteKind::ag_gemm, &ImplementedSites::ag_gemm, true},
                                              ImplementedKind{SiteKind::gemm_rs, &ImplementedSites::gemm_rs, true},
                                              ImplementedKind{SiteKind::gemm_ar, &ImplementedSites::gemm_ar, true},
                                              ImplementedKind{SiteKind::mlp_ar, &ImplementedSites::mlp_ar, false}};

/// The kinds of sites that an implementation may cover.
inline constexpr std::array implemented_sites = [] {
  std::array<SiteKind, implemented_kinds.size()> sites{};
  std::ranges::transform(implemented_kinds, sites.begin(), &ImplementedKind::kind);
  return sites;
}();

/// Costs by generation of GPUs, indexed as NcclGeneration.
struct ImplementationCosts {
  std::array<ImplementedSites, all_nccl_generations.size()> generations;
  /// True for generations on which the implementation was measured.
  std::array<bool, all_nccl_generations.size()> measured{};

  /// Returns the costs on the machine; a machine of unknown generation gets the costs of Hopper.
  [[nodiscard]] const ImplementedSites& on(const Machine& machine) const;
  [[nodiscard]] bool was_measured_on(const Machine& machine) const;
};

/// Mechanism that moves an implementation's bytes.
enum class Transport : std::uint8_t { nccl, copy_engine, stores, tma, multimem, rdma };
inline constexpr std::array all_transports{Transport::nccl, Transport::copy_engine, Transport::stores,
                                           Transport::tma,  Transport::multimem,    Transport::rdma};
std::string_view name_of(Transport transport);

/// Returns the share of NVLink's nominal rate that a transport reaches when nothing else limits it; 1 for NCCL and
/// RDMA, whose share is part of the schedule's own prices.
Parameter<double> rate_share_of(Transport transport, NcclGeneration generation);

template <>
struct Described<ImplementedSite> {
  using I = ImplementedSite;
  static constexpr std::tuple entries{
      entry("per_call", &I::per_call, "Time per call: barriers, signals").optional(),
      entry("per_step", &I::per_step, "Time per transfer: signal and wait").optional(),
      entry("product_time", &I::product_time, "Time of the GEMM, relative to the library's")
          .optional()
          .within(0.1, 10.0),
      entry("cut_cost", &I::cut_cost, "Share of the cost of cutting the GEMM into kernels").optional().within(0.0, 2.0),
      entry("rate_share", &I::rate_share, "Share of the link's nominal rate that transfers reach")
          .optional()
          .within(efficiency_least, 1.0),
      entry("rate", &I::rate, "Maximum rate of transfers on any link"),
      entry("sms", &I::sms, "SMs taken from the GEMM").optional().within(0.0, sm_most),
      entry("separate_sum", &I::separate_sum, "1: sums run as a separate pass").optional().within(0.0, 1.0),
      entry("sum_time", &I::sum_time, "Time of the sums, relative to a memory-bound kernel")
          .optional()
          .within(0.1, 10.0),
      entry("host_per_call", &I::host_per_call, "Host calls from Python per call, beyond the schedule's ops")
          .optional()
          .within(0.0, 1000.0),
      entry("host_per_step", &I::host_per_step, "Host calls from Python per transfer, beyond the schedule's ops")
          .optional()
          .within(0.0, 1000.0)};
};

template <>
struct Described<ImplementedSites> {
  using I = ImplementedSites;
  static constexpr std::tuple entries{
      entry("ag_gemm", &I::ag_gemm, "All-gather, then GEMM").optional(),
      entry("gemm_rs", &I::gemm_rs, "GEMM, then reduce-scatter").optional(),
      entry("gemm_ar", &I::gemm_ar, "GEMM, then all-reduce").optional(),
      entry("mlp_ar", &I::mlp_ar, "MLP, then all-reduce, residual and norm in one kernel").optional(),
      entry("residual", &I::residual, "Remaining relative error of a time").optional().within(0.0, 2.0),
      entry("elsewhere", &I::elsewhere, "Remaining relative error on generations of GPUs without measurements")
          .optional()
          .within(0.0, 2.0)};
};

/// The costs with one parameter raised by its error, which is the standard deviation of its logarithm.
struct RaisedImplementation {
  std::string name;  ///< For example "ag_gemm.per_call".
  double standard_error = 0.0;
  Provenance provenance = Provenance::prior;
  std::string source;
  ImplementedSites sites;
};
/// Returns one entry for each parameter that has an error, except the residual.
std::vector<RaisedImplementation> raised_by_error(const ImplementedSites& sites);

/// Costs that may slow an implementation down.
enum class Handicap : std::uint8_t { gemm, transfers, calls, sums };
inline constexpr std::array all_handicaps{Handicap::gemm, Handicap::transfers, Handicap::calls, Handicap::sums};
/// Returns "its GEMM", "its transfers", "the cost of its calls" or "the time of its separate sums".
std::string_view in_words(Handicap handicap);
/// Returns the costs without one handicap.
ImplementedSites without(ImplementedSites sites, Handicap handicap);

/// Returns whether the costs count the calls of eager Python. The counts then include all waits and transfers.
bool is_issued_from_python(const ImplementedSites& sites);
/// Adds the calls beyond one per op to the issue costs of eager Python. Requires `costs` to have issue costs of the
/// program.
void add_host_calls(const Program& program, const Machine& machine, const ImplementedSites& sites, Costs& costs);

/// Returns the time of a kernel that sums a tensor of each of `ranks` ranks in the switch. A residual and a norm in it
/// hide behind the transfers: from 1,024 tokens up they add less than 1% on H100 (microsoft/tokenweave,
/// artifact/csvs/figure_4.csv). Requires at least two ranks.
Duration switch_sum_time(const ImplementedSite& site, const Link& link, int ranks, Bytes tensor);
/// Returns whether an implementation's collectives in the program are kernels that sum in the switch.
bool has_switch_sums(const Program& program);
/// Returns whether the op is a later part of a kernel that sums in the switch, which its reduce-scatter launches: the
/// residual, the norm or the all-gather. Requires `program` to have such kernels.
bool is_inside_switch_sum(const Program& program, std::size_t op);
/// Returns whether the machine's nodes have a switch that can sum.
bool sums_in_switch(const Machine& machine);

/// Changes prices of the ideal schedule into prices of `options.implementation`; issue costs stay. Requires
/// `options.implementation`, and `costs` of the program at these sizes and options on the machine.
void implement(const Program& program, const Sizes& sizes, const Machine& machine, const PriceOptions& options,
               Costs& costs);

}  // namespace commfuse
