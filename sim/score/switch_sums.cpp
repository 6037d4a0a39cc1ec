// SPDX-License-Identifier: Apache-2.0
// Scores tables of one kernel that sums a tensor over the GPUs of a node in the switch, adds the residual and
// normalizes, next to the times of the usual all-reduce and norm. `run --scope prefill --as tokenweave` has these sums.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "model/config/implementation.h"
#include "model/cost/communication.h"
#include "model/cost/implemented.h"
#include "model/cost/memory_bound.h"
#include "model/text/quantity.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"

namespace commfuse::score {

namespace {

/// Returns the column of times on this many CTAs; an absent column if the table has none.
Column time_on(const Table& table, int ctas) {
  constexpr std::string_view before = "fused_arln_us_ctas_";
  for (const std::string_view name : table.header()) {
    if (name.starts_with(before) && parse_count(name.substr(before.size())) == ctas) {
      return table.column(name);
    }
  }
  return {};
}

/// The kernel, and the node on which it runs. `why_not` states why no node is known or why the kernel cannot run on the
/// node; otherwise it is empty.
struct SwitchKernel {
  FoundMachine known;
  std::shared_ptr<const Implementation> implementation = load_implementation("tokenweave");
  std::string why_not;

  SwitchKernel(const Table& table, const Context& context) : known(machine_of_source(table, context)) {
    why_not = known.machine == nullptr
                  ? known.why_not
                  : refusal_of(*implementation, *known.machine, known.machine->gpus_per_node, DType::bf16);
  }
  [[nodiscard]] const ImplementedSite& site() const { return implementation->costs.on(*known.machine).mlp_ar; }
  [[nodiscard]] double time_us(Bytes tensor) const {
    return to_microseconds(switch_sum_time(site(), known.machine->link, known.machine->gpus_per_node, tensor));
  }
};

/// Returns the total time of an all-reduce by NCCL and of a kernel that adds the residual and normalizes; this kernel
/// reads two tensors and writes two.
double serial_us(const Machine& machine, Bytes tensor) {
  const Accelerator& accelerator = machine.accelerator;
  return to_microseconds(all_reduce_time(machine.link, machine.gpus_per_node, tensor) +
                         memory_bound_time(accelerator, 4 * tensor, accelerator.sms));
}

Bytes tensor_of(Row& row, const Column& tokens, const Column& hidden) {
  constexpr std::int64_t largest = std::int64_t{1} << 24;
  return Bytes{std::min(row.count(tokens), largest) * std::min(row.count(hidden), largest) * bytes_of(DType::bf16)};
}

void add_remark(const SwitchKernel& kernel, Tally& tally) {
  if (kernel.why_not.empty()) {
    tally.result().remarks.push_back(fmt::format("Sums are over the {} GPUs of {}. No cost is fitted to this table.",
                                                 kernel.known.machine->gpus_per_node, kernel.known.machine->name));
  }
}

}  // namespace

void score_fused_norms(const Table& table, Context& context, Tally& tally) {
  const Column tokens = table.column("BL");
  const Column hidden = table.column("hidden_size");
  const Column all_reduce = table.column("torch_all_reduce_us");
  const Column norm = table.column("full_rms_norm_us");
  const Column fused = table.column("fused_arln_us");
  const SwitchKernel kernel(table, context);
  add_remark(kernel, tally);
  constexpr std::array<std::string_view, 2> parts{"serial", "tokenweave"};
  const std::span<const std::string_view> names(parts);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const Bytes tensor = tensor_of(row, tokens, hidden);
    const double serial = row.amount(all_reduce) + row.amount(norm);
    const double overlapped = row.amount(fused);
    if (!tally.takes(row, true)) {
      continue;
    }
    if (!kernel.why_not.empty()) {
      tally.skip(kernel.why_not);
      continue;
    }
    const double predicted_serial = serial_us(*kernel.known.machine, tensor);
    const double predicted = kernel.time_us(tensor);
    if (tally.score(row, *kernel.known.machine, true,
                    {{serial, predicted_serial, names.subspan(0, 1)}, {overlapped, predicted, names.subspan(1, 1)}})) {
      tally.compare(overlapped / serial, predicted / predicted_serial);
    }
  }
}

void score_fused_norm_ctas(const Table& table, Context& context, Tally& tally) {
  const Column tokens = table.column("num_tokens");
  const Column hidden = table.column("hidden_size");
  const SwitchKernel kernel(table, context);
  add_remark(kernel, tally);
  const Column time = kernel.why_not.empty() ? time_on(table, kernel.site().sms.value) : Column{};
  tally.result().remarks.push_back("Only times on the number of CTAs that a pass uses are scored.");
  constexpr std::string_view part = "tokenweave";
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const Bytes tensor = tensor_of(row, tokens, hidden);
    const double measured = time.exists() ? row.amount(time) : 0.0;
    if (!tally.takes(row, true)) {
      continue;
    }
    if (!time.exists()) {
      tally.skip(kernel.why_not.empty() ? "no column has the number of CTAs that the kernel takes" : kernel.why_not);
      continue;
    }
    tally.score(row, *kernel.known.machine, true, {{measured, kernel.time_us(tensor), std::span(&part, 1)}});
  }
}

}  // namespace commfuse::score
