// SPDX-License-Identifier: Apache-2.0
#include "model/cost/price.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "model/check.h"
#include "model/cost/attention.h"
#include "model/cost/communication.h"
#include "model/cost/contention.h"
#include "model/cost/cut_bound.h"
#include "model/cost/expert_gemm.h"
#include "model/cost/gemm.h"
#include "model/cost/group.h"
#include "model/cost/implemented.h"
#include "model/cost/memory_bound.h"
#include "model/cost/op_time.h"
#include "model/cost/priced_ops.h"
#include "model/cost/shape_sizes.h"
#include "model/cost/wires.h"
#include "model/hardware/described.h"
#include "model/math/functions.h"
#include "model/program/lower.h"
#include "model/program/matching.h"

namespace commfuse {

namespace {

/// Returns true if the ranks span several nodes. Rank r runs on GPU r.
bool crosses_nodes(const Program& program, const Machine& machine) {
  return program.mesh.ranks() > machine.gpus_per_node;
}

/// Returns true if ops of the shape are parts of one kernel.
bool has_parts(const Shape& shape) {
  const auto* gemm = std::get_if<GemmShape>(&shape);
  return gemm != nullptr && is_part_of_kernel(*gemm);
}

/// Prices one shape at a given SM budget; the price of attention also depends on the position of its queries.
class Pricer {
 public:
  Pricer(const Program& program, const Sizes& sizes, const Machine& machine, const PriceOptions& options)
      : program_(program),
        sizes_(sizes),
        machine_(machine),
        options_(options),
        is_bound_(std::ranges::any_of(program.shapes, has_parts)),
        heating_(heating_work(program, sizes, options)) {}

  /// Under a causal mask, the queries of block row j of N, counted from 0, see j blocks of keys and half of their own
  /// block: (2j + 1) / 2N^2 of all scores.
  [[nodiscard]] Duration attention(const Op& op, const Coordinates& coordinates, int sms) const {
    const auto& shape = std::get<AttentionShape>(program_.shapes[op.shape]);
    const auto queries = program_.regions_of(program_.inputs_of(op).front());
    const std::vector<std::int32_t> first = positions_at(program_, op, coordinates);
    double block_pairs_seen = 0.0;  // pairs of a query block and a key block
    std::int32_t last = 0;          // end of the keys that some query sees
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const double rows = queries[i].rows;
      block_pairs_seen += rows * (shape.causal ? first[i] + rows / 2.0 : shape.keys.blocks);
      last = std::max(last, shape.causal ? first[i] + queries[i].rows : shape.keys.blocks);
    }
    const double block_pairs = static_cast<double>(shape.keys.blocks) * shape.keys.blocks;
    const AttentionSize size = attention_size(shape, sizes_);
    QueryRows rows{.queries = sizes_.elements(shape.queries) / size.batch,
                   .keys = sizes_.elements({shape.keys.dimension, last}) / size.batch,
                   .share = block_pairs_seen / block_pairs};
    // All other attention ignores the window.
    if (options_.window.keys > 0 && shape.causal && options_.attention == AttentionKernel::fused) {
      see_window(rows, shape, size, queries, first);
    }
    const Duration once = attention_time(machine_.accelerator, options_.attention, size, rows, sms);
    const bool saves_scores =
        options_.attention == AttentionKernel::unfused && is_bound_ && shape.queries == shape.keys;
    return saves_scores ? std::min(once, attention_in_parts(shape, sms)) : once;
  }

  [[nodiscard]] Duration time(const Shape& shape, int sms) const {
    return std::visit([&](const auto& kind) { return duration_of(kind, sms); }, shape);
  }

  /// Returns the part of a transfer's time in which it needs no wire; zero for other ops. Assumes that an exchange
  /// stays inside a node.
  [[nodiscard]] Duration latency(const Shape& shape) const {
    if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
      return duration_of(*collective, Bytes{});
    }
    return std::holds_alternative<ExchangeShape>(shape) ? p2p_time(machine_.link, Bytes{}) : Duration{};
  }

  /// Returns the time on a lane of kind kernel, where sums add no time.
  [[nodiscard]] Duration time_in_kernel(const Shape& shape, double seconds_per_byte) const {
    const auto* exchange = std::get_if<ExchangeShape>(&shape);
    const double bytes = exchange != nullptr ? static_cast<double>(load_of(*exchange, sizes_).count) : 0.0;
    return op_time(bytes * seconds_per_byte, "an exchange inside a kernel");
  }

  /// Returns the time of essential compute in one piece, on all SMs. If kernels of the program move their own tiles,
  /// the copies of experts' rows are not counted: such a kernel needs none, so cutting a GEMM never saves their time.
  [[nodiscard]] Duration unsliced(const Shape& shape) const {
    const auto* gemm = std::get_if<GemmShape>(&shape);
    const int sms = machine_.accelerator.sms;
    return gemm != nullptr && is_bound_ ? without_copies(size_of(*gemm), sms) : time(shape, sms);
  }

 private:
  /// Limits the rows of causal attention to a window: counts only the scores of these queries in the window, and drops
  /// the keys before the first one that any of them sees.
  void see_window(QueryRows& rows, const AttentionShape& shape, const AttentionSize& size,
                  std::span<const Region> queries, const std::vector<std::int32_t>& first) const {
    const AttentionWindow& window = options_.window;
    const auto block = static_cast<double>(sizes_.elements({shape.keys.dimension, 1}) / size.batch);
    double scores = 0.0;
    std::int32_t earliest = first.front();
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const double begin = block * first[i];
      const double end = block * (first[i] + queries[i].rows);
      scores += scores_in_window(window, begin, end);
      rows.beyond += queries_beyond(window, begin, end);
      earliest = std::min(earliest, first[i]);
    }
    const auto keys = static_cast<double>(size.seq);
    rows.share = scores / (keys * keys);
    rows.window = window;
    const auto begin = static_cast<std::int64_t>(block * earliest);
    rows.keys -= std::max<std::int64_t>(0, window.chunked ? begin / window.keys * window.keys : begin - window.keys);
  }

  /// Rows of experts are copied before a separate kernel or summed after it. A kernel whose parts are separate ops is a
  /// bound: it loads rows where they are, and its sums take no time.
  [[nodiscard]] Duration duration_of(const GemmShape& gemm, int sms) const {
    const GemmSize size = size_of(gemm);
    if (is_part_of_kernel(gemm)) {
      return of_kernel(size, kernel_cut_of(gemm).whole, sms);
    }
    return without_copies(size, sms) +
           memory_bound_time(machine_.accelerator, routing_traffic(options_.experts, size), sms);
  }

  [[nodiscard]] GemmSize size_of(const GemmShape& gemm) const { return priced_gemm(gemm, sizes_, options_, heating_); }

  [[nodiscard]] Duration without_copies(const GemmSize& size, int sms) const {
    return estimate_gemm(machine_.accelerator, grouped(options_.experts, size), sms).time;
  }

  /// Returns the time of all queries, cut evenly into whichever number of parts takes the least time. Unfused attention
  /// computes the scores of all keys up to the last query of a part, so under a causal mask the parts compute fewer
  /// scores than the whole, and a bound has to assume the best cut.
  [[nodiscard]] Duration attention_in_parts(const AttentionShape& shape, int sms) const {
    const AttentionSize size = attention_size(shape, sizes_);
    const std::int32_t blocks = shape.keys.blocks;
    const auto rows_of = [&](std::int32_t count) {
      return sizes_.elements({shape.keys.dimension, count}) / size.batch;
    };
    Duration least = Duration::max();
    for (std::int32_t parts = 1; parts <= blocks; ++parts) {
      if (blocks % parts != 0) {
        continue;
      }
      Duration sum{};
      for (std::int32_t part = 1; part <= parts && sum < least; ++part) {
        const std::int32_t last = shape.causal ? part * (blocks / parts) : blocks;
        const double scores = shape.causal ? (2.0 * part - 1.0) / (2.0 * parts * parts) : 1.0 / parts;
        sum += attention_time(machine_.accelerator, options_.attention, size,
                              {.queries = rows_of(blocks / parts), .keys = rows_of(last), .share = scores}, sms);
      }
      least = std::min(least, sum);
    }
    return least;
  }

  /// Returns the time of a kernel of `blocks` blocks whose parts are separate ops. Such a kernel is a bound, so its
  /// time is the least over ways to cut its rows, even if its parts are columns: uncut, cut evenly into a number of
  /// parts that divides its blocks, or cut anywhere between the shards of the ranks.
  [[nodiscard]] Duration of_kernel(GemmSize size, std::int32_t blocks, int sms) const {
    const std::int64_t rows = size.m;
    const auto time_of = [&](std::int64_t m) {
      size.m = m;
      return without_copies(size, sms);
    };
    const std::int32_t ranks = program_.mesh.ranks();
    const std::int32_t shards = blocks % ranks == 0 ? ranks : 1;
    std::vector<Duration> first;  // time of the first 1, 2, ... shards, with the best cuts
    std::vector<Duration> whole;
    for (std::size_t i = 0; i < static_cast<std::size_t>(shards); ++i) {
      whole.push_back(
          time_of(std::min(rows, largest_part({.rows = rows, .parts = shards}) * static_cast<std::int64_t>(i + 1))));
      first.push_back(whole.back());
      for (std::size_t j = 0; j < i; ++j) {
        first.back() = std::min(first.back(), first[j] + whole[i - j - 1]);
      }
    }
    Duration least = first.back();
    for (std::int32_t parts = 2; parts <= blocks; ++parts) {
      if (blocks % parts == 0) {
        least = std::min(least, parts * time_of(largest_part({.rows = rows, .parts = parts})));
      }
    }
    return least;
  }

  [[nodiscard]] Duration duration_of(const ElementwiseShape& elementwise, int sms) const {
    return memory_bound_time(machine_.accelerator, priced_traffic(elementwise, sizes_, options_), sms);
  }

  [[nodiscard]] Duration duration_of(const ExchangeShape& exchange, int) const {
    return p2p_time(machine_.link, load_of(exchange, sizes_));
  }

  [[nodiscard]] Duration duration_of(const CollectiveShape& collective, int) const {
    return duration_of(collective, load_of(collective, sizes_));
  }

  [[nodiscard]] Duration duration_of(const CollectiveShape& collective, Bytes bytes) const {
    const Group group = group_on_axis(program_.mesh, collective.axis, machine_);
    switch (collective.kind) {
      case CollectiveKind::all_gather: return group.all_gather(bytes);
      case CollectiveKind::reduce_scatter: return group.reduce_scatter(bytes);
      case CollectiveKind::all_reduce: return group.all_reduce(bytes);
      case CollectiveKind::all_to_all: return group.all_to_all(bytes);
    }
    return {};
  }

  [[nodiscard]] Duration duration_of(const AttentionShape& attention, int sms) const {
    check(attention.queries == attention.keys, "a shape alone prices the attention of all queries");
    const AttentionSize size = attention_size(attention, sizes_);
    if (options_.attention == AttentionKernel::unfused) {
      return unfused_attention_time(machine_.accelerator, size, sms);
    }
    if (options_.window.keys == 0 || !size.causal) {
      return attention_time(machine_.accelerator, size, sms);
    }
    const auto seq = static_cast<double>(size.seq);
    const QueryRows rows{.queries = size.seq,
                         .keys = size.seq,
                         .share = scores_in_window(options_.window, 0.0, seq) / (seq * seq),
                         .window = options_.window,
                         .beyond = queries_beyond(options_.window, 0.0, seq)};
    return attention_time(machine_.accelerator, size, rows, sms);
  }

  const Program& program_;
  const Sizes& sizes_;
  const Machine& machine_;
  const PriceOptions& options_;
  bool is_bound_;  // some ops are parts of one kernel, whose price is a bound (of_kernel)
  Flops heating_;
};

/// Ensures that a GEMM cut into several kernels takes at least as long as the uncut GEMM. Without this rule, the sum of
/// its parts could be shorter when they fill waves that the uncut GEMM leaves half empty, but no available table shows
/// a gain, and the uncut GEMM could be launched in parts as well. All essential GEMMs of the program are compared
/// together. Parts of one kernel are excluded, with their share of the whole, because they are a bound.
void hold_to_whole(const PricePlan& plan, Duration whole, Costs& costs) {
  for (const PricePlan::CutGemm& part : plan.part_gemms) {
    whole -= part.is_on_first_rank ? costs.undisturbed[part.op] : Duration{};
  }
  Duration cut{};
  for (const PricePlan::CutGemm& gemm : plan.cut_gemms) {
    cut += gemm.is_on_first_rank ? costs.undisturbed[gemm.op] : Duration{};
  }
  if (cut >= whole || cut == Duration{}) {
    return;
  }
  const double factor = static_cast<double>(whole.count()) / static_cast<double>(cut.count());
  for (const PricePlan::CutGemm& gemm : plan.cut_gemms) {
    for (std::vector<Duration>* times : {&costs.duration, &costs.undisturbed}) {
      Duration& time = (*times)[gemm.op];
      time = Duration{static_cast<std::int64_t>(std::ceil(factor * static_cast<double>(time.count())))};
    }
  }
}

constexpr std::size_t op_kinds = static_cast<std::size_t>(OpKind::collective) + 1;

/// Host time that PyTorch needs for a collective, or for a group of sends and receives, as a number of calls of an op.
/// ProcessGroupNCCL adds events and waits from C++: eight H100 return from a reduce-scatter of 1 MiB every 29 us
/// (microsoft/tokenweave, artifact/csvs/figure_5.csv), the time of two ops.
constexpr int eager_calls_of_nccl = 2;

/// Standard deviation of the time at which a rank's Python code reaches the operator, relative to the time of an op.
/// After a synchronization, eight hosts with B200 begin a collective 26 us apart (SemiAnalysisAI/InferenceX, pull
/// request 2422: 113.4 us with a synchronization before it and 87.4 us without), which is 2.847 x 0.65 ops of 14 us.
constexpr double eager_skew = 0.65;

/// Mean distance between the smallest and the largest of 1, 2, 4, ... 1024 normal draws, in standard deviations
/// (Tippett, Biometrika 17, 1925).
constexpr std::array mean_ranges{0.0, 1.128, 2.059, 2.847, 3.532, 4.139, 4.687, 5.189, 5.654, 6.088, 6.496};

/// Returns how long the first of the ranks waits for the last because their hosts reach the operator at different
/// times.
Duration skew_of_hosts(int ranks, Duration eager_cost) {
  const double doublings = std::min(math::log2(ranks), static_cast<double>(mean_ranges.size() - 1));
  const auto below = std::min(static_cast<std::size_t>(doublings), mean_ranges.size() - 2);
  const double above = doublings - static_cast<double>(below);
  const double range = mean_ranges[below] + above * (mean_ranges[below + 1] - mean_ranges[below]);
  return from_seconds(eager_skew * range * to_seconds(eager_cost));
}

/// Host times of the communication library for one call.
struct LibraryCalls {
  Duration exchange;
  Duration collective;
};

/// Returns the times for the ranks on an axis, which are those of the network if some of their groups span nodes: a
/// group whose GPUs are on several nodes exchanges between them whatever the shift.
LibraryCalls library_calls(const Program& program, std::size_t axis, const Machine& machine) {
  if (machine.network && crosses_nodes(program, machine)) {
    const Group group = group_on_axis(program.mesh, static_cast<int>(axis), machine);
    if (group.nodes > 1) {
      return {machine.network->peer.issue_cost.value, group.wires->issue_cost.value};
    }
  }
  return {machine.link.peer.issue_cost.value, machine.link.collective.issue_cost.value};
}

/// Host times of the calls that issue ops, by the axis of a transfer and by kind of op.
using CallCosts = std::array<std::array<Duration, op_kinds>, max_axes>;

/// Returns the times of calls from a stream, or from Python.
CallCosts call_costs(const Program& program, const Machine& machine, bool is_eager) {
  const Duration call = is_eager ? machine.accelerator.eager_cost.value : machine.accelerator.launch_cost.value;
  const Duration calls_of_nccl = is_eager ? eager_calls_of_nccl * call : Duration::zero();
  CallCosts costs{};
  for (std::size_t axis = 0; axis < program.mesh.axes.size(); ++axis) {
    const LibraryCalls library = library_calls(program, axis, machine);
    costs[axis].fill(call);
    costs[axis][static_cast<std::size_t>(OpKind::exchange)] = calls_of_nccl + library.exchange;
    costs[axis][static_cast<std::size_t>(OpKind::collective)] = calls_of_nccl + library.collective;
  }
  return costs;
}

/// Returns the coordinates of the first rank that takes part in an op.
Coordinates first_taking_part(const Program& program, const Op& op) {
  Rank rank = 0;
  while (rank + 1 < program.mesh.ranks() && !op.where.holds(program.mesh.coordinates(rank))) {
    ++rank;
  }
  return program.mesh.coordinates(rank);
}

/// Adds prices by rank for attention whose positions of queries differ by rank.
void add_positions(const PricedProgram& priced, const Pricer& pricer, const Machine& machine, Interference interference,
                   KernelTimes& known, Costs& costs) {
  const auto& [program, meetings, plan] = priced;
  const std::size_t ops = program.ops.size();
  if (plan.differ_by_rank.empty()) {
    return;
  }
  spread_rows(costs, static_cast<std::size_t>(program.mesh.ranks()));
  known.attention_by_rank.resize(static_cast<std::size_t>(program.mesh.ranks()) * ops);
  for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
    const Coordinates coordinates = program.mesh.coordinates(rank);
    const std::size_t first = static_cast<std::size_t>(rank) * ops;
    costs.undisturbed_by_rank.insert(costs.undisturbed_by_rank.end(), costs.undisturbed.begin(),
                                     costs.undisturbed.end());
    for (const std::size_t op : plan.differ_by_rank) {
      if (!program.ops[op].where.holds(coordinates)) {
        continue;
      }
      KernelTimes::Attention& times = known.attention_by_rank[first + op];
      if (times.met == KernelTimes::unknown) {
        const int sms = sms_left(program, machine, meetings[op], interference);
        times = {.met = pricer.attention(program.ops[op], coordinates, sms),
                 .alone = pricer.attention(program.ops[op], coordinates, machine.accelerator.sms)};
      }
      costs.by_rank[first + op] = times.met;
      costs.undisturbed_by_rank[first + op] = times.alone;
    }
  }
}

/// Returns how long a kernel takes beside `communication`, which holds SMs: `met` if the communication lasts as long as
/// the kernel; otherwise the kernel is slower only until the communication ends.
Duration time_beside(Duration alone, Duration met, Duration communication) {
  if (communication >= met) {
    return met;
  }
  const double share = static_cast<double>(communication.count()) / static_cast<double>(met.count());
  return alone + Duration{static_cast<std::int64_t>(share * static_cast<double>((met - alone).count()))};
}

/// Shortens kernels that take longer than all communication that they may meet. `times` has the times of one rank's
/// ops. Requires kernels that take the same time on all ranks: otherwise an exchange holds SMs while it waits for its
/// partner, and its duration does not bound how long it slows kernels.
void end_with_communication(const PricePlan& plan, const Costs& costs, Rank rank, std::span<Duration> times) {
  for (auto first = plan.beside.begin(); first != plan.beside.end();) {
    const std::size_t op = first->op;
    const auto end = std::find_if(first, plan.beside.end(), [&](const auto& beside) { return beside.op != op; });
    const Duration alone = costs.undisturbed_of(rank, op);
    const Duration met = times[op];
    Duration communication{};
    for (; first != end && alone < met; ++first) {
      for (std::size_t at = first->begin; at < first->end && communication < met; ++at) {
        communication += times[plan.sm_holders[at]];
      }
    }
    first = end;
    times[op] = alone < met ? time_beside(alone, met, communication) : met;
  }
}

void end_with_communication(const PricePlan& plan, Costs& costs) {
  const std::size_t ops = plan.ops.size();
  end_with_communication(plan, costs, 0, costs.duration);
  for (std::size_t row = 0; row < costs.by_rank.size(); row += ops) {
    end_with_communication(plan, costs, static_cast<Rank>(row / ops), std::span(costs.by_rank).subspan(row, ops));
  }
}

/// Returns how long the device waits before a launched op. GEMMs and memory-bound kernels were measured between nodes
/// of a graph, so a stream adds to them. Calls of NCCL were measured one after another in a stream, and the fitted
/// overhead of attention includes the work of frameworks around the kernel: both already contain the wait.
Duration gap_before(OpKind kind, const Accelerator& accelerator, Launch launch) {
  if (launch == Launch::graph) {
    return accelerator.graph_node_gap.value;
  }
  return kind == OpKind::gemm || kind == OpKind::elementwise ? accelerator.stream_gap.value : Duration::zero();
}

/// Adds the host's time to issue an op (its call, and an event for every wait on another lane), and the device's wait
/// before it. The counts of an implementation include its waits, and its transfers are one call each. Eager hosts do
/// not begin at the same time: time zero is when the first host begins, and the first op is issued when the last one
/// begins.
void add_issue_costs(const PricePlan& plan, const Program& program, const Machine& machine, const PriceOptions& options,
                     Costs& costs) {
  const Launch launch = options.launch;
  const bool counts_calls =
      launch == Launch::eager && options.implementation != nullptr && is_issued_from_python(*options.implementation);
  const bool has_sums = options.implementation != nullptr && program.mesh.ranks() > 1 && has_switch_sums(program);
  const auto is_launched = [&](std::size_t op) {
    return plan.ops[op].is_launched && !(has_sums && is_inside_switch_sum(program, op));
  };
  const std::size_t ops = plan.ops.size();
  const CallCosts calls = launch == Launch::graph ? CallCosts{} : call_costs(program, machine, launch == Launch::eager);
  std::array<Duration, op_kinds> gaps{};
  for (std::size_t kind = 0; kind < op_kinds; ++kind) {
    gaps[kind] = gap_before(static_cast<OpKind>(kind), machine.accelerator, launch);
  }
  const Duration event = counts_calls ? Duration::zero() : machine.accelerator.event_cost.value;
  costs.issue.resize(ops);
  for (std::size_t op = 0; op < ops; ++op) {
    const PricePlan::OfOp& planned = plan.ops[op];
    const auto kind = static_cast<std::size_t>(planned.kind);
    const Duration gap = is_launched(op) ? gaps[kind] : Duration::zero();
    const bool is_issued = is_launched(op) && launch != Launch::graph;
    const Duration call =
        counts_calls ? machine.accelerator.eager_cost.value : calls[static_cast<std::size_t>(planned.axis)][kind];
    costs.issue[op] = is_issued ? call + planned.other_waits * event : Duration::zero();
    costs.duration[op] += gap;
    costs.undisturbed[op] += gap;
  }
  for (std::vector<Duration>* by_rank : {&costs.by_rank, &costs.undisturbed_by_rank}) {
    for (std::size_t first = 0; first < by_rank->size(); first += ops) {  // one rank after another
      for (std::size_t op = 0; op < ops; ++op) {
        (*by_rank)[first + op] +=
            is_launched(op) ? gaps[static_cast<std::size_t>(plan.ops[op].kind)] : Duration::zero();
      }
    }
  }
  if (launch == Launch::graph && ops > 0) {
    costs.issue.front() = machine.accelerator.graph_launch_cost.value;
  } else if (counts_calls) {
    add_host_calls(program, machine, *options.implementation, costs);
  }
  if (launch == Launch::eager && ops > 0) {
    costs.issue.front() += skew_of_hosts(program.mesh.ranks(), machine.accelerator.eager_cost.value);
  }
}

/// Marks the provenance of every parameter of a described struct.
template <class S, class Mark>
void mark_all(const S& described, const Mark& mark) {
  each_parameter(described, NoNames{}, [&](NoNames, const auto& parameter) { mark(parameter); });
}

/// Marks what a memory-bound kernel depends on.
template <class Mark>
void mark_traffic(const Accelerator& accelerator, const Mark& mark) {
  mark(accelerator.hbm_bandwidth, accelerator.memory_bound_efficiency, accelerator.sm_bandwidth,
       accelerator.kernel_floor);
}

template <class Mark>
void mark_launch(const Accelerator& accelerator, Launch launch, const Mark& mark) {
  if (launch == Launch::graph) {
    mark(accelerator.graph_launch_cost, accelerator.graph_node_gap);
  } else {
    mark(launch == Launch::eager ? accelerator.eager_cost : accelerator.launch_cost, accelerator.event_cost,
         accelerator.stream_gap);
  }
}

/// Marks the rates of a PCIe tree unless a file of wires states them.
template <class Mark>
void mark_tree(const Machine& machine, const Mark& mark) {
  if (machine.plan == nullptr || machine.plan->kind != NodeKind::pcie_tree || machine.plan->wires) {
    return;
  }
  mark(machine.plan->bridge_rate);
  if (machine.plan->root_rate) {
    mark(*machine.plan->root_rate);
  }
}

}  // namespace

std::int64_t launched_ops(const Program& program) {
  const KernelParts parts(program);
  std::int64_t launched = 0;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    launched += parts.launched(program, op) ? 1 : 0;
  }
  return launched;
}

namespace {

/// Returns the number of SMs that an exchange holds: on several nodes, that of a link inside a node or of the network,
/// whichever is larger, because some ranks exchange inside their node and others across nodes.
int ctas_of_exchange(const Program& program, const Machine& machine) {
  const int inside = machine.link.peer.ctas.value;
  return machine.network && crosses_nodes(program, machine) ? std::max(inside, machine.network->peer.ctas.value)
                                                            : inside;
}

}  // namespace

int sms_left(const Program& program, const Machine& machine, const Meetings& meetings, Interference interference) {
  if (interference == Interference::none) {
    return machine.accelerator.sms;
  }
  const CollectiveParameters& ring = collective_over(machine, 0, program.mesh.ranks());
  const int exchange = meetings.exchange ? ctas_of_exchange(program, machine) : 0;
  const int collective = meetings.collective ? ring.ctas.value : 0;
  return std::max(1, machine.accelerator.sms - std::max(exchange, collective));
}

namespace {

/// Returns true if ops of the shape move values between ranks.
bool is_transfer(const Shape& shape) {
  return std::holds_alternative<ExchangeShape>(shape) || std::holds_alternative<CollectiveShape>(shape);
}

template <class IsForgotten>
void forget(const Program& program, const IsForgotten& is_forgotten, KernelTimes& known) {
  for (std::size_t i = 0; i < known.shapes.size(); ++i) {
    if (is_forgotten(program.shapes[i / PricePlan::meetings])) {
      known.shapes[i] = KernelTimes::unknown;
    }
  }
  for (std::size_t i = 0; i < known.unfused.size(); ++i) {
    if (is_forgotten(program.unfused[i])) {
      known.unfused[i] = KernelTimes::unknown;
    }
  }
}

void forget_attention_of_ops(KernelTimes& known) {
  known.attention.clear();
  known.attention_by_rank.clear();
}

}  // namespace

void KernelTimes::forget_gemms(const Program& program) {
  // Attention runs on the same units.
  const auto is_product = [](const Shape& shape) {
    return std::holds_alternative<GemmShape>(shape) || std::holds_alternative<AttentionShape>(shape);
  };
  forget(program, is_product, *this);
  forget_attention_of_ops(*this);
}

void KernelTimes::forget_attention(const Program& program) {
  forget(
      program, [](const Shape& shape) { return std::holds_alternative<AttentionShape>(shape); }, *this);
  forget_attention_of_ops(*this);
}

void KernelTimes::forget_kernels(const Program& program) {
  forget(
      program, [](const Shape& shape) { return !is_transfer(shape); }, *this);
  forget_attention_of_ops(*this);
}

void KernelTimes::forget_all() {
  shapes.clear();
  unfused.clear();
  forget_attention_of_ops(*this);
}

void KernelTimes::forget_transfers(const Program& program) { forget(program, is_transfer, *this); }

void KernelTimes::fit(const Program& program, const PricePlan& plan) {
  shapes.resize(PricePlan::meetings * program.shapes.size(), unknown);
  attention.resize(plan.has_attention ? program.ops.size() : 0);
  unfused.resize(program.unfused.size(), unknown);
}

namespace {

/// Lengthens transfers that share wires with a collective, if there are any. Requires the durations of exchanges.
void add_contention_if_any(const PricedProgram& priced, const Pricer& pricer, const Machine& machine, Costs& costs) {
  const auto& [program, meetings, plan] = priced;
  if (!plan.contends) {
    return;
  }
  Latencies latencies;
  for (const Op& op : program.ops) {
    latencies.by_op.push_back(pricer.latency(program.shapes[op.shape]));
  }
  latencies.by_rank = latencies_by_rank(program, machine, latencies.by_op, costs);
  add_contention(program, meetings, machine, latencies, costs);
}

/// Looks up the times of ops, and computes those that are unknown.
class TimesOfOps {
 public:
  TimesOfOps(const PricedProgram& priced, const Pricer& pricer, const Machine& machine, Interference interference,
             KernelTimes& known)
      : program_(priced.program),
        meetings_(priced.meetings),
        pricer_(pricer),
        machine_(machine),
        interference_(interference),
        known_(known) {}

  /// Returns the time of a shape at a place that PricePlan has numbered.
  Duration at(std::uint32_t place) {
    Duration& time = known_.shapes[place];
    if (time == KernelTimes::unknown) [[unlikely]] {
      const std::uint32_t met = place % PricePlan::meetings;
      const Meetings meetings{.exchange = (met & 1U) != 0, .collective = (met & 2U) != 0};
      time = pricer_.time(program_.shapes[place / PricePlan::meetings],
                          sms_left(program_, machine_, meetings, interference_));
    }
    return time;
  }

  /// Returns the time of an op whose time is not that of its shape; for a part of a kernel, the time of the kernel.
  Duration time_of(std::size_t index, bool is_alone) {
    const Op& op = program_.ops[index];
    const Meetings& met = is_alone ? no_meetings_ : meetings_[index];
    if (op.kind != OpKind::attention) {
      return at(PricePlan::meetings * op.shape + (met.exchange ? 1U : 0U) + (met.collective ? 2U : 0U));
    }
    Duration& time = is_alone ? known_.attention[index].alone : known_.attention[index].met;
    if (time == KernelTimes::unknown) {
      const int sms = sms_left(program_, machine_, met, interference_);
      time = pricer_.attention(op, first_taking_part(program_, op), sms);
    }
    return time;
  }

 private:
  const Program& program_;
  const std::vector<Meetings>& meetings_;
  const Pricer& pricer_;
  const Machine& machine_;
  Interference interference_;
  KernelTimes& known_;
  const Meetings no_meetings_{};
};

/// Sets the times of all ops, before transfers share wires.
void put_times(const PricedProgram& priced, const Pricer& pricer, const Machine& machine, Interference interference,
               KernelTimes& known, Costs& costs) {
  const auto& [program, meetings, plan] = priced;
  TimesOfOps times(priced, pricer, machine, interference, known);
  const std::vector<double> in_kernels =
      plan.moves_in_kernels ? seconds_per_byte_in_kernel(program, machine) : std::vector<double>{};
  costs.duration.resize(plan.ops.size());
  costs.undisturbed.resize(plan.ops.size());
  for (std::size_t op = 0; op < plan.ops.size(); ++op) {
    const PricePlan::OfOp& planned = plan.ops[op];
    if (planned.met != PricePlan::own_time) {
      costs.duration[op] = times.at(planned.met);
      costs.undisturbed[op] = times.at(planned.alone);
    } else if (in_kernel(program, op)) {
      costs.duration[op] = pricer.time_in_kernel(program.shapes[program.ops[op].shape], in_kernels.at(op));
      costs.undisturbed[op] = costs.duration[op];
    } else {
      costs.duration[op] = plan.parts.share(program, op, times.time_of(op, false));
      costs.undisturbed[op] = plan.parts.share(program, op, times.time_of(op, true));
    }
  }
}

void put_prices(const PricedProgram& priced, const Sizes& sizes, const Machine& machine, const PriceOptions& options,
                bool alone, KernelTimes& known, Costs& costs) {
  const auto& [program, meetings, plan] = priced;
  const Pricer pricer(program, sizes, machine, options);
  costs.by_rank.clear();
  costs.undisturbed_by_rank.clear();
  costs.compute = Duration{};
  known.fit(program, plan);
  put_times(priced, pricer, machine, options.interference, known, costs);
  Duration gemm_time{};
  for (std::size_t i = 0; i < program.unfused.size(); ++i) {
    const Shape& shape = program.unfused[i];
    Duration& whole = known.unfused[i];
    if (whole == KernelTimes::unknown) {
      whole = pricer.unsliced(shape);
    }
    const OpKind kind = std::holds_alternative<AttentionShape>(shape)     ? OpKind::attention
                        : std::holds_alternative<ElementwiseShape>(shape) ? OpKind::elementwise
                                                                          : OpKind::gemm;
    costs.compute += gap_before(kind, machine.accelerator, options.launch) + whole;
    gemm_time += std::holds_alternative<GemmShape>(shape) ? whole : Duration{};
  }
  hold_to_whole(plan, gemm_time, costs);
  alone ? price_exchanges_alone(program, sizes, machine, costs)
        : price_exchanges(program, meetings, plan.shared_ports, sizes, machine, costs);
  add_contention_if_any(priced, pricer, machine, costs);
  add_positions(priced, pricer, machine, options.interference, known, costs);
  if (options.interference == Interference::constant && plan.differ_by_rank.empty()) {
    end_with_communication(plan, costs);
  }
  if (options.implementation != nullptr) {
    implement(program, sizes, machine, options, costs);
  }
  add_issue_costs(plan, program, machine, options, costs);
}

}  // namespace

Costs price(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes, const Machine& machine,
            const PriceOptions& options) {
  if (options.interference == Interference::dynamic) {
    return price_alone(program, contenders_of(meetings), sizes, machine, options);
  }
  KernelTimes known;
  Costs costs;
  price({program, meetings, price_plan(program, meetings)}, sizes, machine, options, known, costs);
  return costs;
}

void price(const PricedProgram& priced, const Sizes& sizes, const Machine& machine, const PriceOptions& options,
           KernelTimes& known, Costs& costs) {
  check(options.interference != Interference::dynamic, "kernel times are reused only if interference is not dynamic");
  check(priced.plan.ops.size() == priced.program.ops.size(), "the plan belongs to the program");
  put_prices(priced, sizes, machine, options, false, known, costs);
}

bool kernels_are_the_same(const PricedProgram& priced, const Sizes& sizes, const Machine& machine,
                          const PriceOptions& options, const KernelTimes& nominal, KernelTimes& known) {
  const Program& program = priced.program;
  if (options.implementation != nullptr || priced.plan.has_attention) {
    return false;
  }
  const Pricer pricer(program, sizes, machine, options);
  TimesOfOps times(priced, pricer, machine, options.interference, known);
  for (std::size_t place = 0; place < nominal.shapes.size(); ++place) {
    if (nominal.shapes[place] != KernelTimes::unknown) {
      times.at(static_cast<std::uint32_t>(place));
    }
  }
  for (std::size_t i = 0; i < nominal.unfused.size(); ++i) {
    if (known.unfused[i] == KernelTimes::unknown) {
      known.unfused[i] = pricer.unsliced(program.unfused[i]);
    }
  }
  return known.shapes == nominal.shapes && known.unfused == nominal.unfused;
}

Costs price_alone(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes,
                  const Machine& machine, const PriceOptions& options) {
  KernelTimes known;
  Costs costs;
  put_prices({program, meetings, price_plan(program, meetings)}, sizes, machine, options, true, known, costs);
  return costs;
}

Provenances provenances_of(const Program& program, const Machine& machine, const PriceOptions& options) {
  Provenances kinds{};
  const auto mark = [&](const auto&... parameters) {
    ((kinds[static_cast<std::size_t>(parameters.provenance)] = true), ...);
  };
  const bool shared = shares_wires(program);
  const auto mark_peer = [&](const PeerParameters& peer) {
    const auto& [latency, rate, aggregate, ctas, issue, small, fit] = peer;
    mark(latency, rate, ctas, issue);
    if (small) {
      const auto& [up_to, small_latency, small_rate] = *small;
      mark(up_to, small_latency, small_rate);
    }
    if (shared) {
      mark(aggregate);
    }
  };
  const Accelerator& accelerator = machine.accelerator;
  const bool communicates = std::ranges::any_of(program.shapes, [](const Shape& shape) {
    return std::holds_alternative<ExchangeShape>(shape) || std::holds_alternative<CollectiveShape>(shape);
  });
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const Shape& shape = program.shapes[program.ops[op].shape];
    if (in_kernel(program, op)) {
      mark(machine.link.nominal_rate);
      if (crosses_nodes(program, machine)) {
        mark(machine.network->nominal_rate);
      }
    } else if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
      mark_gemm(accelerator, gemm->dtype, options, kinds);
      if (options.experts.count > 0) {
        mark_traffic(accelerator, mark);
      }
    } else if (const auto* core = std::get_if<AttentionShape>(&shape);
               core != nullptr && options.attention == AttentionKernel::unfused) {
      mark_gemms_of_scores(accelerator, core->dtype, kinds);
      mark(accelerator.memory_bound_efficiency);
    } else if (const auto* attention = std::get_if<AttentionShape>(&shape)) {
      mark(accelerator.matrix_unit(attention->dtype).dense_peak, accelerator.hbm_bandwidth, accelerator.sm_bandwidth,
           accelerator.kernel_floor);
      mark_all(accelerator.attention, mark);
    } else if (std::holds_alternative<ElementwiseShape>(shape)) {
      mark_traffic(accelerator, mark);
    } else if (std::holds_alternative<ExchangeShape>(shape)) {
      mark_peer(machine.link.peer);
      if (crosses_nodes(program, machine)) {
        mark_peer(machine.network->peer);
      }
    } else {
      const auto& collective = std::get<CollectiveShape>(shape);
      const Group group = group_on_axis(program.mesh, collective.axis, machine);
      mark_collective(*group.wires, collective.kind, group.ranks, group.spreads, group.nodes, kinds);
      if (collective.kind == CollectiveKind::all_to_all && group.nodes > 1) {
        mark_peer(machine.network->peer);
      }
    }
  }
  if (communicates) {
    mark_tree(machine, mark);
  }
  if (options.implementation != nullptr) {
    mark_all(*options.implementation, mark);
  }
  mark_launch(accelerator, options.launch, mark);
  return kinds;
}

}  // namespace commfuse
